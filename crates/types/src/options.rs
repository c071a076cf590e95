//! The table of all options: the one place that says which there are.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use crate::from_value::FromValue;
use crate::host::Host;
use crate::index_choice::IndexChoice;
use crate::inputs::{Inputs, PREFIX};
use crate::quantization_choice::QuantizationChoice;
use crate::resolve::{Setting, resolve};
use crate::value::{Kind, LogFormat, Unsynced, Value, WalSyncMethod};

/// Whether the feature that an option steers is in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The option is read.
    Now,
    /// The option is known, and refused unless it stays at its default.
    NotYet,
}

/// What an option is when nobody sets it.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// This text.
    Text(&'static str),
    /// What the machine says; the text describes it.
    Host(&'static str, fn(&Host) -> String),
}

/// One option. Its key `hnsw_m` is the flag `--hnsw-m`, the variable `LONGBOW_HNSW_M` and the file's key `hnsw_m`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// In lower snake case.
    pub key: &'static str,
    /// The flag, without dashes, in kebab case.
    pub flag: String,
    /// The environment variable.
    pub variable: String,
    /// Further keys that mean the same.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: Kind,
    /// What it is when nobody sets it.
    pub fallback: Fallback,
    /// Whether this version reads it.
    pub availability: Availability,
    /// What it does, in a sentence.
    pub meaning: &'static str,
}

/// The environment variable of a key.
pub(crate) fn variable(key: &str) -> String {
    format!("{}{}", PREFIX, key.to_ascii_uppercase())
}

/// The flag of a key, without dashes.
pub(crate) fn flag(key: &str) -> String {
    key.replace('_', "-")
}

impl Spec {
    fn new(
        (key, aliases): (&'static str, &'static [&'static str]),
        kind: Kind,
        fallback: Fallback,
        availability: Availability,
        meaning: &'static str,
    ) -> Spec {
        let (flag, variable, meaning) = (flag(key), variable(key), meaning.trim());
        Spec {
            key,
            flag,
            variable,
            aliases,
            kind,
            fallback,
            availability,
            meaning,
        }
    }

    /// The default as text, on this machine.
    pub fn default_text(&self, host: &Host) -> String {
        match self.fallback {
            Fallback::Text(text) => text.to_owned(),
            Fallback::Host(_, ask) => ask(host),
        }
    }

    /// The default in words that hold on any machine.
    pub fn default_words(&self) -> &'static str {
        match self.fallback {
            Fallback::Text(text) => text,
            Fallback::Host(words, _) => words,
        }
    }
}

/// Makes [`Config`] and [`OPTIONS`] from one table, so that they can't differ.
macro_rules! options {
    (
        now { $(#[doc = $doc:literal] $key:ident $(or $alias:literal)?: $type:ty, $kind:expr, $fallback:expr;)+ }
        not_yet { $(#[doc = $later_doc:literal] $later:ident: $later_kind:expr, $later_default:literal;)+ }
    ) => {
        /// Every setting that this version reads. `Config::default()` has the defaults of this machine.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = $doc] pub $key: $type,)+
        }

        impl Config {
            /// The name of each setting, its value as text, and what it does.
            pub fn texts(&self) -> Vec<(&'static str, String, &'static str)> {
                vec![$((stringify!($key), text_of(&self.$key), $doc.trim()),)+]
            }

            /// Takes the fields from settings, one for each option of the table.
            pub(crate) fn from_settings(settings: &[Setting]) -> Config {
                Config { $($key: field(settings, stringify!($key)),)+ }
            }
        }

        /// All options, those of [`Config`] first.
        pub static OPTIONS: LazyLock<Vec<Spec>> = LazyLock::new(|| vec![
            $(Spec::new((stringify!($key), &[$($alias)?]), $kind, $fallback, Availability::Now, $doc),)+
            $(Spec::new(
                (stringify!($later), &[]), $later_kind, Fallback::Text($later_default), Availability::NotYet, $later_doc,
            ),)+
        ]);
    };
}

/// A value of any setting in words.
fn text_of(value: &dyn std::fmt::Debug) -> String {
    format!("{value:?}").trim_matches('"').to_owned()
}

fn field<T: FromValue>(settings: &[Setting], key: &str) -> T {
    let setting = settings.iter().find(|setting| setting.spec.key == key);
    setting
        .and_then(|setting| T::from_value(&setting.value))
        .unwrap_or_else(|| panic!("the table's kind of {key} does not fit its field: a test of the table rules this out"))
}

impl Default for Config {
    fn default() -> Config {
        let inputs = Inputs {
            flags: vec![],
            environment: vec![],
            file: None,
            host: Host::probe(),
        };
        // Defaults are refused by nothing, which a test shows.
        resolve(&inputs).expect("the defaults are valid").config()
    }
}

/// Three quarters: the rest is for the operating system's caches, the allocator's slack and requests under way.
fn memory_default(host: &Host) -> String {
    let bytes = (host.memory / 4 * 3).clamp(MIN_MEMORY, MAX_BYTES);
    Value::Bytes(bytes >> 20 << 20).to_string()
}

fn log_format_default(host: &Host) -> String {
    if host.terminal { "console" } else { "json" }.to_owned()
}

const MIN_MEMORY: u64 = 64 << 20;
const MAX_BYTES: u64 = 64 << 40;
const HOUR: u64 = 3_600_000;
const MAX_MESSAGE: u64 = (1 << 31) - 1;

use Fallback::{Host as Ask, Text};
use Kind::{Addr, Bytes, Choice, Flag, Float, Int, List, Name, Path, Span};

options! {
    now {
        /// The data server: Arrow Flight, for transfers.
        listen_addr: SocketAddr, Addr, Text("127.0.0.1:3000");
        /// The meta server: Arrow Flight, for status, schemas and actions.
        meta_addr: SocketAddr, Addr, Text("127.0.0.1:3001");
        /// HTTP: metrics and health.
        metrics_addr: SocketAddr, Addr, Text("127.0.0.1:9090");
        /// Allows addresses that other machines can reach, without TLS and authentication.
        insecure: bool, Flag, Text("false");
        /// The name of this node.
        node_id: String, Name, Ask("the host's name", |host| host.name.clone());
        /// The folder that holds all data; one process at a time.
        data_path: PathBuf, Path, Text("./data");
        /// The folder in which backups are made, each in a folder of its own.
        backup_path: PathBuf, Path, Text("./backups");
        /// How the log's lines are written.
        log_format: LogFormat, Choice(&["json", "console"]), Ask("json; console on a terminal", log_format_default);
        /// The least severe lines that are logged.
        log_level: String, Choice(&["error", "warn", "info", "debug", "trace"]), Text("info");
        /// The largest Flight message taken.
        grpc_max_recv_msg_size: usize, Bytes(1 << 20, MAX_MESSAGE), Text("512MiB");
        /// The largest Flight message sent.
        grpc_max_send_msg_size: usize, Bytes(1 << 20, MAX_MESSAGE), Text("512MiB");
        /// Calls at once on one connection.
        grpc_max_concurrent_streams: u32, Int(1, 100_000), Text("250");
        /// How often an idle connection is asked whether it lives.
        grpc_keepalive_time: Duration, Span(1000, 24 * HOUR), Text("2h");
        /// True: the log is synced continuously behind the acknowledgements. False: before each of them.
        storage_async_fsync: bool, Flag, Text("true");
        /// The most that may be acknowledged and not yet synced, in bytes and age; past either, acknowledgements wait.
        wal_max_unsynced: Unsynced, Kind::Unsynced, Text("256MiB,1s");
        /// How the log is synced; none: only by checkpoints and a clean stop, so that a power loss may take what came since.
        wal_sync_method: WalSyncMethod, Choice(&["fdatasync", "dsync", "none"]), Text("fdatasync");
        /// Entries gathered into one write of the log: an entry is a batch of rows that was put, or a deletion.
        doput_batch_size or "storage_doput_batch_size": usize, Int(1, 100_000), Text("100");
        /// Batches made ready ahead of a reader.
        doget_pipeline_depth: usize, Int(1, 1024), Text("8");
        /// The size of one file of the log.
        wal_segment_size: u64, Bytes(64 << 10, 4 << 30), Text("64MiB");
        /// The age at which a new file of the log is begun, however small the last one is; 0: at any age.
        wal_segment_age: Duration, Span(0, 365 * 24 * HOUR), Text("1h");
        /// How long entries of the log stay after the checkpoint that made them needless, for followers who come late.
        wal_retention_age: Duration, Span(0, 365 * 24 * HOUR), Text("0");
        /// The most that is kept of the log for its age, or for followers that still have to read it.
        wal_retention_size: u64, Bytes(0, MAX_BYTES), Text("1GiB");
        /// Writes that may wait for the log. From half of it on clients are told to slow down, beyond it writes are refused.
        wal_max_queued: u64, Bytes(1 << 20, MAX_BYTES), Text("1GiB");
        /// How long a write of the log waits for more to write.
        wal_linger: Duration, Span(0, 1000), Text("0");
        /// A checkpoint is made this often, and once indexes are complete or the node is stopped, if it saves more than 5 seconds of indexing; 0: only by size.
        snapshot_interval: Duration, Span(0, 30 * 24 * HOUR), Text("1h");
        /// A checkpoint is made when the log is this large.
        max_wal_size: u64, Bytes(1 << 20, MAX_BYTES), Text("1GiB");
        /// New rows are moved from memory into a file of this size when they fill one.
        storage_segment_size: u64, Bytes(64 << 10, 4 << 30), Text("128MiB");
        /// How often files and graphs are looked over for deleted and replaced rows, to be written anew without them.
        compact_interval: Duration, Span(100, 24 * HOUR), Text("5s");
        /// Where vectors are found, unless the column's field says so by `longbow.index`: a graph in memory (hnsw); postings in a file with a little memory for each row (spfresh); by a scan of all rows (flat); or by one of these as the rows and the memory limit are, moved from one to another as these change (auto).
        vector_index: IndexChoice, Choice(&["flat", "hnsw", "spfresh", "auto"]), Text("hnsw");
        /// What a graph holds of each vector, unless the column's field says so by `longbow.quantization`: codes, also of edges (rabitq) or not (sq8: less memory, slower), an HNSW graph where they cannot be; or all of it (none: HNSW). Auto: rabitq from 96 dimensions on.
        quantization: QuantizationChoice, Choice(&["auto", "rabitq", "sq8", "none"]), Text("auto");
        /// Candidates looked at when a row is put into a graph of codes.
        rabitq_ef_construction: usize, Int(8, 4096), Text("160");
        /// Shards of an index in postings, by row: threads that insert into different ones wait for each other only to write to the file, and long searches are read by as many threads as there are shards, or cores if these are fewer; but what is near a query is then in a posting of each. An index that there is keeps the number that it was made with.
        spfresh_shards: usize, Int(1, 64), Text("1");
        /// Neighbours of a row in an HNSW graph; graphs of codes (see quantization) have a number of their own.
        hnsw_m: usize, Int(2, 128), Text("16");
        /// Candidates looked at when a row is put into an HNSW graph; for graphs of codes it is rabitq_ef_construction.
        hnsw_ef_construction: usize, Int(8, 4096), Text("200");
        /// Candidates looked at by a search of any graph that doesn't say how many.
        hnsw_ef_search: usize, Int(1, 65_536), Text("50");
        /// Share of one core that measures the recall of searches and calibrates indexes for recall targets. 0 for neither.
        recall_share: f64, Float(0.0, 1.0), Text("0.02");
        /// What the vector counts in a hybrid search that does not say: 1 is the vector alone, 0 the text alone, between both are fused; below 0 it is chosen by the length of the query.
        hybrid_alpha: f64, Float(-1.0, 1.0), Text("0.5");
        /// The columns that full text is searched in, unless a column's field says so by `longbow.text`; empty: all string columns but `id`.
        hybrid_text_columns: Vec<String>, List, Text("");
        /// Searches and SQL statements that take as long are logged, with what they did. 0 for none.
        slow_query: Duration, Span(0, 24 * HOUR), Text("1s");
        /// The memory that running SQL statements may take together for sorting, joining and grouping.
        sql_memory_limit: usize, Bytes(1 << 20, MAX_BYTES), Text("256MiB");
        /// How long a SQL statement may run, its client's reading included. 0 for ever.
        sql_timeout: Duration, Span(0, 24 * HOUR), Text("5m");
        /// The longest SQL statement.
        sql_max_length: usize, Bytes(1 << 10, 64 << 20), Text("4MiB");
        /// Threads that build indexes.
        index_workers: usize, Int(1, 1024), Ask("the number of cores", |host| host.cores.min(1024).to_string());
        /// Pieces of work, of 256 rows each, that may wait for the index threads.
        index_queue_size: usize, Int(1, 10_000_000), Text("10000");
        /// The memory that data, indexes and requests may take.
        memory_limit or "max_memory": u64, Bytes(MIN_MEMORY, MAX_BYTES),
            Ask("three quarters of the machine's or the cgroup's memory", memory_default);
    }
    not_yet {
        /// The part of the memory limit at which data moves to disk.
        eviction_threshold: Float(0.0, 1.0), "0.9";
        /// Joins a cluster.
        gossip_enabled: Flag, "false";
        /// The port of gossip, UDP.
        gossip_port: Int(1, 65_535), "7946";
        /// How often a node gossips.
        gossip_interval: Span(1, HOUR), "200ms";
        /// The size of a gossip packet.
        gossip_batch_size: Bytes(256, 65_507), "1400";
        /// The address that other nodes reach this one by.
        gossip_advertise_addr: Name, "127.0.0.1";
        /// Nodes to greet at the start.
        gossip_static_peers: List, "";
        /// How further nodes are found.
        gossip_discovery_provider: Choice(&["static", "dns"]), "static";
        /// The name that lists the nodes.
        gossip_dns_record: Kind::Text, "";
        /// Calls a second that are let through; 0: all.
        rate_limit_rps: Int(0, 1_000_000_000), "0";
        /// Calls that may come at once above the rate.
        rate_limit_burst: Int(0, 1_000_000_000), "0";
        /// Rows expire this long after their `timestamp`; 0: never.
        ttl: Span(0, u64::MAX), "0";
        /// The bucket for snapshots.
        s3_bucket: Kind::Text, "";
        /// The folder in the bucket.
        s3_prefix: Kind::Text, "";
        /// The bucket's region.
        s3_region: Kind::Text, "";
        /// The address of an S3-compatible store.
        s3_endpoint: Kind::Text, "";
        /// Puts the bucket's name into the path instead of the host name.
        s3_use_path_style: Flag, "false";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_default_is_allowed_on_any_machine() {
        let small = Host {
            name: "s".into(),
            memory: 1 << 20,
            cores: 1,
            terminal: true,
        };
        let large = Host {
            name: "l".into(),
            memory: u64::MAX,
            cores: 100_000,
            terminal: false,
        };
        for host in [small, large, Host::example(), Host::probe()] {
            for spec in OPTIONS.iter() {
                let text = spec.default_text(&host);
                assert!(
                    spec.kind.parse(&text).is_some(),
                    "{}: {text:?} on {host:?}",
                    spec.key
                );
            }
            let inputs = Inputs {
                flags: vec![],
                environment: vec![],
                file: None,
                host,
            };
            resolve(&inputs).expect("defaults").config();
        }
    }

    #[test]
    fn the_ends_of_every_range_fit_the_field() {
        for spec in OPTIONS
            .iter()
            .filter(|spec| spec.availability == Availability::Now)
        {
            let ends = match spec.kind {
                Kind::Int(min, max) | Kind::Bytes(min, max) => [min.to_string(), max.to_string()],
                Kind::Span(min, max) => [format!("{min}ms"), format!("{max}ms")],
                _ => continue,
            };
            for end in ends {
                let flags = vec![(spec.flag.clone(), end)];
                let inputs = Inputs {
                    flags,
                    environment: vec![],
                    file: None,
                    host: Host::example(),
                };
                resolve(&inputs).expect("in range").config();
            }
        }
    }

    #[test]
    fn names_are_unique_and_meanings_are_sentences() {
        let mut names = HashSet::new();
        for spec in OPTIONS.iter() {
            for name in std::iter::once(&spec.key).chain(spec.aliases) {
                assert!(names.insert(*name), "{name} is there twice");
            }
            assert!(
                spec.meaning.ends_with('.') && spec.meaning.len() > 10,
                "{}: {:?}",
                spec.key,
                spec.meaning
            );
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let inputs = Inputs {
            flags: vec![],
            environment: vec![],
            file: None,
            host: Host::example(),
        };
        let config = resolve(&inputs).expect("defaults").config();
        assert_eq!(config.listen_addr.to_string(), "127.0.0.1:3000");
        assert_eq!(config.grpc_max_recv_msg_size, 536_870_912);
        assert_eq!(
            config.wal_max_unsynced,
            Unsynced {
                bytes: 256 << 20,
                age: Duration::from_secs(1)
            }
        );
        assert_eq!(
            (
                config.hnsw_m,
                config.hnsw_ef_construction,
                config.hnsw_ef_search
            ),
            (16, 200, 50)
        );
        assert_eq!(config.index_workers, 4);
        assert_eq!(config.memory_limit, 6 << 30);
        assert_eq!(config.log_format, LogFormat::Json);
        assert!(config.storage_async_fsync && !config.insecure);
    }
}

//! `longbow capacity`: what a load takes of disk, network and memory.
//!
//! The plain formulas count payloads alone:
//!
//! * disk a day = writes a second × entry × 86,400 × replication
//! * network = writes a second × entry × (replication − 1), from leaders to followers
//! * memory of a node = base + active segments × segment size + subscribers × 10 MB
//!
//! The framed figures count what Longbow really writes: an entry has a header and is padded to a multiple of 8 bytes, and
//! a segment file has a header and a rest that the next entry did not fit into. Memory is the same in both: a segment's
//! size includes its framing, and its pages belong to the system's page cache, which gives them up when they are needed
//! elsewhere.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches};
use serde::Serialize;

use crate::args::{count, size};
use crate::out::{BAD_CONFIGURATION, complain, print};
use longbow_log::{EMPTY_SEGMENT_BYTES, frame_bytes};

const SECONDS_A_DAY: u128 = 86_400;

/// What a subscriber takes of memory.
const SUBSCRIBER_BYTES: u128 = 10_000_000;

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Entries written in a second, in the whole cluster.
    pub writes_per_second: u64,
    /// Payload bytes of an entry.
    pub entry_bytes: u64,
    /// Copies of each entry.
    pub replication: u64,
    /// Days that entries are kept.
    pub retention_days: u64,
    /// Nodes in the cluster.
    pub nodes: u64,
    /// Segments that a node works on at once.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment_size: u64,
    /// Subscribers of a node.
    pub subscribers: u64,
    /// Bytes that a node takes before all else.
    pub base_memory: u64,
}

/// What it takes. Bytes, and bytes a second. A node's share supposes that shards are spread evenly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Disk that a day fills, in the whole cluster.
    pub disk_per_day: u128,
    /// Disk for all days that are kept, in the whole cluster.
    pub disk: u128,
    /// The same on each node, rounded up.
    pub disk_per_node: u128,
    /// What all leaders together send to their followers in a second.
    pub network_per_s: u128,
    /// What a node sends in a second, rounded up; it receives as much from other leaders.
    pub network_per_node_per_s: u128,
    /// Memory of all nodes.
    pub memory: u128,
    /// Memory of a node.
    pub memory_per_node: u128,
}

impl Load {
    /// By payloads alone.
    pub fn plain(&self) -> Needs {
        let entry = u128::from(self.entry_bytes);
        self.needs(self.entries_a_day() * entry, entry)
    }

    /// With what Longbow puts around them.
    pub fn framed(&self) -> Needs {
        let frame = frame_bytes(self.entry_bytes);
        let room = self.segment_size.saturating_sub(EMPTY_SEGMENT_BYTES);
        // An entry that is larger than a segment gets one of its own, as large as it takes.
        let per_segment = u128::from((room / frame).max(1));
        let segment = self.segment_size.max(EMPTY_SEGMENT_BYTES + frame);
        let segments_a_day = self.entries_a_day().div_ceil(per_segment);
        self.needs(segments_a_day * u128::from(segment), u128::from(frame))
    }

    fn entries_a_day(&self) -> u128 {
        u128::from(self.writes_per_second) * SECONDS_A_DAY
    }

    /// From the bytes of one copy of a day, and of one entry on the network.
    fn needs(&self, copy_of_a_day: u128, entry: u128) -> Needs {
        let nodes = u128::from(self.nodes);
        let replication = u128::from(self.replication);
        let disk_per_day = copy_of_a_day * replication;
        let disk = disk_per_day * u128::from(self.retention_days);
        let network = u128::from(self.writes_per_second) * entry * (replication - 1);
        let memory = u128::from(self.base_memory)
            + u128::from(self.segments) * u128::from(self.segment_size)
            + u128::from(self.subscribers) * SUBSCRIBER_BYTES;
        Needs {
            disk_per_day,
            disk,
            disk_per_node: disk.div_ceil(nodes),
            network_per_s: network,
            network_per_node_per_s: network.div_ceil(nodes),
            memory: memory * nodes,
            memory_per_node: memory,
        }
    }
}

/// The command.
pub fn command() -> clap::Command {
    clap::Command::new("capacity")
        .about("What a load takes of disk, network and memory")
        .arg_required_else_help(true)
        .args([
            count(
                "writes-per-second",
                "Entries written in a second, in the whole cluster",
                1,
                1_000_000_000,
            )
            .required(true),
            size("entry-bytes", "Payload of an entry", 1, 1 << 30).required(true),
            count("replication", "Copies of each entry", 1, 100).default_value("1"),
            count("retention-days", "Days that entries are kept", 1, 36_500).required(true),
            count(
                "nodes",
                "Nodes in the cluster [default: as many as copies]",
                1,
                10_000,
            ),
            count(
                "segments",
                "Segments that a node works on at once",
                0,
                1_000_000,
            )
            .default_value("10"),
            size("segment-size", "Bytes of a segment", 64 << 10, 4 << 30).default_value("64MiB"),
            count("subscribers", "Subscribers of a node", 0, 1_000_000).default_value("0"),
            size(
                "base-memory",
                "Memory that a node takes before all else",
                0,
                1 << 40,
            )
            .default_value("500MB"),
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Prints JSON"),
        ])
}

/// What a command line asks for: the load, and whether as JSON.
pub fn load(matches: &ArgMatches) -> Result<(Load, bool), String> {
    let given = |name: &str| matches.get_one::<u64>(name).copied();
    // Each of these has a default or is required.
    let get = |name: &str| given(name).unwrap_or_default();
    let load = Load {
        writes_per_second: get("writes-per-second"),
        entry_bytes: get("entry-bytes"),
        replication: get("replication"),
        retention_days: get("retention-days"),
        nodes: given("nodes").unwrap_or_else(|| get("replication")),
        segments: get("segments"),
        segment_size: get("segment-size"),
        subscribers: get("subscribers"),
        base_memory: get("base-memory"),
    };
    if load.replication > load.nodes {
        return Err(format!(
            "--replication {} needs as many nodes at least, and --nodes is {}: two copies on one node are one",
            load.replication, load.nodes
        ));
    }
    Ok((load, matches.get_flag("json")))
}

/// Prints what a load takes.
pub fn run(asked: Result<(Load, bool), String>) -> ExitCode {
    let (load, json) = match asked {
        Ok(asked) => asked,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    if !json {
        return print(&text(&load));
    }
    match serde_json::to_string_pretty(&Answer::to(load)) {
        Ok(answer) => print(&answer),
        Err(error) => complain(&format!("cannot write the answer: {error}"), 1),
    }
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Answer {
    load: Load,
    /// What an entry takes in the log.
    frame_bytes: u64,
    plain: Needs,
    framed: Needs,
}

impl Answer {
    fn to(load: Load) -> Answer {
        Answer {
            frame_bytes: frame_bytes(load.entry_bytes),
            plain: load.plain(),
            framed: load.framed(),
            load,
        }
    }
}

/// One of the figures.
type Figure = fn(&Needs) -> u128;

fn text(load: &Load) -> String {
    let (plain, framed) = (load.plain(), load.framed());
    let lines: [(&str, Figure, bool); 7] = [
        ("disk a day, cluster", |needs| needs.disk_per_day, false),
        ("disk, cluster", |needs| needs.disk, false),
        ("disk, a node", |needs| needs.disk_per_node, false),
        ("network, cluster", |needs| needs.network_per_s, true),
        (
            "network, a node",
            |needs| needs.network_per_node_per_s,
            true,
        ),
        ("memory, cluster", |needs| needs.memory, false),
        ("memory, a node", |needs| needs.memory_per_node, false),
    ];
    let mut text = format!(
        "{:<22}{:>26}{:>26}",
        "", "payloads alone", "with Longbow's framing"
    );
    for (name, figure, rate) in lines {
        let show = |needs: &Needs| {
            let bytes = figure(needs);
            if rate {
                per_second(bytes)
            } else {
                decimal(bytes, "B")
            }
        };
        // Writing into a string can't fail.
        let _ = write!(
            text,
            "\n{name:<22}{:>26}{:>26}",
            show(&plain),
            show(&framed)
        );
    }
    let _ = write!(
        text,
        "\n\nAn entry of {} bytes takes {} in the log. Shards are supposed to be spread evenly over the nodes; a node sends \
         as much as it receives.",
        load.entry_bytes,
        frame_bytes(load.entry_bytes)
    );
    text
}

fn per_second(bytes: u128) -> String {
    format!("{}/s ({}/s)", decimal(bytes, "B"), decimal(bytes * 8, "b"))
}

/// With a decimal prefix and two places at most.
pub fn decimal(value: u128, unit: &str) -> String {
    let prefixes = ["", "k", "M", "G", "T", "P", "E"];
    let mut scaled = value as f64;
    let mut prefix = 0;
    while scaled >= 1000.0 && prefix + 1 < prefixes.len() {
        scaled /= 1000.0;
        prefix += 1;
    }
    let digits = format!("{scaled:.2}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {}{unit}", prefixes[prefix])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Load, String> {
        let matches = command()
            .no_binary_name(true)
            .try_get_matches_from(line.split(' '))
            .map_err(|error| error.to_string())?;
        load(&matches).map(|(load, _)| load)
    }

    const BASE: &str = "--entry-bytes 1KiB --replication 3 --retention-days 5 --nodes 3";

    #[test]
    fn ten_thousand_kilobytes_a_second_three_times_fill_2_65_tb_a_day() {
        let load = read(&format!("--writes-per-second 10000 {BASE}")).expect("valid");
        let needs = load.plain();
        assert_eq!(needs.disk_per_day, 2_654_208_000_000);
        assert_eq!(decimal(needs.disk_per_day, "B"), "2.65 TB");
        assert_eq!(needs.disk, 13_271_040_000_000);
        assert_eq!(needs.disk_per_node, 4_423_680_000_000);
    }

    #[test]
    fn fifty_thousand_kilobytes_a_second_to_two_followers_are_102_4_mb_a_second() {
        let load = read(&format!("--writes-per-second 50000 {BASE}")).expect("valid");
        let needs = load.plain();
        assert_eq!(needs.network_per_s, 102_400_000);
        assert_eq!(per_second(needs.network_per_s), "102.4 MB/s (819.2 Mb/s)");
        assert_eq!(needs.network_per_node_per_s, 34_133_334);
    }

    #[test]
    fn ten_segments_and_a_hundred_subscribers_take_2_14_gb() {
        let line = format!(
            "--writes-per-second 1 {BASE} --base-memory 500MB --segments 10 --segment-size 64MB --subscribers 100"
        );
        let needs = read(&line).expect("valid").plain();
        assert_eq!(needs.memory_per_node, 2_140_000_000);
        assert_eq!(decimal(needs.memory_per_node, "B"), "2.14 GB");
        assert_eq!(needs.memory, 6_420_000_000);
    }

    #[test]
    fn framing_counts_headers_padding_and_the_rest_of_a_segment() {
        let line = format!("--writes-per-second 10000 {BASE} --segment-size 1MiB");
        let load = read(&line).expect("valid");
        let frame = frame_bytes(1024);
        let per_segment = ((1 << 20) - EMPTY_SEGMENT_BYTES) / frame;
        let segments = (864_000_000u128).div_ceil(u128::from(per_segment));
        assert_eq!(load.framed().disk_per_day, segments * (1 << 20) * 3);
        assert!(load.framed().disk_per_day > load.plain().disk_per_day);
        assert_eq!(load.framed().network_per_s, 10_000 * u128::from(frame) * 2);
        assert_eq!(load.framed().memory, load.plain().memory);
    }

    #[test]
    fn an_entry_larger_than_a_segment_has_one_of_its_own() {
        let line = "--writes-per-second 2 --entry-bytes 1MiB --replication 1 --retention-days 1 --nodes 1 --segment-size 64KiB";
        let load = read(line).expect("valid");
        let each = u128::from(EMPTY_SEGMENT_BYTES + frame_bytes(1 << 20));
        assert_eq!(load.framed().disk, 2 * SECONDS_A_DAY * each);
        assert_eq!(load.framed().network_per_s, 0);
    }

    #[test]
    fn one_copy_on_one_node_is_usual() {
        let load = |line: &str| read(line).expect("valid");
        let least = "--writes-per-second 1k --entry-bytes 1KiB --retention-days 1";
        let one = load(least);
        assert_eq!(
            (one.writes_per_second, one.replication, one.nodes),
            (1000, 1, 1)
        );
        assert_eq!(load(&format!("{least} --replication 3")).nodes, 3);
    }

    #[test]
    fn the_largest_load_is_counted_without_overflow() {
        let line = "--writes-per-second 1000000000 --entry-bytes 1GiB --replication 100 --retention-days 36500 \
                    --nodes 10000 --segments 1000000 --segment-size 4GiB --subscribers 1000000 --base-memory 1TiB";
        let load = read(line).expect("valid");
        assert!(load.framed().disk > load.plain().disk);
        assert!(text(&load).contains("EB"));
        let json = serde_json::to_string(&Answer::to(load)).expect("JSON");
        assert!(json.contains("\"frame_bytes\":"), "{json}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        command().debug_assert();
        for (line, words) in [
            ("--writes-per-second 1", "--entry-bytes"),
            (&format!("--writes-per-second 0 {BASE}"), "from 1 to"),
            (
                &format!("--writes-per-second 1 {BASE} --segment-size 64M"),
                "64M",
            ),
            (
                "--writes-per-second 1 --entry-bytes 1 --replication 3 --retention-days 1 --nodes 2",
                "--nodes is 2",
            ),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn units() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1_500_000, "1.5 MB"),
        ] {
            assert_eq!(decimal(bytes, "B"), expected);
        }
    }
}

//! What an engine is opened with.

use std::path::PathBuf;
use std::time::Duration;

use longbow_index::{HnswParams, QuantizedParams, SpFreshParams};
use longbow_log::{SyncMethod, SyncMode};
use longbow_types::host;

use crate::block_files::BlockFiles;
use crate::graph_options::GraphOptions;
use crate::index_choice::ChoiceOptions;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;

/// Options of [`crate::Engine::open`]; see the configuration page for the meaning of each.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data folder.
    pub path: PathBuf,
    /// The folder in which backups are made.
    pub backup_path: PathBuf,
    /// What an acknowledgement waits for.
    pub sync: SyncMode,
    /// How it is synced where each acknowledgement waits for that.
    pub sync_method: SyncMethod,
    /// Files of the log that are written full of zeros ahead of their use. Default none; a node makes one.
    pub log_prepared: usize,
    /// Size at which the log begins a new file, in bytes.
    pub log_segment_bytes: u64,
    /// Age at which the log begins a new file however small the last one is; zero: at any age.
    pub log_segment_age: Duration,
    /// How long log entries stay beyond the checkpoint that has them; zero: not at all.
    pub log_retain_age: Duration,
    /// Most bytes of log kept for their age or for followers that still have to read them.
    pub log_retain_bytes: u64,
    /// Bytes of writes that may wait for the log; beyond it they are refused, from half of it on slowed down.
    pub log_queued_bytes: u64,
    /// Extra wait of the log to fill a batch.
    pub linger: Duration,
    /// Most entries that one write of the log gathers beyond what is queued anyway.
    pub log_batch_entries: usize,
    /// How graphs are built.
    pub graphs: GraphOptions,
    /// Effort of a search that names none.
    pub ef_search: usize,
    /// Share of one core that measures the recall of searches and calibrates indexes, from 0 to 1; 0: nothing does.
    pub recall_share: f64,
    /// What the vector counts in a hybrid search that does not say: 1 is the vector alone, 0 the text alone.
    pub hybrid_alpha: f32,
    /// The columns that full text is searched in, unless a field says so by `longbow.text`; empty: all of strings but the id.
    pub text_columns: Vec<String>,
    /// Time from which on a search is logged as slow; zero: none is.
    pub slow_query: Duration,
    /// Indexing threads.
    pub index_workers: usize,
    /// Pieces of work of 256 rows waiting for indexers beyond which writers are asked to slow down.
    pub index_queue: usize,
    /// Bytes of a tail at which it is sealed into a segment.
    pub seal_bytes: u64,
    /// How often segments and graphs are looked over for what died in them.
    pub tidy_interval: Duration,
    /// Longest time between checkpoints; zero: they are made by size only.
    pub checkpoint_interval: Duration,
    /// Time of work on indexes from which on a checkpoint is made for its sake, when they are complete and when the engine is closed.
    /// Default: never; a node says 5 seconds.
    pub index_work: Duration,
    /// Bytes of log at which a checkpoint is made.
    pub max_log_bytes: u64,
    /// Whether somebody opens the folder again. If nobody does, checkpoints are made to let go of the log and of files that are not
    /// needed any more, and hold no index.
    pub is_reopened: bool,
    /// Most memory that tails, graphs and id maps may take, in bytes.
    pub memory_limit: u64,
    /// Bytes of memory that the process holds now, of no file. What it has beyond the engine's accounting, since an allocator holds
    /// more than is in use, is not taken for [`Memory::kept_bytes`](crate::Memory::kept_bytes).
    pub process_bytes: fn() -> u64,
}

/// Bytes of log at which a database in memory makes a checkpoint, which seals its rows: of fewer, segments would be many.
const IN_MEMORY_LOG_BYTES: u64 = 32 << 20;

impl Options {
    /// Bytes of memory for the graphs of columns that leave the kind of their index to their size.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.graphs.choice.room.unwrap_or(self.memory_limit / 2)
    }

    /// The same for a disk that ends with the process: what is on it takes memory, so nothing is kept there that only another start
    /// would need.
    #[must_use]
    pub fn in_memory(self) -> Self {
        Options {
            log_prepared: 0,
            index_work: Duration::MAX,
            // The log goes by whole files, the one that is written excepted.
            log_segment_bytes: self.log_segment_bytes.min(IN_MEMORY_LOG_BYTES / 2),
            max_log_bytes: self.max_log_bytes.min(IN_MEMORY_LOG_BYTES),
            is_reopened: false,
            ..self
        }
    }

    /// Defaults for a data folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Options {
            path: path.into(),
            backup_path: PathBuf::from("backups"),
            sync: SyncMode::Background {
                max_unsynced_bytes: 256 << 20,
                max_unsynced_age: Duration::from_secs(1),
            },
            sync_method: SyncMethod::default(),
            log_prepared: 0,
            log_segment_bytes: 64 << 20,
            log_segment_age: Duration::ZERO,
            log_retain_age: Duration::ZERO,
            log_retain_bytes: 1 << 30,
            log_queued_bytes: 1 << 30,
            linger: Duration::ZERO,
            log_batch_entries: 100,
            graphs: GraphOptions {
                kind: IndexPolicy::Fixed(IndexKind::Hnsw),
                choice: ChoiceOptions::default(),
                quantization: None,
                hnsw: HnswParams {
                    m: 16,
                    ef_construction: 200,
                    seed: 0x4c4f_4e47,
                },
                rabitq: QuantizedParams::default(),
                spfresh: SpFreshParams::default(),
                blocks: BlockFiles::in_memory(),
            },
            ef_search: 50,
            recall_share: 0.02,
            hybrid_alpha: 0.5,
            text_columns: Vec::new(),
            slow_query: Duration::from_secs(1),
            index_workers: std::thread::available_parallelism().map_or(1, usize::from),
            index_queue: 10_000,
            seal_bytes: 128 << 20,
            tidy_interval: Duration::from_secs(5),
            checkpoint_interval: Duration::from_secs(3_600),
            index_work: Duration::MAX,
            max_log_bytes: 1 << 30,
            is_reopened: true,
            memory_limit: u64::MAX,
            process_bytes: || host::anonymous_bytes().unwrap_or(0),
        }
    }
}

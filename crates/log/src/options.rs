//! How a log is kept.

use crate::Observer;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// When an entry is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// When it was handed to the operating system. A thread syncs without pause while anything is unsynced. Where the
    /// disk falls behind by more than one of the limits, acknowledgements wait for it.
    Background {
        /// The most bytes that acknowledged entries may lose to a power loss.
        max_unsynced_bytes: u64,
        /// The longest that an acknowledged entry may stay unsynced.
        max_unsynced_age: Duration,
    },
    /// When it was synced. One sync serves all entries that were queued before it began.
    EveryAck,
    /// When it was handed to the operating system, which writes it to the disk when it likes: nothing is synced but by
    /// [`Log::sync`](crate::Log::sync) and [`Log::close`](crate::Log::close), and for an [`Entry`](crate::Entry) that asks for it; and a power loss may take what came since. For data that can be had again.
    Never,
}

/// How an entry is synced in [`SyncMode::EveryAck`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMethod {
    /// A write, then `fdatasync`.
    #[default]
    Fdatasync,
    /// One write that returns when it is on the disk (`RWF_DSYNC`): a system call less, and on disks with FUA no flush of
    /// the whole cache. Which is faster depends on the disk; `longbow bench log` tells.
    Dsync,
}

/// How a log is kept. [`Options::new`] gives the defaults.
#[derive(Clone)]
pub struct Options {
    /// The folder of the segment files; created if it is missing. Nothing else may be kept there.
    pub dir: PathBuf,
    /// The size in bytes at which a new segment is begun. Default 64 MiB. A batch larger than that gets a segment of
    /// its own.
    pub segment_size: u64,
    /// The age at which a segment that has an entry is followed by a new one, however small it is, so that it can go when
    /// it is no longer needed. Looked at when something is written. Default zero: any age.
    pub segment_age: Duration,
    /// How long records stay that a purge would let go, for readers who come late. Default zero: not at all.
    pub retain_age: Duration,
    /// The most bytes of segments that are kept beyond a purge, for their age or for a [`Hold`](crate::Hold). Default 1 GiB.
    pub retain_bytes: u64,
    /// When an entry is acknowledged. Default: in the background, at most 256 MiB and one second behind.
    pub sync: SyncMode,
    /// How it is synced in [`SyncMode::EveryAck`]. Default: `fdatasync`.
    pub sync_method: SyncMethod,
    /// How many segments are written full of zeros ahead of their use. Default 1. Purged segments count for this too.
    pub prepared_segments: usize,
    /// The most bytes of files that are kept for later segments. Default 512 MiB.
    pub spare_bytes: u64,
    /// Called once by the thread that prepares segments: may lower its priority. Default: nothing.
    pub low_priority: Arc<dyn Fn() + Send + Sync>,
    /// How long the writer waits for a full batch once something is queued. Default zero: what queues while a batch is
    /// on its way is the next batch, which adapts to the disk by itself.
    pub linger: Duration,
    /// The most bytes in one write. Default 32 MiB. A larger entry is written alone.
    pub max_batch_bytes: u64,
    /// The most entries in one write. Default 16,384.
    pub max_batch_entries: usize,
    /// The most bytes that may wait to be acknowledged; beyond it, appends are refused. Default 1 GiB.
    pub max_queued_bytes: u64,
    /// Told about writes and syncs. Default: nobody.
    pub observer: Arc<dyn Observer>,
    /// The time in microseconds since the Unix epoch. Default: the system's clock.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Options {
    /// The defaults, for a log in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            segment_size: 64 << 20,
            segment_age: Duration::ZERO,
            retain_age: Duration::ZERO,
            retain_bytes: 1 << 30,
            sync: SyncMode::Background {
                max_unsynced_bytes: 256 << 20,
                max_unsynced_age: Duration::from_secs(1),
            },
            sync_method: SyncMethod::default(),
            prepared_segments: 1,
            spare_bytes: 512 << 20,
            low_priority: Arc::new(|| ()),
            linger: Duration::ZERO,
            max_batch_bytes: 32 << 20,
            max_batch_entries: 16_384,
            max_queued_bytes: 1 << 30,
            observer: Arc::new(()),
            clock: Arc::new(system_clock),
        }
    }
}

fn system_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| d.as_micros() as u64)
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("dir", &self.dir)
            .field("segment_size", &self.segment_size)
            .field("segment_age", &self.segment_age)
            .field("retain_age", &self.retain_age)
            .field("retain_bytes", &self.retain_bytes)
            .field("sync", &self.sync)
            .field("sync_method", &self.sync_method)
            .field("prepared_segments", &self.prepared_segments)
            .field("spare_bytes", &self.spare_bytes)
            .field("linger", &self.linger)
            .field("max_batch_bytes", &self.max_batch_bytes)
            .field("max_batch_entries", &self.max_batch_entries)
            .field("max_queued_bytes", &self.max_queued_bytes)
            .finish_non_exhaustive()
    }
}

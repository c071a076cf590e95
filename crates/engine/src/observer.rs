//! What the log reports of its work, as metrics.

use std::time::Duration;

use longbow_types::metrics;

/// Counts the log's bytes and times its syncs.
#[derive(Debug)]
pub(crate) struct LogMetrics;

impl longbow_log::Observer for LogMetrics {
    fn written(&self, bytes: u64) {
        metrics().wal_bytes.inc_by(bytes);
    }

    fn synced(&self, took: Duration, _bytes: u64) {
        metrics().wal_fsync.observe(took.as_secs_f64());
    }
}

//! Whoever counts what the log does.

use std::time::Duration;

/// Told about every write and sync, on the log's own threads: must be quick, must not panic and must not call
/// the log.
pub trait Observer: Send + Sync {
    /// So many bytes, headers and padding included, were handed to the operating system.
    fn written(&self, bytes: u64);

    /// A sync took so long and made so many bytes durable.
    fn synced(&self, took: Duration, bytes: u64);
}

/// Counts nothing.
impl Observer for () {
    fn written(&self, _bytes: u64) {}

    fn synced(&self, _took: Duration, _bytes: u64) {}
}

//! The housekeeping thread: seals full tails, compacts, makes checkpoints when they are due.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::shared::Shared;
use crate::tail::Tail;
use crate::{checkpoint, compact, hot, seal, vacuum};

const ROUND: Duration = Duration::from_millis(100);
/// How often it is looked at what may be kept in memory to make searches faster.
const HOT: Duration = Duration::from_secs(1);
/// Batches in a tail at which it is sealed however small it is: sealing joins them, and readers pay for each.
const SMALL_BATCHES: usize = 2_048;

/// The body of the housekeeping thread.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut last_checkpoint = Instant::now();
    let mut next_tidy = Instant::now() + shared.options.tidy_interval;
    let mut last_hot: Option<Instant> = None;
    let mut last_applied = 0;
    while !shared.stopping.load(Ordering::Acquire) {
        shared.maintenance.wait(ROUND);
        // After a failed sync nothing is certain about the files, so they are left as they are.
        if shared.log.poisoned().is_some() {
            continue;
        }
        let applied = *shared.applied.borrow();
        let quiet = std::mem::replace(&mut last_applied, applied) == applied;
        for dataset in shared.catalog.datasets() {
            let view = dataset.view();
            if is_full(&view.tail, shared.options.seal_bytes, quiet) {
                report("seal", &dataset.name, seal::seal(shared, &dataset));
            }
        }
        if last_hot.is_none_or(|last| last.elapsed() >= HOT) {
            let is_all = !hot::keep_some(shared);
            last_hot = is_all.then(Instant::now);
        }
        let began = Instant::now();
        if began >= next_tidy {
            let has_compacted = tidy(shared);
            // What was retained by the last checkpoint may have become old, or was read.
            report("purge", "all", shared.log.purge(0).map_err(Into::into));
            let interval = shared.options.tidy_interval;
            next_tidy = Instant::now() + pause(has_compacted, began.elapsed(), interval);
        }
        // While a backup copies the last one, there are no others.
        let Some(turn) = shared.checkpoints.try_lock() else {
            continue;
        };
        if is_due(
            last_checkpoint.elapsed(),
            shared.options.checkpoint_interval,
        ) || shared.log.uncovered_bytes() >= shared.options.max_log_bytes
        {
            report(
                "checkpoint",
                "all",
                checkpoint::make(shared, &turn).map(drop),
            );
            last_checkpoint = Instant::now();
        }
        let mut datasets = shared.catalog.datasets().into_iter();
        if datasets.all(|dataset| dataset.unindexed() == 0) {
            report("checkpoint", "all", checkpoint::save_work(shared, &turn));
        }
    }
}

/// Compacts some segments of each dataset, and builds anew what is to be. Says whether there was anything to compact.
fn tidy(shared: &Shared) -> bool {
    let mut has_compacted = false;
    for dataset in shared.catalog.datasets() {
        let compacted = compact::compact(shared, &dataset);
        has_compacted |= matches!(compacted, Ok(true));
        report("compact", &dataset.name, compacted.map(drop));
        let rebuilt = vacuum::rebuild(&dataset, &shared.options.graphs);
        report("rebuild", &dataset.name, rebuilt);
    }
    has_compacted
}

/// How long until segments are looked at again. While there are any to compact that is half of the time: what is replaced faster than some
/// segments an interval would pile up.
fn pause(has_compacted: bool, took: Duration, interval: Duration) -> Duration {
    match has_compacted {
        true => interval.min(took),
        false => interval,
    }
}

/// Whether a tail is to be sealed. Sealing takes memory bandwidth from writers, so while they write it waits for a
/// second helping.
fn is_full(tail: &Tail, seal_bytes: u64, quiet: bool) -> bool {
    let enough = if quiet {
        seal_bytes
    } else {
        seal_bytes.saturating_mul(2)
    };
    tail.bytes() >= enough || tail.len() >= SMALL_BATCHES
}

/// Whether a checkpoint is due by time; an interval of zero says never.
fn is_due(since: Duration, interval: Duration) -> bool {
    !interval.is_zero() && since >= interval
}

/// Housekeeping that fails is said and tried again in the next round; it never takes an acknowledged row with it.
fn report(what: &str, dataset: &str, result: crate::Result<()>) {
    if let Err(error) = result {
        tracing::error!(what, dataset, %error, "housekeeping failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_takes_no_more_than_half_of_the_time_and_does_not_wait_while_there_is_more() {
        let (long, took) = (Duration::from_secs(5), Duration::from_millis(300));
        assert_eq!(pause(true, took, long), took);
        assert_eq!(pause(true, 100 * took, long), long);
        assert_eq!(pause(false, took, long), long);
    }

    #[test]
    fn an_interval_of_zero_means_no_checkpoints_by_time() {
        let second = Duration::from_secs(1);
        assert!(!is_due(second, Duration::ZERO));
        assert!(is_due(second, second) && !is_due(Duration::ZERO, second));
    }
}

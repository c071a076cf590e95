//! The work of the indexers that no checkpoint holds.
//!
//! What is not in a checkpoint is indexed anew after a start, which takes far longer than reading its rows from the log. So a
//! checkpoint is worth making for its sake, too, when the indexers rest and when the engine is closed. It writes whole
//! graphs, so it has to save far more time than it takes; or else the last one names files of indexes that were damaged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How many times as long as the last checkpoint took what the next one saves has to have taken, by all threads together.
const WORTH: u32 = 20;
/// Bytes of indexes that a checkpoint writes in a second, as far as is known before the first one after a start.
const WRITTEN_A_SECOND: u64 = 500_000_000;

/// What indexers did since the last checkpoint began, in time of processors, and what that one took; both in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct UnsavedWork {
    worked: AtomicU64,
    last_save: AtomicU64,
    /// Whether the last checkpoint names a file that was damaged, and no other was tried since.
    names_damage: AtomicBool,
}

impl UnsavedWork {
    /// What the first checkpoint after a start takes, by the bytes of the indexes in the one that it began with.
    pub(crate) fn expect(&self, bytes: u64) {
        self.saved(Duration::from_secs(bytes) / WRITTEN_A_SECOND as u32);
    }

    /// A thread worked on indexes for so long.
    pub(crate) fn add(&self, took: Duration) {
        self.worked.fetch_add(nanoseconds(took), Ordering::Relaxed);
    }

    /// An index was made again, of which the last checkpoint names a damaged file.
    pub(crate) fn mended(&self) {
        self.names_damage.store(true, Ordering::Relaxed);
    }

    /// Before a checkpoint looks at the indexes: what is done from here on may not be in it. If it fails, the work so far
    /// is forgotten too, so that a full disk is not tried again and again.
    pub(crate) fn begin_saving(&self) {
        self.worked.store(0, Ordering::Relaxed);
        self.names_damage.store(false, Ordering::Relaxed);
    }

    /// After a checkpoint holds that took so long.
    pub(crate) fn saved(&self, took: Duration) {
        self.last_save.store(nanoseconds(took), Ordering::Relaxed);
    }

    /// Whether a checkpoint is worth making where less work than `least` is not.
    pub(crate) fn is_worth_saving(&self, least: Duration) -> bool {
        let worked = Duration::from_nanos(self.worked.load(Ordering::Relaxed));
        let last_save = Duration::from_nanos(self.last_save.load(Ordering::Relaxed));
        let takes_long = !worked.is_zero() && worked >= least.max(last_save.saturating_mul(WORTH));
        takes_long || self.names_damage.load(Ordering::Relaxed)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn enough_work_is_worth_saving_until_it_is_saved() {
        let unsaved = UnsavedWork::default();
        assert!(!unsaved.is_worth_saving(Duration::ZERO));
        unsaved.add(3 * SECOND);
        assert!(unsaved.is_worth_saving(3 * SECOND) && !unsaved.is_worth_saving(4 * SECOND));
        unsaved.begin_saving();
        // It may not be in the checkpoint.
        unsaved.add(2 * SECOND);
        unsaved.saved(Duration::ZERO);
        assert!(unsaved.is_worth_saving(2 * SECOND) && !unsaved.is_worth_saving(3 * SECOND));
    }

    #[test]
    fn a_checkpoint_that_names_damage_is_worth_another() {
        let unsaved = UnsavedWork::default();
        unsaved.expect(u64::MAX);
        unsaved.mended();
        assert!(unsaved.is_worth_saving(SECOND));
        unsaved.begin_saving();
        assert!(!unsaved.is_worth_saving(Duration::ZERO));
    }

    #[test]
    fn work_that_took_hardly_longer_than_saving_it_is_not() {
        let unsaved = UnsavedWork::default();
        unsaved.saved(2 * SECOND);
        unsaved.add(39 * SECOND);
        assert!(!unsaved.is_worth_saving(SECOND));
        unsaved.add(SECOND);
        assert!(unsaved.is_worth_saving(SECOND));
    }

    #[test]
    fn after_a_start_saving_takes_as_long_as_the_indexes_are_large() {
        let unsaved = UnsavedWork::default();
        unsaved.expect(2 * WRITTEN_A_SECOND);
        unsaved.add(39 * SECOND);
        assert!(!unsaved.is_worth_saving(SECOND));
        unsaved.add(SECOND);
        assert!(unsaved.is_worth_saving(SECOND));
        unsaved.expect(u64::MAX);
        assert!(!unsaved.is_worth_saving(SECOND));
    }
}

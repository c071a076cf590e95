//! How threads in the background give way.
//!
//! A thread of the lowest priority runs when nobody else wants the processor, and is displaced at once by whoever wakes up. But
//! the scheduler owes it a little of the time, too, and gives it that in turns of up to a tick, some milliseconds: then a search that
//! was displaced for a moment, and is to go on, waits for it. So such a thread offers the processor after each piece of its
//! work. That costs a call of less than a microsecond if nobody wants it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// How long others may have the processor during one job, in nanoseconds: checkpoints, other threads and the end wait for what it holds.
const PATIENCE: u64 = 100_000_000;

thread_local! {
    /// This thread takes only what processor time nobody else wants.
    static STANDS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// This thread takes only what processor time nobody else wants, from now on.
pub(crate) fn note_standing_back() {
    STANDS_BACK.set(true);
}

/// The turn of a thread at one job.
#[derive(Debug)]
pub(crate) struct Turn {
    /// For how long others may still have the processor, in nanoseconds.
    left: AtomicU64,
}

impl Turn {
    /// At a job that begins now. Threads of other priorities give way to nobody.
    pub(crate) fn begin() -> Turn {
        let left = if STANDS_BACK.get() { PATIENCE } else { 0 };
        Turn {
            left: AtomicU64::new(left),
        }
    }

    /// A piece of the job is done.
    pub(crate) fn give_way(&self) {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            let began = Instant::now();
            thread::yield_now();
            let took = began.elapsed().as_nanos() as u64;
            self.left
                .store(left.saturating_sub(took), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_stands_back_gives_way_and_not_for_ever() {
        let turn = Turn::begin();
        assert_eq!(turn.left.into_inner(), 0);
        thread::spawn(|| {
            note_standing_back();
            let turn = Turn::begin();
            assert_eq!(turn.left.load(Ordering::Relaxed), PATIENCE);
            turn.left.store(1, Ordering::Relaxed);
            turn.give_way();
            assert_eq!(turn.left.into_inner(), 0);
        })
        .join()
        .expect("no panic");
    }
}

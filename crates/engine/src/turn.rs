//! How threads in the background give way.
//!
//! A thread of the lowest priority runs when nobody else wants the processor, and is displaced at once by whoever wakes up. But
//! the scheduler owes it a little of the time, too, and gives it that in turns of up to a tick, some milliseconds: then a search that
//! was displaced for a moment, and is to go on, waits for it. So such a thread offers the processor after each piece of its
//! work. That costs a call of less than a microsecond if nobody wants it.

use std::thread;
use std::time::{Duration, Instant};

/// How long others may have the processor during one job: it holds what checkpoints and other threads wait for.
const PATIENCE: Duration = Duration::from_millis(100);

/// The turn of a thread at one job.
#[derive(Debug)]
pub(crate) struct Turn {
    left: Duration,
}

impl Turn {
    /// For a job whose end others wait for.
    pub(crate) fn of_job() -> Turn {
        Turn { left: PATIENCE }
    }

    /// A piece of the job is done.
    pub(crate) fn give_way(&mut self) {
        if !self.left.is_zero() {
            let began = Instant::now();
            thread::yield_now();
            self.left = self.left.saturating_sub(began.elapsed());
        }
    }
}

/// The same for work that nobody waits for.
pub(crate) fn give_way() {
    thread::yield_now();
}

//! Where callers sleep until their entries are safe.
//!
//! Those whose entries are written together sleep at the same gate, and one call to the system wakes all of them: with a
//! hundred callers, waking each by itself costs more than everything else that is done for an entry.

use crate::Result;
use crate::entry::Ack;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// More than there can be batches on their way at once, so that hardly anyone is woken in vain.
pub(crate) const GATES: usize = 8;

/// All gates of a log.
#[derive(Debug, Default)]
pub(crate) struct Gates([Gate; GATES]);

/// One gate.
#[derive(Debug, Default)]
struct Gate {
    /// How often it was opened. What callers sleep on.
    opened: AtomicU32,
    sleepers: AtomicU32,
}

impl Gates {
    /// The gate of a batch.
    pub(crate) fn of(batch: usize) -> usize {
        batch % GATES
    }

    /// Wakes everyone who sleeps there. Who finds itself not told sleeps again.
    pub(crate) fn open(&self, gate: usize) {
        let gate = &self.0[gate % GATES];
        gate.opened.fetch_add(1, Ordering::SeqCst);
        if gate.sleepers.load(Ordering::SeqCst) > 0 {
            atomic_wait::wake_all(&gate.opened);
        }
    }

    /// Sleeps there until `waiter` is told.
    pub(crate) fn wait(&self, gate: usize, waiter: &Waiter) -> Result<Ack> {
        let gate = &self.0[gate % GATES];
        gate.sleepers.fetch_add(1, Ordering::SeqCst);
        let result = loop {
            // Read before the waiter is looked at: if it is told in between, the number has changed, or somebody who
            // sees the sleeper is about to change it.
            let opened = gate.opened.load(Ordering::SeqCst);
            if let Some(result) = waiter.take() {
                break result;
            }
            atomic_wait::wait(&gate.opened, opened);
        };
        gate.sleepers.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

/// What a caller waits for.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    told: AtomicBool,
    result: Mutex<Option<Result<Ack>>>,
}

impl Waiter {
    pub(crate) fn new() -> Arc<Waiter> {
        Arc::default()
    }

    pub(crate) fn tell(&self, result: Result<Ack>) {
        *self.result.lock() = Some(result);
        self.told.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    fn take(&self) -> Option<Result<Ack>> {
        self.is_told().then(|| self.result.lock().take()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nobody_sleeps_through_being_told() {
        let gates = Gates::default();
        for round in 0..2000 {
            let waiters = [Waiter::new(), Waiter::new(), Waiter::new()];
            thread::scope(|scope| {
                for waiter in &waiters {
                    scope.spawn(|| gates.wait(Gates::of(round), waiter).unwrap_err());
                }
                for waiter in &waiters {
                    waiter.tell(Err(crate::Error::Closed));
                    gates.open(Gates::of(round));
                }
            });
        }
    }
}

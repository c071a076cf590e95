//! Log entries on their way to the thread that applies those of some datasets when a folder is opened.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use crate::entry::Parts;
use crate::error::Error;

/// What an entry counts for besides its payload.
const ENTRY_BYTES: u64 = 256;

/// An entry, its rows not yet read.
#[derive(Debug)]
pub(crate) struct Queued {
    pub index: u64,
    pub parts: Parts,
    /// Bytes of its payload.
    pub bytes: u64,
}

/// Between the thread that reads the log and one that applies. Limited by bytes.
#[derive(Debug)]
pub(crate) struct Queue {
    most_bytes: u64,
    state: Mutex<State>,
    /// The one thread waits while there is nothing, the other while there is too much or not nothing: never both.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Queued>,
    /// Bytes that wait or are being applied.
    bytes: u64,
    /// The entry that is being applied.
    current: Option<u64>,
    applied: u64,
    failure: Option<(u64, Error)>,
    /// Nothing more comes.
    closed: bool,
    /// Nothing more is applied.
    gone: bool,
}

impl Queue {
    pub fn new(most_bytes: u64) -> Self {
        Queue {
            most_bytes,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds an entry once there is room. False if the queue has failed, and takes nothing any more.
    pub fn push(&self, entry: Queued) -> bool {
        let bytes = entry.bytes + ENTRY_BYTES;
        let mut state = self.state.lock();
        while state.bytes > 0 && state.bytes + bytes > self.most_bytes {
            self.changed.wait(&mut state);
        }
        if state.gone {
            return false;
        }
        state.bytes += bytes;
        state.waiting.push_back(entry);
        self.changed.notify_one();
        true
    }

    /// Waits until all entries are applied, or one has failed.
    pub fn wait_idle(&self) {
        let mut state = self.state.lock();
        while state.bytes > 0 {
            self.changed.wait(&mut state);
        }
    }

    /// How many entries were applied, and which failed and why. To be asked when nothing is under way.
    pub fn outcome(&self) -> (u64, Option<(u64, Error)>) {
        let mut state = self.state.lock();
        (state.applied, state.failure.take())
    }

    /// No more entries come; what waits is given up.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        self.changed.notify_one();
    }

    /// Applies entries until the queue is closed or one fails. `apply` answers whether an entry counts.
    pub fn work(&self, apply: impl Fn(Queued) -> Result<bool, Error>) {
        let leaving = Leaving(self);
        while let Some(entry) = self.pop() {
            let bytes = entry.bytes + ENTRY_BYTES;
            let index = entry.index;
            let applied = apply(entry);
            let mut state = self.state.lock();
            match applied {
                Ok(counts) => state.applied += u64::from(counts),
                Err(error) => {
                    state.failure = Some((index, error));
                    break;
                }
            }
            state.current = None;
            state.bytes -= bytes;
            // Not at every entry, so that the other thread does not run for one at a time.
            if state.bytes <= self.most_bytes / 2 {
                self.changed.notify_one();
            }
        }
        drop(leaving);
    }

    fn pop(&self) -> Option<Queued> {
        let mut state = self.state.lock();
        loop {
            if let Some(entry) = state.waiting.pop_front() {
                state.current = Some(entry.index);
                return Some(entry);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Lets go of whoever waits for a thread that ends, also by a panic.
struct Leaving<'a>(&'a Queue);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.gone = true;
        state.bytes = 0;
        state.waiting.clear();
        if let (Some(index), None) = (state.current, &state.failure) {
            let what = "the thread that applied it panicked";
            state.failure = Some((index, Error::BadEntry { index, what }));
        }
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Small;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn entry(index: u64, bytes: u64) -> Queued {
        let name = String::new();
        Queued {
            index,
            parts: Parts::Small(Small::CreateNamespace { name }),
            bytes,
        }
    }

    #[test]
    fn entries_are_applied_in_order_and_waited_for() {
        let queue = Queue::new(4096);
        let seen = Mutex::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                queue.work(|entry| {
                    seen.lock().push(entry.index);
                    Ok(entry.index % 2 == 0)
                });
            });
            for index in 0..1000 {
                // Some larger than all that may wait.
                assert!(queue.push(entry(index, index * 7)));
            }
            queue.wait_idle();
            assert_eq!(seen.lock().len(), 1000);
            queue.close();
        });
        assert!(seen.lock().is_sorted());
        let (applied, failure) = queue.outcome();
        assert_eq!(applied, 500);
        assert!(failure.is_none());
    }

    #[test]
    fn no_more_waits_than_is_said() {
        let queue = Queue::new(4 * ENTRY_BYTES);
        let most = AtomicUsize::new(0);
        thread::scope(|scope| {
            let pushing = scope.spawn(|| (0..1000).all(|index| queue.push(entry(index, 0))));
            while queue.state.lock().waiting.len() < 4 {
                thread::yield_now();
            }
            scope.spawn(|| {
                queue.work(|_| {
                    // The one that is being applied counts too.
                    most.fetch_max(queue.state.lock().waiting.len(), Ordering::Relaxed);
                    Ok(true)
                });
            });
            assert!(pushing.join().expect("no panic"));
            queue.wait_idle();
            queue.close();
        });
        assert_eq!((queue.outcome().0, most.into_inner()), (1000, 3));
    }

    #[test]
    fn a_failure_and_a_panic_end_the_queue_and_let_everyone_go() {
        for panics in [false, true] {
            let queue = Queue::new(1000);
            thread::scope(|scope| {
                let worker = scope.spawn(|| {
                    queue.work(|entry| match entry.index {
                        5 if panics => panic!("on purpose"),
                        5 => Err(Error::Stopped(String::new())),
                        _ => Ok(true),
                    });
                });
                while queue.push(entry(5, 2000)) {}
                queue.wait_idle();
                assert_eq!(worker.join().is_err(), panics);
            });
            let (_, failure) = queue.outcome();
            assert_eq!(failure.map(|(index, _)| index), Some(5));
        }
    }
}

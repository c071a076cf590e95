//! Threads that requests borrow while cores are idle.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;

/// How many threads requests may have at work beside their own, over the whole node: one request of many queries takes
/// the cores that nobody uses, and many requests at once do not crowd them.
#[derive(Debug)]
pub(crate) struct Helpers {
    free: AtomicUsize,
}

impl Helpers {
    /// One for each core but that of the request's own thread.
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with(cores - 1)
    }

    fn with(threads: usize) -> Self {
        Helpers {
            free: AtomicUsize::new(threads),
        }
    }

    /// Threads that a request would get now, its own included.
    pub fn threads(&self) -> usize {
        self.free.load(Ordering::Relaxed) + 1
    }

    /// What `work` gives for each piece of `size` of the items, in their order. This thread and those that it gets take a
    /// piece after the other, so that none waits for a slow one.
    ///
    /// # Errors
    /// The error of the first piece that has one; pieces that were not begun by then are left.
    pub fn map<T: Sync, R: Send>(
        &self,
        items: &[T],
        size: usize,
        work: impl Fn(&[T]) -> Result<Vec<R>> + Sync,
    ) -> Result<Vec<R>> {
        if items.len() == 1 {
            return work(items);
        }
        let pieces = items.len().div_ceil(size.max(1));
        let next = AtomicUsize::new(0);
        let take_pieces = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= pieces {
                    return done;
                }
                let start = at * size;
                let answer = work(&items[start..items.len().min(start + size)]);
                if answer.is_err() {
                    next.store(pieces, Ordering::Relaxed);
                }
                done.push((at, answer));
            }
        };
        let borrowed = self.borrow(pieces.saturating_sub(1));
        let mut done = std::thread::scope(|scope| {
            let spawn = |_| {
                let thread = std::thread::Builder::new().name("search".into());
                // Without another thread, this one does it all.
                thread.spawn_scoped(scope, take_pieces).ok()
            };
            let others: Vec<_> = (0..borrowed.threads).filter_map(spawn).collect();
            let mut done = take_pieces();
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        });
        done.sort_unstable_by_key(|(at, _)| *at);
        let mut all = Vec::with_capacity(items.len());
        for (_, answer) in done {
            all.extend(answer?);
        }
        Ok(all)
    }

    /// As many of the free threads as there are, up to `most`.
    fn borrow(&self, most: usize) -> Borrowed<'_> {
        let take = |free: usize| Some(free - free.min(most));
        let free = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .unwrap_or(0);
        Borrowed {
            of: self,
            threads: free.min(most),
        }
    }
}

/// Threads that one request has; given back at the end, also by a panic.
struct Borrowed<'a> {
    of: &'a Helpers,
    threads: usize,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.of.free.fetch_add(self.threads, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::error::Error;

    #[test]
    fn answers_keep_the_order_of_the_items() -> Result<()> {
        for threads in [0, 1, 5] {
            let helpers = Helpers::with(threads);
            for (len, size) in [(0, 3), (1, 3), (3, 3), (100, 3), (100, 200)] {
                let items: Vec<usize> = (0..len).collect();
                let double = |piece: &[usize]| {
                    assert!(piece.len() <= size);
                    Ok(piece.iter().map(|x| 2 * x).collect())
                };
                let doubled = helpers.map(&items, size, double)?;
                assert_eq!(doubled, (0..len).map(|x| 2 * x).collect::<Vec<_>>());
                assert_eq!(helpers.threads(), threads + 1);
            }
        }
        Ok(())
    }

    #[test]
    fn pieces_are_worked_on_at_once_by_no_more_threads_than_are_free() -> Result<()> {
        let helpers = Helpers::with(2);
        let (met, most) = (Barrier::new(3), AtomicUsize::new(0));
        let at_work = AtomicUsize::new(0);
        // Each waits for two others: it would never end on fewer threads.
        helpers.map(&[(); 9], 1, |_| {
            most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            met.wait();
            at_work.fetch_sub(1, Ordering::SeqCst);
            let within = helpers.map(&[(); 2], 1, |piece| Ok(piece.to_vec()))?;
            assert_eq!((helpers.threads(), within.len()), (1, 2));
            Ok(vec![()])
        })?;
        assert_eq!((most.into_inner(), helpers.threads()), (3, 3));
        Ok(())
    }

    #[test]
    fn an_error_ends_the_work() {
        let helpers = Helpers::with(0);
        let calls = AtomicUsize::new(0);
        let failed = helpers.map(&[1, 2, 3, 4], 1, |piece| {
            calls.fetch_add(1, Ordering::Relaxed);
            if piece[0] == 2 {
                return Err(Error::NoQueryVector);
            }
            Ok(piece.to_vec())
        });
        assert!(matches!(failed, Err(Error::NoQueryVector)));
        assert_eq!((calls.into_inner(), helpers.threads()), (2, 1));
    }
}

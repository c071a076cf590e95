//! Several threads at one search, or at one graph that is read.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

/// Threads that may share a piece of work, at most: as many as there are cores.
pub(crate) fn threads() -> usize {
    // It takes as long to learn as a short search.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Has so many threads, of which the caller is one, do some work, and returns what each of them did. There are fewer if the
/// system gives no more: the work must be such that one alone does all.
pub(crate) fn side_by_side<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    if threads <= 1 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done = vec![work()];
        for other in others {
            done.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_is_done_once_whoever_does_it() {
        for threads in [0, 1, 2, 5] {
            let next = AtomicUsize::new(0);
            let done = side_by_side(threads, || {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < 1_000);
                std::iter::from_fn(take).collect::<Vec<usize>>()
            });
            assert_eq!(done.len(), threads.max(1));
            let mut all = done.concat();
            all.sort_unstable();
            assert_eq!(all, (0..1_000).collect::<Vec<usize>>());
        }
    }

    #[test]
    #[should_panic(expected = "of a worker")]
    fn a_panic_of_one_is_that_of_all() {
        let caller = thread::current().id();
        side_by_side(2, || {
            assert!(thread::current().id() == caller, "of a worker");
        });
    }
}

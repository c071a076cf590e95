//! Watching for the next call instead of going to sleep.
//!
//! A client that asks one thing after the other, each when it has the answer to the one before, mostly waits for threads to
//! wake: to wake one that sleeps on an idle core takes longer than a search does. So the thread of connections stays
//! awake for a moment after it answered a brief call, if the one before was as recent: who came back soon comes back soon.
//!
//! Good for clients that call thousands of times a second, on machines with a core to spare. It costs that core while they do, and a single
//! moment when they stop; so it ends at once where somebody else wants the core, and does not begin again for a while.
//!
//! All times are nanoseconds since the watch was set up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// What is soon: longer than a client on the same machine takes from one answer to its next call, and no longer than a core
/// may well be wasted.
const SOON: u64 = 200_000;
/// A look at what has come that takes so long, and finds no call, was interrupted: another thread wants the core, or other work does.
const INTERRUPTED: u64 = 50_000;
/// How long nobody watches then.
const QUIET: u64 = 10_000_000;

/// Watches over the connections of one thread.
#[derive(Debug)]
pub(crate) struct Vigil {
    begun: Instant,
    /// When the last brief call was answered.
    answered: AtomicU64,
    /// Brief calls until now.
    calls: AtomicU64,
    /// Until when it is watched.
    until: AtomicU64,
    /// Until when it is not.
    quiet: AtomicU64,
    wake: Notify,
}

impl Vigil {
    pub fn new() -> Arc<Self> {
        Arc::new(Vigil {
            begun: Instant::now(),
            answered: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            until: AtomicU64::new(0),
            quiet: AtomicU64::new(0),
            wake: Notify::new(),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Runs a call that is brief, and lets the next be watched for if it is likely to come soon.
    pub fn brief<T>(&self, call: impl FnOnce() -> T) -> T {
        let came = self.now();
        let answer = call();
        if self.answered(came, self.now()) {
            self.wake.notify_one();
        }
        answer
    }

    /// Whether the next call is to be watched for, after one that came and was answered then.
    fn answered(&self, came: u64, now: u64) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let before = self.answered.swap(now, Ordering::Relaxed);
        if came.saturating_sub(before) > SOON || now < self.quiet.load(Ordering::Relaxed) {
            return false;
        }
        self.until.store(now + SOON, Ordering::Relaxed);
        true
    }

    /// Stays awake whenever a call is likely to come soon. A task of the thread that it watches on; never ends.
    pub async fn keep(self: Arc<Self>) {
        loop {
            self.wake.notified().await;
            let mut look = (self.now(), self.calls.load(Ordering::Relaxed));
            while self.goes_on(look.0) {
                // The thread looks at its connections in between, and serves them.
                tokio::task::yield_now().await;
                let next = (self.now(), self.calls.load(Ordering::Relaxed));
                self.looked(look, next);
                look = next;
            }
        }
    }

    fn goes_on(&self, now: u64) -> bool {
        now < self.until.load(Ordering::Relaxed)
    }

    /// Takes note of a look at the connections, of which the times and the calls until then are given.
    fn looked(&self, (before, calls): (u64, u64), (after, calls_after): (u64, u64)) {
        if after - before > INTERRUPTED && calls == calls_after {
            self.until.store(0, Ordering::Relaxed);
            self.quiet.store(after + QUIET, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_watched_only_for_who_came_back_soon() {
        let vigil = Vigil::new();
        // The first call comes whenever it comes.
        let mut now = 10 * SOON;
        assert!(!vigil.answered(now, now + 5));
        // The second soon after the first, and so on.
        for _ in 0..3 {
            now += SOON;
            assert!(vigil.answered(now, now + 5));
            assert!(vigil.goes_on(now + 5) && vigil.goes_on(now + SOON));
            assert!(!vigil.goes_on(now + SOON + 5));
        }
        // One that took its time is not waited for.
        now += 2 * SOON;
        assert!(!vigil.answered(now, now + 5));
        assert!(!vigil.goes_on(now + 5));
        // How long the call itself takes does not matter.
        assert!(vigil.answered(now + 5 + SOON, now + 9 * SOON));
    }

    #[test]
    fn it_ends_for_who_wants_the_core() {
        let vigil = Vigil::new();
        assert!(vigil.answered(1, 2) && vigil.answered(3, 4));
        // What took long was a call.
        vigil.looked((5, 2), (6 + INTERRUPTED, 3));
        assert!(vigil.goes_on(7 + INTERRUPTED));
        // What was short was nothing.
        let now = 7 + INTERRUPTED;
        vigil.looked((now, 3), (now + INTERRUPTED, 3));
        assert!(vigil.goes_on(now + INTERRUPTED));
        vigil.looked((now, 3), (now + INTERRUPTED + 1, 3));
        let ended = now + INTERRUPTED + 1;
        assert!(!vigil.goes_on(ended));
        // It stays so for a while, however often is called.
        let mut now = ended;
        while now < ended + QUIET {
            assert!(!vigil.answered(now, now), "at {now}");
            now += SOON;
        }
        assert!(vigil.answered(now, now));
    }

    #[tokio::test]
    async fn who_keeps_it_ends_a_watch() {
        let vigil = Vigil::new();
        tokio::spawn(Arc::clone(&vigil).keep());
        for _ in 0..100 {
            assert_eq!(vigil.brief(|| 17), 17);
            tokio::task::yield_now().await;
        }
        // In the task's time, it sees that the time is over: nothing is awake then but this.
        while vigil.goes_on(vigil.now()) {
            tokio::task::yield_now().await;
        }
    }
}

//! Watching for the next call instead of going to sleep.
//!
//! A client that asks one thing after the other, each when it has the answer to the one before, mostly waits for threads to
//! wake: to wake one that sleeps on an idle core takes longer than a search does. So the thread of connections stays
//! awake for a moment after it answered a brief call, if the one before was as recent: who came back soon comes back soon.
//!
//! Good for clients that call thousands of times a second, on machines with a core to spare. It costs that core while they do, and a single
//! moment when they stop. So it ends at once where somebody else wants the core, and does not begin again for a while; and no more than half of the
//! threads may have calls meanwhile: where more do, their clients may want the cores.
//!
//! All times are nanoseconds since the watches were set up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// What is soon: longer than a client on the same machine takes from one answer to its next call, and no longer than a core
/// may well be wasted.
const SOON: u64 = 200_000;
/// What is in no time: less than it takes to write an answer and read the call that follows on it.
const CROWD: u64 = 20_000;
/// A look at what has come that takes so long, and finds no call, was interrupted: another thread wants the core, or other work does.
const INTERRUPTED: u64 = 50_000;
/// How long nobody watches then.
const QUIET: u64 = 10_000_000;

/// A thread is busy that had a call within such a time.
const BUSY: u64 = 1_000_000;

/// What the threads know of each other.
#[derive(Debug)]
pub(crate) struct Threads {
    begun: Instant,
    /// When each answered its last brief call; 0: never.
    answered: Box<[AtomicU64]>,
}

/// Watches over the connections of one thread.
#[derive(Debug)]
pub(crate) struct Vigil {
    threads: Arc<Threads>,
    /// Which of them it is.
    at: usize,
    /// Brief calls until now.
    calls: AtomicU64,
    /// Until when it is watched.
    until: AtomicU64,
    /// Until when it is not.
    quiet: AtomicU64,
    wake: Notify,
}

impl Threads {
    pub fn new(count: usize) -> Arc<Self> {
        assert!(count > 0, "no threads to serve connections");
        Arc::new(Threads {
            begun: Instant::now(),
            answered: (0..count).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Whether so many have calls that none should be awake without one.
    fn are_busy(&self, now: u64) -> bool {
        let is_busy = |answered: &AtomicU64| match answered.load(Ordering::Relaxed) {
            0 => false,
            answered => now.saturating_sub(answered) < BUSY,
        };
        let busy = self.answered.iter().filter(|answered| is_busy(answered));
        2 * busy.count() > self.answered.len()
    }
}

impl Vigil {
    /// Of the thread with this number.
    pub fn new(threads: &Arc<Threads>, at: usize) -> Arc<Self> {
        assert!(at < threads.answered.len(), "thread {at} of fewer");
        Arc::new(Vigil {
            threads: Arc::clone(threads),
            at,
            calls: AtomicU64::new(0),
            until: AtomicU64::new(0),
            quiet: AtomicU64::new(0),
            wake: Notify::new(),
        })
    }

    fn now(&self) -> u64 {
        let since = self.threads.begun.elapsed().as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// When the last brief call was answered.
    fn last(&self) -> &AtomicU64 {
        &self.threads.answered[self.at]
    }

    /// Runs a call that is brief, and lets the next be watched for if it may be and is likely to come soon.
    pub fn brief<T>(&self, may_watch: bool, call: impl FnOnce() -> T) -> T {
        let came = self.now();
        let answer = call();
        if self.answered(may_watch, came, self.now()) {
            self.wake.notify_one();
        }
        answer
    }

    /// Whether more calls come than one after the other: a client is not told an answer and back in no time.
    pub fn is_crowded(&self) -> bool {
        self.is_crowd(self.now())
    }

    fn is_crowd(&self, came: u64) -> bool {
        came.saturating_sub(self.last().load(Ordering::Relaxed)) < CROWD
    }

    /// Whether the next call is to be watched for, after one that came and was answered then.
    fn answered(&self, may_watch: bool, came: u64, now: u64) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let before = self.last().swap(now, Ordering::Relaxed);
        let is_quiet = now < self.quiet.load(Ordering::Relaxed);
        let is_soon = came.saturating_sub(before) <= SOON;
        if !may_watch || is_quiet || !is_soon || self.threads.are_busy(now) {
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

    fn one_of(threads: usize) -> Arc<Vigil> {
        Vigil::new(&Threads::new(threads), 0)
    }

    #[test]
    fn it_is_watched_only_for_who_came_back_soon() {
        let vigil = one_of(2);
        // The first call comes whenever it comes.
        let mut now = 10 * SOON;
        assert!(!vigil.answered(true, now, now + 5));
        // The second soon after the first, and so on.
        for _ in 0..3 {
            now += SOON;
            assert!(vigil.answered(true, now, now + 5));
            assert!(vigil.goes_on(now + 5) && vigil.goes_on(now + SOON));
            assert!(!vigil.goes_on(now + SOON + 5));
        }
        // One that took its time is not waited for.
        now += 2 * SOON;
        assert!(!vigil.answered(true, now, now + 5));
        assert!(!vigil.goes_on(now + 5));
        // Nor is anybody where that is forbidden.
        assert!(!vigil.answered(false, now + 5, now + 5));
        assert!(!vigil.goes_on(now + 5));
        // How long the call itself takes does not matter.
        assert!(vigil.answered(true, now + 5 + SOON, now + 9 * SOON));
    }

    #[test]
    fn nobody_is_awake_where_most_threads_have_calls() {
        let threads = Threads::new(4);
        let vigils: Vec<_> = (0..4).map(|at| Vigil::new(&threads, at)).collect();
        let watched = vigils.iter().map(|vigil| vigil.answered(true, 1, 1));
        assert_eq!(watched.collect::<Vec<_>>(), [true, true, false, false]);
        // Until they have none any more.
        let vigil = &vigils[0];
        let mut now = SOON;
        while now <= BUSY {
            assert!(!vigil.answered(true, now, now), "at {now}");
            now += SOON;
        }
        assert!(vigil.answered(true, now, now));
        // Of one thread it is the only one.
        assert!(!one_of(1).answered(true, 1, 1));
    }

    #[test]
    fn calls_that_come_before_an_answer_can_be_read_are_a_crowd() {
        let vigil = one_of(2);
        vigil.answered(true, 7, 10 * SOON);
        assert!(vigil.is_crowd(9 * SOON) && vigil.is_crowd(10 * SOON + CROWD - 1));
        assert!(!vigil.is_crowd(10 * SOON + CROWD));
    }

    #[test]
    fn it_ends_for_who_wants_the_core() {
        let vigil = one_of(2);
        assert!(vigil.answered(true, 1, 2) && vigil.answered(true, 3, 4));
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
            assert!(!vigil.answered(true, now, now), "at {now}");
            now += SOON;
        }
        assert!(vigil.answered(true, now, now));
    }

    #[tokio::test]
    async fn who_keeps_it_ends_a_watch() {
        let vigil = one_of(2);
        tokio::spawn(Arc::clone(&vigil).keep());
        for _ in 0..100 {
            assert_eq!(vigil.brief(true, || 17), 17);
            tokio::task::yield_now().await;
        }
        // In the task's time, it sees that the time is over: nothing is awake then but this.
        while vigil.goes_on(vigil.now()) {
            tokio::task::yield_now().await;
        }
    }
}

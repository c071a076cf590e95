//! Who applies what the log has taken: one thread at a time, in the order of the log.
//!
//! That is a thread of its own, or a writer that would only wait for it and finds nobody at it. Such a writer has had the log written by
//! itself, too, so that a small write on an idle node is done without a change of thread, each of which takes longer than
//! the write.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::apply::Committed;

/// Entries that are to be applied.
#[derive(Debug, Default)]
pub(crate) struct Applier {
    waiting: Mutex<Waiting>,
    /// Rung for the thread that applies what nobody else does.
    bell: Condvar,
    /// Held by whoever applies.
    turn: Mutex<()>,
    /// Applying has panicked: nothing is applied any more.
    failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<Committed>,
    /// Nothing more comes.
    is_closed: bool,
}

/// The most entries that a writer applies: its own, and a few that were told of together with it.
const FEW: usize = 4;

thread_local! {
    /// Of how many entries this thread was told, if it applies what it is told of now.
    static TOLD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Until it is dropped, this thread applies what it is told of.
struct Here;

impl Here {
    fn begin() -> Here {
        TOLD.set(Some(0));
        Here
    }

    fn told() -> usize {
        TOLD.get().unwrap_or_default()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        TOLD.set(None);
    }
}

impl Applier {
    /// Takes an entry that is behind all others.
    pub fn push(&self, entry: Committed) {
        let mut waiting = self.waiting.lock();
        if self.has_failed() {
            // Whoever waits for it learns that nobody will answer.
            return;
        }
        waiting.entries.push_back(entry);
        drop(waiting);
        match TOLD.get() {
            Some(told) => TOLD.set(Some(told + 1)),
            None => drop(self.bell.notify_one()),
        }
    }

    /// Does `commit`, which may have this thread told of entries, and applies these here, unless somebody is at it or there are more
    /// than a few to apply.
    pub fn commit_here(&self, commit: impl FnOnce(), apply: impl FnMut(Committed)) {
        let here = Here::begin();
        commit();
        if Here::told() == 0 {
            return;
        }
        drop(here);
        if let Some(turn) = self.turn.try_lock() {
            if self.waiting.lock().entries.len() <= FEW {
                self.apply_those_there(apply);
            }
            drop(turn);
        }
        // What came meanwhile, or what somebody did not see any more who was just leaving.
        if !self.waiting.lock().entries.is_empty() {
            self.bell.notify_one();
        }
    }

    /// Applies entries until [`Applier::close`], and all that came before it.
    pub fn run(&self, mut apply: impl FnMut(Committed)) {
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.entries.is_empty() && !waiting.is_closed && !self.has_failed() {
                self.bell.wait(&mut waiting);
            }
            let is_over = waiting.entries.is_empty();
            drop(waiting);
            // At the end, too: whoever is at it ends first.
            let _turn = self.turn.lock();
            self.apply_those_there(&mut apply);
            if is_over || self.has_failed() {
                return;
            }
        }
    }

    /// Applies what waits by now. With the turn.
    fn apply_those_there(&self, mut apply: impl FnMut(Committed)) {
        let mut left = self.waiting.lock().entries.len();
        while left > 0 && !self.has_failed() {
            left -= 1;
            let Some(entry) = self.waiting.lock().entries.pop_front() else {
                return;
            };
            if catch_unwind(AssertUnwindSafe(|| apply(entry))).is_err() {
                self.failed.store(true, Ordering::Release);
                tracing::error!("applying a write panicked: no more are taken until a restart");
                // Whoever waits for one learns that nobody will answer.
                drop(mem::take(&mut self.waiting.lock().entries));
                self.bell.notify_one();
            }
        }
    }

    /// Whether applying has panicked.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.bell.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::Applied;
    use crate::entry::{Op, Small};
    use std::thread;
    use std::time::Instant;
    use tokio::sync::oneshot;

    /// An entry whose answer nobody waits for.
    fn entry(index: u64) -> Committed {
        awaited(index).0
    }

    fn awaited(index: u64) -> (Committed, oneshot::Receiver<crate::Result<Applied>>) {
        let name = String::new();
        let (reply, answer) = oneshot::channel();
        let entry = Committed {
            index,
            durable: false,
            payload: None,
            op: Op::Small(Small::CreateNamespace { name }),
            taken: None,
            reply,
        };
        (entry, answer)
    }

    #[test]
    fn entries_are_applied_once_and_in_their_order_whoever_does_it() {
        const WRITERS: u64 = 4;
        const EACH: u64 = 3000;
        let applier = &Applier::default();
        let applied = Mutex::new(Vec::new());
        let apply = |entry: Committed| applied.lock().push(entry.index);
        // The log: one thread at a time is told of the next entry.
        let last = Mutex::new(0);
        let told = || {
            let mut last = last.lock();
            *last += 1;
            applier.push(entry(*last));
        };
        thread::scope(|scope| {
            let runner = scope.spawn(|| applier.run(apply));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || {
                        for nth in 0..EACH {
                            // Some are told by others, and some writers are told of those of others.
                            match (writer + nth) % 3 {
                                0 => told(),
                                1 => applier.commit_here(told, apply),
                                _ => applier.commit_here(
                                    || {
                                        told();
                                        told();
                                    },
                                    apply,
                                ),
                            }
                        }
                    })
                })
                .collect();
            writers
                .into_iter()
                .for_each(|writer| writer.join().expect("no panic"));
            // Without being woken by the end.
            let began = Instant::now();
            while applied.lock().len() < *last.lock() as usize {
                assert!(began.elapsed().as_secs() < 300, "an entry is forgotten");
                thread::yield_now();
            }
            applier.close();
            runner.join().expect("no panic");
        });
        let last = last.into_inner();
        assert_eq!(applied.into_inner(), (1..=last).collect::<Vec<_>>());
    }

    #[test]
    fn who_commits_on_an_idle_node_has_applied_it_when_it_returns() {
        let applier = Applier::default();
        let applied = Mutex::new(Vec::new());
        let apply = |entry: Committed| applied.lock().push(entry.index);
        applier.commit_here(|| applier.push(entry(1)), apply);
        assert_eq!(*applied.lock(), [1]);
        // Not while somebody is at it, who or whose thread will.
        let turn = applier.turn.lock();
        applier.commit_here(|| applier.push(entry(2)), apply);
        assert_eq!(*applied.lock(), [1]);
        drop(turn);
        applier.close();
        applier.run(apply);
        assert_eq!(*applied.lock(), [1, 2]);
    }

    #[test]
    fn nothing_is_applied_after_a_panic_and_whoever_waits_learns_it() {
        let applier = Applier::default();
        let mut applied = Vec::new();
        let mut apply = |entry: Committed| match entry.index {
            2 => panic!("on purpose"),
            index => applied.push(index),
        };
        let (entries, mut answers): (Vec<_>, Vec<_>) = (1..=5).map(awaited).unzip();
        let mut entries = entries.into_iter();
        let mut commit = |most: usize| {
            let those: Vec<_> = entries.by_ref().take(most).collect();
            let push = || those.into_iter().for_each(|entry| applier.push(entry));
            applier.commit_here(push, &mut apply);
        };
        commit(1);
        assert!(!applier.has_failed());
        // One fails, one is behind it, and the others come later.
        commit(2);
        assert!(applier.has_failed());
        commit(2);
        // Without being closed: it ends, too.
        applier.run(&mut apply);
        assert_eq!(applied, [1]);
        let is_closed = |answer: &mut oneshot::Receiver<_>| {
            matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        assert!(answers.iter_mut().all(is_closed));
    }

    #[test]
    fn a_writer_does_not_apply_what_many_others_wrote() {
        let applier = Applier::default();
        let mut applied = 0;
        let mut apply = |_| applied += 1;
        (1..=FEW as u64).for_each(|index| applier.push(entry(index)));
        // Told of nothing, and of one too many.
        applier.commit_here(|| (), &mut apply);
        applier.commit_here(|| applier.push(entry(FEW as u64 + 1)), &mut apply);
        assert_eq!(applied, 0);
        applier.close();
        applier.run(|_| applied += 1);
        assert_eq!(applied, FEW + 1);
    }
}

//! Who applies what the log has taken: one thread at a time, in the order of the log.
//!
//! That is a thread of its own, or a writer that would only wait for it and finds nobody at it. Such a writer has had the log written by
//! itself, too, so that a small write on an idle node is done without a change of thread, each of which takes longer than
//! the write.

use std::cell::Cell;
use std::collections::VecDeque;
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

thread_local! {
    /// This thread applies what it is told of now.
    static APPLIES: Cell<bool> = const { Cell::new(false) };
}

impl Applier {
    /// Takes an entry that is behind all others.
    pub fn push(&self, entry: Committed) {
        if self.has_failed() {
            // Whoever waits for it learns that nobody will answer.
            return;
        }
        self.waiting.lock().entries.push_back(entry);
        if !APPLIES.get() {
            self.bell.notify_one();
        }
    }

    /// Does `commit`, which may have entries taken by this thread, and applies these here, unless somebody is at it.
    pub fn commit_here<T>(&self, commit: impl FnOnce() -> T, apply: impl FnMut(Committed)) -> T {
        let before = APPLIES.replace(true);
        let done = commit();
        APPLIES.set(before);
        if let Some(turn) = self.turn.try_lock() {
            self.apply_those_there(apply);
            drop(turn);
        }
        // What came meanwhile, or what somebody did not see any more who was just leaving.
        if !self.waiting.lock().entries.is_empty() {
            self.bell.notify_one();
        }
        done
    }

    /// Applies entries until [`Applier::close`], and all that came before it.
    pub fn run(&self, mut apply: impl FnMut(Committed)) {
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.entries.is_empty() && !waiting.is_closed {
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
                self.waiting.lock().entries.clear();
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

//! What Python holds of the engine: of use only in the process that made it, and never waited for with Python's lock.

use std::mem;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longbow_engine::Class;
use longbow_query::Refusal;
use parking_lot::Condvar;
use pyo3::prelude::*;

use crate::errors::raised;

/// A value that works, waits and ends without Python's lock.
///
/// The engine's threads do not follow into a forked process, and its files are its parent's: there the value is neither
/// used nor dropped.
#[derive(Debug)]
pub struct Held<T: Send> {
    process: u32,
    calls: Arc<Calls>,
    /// None once the value was taken.
    slot: Mutex<Option<T>>,
}

impl<T: Send> Held<T> {
    /// Holds a value of this process, whose calls are counted among those of its engine.
    pub fn new(value: T, calls: &Arc<Calls>) -> Held<T> {
        Held {
            process: process::id(),
            calls: Arc::clone(calls),
            slot: Mutex::new(Some(value)),
        }
    }

    /// The calls of the engine that the value is of.
    pub fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Whether this is a fork of the process that the value is of.
    pub fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    /// Lets go of Python's lock for as long as the work with the value takes.
    ///
    /// # Errors
    /// In a fork of the process.
    pub fn call<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Slot<'_, T>) -> R + Send,
    ) -> PyResult<R> {
        // Before any lock: in a fork, one may be held by a thread that is not there.
        if self.is_forked() {
            let text = format!(
                "the database was opened by process {}, of which this is a fork; open it here anew, or start processes by 'spawn'",
                self.process
            );
            return Err(raised(Refusal::new(
                Class::FailedPrecondition,
                "forked",
                &text,
            )));
        }
        let _call = self.calls.begin();
        Ok(py.detach(|| work(&Slot(&self.slot))))
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let forked = self.is_forked();
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = slot.take() else {
            return;
        };
        if forked {
            mem::forget(value);
        } else {
            // Its end may wait for threads, and those for Python's lock.
            Python::attach(|py| py.detach(|| drop(value)));
        }
    }
}

/// The place of a value, in the hands of somebody who does not have Python's lock.
#[derive(Debug)]
pub struct Slot<'a, T>(&'a Mutex<Option<T>>);

impl<T> Slot<'_, T> {
    /// The value, or None once it was taken; nobody else has it meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls into one engine that have not returned.
///
/// Its locks are not the standard library's, whose condition asks the system at each call to wake up nobody.
#[derive(Debug, Default)]
pub struct Calls {
    running: parking_lot::Mutex<usize>,
    ended: Condvar,
}

impl Calls {
    /// Counts a call, until what this returns is dropped: with Python's lock, after the engine's work.
    fn begin(&self) -> Call<'_> {
        *self.running.lock() += 1;
        Call(self)
    }

    /// Waits, without Python's lock, until every call has got that back: a thread that still waits for it when the
    /// interpreter ends is torn down in the midst of the engine's frames.
    pub fn wait(&self, py: Python<'_>) {
        py.detach(|| {
            let mut running = self.running.lock();
            self.ended.wait_while(&mut running, |running| *running > 0);
        });
    }
}

#[derive(Debug)]
struct Call<'a>(&'a Calls);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.ended.notify_all();
    }
}

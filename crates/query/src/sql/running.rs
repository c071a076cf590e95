//! The statements that run, as the table `longbow.queries` tells them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// What is told of a statement's text.
const SHOWN: usize = 1_000;

/// Statements by number.
#[derive(Debug, Default)]
pub(super) struct Running {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    statements: BTreeMap<u64, (String, Instant)>,
}

/// A statement that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Run {
    of: Arc<Running>,
    number: u64,
}

impl Running {
    /// Notes a statement that begins.
    pub fn begin(self: &Arc<Self>, text: &str) -> Run {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let number = inner.next;
        let shown = text.chars().take(SHOWN).collect();
        inner.statements.insert(number, (shown, Instant::now()));
        Run {
            of: Arc::clone(self),
            number,
        }
    }

    /// Number, text and microseconds so far of each, the oldest first.
    pub fn list(&self) -> Vec<(u64, String, u64)> {
        let inner = self.inner.lock();
        let told = inner.statements.iter().map(|(number, (text, started))| {
            let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            (*number, text.clone(), micros)
        });
        told.collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.of.inner.lock().statements.remove(&self.number);
    }
}

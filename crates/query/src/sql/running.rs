//! The statements that run, as the table `longbow.queries` tells them, and the log of those that were slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use parking_lot::Mutex;

/// What is told of a statement's text.
const SHOWN: usize = 1_000;

/// Statements by number.
#[derive(Debug)]
pub(super) struct Running {
    /// Time from which on a statement is logged; zero: none is.
    slow: Duration,
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
    /// What it does, once that is known.
    plan: Option<Arc<dyn ExecutionPlan>>,
}

impl Running {
    /// None, which are slow from a time on; zero: never.
    pub fn new(slow: Duration) -> Self {
        Running {
            slow,
            inner: Mutex::default(),
        }
    }

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
            plan: None,
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

impl Run {
    /// Notes what the statement does.
    pub fn does(&mut self, plan: Option<Arc<dyn ExecutionPlan>>) {
        self.plan = plan;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let ended = self.of.inner.lock().statements.remove(&self.number);
        let slow = self.of.slow;
        let Some((statement, started)) = ended else {
            return;
        };
        let took = started.elapsed();
        if slow.is_zero() || took < slow {
            return;
        }
        let plan = self.plan.as_ref().map(|plan| {
            let shown = DisplayableExecutionPlan::with_metrics(plan.as_ref());
            shown.indent(false).to_string()
        });
        tracing::warn!(
            target: "longbow::slow",
            took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            statement,
            plan = plan.as_deref().unwrap_or("none: it was refused, or it writes"),
            "slow statement"
        );
    }
}

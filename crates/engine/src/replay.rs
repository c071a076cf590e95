//! Applying the log's records when a folder is opened: those of a dataset in order by one thread, several datasets at
//! once. What changes which datasets there are waits until everything before it is applied.

use std::sync::Arc;
use std::thread::{self, Scope};

use longbow_log::{Record, Replay};

use crate::apply::apply;
use crate::catalog::Catalog;
use crate::entry::{Op, Parts, Small};
use crate::error::{Class, Error, Result};
use crate::graph_options::GraphOptions;
use crate::queue::{Queue, Queued};

/// The most threads that apply.
const MAX_THREADS: usize = 8;

/// The most bytes that wait for all of them together, but for a larger entry each.
const QUEUED_BYTES: u64 = 64 << 20;

/// Applies the records of the log.
pub(crate) struct Replayer<'a> {
    catalog: &'a Catalog,
    params: &'a GraphOptions,
    queues: &'a [Queue],
    /// Entries applied by this thread.
    applied: u64,
}

/// Lets `open` hand the records of a log to threads that apply them; answers also how many were applied. Readers see
/// nothing of it before [`Dataset::open_intake`](crate::dataset::Dataset::open_intake).
///
/// # Errors
/// What `open` fails with, or if no thread can be started.
pub(crate) fn replaying<T>(
    catalog: &Catalog,
    params: &GraphOptions,
    open: impl FnOnce(&mut Replayer<'_>) -> Result<T>,
) -> Result<(T, u64)> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS));
    let most_bytes = QUEUED_BYTES / threads as u64;
    catalog
        .datasets()
        .iter()
        .for_each(|dataset| dataset.begin_replay());
    let queues: Vec<Queue> = (0..threads).map(|_| Queue::new(most_bytes)).collect();
    thread::scope(|scope| {
        // Dropped, also in a panic, before the scope waits for the threads.
        let mut replayer = Replayer {
            catalog,
            params,
            queues: &queues,
            applied: 0,
        };
        queues
            .iter()
            .try_for_each(|queue| start(scope, queue, catalog, params))?;
        let opened = open(&mut replayer)?;
        Ok((opened, replayer.settle()?))
    })
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    queue: &'scope Queue,
    catalog: &'scope Catalog,
    params: &'scope GraphOptions,
) -> Result<()> {
    let name = "replay";
    let run = move || queue.work(|entry| replay(catalog, params, entry));
    let started = thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, run);
    match started {
        Ok(_) => Ok(()),
        Err(cause) => {
            let cause = Arc::new(cause);
            Err(longbow_log::Error::Thread { name, cause }.into())
        }
    }
}

impl Replayer<'_> {
    /// Waits until everything that was handed over is applied; answers how much that was, or the first failure in the
    /// order of the log.
    fn settle(&self) -> longbow_log::Result<u64> {
        // A failure in one may come behind one in another that is still at work.
        self.queues.iter().for_each(Queue::wait_idle);
        let mut applied = self.applied;
        let mut failures = Vec::new();
        for queue in self.queues {
            let (count, failure) = queue.outcome();
            applied += count;
            failures.extend(failure);
        }
        match failures.into_iter().min_by_key(|(index, _)| *index) {
            Some((index, error)) => Err(failed(index, error)),
            None => Ok(applied),
        }
    }

    fn take(&mut self, record: Record) -> longbow_log::Result<()> {
        if record.control().is_some() {
            return Ok(());
        }
        let (index, bytes) = (record.index, record.payload.len() as u64);
        let parts = match Parts::read(index, record.kind, record.payload) {
            Ok(parts) => parts,
            Err(error) => {
                self.settle()?;
                return Err(failed(index, error));
            }
        };
        let dataset = dataset_of(&parts);
        let entry = Queued {
            index,
            parts,
            bytes,
        };
        let Some(dataset) = dataset else {
            self.settle()?;
            let counts = replay(self.catalog, self.params, entry);
            self.applied += u64::from(counts.map_err(|error| failed(index, error))?);
            return Ok(());
        };
        let nth = dataset % self.queues.len() as u64;
        match self.queues[nth as usize].push(entry) {
            true => Ok(()),
            false => self.settle().map(|_| ()),
        }
    }
}

impl Replay for Replayer<'_> {
    fn record(&mut self, record: Record) -> longbow_log::Result<()> {
        self.take(record)
    }

    fn finish(&mut self) -> longbow_log::Result<()> {
        self.settle().map(|_| ())
    }
}

impl Drop for Replayer<'_> {
    fn drop(&mut self) {
        self.queues.iter().for_each(Queue::close);
    }
}

fn failed(index: u64, error: Error) -> longbow_log::Error {
    let cause = Arc::new(error);
    longbow_log::Error::Replay { index, cause }
}

/// The dataset whose rows or columns an entry changes; `None` for one that changes which datasets there are.
fn dataset_of(parts: &Parts) -> Option<u64> {
    match parts {
        Parts::Put { dataset, .. } | Parts::DeleteRows { dataset, .. } => Some(*dataset),
        Parts::Small(Small::Schema { dataset, .. } | Small::DeleteIds { dataset, .. }) => {
            Some(*dataset)
        }
        Parts::Small(
            Small::CreateDataset { .. }
            | Small::DropDataset { .. }
            | Small::CreateNamespace { .. }
            | Small::DeleteNamespace { .. },
        ) => None,
    }
}

/// Applies one entry of the log if the checkpoint does not hold it already.
fn replay(catalog: &Catalog, params: &GraphOptions, entry: Queued) -> Result<bool> {
    let index = entry.index;
    let schema_of = |number: u64| {
        let (applied, schema) = catalog.by_number(number)?.applied();
        (applied < index).then_some(schema)
    };
    let Some(op) = Op::from_parts(index, entry.parts, schema_of)? else {
        return Ok(false);
    };
    let mut created = None;
    let wanted = match &op {
        Op::Put { .. } => true,
        Op::DeleteRows { dataset, .. } => schema_of(*dataset).is_some(),
        Op::Small(Small::DeleteIds { dataset, .. } | Small::Schema { dataset, .. }) => {
            schema_of(*dataset).is_some()
        }
        Op::Small(Small::CreateDataset { dataset, .. }) => {
            let wanted = index > catalog.index();
            if wanted {
                let mut next = catalog.ordering.lock();
                *next = (*next).max(dataset + 1);
                created = Some(*dataset);
            }
            wanted
        }
        Op::Small(_) => index > catalog.index(),
    };
    if !wanted {
        return Ok(false);
    }
    let applied = apply(catalog, params, index, op);
    if let Some(dataset) = created.and_then(|number| catalog.by_number(number)) {
        dataset.begin_replay();
    }
    match applied {
        Ok(_) => Ok(true),
        // It was refused in its time as well, and changed nothing.
        Err(error) if error.class() == Class::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

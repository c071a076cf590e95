//! The change feed: the log read in order, and on as it grows, by somebody who holds a place in it.

use std::sync::Arc;

use arrow_ipc::root_as_message;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use longbow_log::{Hold, Record};
use longbow_storage::{schema_from_message, schema_to_message};

use crate::changes::{Change, ChangeKind, Names};
use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Bytes of log that one call reads.
const READ_BYTES: u64 = 16 << 20;

/// Where a feed begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With this sequence number, which may still have to come.
    At(u64),
    /// With so many of the entries that are there, or as many as there are.
    Last(u64),
}

/// A place in the log. What lies behind it is kept from being purged, within the log's bound on that, while this lives.
#[derive(Debug)]
pub struct Feed {
    engine: Engine,
    /// The next entry to be read.
    next: u64,
    hold: Hold,
    names: Names,
    only: Option<Only>,
}

/// The one dataset of a feed.
#[derive(Debug)]
struct Only {
    dataset: Arc<Dataset>,
    /// What the feed began with.
    schema: SchemaRef,
    /// It is gone: nothing more will come.
    dropped: bool,
}

impl Engine {
    /// The changes from a place in the log on; with a dataset only those of it, in the sequence numbers of the log.
    ///
    /// # Errors
    /// If the log ends before that place, if there is no dataset of that name, or if it takes the log to find its schema and the log cannot
    /// be read.
    pub fn feed(&self, start: Start, dataset: Option<&str>) -> Result<Feed> {
        let shared = self.shared();
        let end = *shared.applied.borrow() + 1;
        let next = match start {
            // Who has seen more than there is would wait, and miss what comes instead.
            Start::At(from) if from > end => return Err(Error::AheadOfLog { from, next: end }),
            Start::At(sequence) => sequence.max(1),
            Start::Last(count) => end.saturating_sub(count).max(shared.log.first_index()),
        };
        let known = self.catalog().datasets();
        let names = known.iter().map(|known| (known.number, known.name.clone()));
        let mut feed = Feed {
            engine: self.clone(),
            next,
            hold: shared.log.hold(next),
            names: names.collect(),
            only: None,
        };
        if let Some(name) = dataset {
            let dataset = self.dataset(name)?;
            let schema = feed.seek(&dataset)?;
            feed.only = Some(Only {
                dataset,
                schema,
                dropped: false,
            });
        }
        Ok(feed)
    }
}

impl Feed {
    /// The sequence number of the next entry.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The schema of all rows of a feed of one dataset, as an Arrow IPC message.
    pub fn schema(&self) -> Option<Bytes> {
        let only = self.only.as_ref()?;
        Some(schema_to_message(&only.schema))
    }

    /// The schema of the rows that a change put, as an Arrow IPC message; `None` if it put none, or its dataset is gone.
    ///
    /// # Errors
    /// If the change's message is not one.
    pub fn schema_of_put(&self, change: &Change) -> Result<Option<Bytes>> {
        if change.kind != ChangeKind::Put {
            return Ok(None);
        }
        let Some(dataset) = self.engine.catalog().by_number(change.number) else {
            return Ok(None);
        };
        let schema = schema_as_of(change, &dataset)?;
        Ok(schema.map(|schema| schema_to_message(&schema)))
    }

    /// Whether nothing more will ever come, because the feed's dataset was dropped.
    pub fn is_over(&self) -> bool {
        self.only.as_ref().is_some_and(|only| only.dropped)
    }

    /// The next changes, some at a time, perhaps none of what was read; `None` at the present end of the log. What was
    /// changed is there to be seen by searches and scans.
    ///
    /// # Errors
    /// If the log was cut after a checkpoint and begins later, or cannot be read; [`Error::SchemaGrew`] at an entry that
    /// gives the one dataset of this feed another schema.
    pub fn read(&mut self) -> Result<Option<Vec<Change>>> {
        let records = self.records(self.next)?;
        if records.is_empty() || self.is_over() {
            return Ok(None);
        }
        let mut changes = Vec::with_capacity(records.len());
        for record in records {
            let sequence = record.index;
            if record.control().is_some() {
                // The log's own, and no change.
                self.next = sequence + 1;
                continue;
            }
            let change = Change::read(record, &mut self.names)?;
            match self.only.as_mut().map(|only| only.takes(&change)) {
                Some(Err(_)) if !changes.is_empty() => break,
                Some(Err(error)) => return Err(error),
                Some(Ok(false)) => {}
                Some(Ok(true)) | None => changes.push(change),
            }
            self.next = sequence + 1;
            if self.is_over() {
                break;
            }
        }
        // The changes are in memory.
        self.hold.move_to(self.next);
        Ok(Some(changes))
    }

    /// Waits until there is an entry to be read.
    pub async fn more(&self) {
        let mut applied = self.engine.shared().applied.subscribe();
        // An error would mean that the engine is gone, which this holds.
        let _ = applied.wait_for(|applied| *applied >= self.next).await;
    }

    /// Entries from an index on that were applied: what is written behind them may still be refused.
    fn records(&self, from: u64) -> Result<Vec<Record>> {
        let shared = self.engine.shared();
        let applied = *shared.applied.borrow();
        if from > applied {
            return Ok(Vec::new());
        }
        let mut records = shared.log.read(from, READ_BYTES)?;
        records.truncate(usize::try_from(applied + 1 - from).unwrap_or(usize::MAX));
        Ok(records)
    }

    /// Moves to the first entry of a dataset, and finds the schema that it has there.
    fn seek(&mut self, dataset: &Dataset) -> Result<SchemaRef> {
        let mut first = None;
        let mut at = self.next;
        let found = loop {
            let records = self.records(at)?;
            let Some(last) = records.last() else {
                break None;
            };
            at = last.index + 1;
            let mut found = None;
            for record in records {
                let change = Change::read(record, &mut self.names)?;
                if change.number == dataset.number && found.is_none() {
                    first.get_or_insert(change.sequence);
                    found = schema_as_of(&change, dataset)?;
                }
            }
            if found.is_some() {
                break found;
            }
        };
        self.next = self.next.max(first.unwrap_or(at));
        self.hold.move_to(self.next);
        Ok(found.unwrap_or_else(|| Arc::clone(&dataset.view().schema.arrow)))
    }
}

impl Only {
    /// Whether a change belongs to the feed.
    fn takes(&mut self, change: &Change) -> Result<bool> {
        if change.number != self.dataset.number {
            return Ok(false);
        }
        match change.kind {
            ChangeKind::DropDataset => self.dropped = true,
            ChangeKind::Schema if schema_from_message(&change.header)? != self.schema => {
                return Err(Error::SchemaGrew {
                    dataset: self.dataset.name.clone(),
                    sequence: change.sequence,
                });
            }
            _ => {}
        }
        Ok(true)
    }
}

/// The schema that a dataset has at one of its changes; `None` if the change does not tell.
///
/// # Errors
/// If the change's message is not one.
fn schema_as_of(change: &Change, dataset: &Dataset) -> Result<Option<SchemaRef>> {
    match change.kind {
        ChangeKind::CreateDataset | ChangeKind::Schema => {
            Ok(Some(schema_from_message(&change.header)?))
        }
        ChangeKind::Put => {
            let message = root_as_message(&change.header).map_err(longbow_storage::Error::from)?;
            let batch = message.header_as_record_batch();
            let nodes = batch.and_then(|batch| batch.nodes()).map_or(0, |n| n.len());
            Ok(Some(first_columns(&dataset.view().schema.arrow, nodes)))
        }
        _ => Ok(None),
    }
}

/// The schema of a batch with so many field nodes (a column's own and those of its children). A schema grows only at its
/// end, so the columns of an older one are the first ones of the newer.
fn first_columns(schema: &SchemaRef, nodes: usize) -> SchemaRef {
    let mut left = nodes;
    let mut fields = Vec::new();
    for field in schema.fields() {
        let of_field = Schema::new(vec![Arc::clone(field)])
            .flattened_fields()
            .len();
        if of_field > left {
            break;
        }
        left -= of_field;
        fields.push(Arc::clone(field));
    }
    if fields.len() == schema.fields().len() {
        return Arc::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field};

    #[test]
    fn an_older_schema_is_the_first_columns_of_the_newer() {
        let float = Arc::new(Field::new("item", DataType::Float32, true));
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("vector", DataType::FixedSizeList(float, 2), false),
            Field::new("title", DataType::Utf8, true),
        ];
        let schema = Arc::new(Schema::new(fields));
        for (nodes, columns) in [(1, 1), (3, 2), (4, 3)] {
            let found = first_columns(&schema, nodes);
            assert_eq!(found.fields()[..], schema.fields()[..columns], "{nodes}");
        }
    }
}

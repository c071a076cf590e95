//! The unsealed end of a shard: batches in memory, in order of their rows, shared with readers.
//!
//! Useful for: one writer that appends a batch at a time while readers keep what they saw. A push copies at most
//! 64 pointers of the open chunk and, each 64th time, the list of chunks. Not useful for: changes in the middle.

use std::sync::Arc;

use longbow_storage::Batch;

const CHUNK: usize = 64;

/// A batch and the row number of its first row; the others follow without gaps.
#[derive(Debug, Clone)]
pub struct TailBatch {
    /// Row number of the batch's first row.
    pub first_row: u64,
    /// The batch as received.
    pub batch: Arc<Batch>,
}

impl TailBatch {
    /// Row number after the last one.
    pub fn end(&self) -> u64 {
        self.first_row + self.batch.rows() as u64
    }
}

/// A persistent list of batches; cloning is two reference counts.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    full: Arc<Vec<Arc<[TailBatch]>>>,
    open: Arc<Vec<TailBatch>>,
    bytes: u64,
}

impl Tail {
    /// Adds a batch after all others.
    pub fn push(&mut self, batch: TailBatch) {
        debug_assert!(self.last().is_none_or(|last| last.end() <= batch.first_row));
        self.bytes += batch.batch.bytes();
        Arc::make_mut(&mut self.open).push(batch);
        if self.open.len() == CHUNK {
            let chunk: Arc<[TailBatch]> = self.open.iter().cloned().collect();
            Arc::make_mut(&mut self.full).push(chunk);
            self.open = Arc::default();
        }
    }

    /// All batches, in order of rows.
    pub fn iter(&self) -> impl Iterator<Item = &TailBatch> {
        self.full
            .iter()
            .flat_map(|chunk| chunk.iter())
            .chain(self.open.iter())
    }

    /// The batches that hold rows from `row` on.
    pub fn starting_at(&self, row: u64) -> impl Iterator<Item = &TailBatch> {
        let start = self
            .full
            .partition_point(|chunk| chunk.last().is_none_or(|last| last.end() <= row));
        let rest = self.full[start..]
            .iter()
            .flat_map(|chunk| chunk.iter())
            .chain(self.open.iter());
        rest.skip_while(move |batch| batch.end() <= row)
    }

    /// The batch that holds `row`.
    pub fn find(&self, row: u64) -> Option<&TailBatch> {
        // Batches are asked for their ends only at last: that is in memory of their own.
        let begins = |batch: &TailBatch| batch.first_row <= row;
        let chunk: &[TailBatch] = if self.open.first().is_some_and(begins) {
            &self.open
        } else {
            let chunks = &self.full;
            let after = chunks.partition_point(|chunk| chunk.first().is_some_and(begins));
            &chunks[after.checked_sub(1)?]
        };
        let after = chunk.partition_point(begins);
        let batch = &chunk[after.checked_sub(1)?];
        (row < batch.end()).then_some(batch)
    }

    /// Bytes of all batches.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many batches.
    pub fn len(&self) -> usize {
        self.full.len() * CHUNK + self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.open.is_empty()
    }

    /// The last batch.
    pub fn last(&self) -> Option<&TailBatch> {
        self.open
            .last()
            .or_else(|| self.full.last().and_then(|chunk| chunk.last()))
    }

    /// The list without the batches that end at or before `row`: they were sealed into segments.
    #[must_use]
    pub fn without_before(&self, row: u64) -> Tail {
        let mut rest = Tail::default();
        for batch in self.starting_at(row) {
            rest.push(batch.clone());
        }
        rest
    }
}

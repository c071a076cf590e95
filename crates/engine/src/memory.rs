//! What the node's data takes of memory, and whether there is room for more.

use std::sync::Arc;

use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph_options::GraphOptions;
use crate::schema::DatasetSchema;
use crate::seal;

/// Most tails that are written into files for room for one batch: others may fill what it frees.
const MOST_SEALS: usize = 8;

/// How full the node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Unsealed rows.
    pub tail_bytes: u64,
    /// Graphs: links, and vectors or their codes; text indexes.
    pub index_bytes: u64,
    /// Id maps and liveness of rows.
    pub bookkeeping_bytes: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.tail_bytes
            .saturating_add(self.index_bytes)
            .saturating_add(self.bookkeeping_bytes)
    }
}

impl Engine {
    /// Memory that the accounting knows of.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for dataset in self.catalog().datasets() {
            memory.tail_bytes += dataset.view().tail.bytes();
            memory.bookkeeping_bytes += dataset.bookkeeping_bytes();
            for index in dataset.indexes().iter() {
                memory.index_bytes += index.graph().memory_bytes() as u64;
            }
            memory.index_bytes += dataset.text().bytes();
        }
        memory
    }

    /// Refuses a batch of `rows` with `bytes` for the dataset `name` if it does not fit the memory limit, now or once it
    /// is indexed. Where rows are in the way that are on their way into files, they are written first, by this thread: so
    /// whoever writes faster than the disk goes on at the disk's pace.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], or what the disk says.
    pub(crate) fn admit(
        &self,
        (name, schema): (&str, &DatasetSchema),
        rows: usize,
        bytes: u64,
    ) -> Result<()> {
        let limit = self.options().memory_limit;
        let mut seals = 0;
        loop {
            let memory = self.memory();
            let used = memory.total();
            let asked = self.asked_for((name, schema), rows, bytes);
            let all = used.saturating_add(asked);
            if all <= limit {
                return Ok(());
            }
            let may_help = all.saturating_sub(memory.tail_bytes) <= limit && seals < MOST_SEALS;
            if !(may_help && self.seal_longest()?) {
                return Err(Error::MemoryLimit { used, asked, limit });
            }
            seals += 1;
        }
    }

    /// Writes the longest tail into segments; false if there is none, or if the files must be left as they are.
    fn seal_longest(&self) -> Result<bool> {
        if self.shared().log.poisoned().is_some() {
            return Ok(false);
        }
        let tail = |dataset: &Arc<Dataset>| dataset.view().tail.bytes();
        let datasets = self.catalog().datasets();
        match datasets.iter().max_by_key(|dataset| tail(dataset)) {
            Some(dataset) if tail(dataset) > 0 => {
                seal::seal(self.shared(), dataset)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Memory that a batch of `rows` with `bytes` takes, and that was promised to rows before it.
    fn asked_for(&self, (name, schema): (&str, &DatasetSchema), rows: usize, bytes: u64) -> u64 {
        let mut new = graph_bytes(schema, &self.options().graphs, rows as u64);
        let mut asked = bytes;
        // Rows that were taken before and are in no graph yet were promised their place there.
        for dataset in self.catalog().datasets() {
            let mut promised = promised(&dataset, self);
            let text = dataset.text();
            asked = asked.saturating_add(text.bytes_of(text.missing(&dataset.view())));
            if dataset.name == name {
                asked = asked.saturating_add(text.bytes_of(rows as u64));
                promised = promised.saturating_add(std::mem::take(&mut new));
            }
            asked = asked.saturating_add(promised.saturating_sub(free_bytes(&dataset)));
        }
        asked.saturating_add(new)
    }
}

/// What rows take in the graphs of all vector columns.
pub(crate) fn graph_bytes(schema: &DatasetSchema, options: &GraphOptions, rows: u64) -> u64 {
    let a_row: usize = schema
        .vectors
        .iter()
        .map(|column| Graph::bytes_per_row(column, options).total())
        .sum();
    rows.saturating_mul(a_row as u64)
}

/// What rows left in the graphs of a dataset, and others will take.
fn free_bytes(dataset: &Dataset) -> u64 {
    let indexes = dataset.indexes();
    let free = indexes.iter().map(|index| index.graph().free_bytes());
    free.sum::<usize>() as u64
}

/// What the rows of a dataset that are not in its graphs yet will take there.
fn promised(dataset: &Dataset, engine: &Engine) -> u64 {
    let view = dataset.view();
    let indexes = dataset.indexes();
    let of_column = |index: &crate::column_index::ColumnIndex| {
        let mut columns = view.schema.vectors.iter();
        let column = columns.find(|column| column.name == index.column)?;
        let missing = index.missing(view.next_row, view.live);
        let a_row = Graph::bytes_per_row(column, &engine.options().graphs).total();
        Some(missing.saturating_mul(a_row as u64))
    };
    indexes.iter().filter_map(|index| of_column(index)).sum()
}

//! What the node's data takes of memory, and whether there is room for more.

use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphOptions};
use crate::schema::DatasetSchema;

/// How full the node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Unsealed rows.
    pub tail_bytes: u64,
    /// Graphs: links, and vectors or their codes.
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
        }
        memory
    }

    /// Refuses a batch of `rows` with `bytes` if it does not fit the memory limit, now or once it is indexed.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    pub(crate) fn admit(&self, schema: &DatasetSchema, rows: usize, bytes: u64) -> Result<()> {
        let limit = self.options().memory_limit;
        let graphs = graph_bytes(schema, &self.options().graphs, rows as u64);
        // Rows that were taken before and are in no graph yet were promised their place there.
        let datasets = self.catalog().datasets();
        let promised = datasets.iter().map(|dataset| promised(dataset, self));
        let asked = promised.fold(bytes.saturating_add(graphs), u64::saturating_add);
        let used = self.memory().total();
        if used.saturating_add(asked) > limit {
            return Err(Error::MemoryLimit { used, asked, limit });
        }
        Ok(())
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

/// What the rows of a dataset that are not in its graphs yet will take there.
fn promised(dataset: &Dataset, engine: &Engine) -> u64 {
    let view = dataset.view();
    let indexes = dataset.indexes();
    let of_column = |index: &crate::column_index::ColumnIndex| {
        let mut columns = view.schema.vectors.iter();
        let column = columns.find(|column| column.name == index.column)?;
        let missing = view.next_row.saturating_sub(index.watermark());
        let a_row = Graph::bytes_per_row(column, &engine.options().graphs).total();
        Some(missing.saturating_mul(a_row as u64))
    };
    indexes.iter().filter_map(|index| of_column(index)).sum()
}

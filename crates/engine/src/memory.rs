//! What the node's data takes of memory.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::column_index::ColumnIndex;
use crate::engine::Engine;
use crate::graph::Graph;
use crate::graph_options::GraphOptions;
use crate::index_kind::IndexKind;
use crate::moving::Choices;
use crate::options::Options;
use crate::schema::{DatasetSchema, VectorColumn};
use crate::vacuum;
use crate::view::View;

/// How full the node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Unsealed rows.
    pub tail_bytes: u64,
    /// Graphs: links, and vectors or their codes; codes of rows that wait for them; text indexes.
    pub index_bytes: u64,
    /// Id maps and liveness of rows.
    pub bookkeeping_bytes: u64,
    /// What makes searches faster while nothing else needs the room: what is kept of files of blocks, and copies of vectors that consist of
    /// whole numbers.
    pub kept_bytes: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.needed().saturating_add(self.kept_bytes)
    }

    /// What cannot be given up.
    pub fn needed(&self) -> u64 {
        self.tail_bytes
            .saturating_add(self.index_bytes)
            .saturating_add(self.bookkeeping_bytes)
    }
}

/// Rows that are to be put into a dataset, which need not exist.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coming<'a> {
    pub dataset: &'a str,
    pub schema: &'a DatasetSchema,
    pub rows: u64,
}

impl Coming<'_> {
    /// The vector columns that have no index yet.
    pub fn new_columns(&self, catalog: &Catalog) -> Vec<&VectorColumn> {
        let dataset = catalog.find(self.dataset);
        let known = |column: &&VectorColumn| {
            let mut datasets = dataset.iter();
            datasets.any(|dataset| dataset.index(&column.name).is_some())
        };
        let columns = self.schema.vectors.iter();
        columns.filter(|column| !known(column)).collect()
    }

    /// What the rows take in indexes, at most: one that may be moved counts as a graph, which takes more than others.
    pub fn most_bytes(&self, catalog: &Catalog, options: &Options) -> u64 {
        let dataset = catalog.find(self.dataset);
        let is_graph = |column: &VectorColumn| {
            let index = dataset.as_ref().and_then(|of| of.index(&column.name));
            index.is_none_or(|of| of.kind() != IndexKind::SpFresh || of.is_auto())
        };
        let columns = self.schema.vectors.iter();
        let a_row = columns.map(|column| {
            let kind = match is_graph(column) {
                true => IndexKind::Hnsw,
                false => IndexKind::SpFresh,
            };
            Graph::bytes_per_row(column, kind, &options.graphs).total() as u64
        });
        let words = dataset.as_ref();
        let words = words.map_or(0, |of| of.text().bytes_of(self.rows));
        self.rows.saturating_mul(a_row.sum()).saturating_add(words)
    }
}

impl Engine {
    /// Memory that the accounting knows of.
    pub fn memory(&self) -> Memory {
        in_use(self.catalog())
    }
}

/// How what is to come is reckoned, and so what dead rows take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reckoned {
    /// At most: rows that wait count although they may be dead. The quickest.
    Above,
    /// As it is now: dead rows that wait count for nothing, others have their places.
    Now,
    /// As it will be when no dead row has a place.
    OnceDeadLeft,
}

/// Memory that the datasets take.
pub(crate) fn in_use(catalog: &Catalog) -> Memory {
    let mut memory = Memory::default();
    for dataset in catalog.datasets() {
        memory.tail_bytes += dataset.view().tail.bytes();
        memory.bookkeeping_bytes += dataset.bookkeeping_bytes();
        for index in dataset.indexes().iter() {
            memory.index_bytes += index.coded.memory_bytes() as u64;
            for graph in index.graphs() {
                memory.index_bytes += graph.memory_bytes() as u64;
                memory.kept_bytes += graph.kept_bytes();
            }
        }
        memory.index_bytes += dataset.text().bytes();
    }
    memory
}

/// What rows will take in indexes: those that are coming, and those that were taken before, are in no index yet, and were
/// promised their place there.
pub(crate) fn to_come(
    catalog: &Catalog,
    options: &Options,
    coming: Option<&Coming<'_>>,
    how: Reckoned,
) -> u64 {
    let (choices, graphs) = (Choices::of(catalog, options, coming), &options.graphs);
    let chosen = choices.by_index();
    let mut asked = 0u64;
    for dataset in catalog.datasets() {
        let (view, text) = (dataset.view(), dataset.text());
        let more = coming.filter(|coming| coming.dataset == dataset.name);
        let more = more.map_or(0, |coming| coming.rows);
        asked = asked.saturating_add(text.bytes_of(text.missing(&view)));
        asked = asked.saturating_add(text.bytes_of(more));
        for index in dataset.indexes().iter() {
            let to = chosen.get(&Arc::as_ptr(index)).copied();
            let to = to.unwrap_or_else(|| index.kind());
            asked = asked.saturating_add(promised((&view, how), (index, to), more, graphs));
        }
    }
    if let Some(coming) = coming {
        for (column, kind) in coming.new_columns(catalog).iter().zip(choices.of_new()) {
            let a_row = Graph::bytes_per_row(column, *kind, graphs).total() as u64;
            asked = asked.saturating_add(coming.rows.saturating_mul(a_row));
        }
    }
    asked
}

/// What the rows of a dataset that are not in an index yet, and more, will take in it and in the one of the kind that the
/// column is to have.
fn promised(
    (view, how): (&View, Reckoned),
    (index, to): (&ColumnIndex, IndexKind),
    more: u64,
    options: &GraphOptions,
) -> u64 {
    let mut columns = view.schema.vectors.iter();
    let Some(column) = columns.find(|column| column.name == index.column) else {
        return 0;
    };
    let of = |rows: u64, kind| {
        let a_row = Graph::bytes_per_row(column, kind, options).total() as u64;
        rows.saturating_mul(a_row)
    };
    let by = |index: &ColumnIndex| {
        let missing = match how {
            Reckoned::Above => index.missing(view.next_row, view.live),
            Reckoned::Now | Reckoned::OnceDeadLeft => index.missing_living(view),
        };
        let leaving = match how {
            Reckoned::Above | Reckoned::Now => 0,
            Reckoned::OnceDeadLeft => vacuum::leaving(view, index),
        };
        // Rows left it, and others will take their place.
        let free = index.graph().free_bytes() as u64;
        let missing = missing.saturating_add(more).saturating_sub(leaving);
        let copied = missing.saturating_mul(index.graph().copied_bytes_per_row());
        of(missing, index.kind())
            .saturating_sub(free)
            .saturating_add(copied)
    };
    if index.kind() == to {
        return by(index);
    }
    // A graph that is left takes rows only while there is plenty of memory, so none is promised to it.
    let left = match index.kind() {
        IndexKind::SpFresh => by(index),
        IndexKind::Flat | IndexKind::Hnsw => 0,
    };
    let successor = index.successor().filter(|successor| successor.kind() == to);
    left.saturating_add(match successor {
        Some(successor) => by(&successor),
        None => of(view.live.saturating_add(more), to),
    })
}

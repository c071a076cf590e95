//! Graphs and text indexes of the last checkpoint, read while the node serves: until they are there, rows are scanned. So the first
//! answer does not wait for the largest graph.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use longbow_index::VectorSource;
use longbow_storage::IndexRef;

use crate::column_index::ColumnIndex;
use crate::error::Result;
use crate::graph::Graph;
use crate::hot;
use crate::mend::mend;
use crate::schema::VectorColumn;
use crate::shared::Shared;
use crate::text_file;
use crate::vectors::Vectors;
use crate::verify::check_graph;
use crate::view::{Part, View};

/// A graph that is yet to be read. Until it was, or could not be, nothing is inserted into its index, and checkpoints name
/// the file that it is in.
#[derive(Debug)]
pub(crate) struct Load {
    pub dataset: String,
    /// The dataset's number.
    pub number: u64,
    pub index: Arc<ColumnIndex>,
    pub column: VectorColumn,
    /// As the checkpoint left it: it holds all rows of the graph that still exist.
    pub view: View,
    pub saved: IndexRef,
    pub bytes: Bytes,
}

/// Lets inserts begin when it is dropped, also if reading panics.
struct Ending<'a>(&'a ColumnIndex);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end_loading();
    }
}

/// Reads graphs, one after the other. Those that are left when the node stops stay in their files.
pub(crate) fn run(shared: &Shared, loads: Vec<Load>) {
    // Texts first: they are there sooner.
    for dataset in shared.catalog.datasets() {
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        text_file::load(shared, &dataset);
        shared.indexers.ring();
    }
    for load in loads {
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        let ending = Ending(&load.index);
        let is_damaged = match load.graph(shared) {
            Ok((graph, is_mended)) => {
                load.index.loaded(graph, load.saved.rows_end);
                is_mended
            }
            Err(error) => {
                // Nothing is lost: the rows are scanned until the graph is built anew.
                let (dataset, column) = (&load.dataset, &load.column.name);
                tracing::warn!(dataset, column, %error, "graph is built anew");
                shared.rebuilt_graphs.fetch_add(1, Ordering::Relaxed);
                true
            }
        };
        drop(ending);
        // Only now checkpoints name another file.
        if is_damaged {
            shared.unsaved.mended();
        }
        shared.indexers.ring();
    }
}

impl Load {
    /// The graph, and whether some of it had to be made again.
    fn graph(&self, shared: &Shared) -> Result<(Graph, bool)> {
        check_graph(&self.bytes, &self.saved)?;
        let mut parts = Vec::new();
        for part in self.view.parts(0) {
            let (batch, runs) = (part.batch, part.runs);
            if let Some(vectors) = Vectors::of(batch, &self.column)? {
                parts.push((Part { batch, runs }, vectors));
            }
        }
        let saved = (&self.bytes[..], self.saved.blocks.as_deref());
        let options = shared.options.graphs.of_dataset(self.number);
        let vectors = PartVectors(parts);
        let (mut graph, lost) = Graph::load(&self.column, &options, saved, &vectors)?;
        if let Graph::Quantized(codes) = &mut graph
            && hot::may_copy(shared, codes.bytes_of_copies() as u64)
        {
            codes.make_copies(&vectors, self.view.next_row);
        }
        let is_mended = lost.is_some();
        if let Some(lost) = lost {
            let rows = (&self.view, &self.column);
            let (dataset, column) = (&self.dataset, &self.column.name);
            let (postings, error) = (lost.postings, lost.first.to_string());
            let rows = mend(&graph, lost, rows, self.saved.rows_end)?;
            tracing::warn!(
                dataset,
                column,
                postings,
                rows,
                error,
                "postings are made again"
            );
        }
        Ok((graph, is_mended))
    }
}

/// The vectors of a view by row number.
struct PartVectors<'a>(Vec<(Part<'a>, Vectors<'a>)>);

impl VectorSource for PartVectors<'_> {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let at = self
            .0
            .partition_point(|(part, _)| part.runs[0].first_row <= row)
            .checked_sub(1)?;
        let (part, vectors) = &self.0[at];
        let run = part
            .runs
            .partition_point(|run| run.first_row <= row)
            .checked_sub(1)?;
        let run = part.runs[run];
        let offset = usize::try_from(row - run.first_row)
            .ok()
            .filter(|offset| *offset < run.len)?;
        vectors.row(run.start + offset)
    }
}

//! Columns that leave the kind of their index to their size: which they are to have, and how they get it while they are
//! searched and written.
//!
//! An index of the other kind is built beside the old one by the threads that index rows, as if all rows were new. The
//! old one answers meanwhile, and takes new rows too. When the new one has caught up it is put in the old one's place at
//! once; a search that began with the old one ends with it. Checkpoints know only the index that is in place, so after a
//! crash the move begins anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_kernels::Metric;

use crate::catalog::Catalog;
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::graph::Graph;
use crate::index_choice::{Candidate, choose};
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::memory::{self, Coming, Reckoned};
use crate::options::Options;
use crate::schema::VectorColumn;
use crate::shared::Shared;

/// The kinds that the columns of a node are to have.
#[derive(Debug)]
pub(crate) struct Choices {
    known: Vec<(Arc<Dataset>, Arc<ColumnIndex>, IndexKind)>,
    new: Vec<IndexKind>,
}

impl Choices {
    /// Chooses for the rows that there are, and those that are coming.
    pub fn of(catalog: &Catalog, options: &Options, coming: Option<&Coming<'_>>) -> Self {
        let (mut known, mut candidates) = (Vec::new(), Vec::new());
        for dataset in catalog.datasets() {
            let view = dataset.view();
            let more = coming.filter(|coming| coming.dataset == dataset.name);
            let rows = view.live + more.map_or(0, |coming| coming.rows);
            for index in dataset.indexes().iter().filter(|index| index.is_auto()) {
                let Ok(column) = view.schema.vector(&dataset.name, Some(&index.column)) else {
                    continue;
                };
                let now = index.moving_to().unwrap_or(index.kind());
                candidates.push(candidate(column, now, rows, options));
                known.push((Arc::clone(&dataset), Arc::clone(index)));
            }
        }
        let columns = coming.map_or(Vec::new(), |coming| coming.new_columns(catalog));
        let rows = coming.map_or(0, |coming| coming.rows);
        let policy = |column: &VectorColumn| IndexPolicy::of(column, options.graphs.kind);
        let auto = columns
            .iter()
            .filter(|column| policy(column) == IndexPolicy::Auto);
        candidates.extend(auto.map(|column| candidate(column, IndexKind::Flat, rows, options)));
        let mut kinds = choose(
            &candidates,
            options.graphs.choice.least_rows,
            options.room(),
        )
        .into_iter();
        let known = known.into_iter().zip(&mut kinds);
        let known = known.map(|((dataset, index), kind)| {
            // What is read from a checkpoint is read whole first.
            let kind = if index.is_loading() {
                index.kind()
            } else {
                kind
            };
            (dataset, index, kind)
        });
        let known = known.collect();
        let new = columns.iter().map(|column| match policy(column) {
            IndexPolicy::Fixed(kind) => kind,
            IndexPolicy::Auto => kinds.next().unwrap_or(IndexKind::Flat),
        });
        Choices {
            known,
            new: new.collect(),
        }
    }

    /// The kinds that columns are to have which have an index and leave it to their size, by the address of that.
    pub fn by_index(&self) -> HashMap<*const ColumnIndex, IndexKind> {
        let of = |(_, index, kind): &(_, Arc<ColumnIndex>, _)| (Arc::as_ptr(index), *kind);
        self.known.iter().map(of).collect()
    }

    /// The kinds of the new columns of the rows that are coming, in their order.
    pub fn of_new(&self) -> &[IndexKind] {
        &self.new
    }
}

/// What is known of a column for the choice.
pub(crate) fn candidate(
    column: &VectorColumn,
    now: IndexKind,
    rows: u64,
    options: &Options,
) -> Candidate {
    let graph = Graph::bytes_per_row(column, IndexKind::Hnsw, &options.graphs);
    let can_be = IndexKind::SpFresh.why_not(column.native).is_none();
    Candidate {
        now,
        rows,
        bytes_per_row: graph.total() as u64,
        // Those of inner products are for who asks for them.
        by_postings: can_be && column.space.metric != Metric::Dot,
    }
}

/// Begins moves that are due, ends those that have arrived, and gives up those that are due no more.
pub(crate) fn review(shared: &Shared) {
    // Whoever does it now does it for all.
    let Some(_alone) = shared.moving.try_lock() else {
        return;
    };
    let choices = Choices::of(&shared.catalog, &shared.options, None);
    for (dataset, index, kind) in &choices.known {
        if let Err(error) = advance(dataset, index, *kind) {
            // The old one stays; say so loudly.
            tracing::error!(dataset = dataset.name, column = index.column, %error, "the index is not moved");
        }
    }
}

/// Brings an index nearer to the kind that it is to have.
fn advance(dataset: &Dataset, index: &Arc<ColumnIndex>, kind: IndexKind) -> Result<()> {
    let now = index.kind();
    let successor = index.successor();
    if kind == now {
        if successor.is_some() {
            index.set_successor(None);
            say(dataset, index, kind, "index stays");
        }
        return Ok(());
    }
    if let Some(successor) = successor.filter(|successor| successor.kind() == kind) {
        if successor.watermark() >= index.watermark() {
            dataset.replace_index(index, &successor);
            say(dataset, index, kind, "index moved");
        }
        return Ok(());
    }
    let view = dataset.view();
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    let new = ColumnIndex::new(column, kind, dataset.graph_options(), 0)?;
    // What is dead by now never comes into it.
    new.died.store(view.died(), Ordering::Relaxed);
    let new = Arc::new(new);
    index.set_successor(Some(Arc::clone(&new)));
    if now == IndexKind::Flat || kind == IndexKind::Flat {
        // Rows that are not in it are scanned, as all were or will be.
        dataset.replace_index(index, &new);
        say(dataset, index, kind, "index replaced");
    } else {
        say(dataset, index, kind, "index is moved");
    }
    Ok(())
}

fn say(dataset: &Dataset, index: &ColumnIndex, kind: IndexKind, what: &str) {
    let (dataset, column) = (&dataset.name, &index.column);
    let (from, to) = (index.kind().name(), kind.name());
    tracing::info!(dataset, column, from, to, "{what}");
}

/// Whether an index may take rows: a graph that is left for postings since it would take too much does so only while
/// there is plenty of memory. Rows that it does not take are scanned until the postings are there.
pub(crate) fn may_take(shared: &Shared, index: &ColumnIndex) -> bool {
    let leaves = index.kind() == IndexKind::Hnsw && index.moving_to() == Some(IndexKind::SpFresh);
    !leaves || {
        let (catalog, options) = (&shared.catalog, &shared.options);
        let used = memory::in_use(catalog).needed();
        let all = used.saturating_add(memory::to_come(catalog, options, None, Reckoned::Above));
        all < options.memory_limit / 4 * 3
    }
}

//! Graphs without their dead: a graph in which too many rows died is built anew beside the old one.

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::graph::{Graph, GraphOptions};
use crate::indexer::insert_rows;

/// Dead rows for each living one at which a graph is rebuilt: walking them costs as much as walking the living.
const DEAD_SHARE: f64 = 0.5;
/// Graphs with fewer dead rows than this are left alone.
const DEAD_ROWS: u64 = 10_000;

/// Rebuilds the graphs of a dataset that hold too many dead rows. Searches use the old graph until the new one holds
/// everything that it holds; inserts into the old one go on meanwhile, except at the very end.
///
/// # Errors
/// If a batch cannot be read or the graph is full; the old graph stays then.
pub(crate) fn vacuum(dataset: &Dataset, options: &GraphOptions) -> Result<()> {
    for index in dataset.indexes().iter() {
        let live = dataset.view().live;
        let dead = (index.graph().len() as u64).saturating_sub(live);
        if dead > DEAD_ROWS && dead as f64 > live as f64 * DEAD_SHARE {
            rebuild(dataset, index, options)?;
            tracing::info!(
                dataset = dataset.name,
                column = index.column,
                dead,
                live,
                "graph rebuilt"
            );
        }
    }
    Ok(())
}

fn rebuild(dataset: &Dataset, index: &ColumnIndex, options: &GraphOptions) -> Result<()> {
    let view = dataset.view();
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    let graph = Graph::new(column, options)?;
    let reached = index.watermark();
    insert_rows(&graph, &view, column, 0, reached)?;
    let still = index.hold_still();
    let view = dataset.view();
    insert_rows(&graph, &view, column, reached, index.watermark())?;
    index.replace(graph, &still);
    Ok(())
}

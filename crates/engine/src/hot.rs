//! What searches of postings read most, kept in memory while there is room.
//!
//! Where rows and files of blocks are more than what is left of the memory limit, the system cannot have all of them in its page
//! cache, and a search waits for the disk. The first parts of blocks, of which each search reads a hundred, are then copied into
//! memory that is free within the limit: the search waits for the few rows alone that it compares in the end. Whatever else needs the
//! memory gets it.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::graph::Graph;
use crate::memory;
use crate::shared::Shared;

/// One part in so many of what is free is left to the system, for rows.
const LEFT: u64 = 8;

/// Keeps as much as there is room for, and lets go of the rest.
pub(crate) fn keep(shared: &Shared) {
    let (catalog, options) = (&shared.catalog, &shared.options);
    let graphs = in_files(catalog);
    if graphs.is_empty() {
        return;
    }
    let used = memory::in_use(catalog).needed();
    let to_come = memory::to_come(catalog, options, None);
    let free = options.memory_limit.saturating_sub(used);
    let free = free.saturating_sub(to_come);
    let in_files: u64 = graphs.iter().map(|graph| graph.bytes_in_files()).sum();
    let mut room = match in_files <= free {
        // The system can have all of it in memory.
        true => 0,
        false => free - free / LEFT,
    };
    for graph in graphs {
        let kept = graph.keep(room);
        // No more before all is looked at again.
        graph.keep(kept);
        room = room.saturating_sub(kept);
    }
    // Rows may have come meanwhile.
    let all = memory::in_use(catalog).total().saturating_add(to_come);
    if let Some(over @ 1..) = all.checked_sub(options.memory_limit) {
        let_go(catalog, over);
    }
}

/// Lets go of so many bytes, or of all; false if nothing was kept.
pub(crate) fn let_go(catalog: &Catalog, bytes: u64) -> bool {
    let mut left = bytes;
    for graph in in_files(catalog) {
        let kept = graph.kept_bytes();
        graph.keep(kept.saturating_sub(left));
        left = left.saturating_sub(kept);
        if kept > 0 && left == 0 {
            return true;
        }
    }
    left < bytes
}

/// Indexes whose vectors are in files.
fn in_files(catalog: &Catalog) -> Vec<Arc<Graph>> {
    let datasets = catalog.datasets();
    let indexes = datasets.iter().flat_map(|dataset| {
        let indexes = dataset.indexes();
        let both = indexes
            .iter()
            .flat_map(|index| [Some(Arc::clone(index)), index.successor()]);
        both.flatten().collect::<Vec<_>>()
    });
    let graphs = indexes.map(|index| index.graph());
    graphs
        .filter(|graph| matches!(**graph, Graph::SpFresh { .. }))
        .collect()
}

//! What makes searches faster, kept in memory while there is room.
//!
//! Where rows and files of blocks are more than what is left of the memory limit, the system cannot have all of them in its page
//! cache, and a search waits for the disk. The first parts of blocks, of which each search reads a hundred, are then copied into
//! memory that is free within the limit: the search waits only for what it reads of a few vectors in the end. Whatever else
//! needs the memory gets it.
//!
//! Graphs of codes keep copies of vectors that consist of whole numbers, of which searches read less than of the vectors. They make these
//! as rows come, and when they are read if there is room; and lose them where there is none, all of a graph at once, or where postings need it,
//! without which searches wait for the disk. Then they are without until they are read again.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::graph::Graph;
use crate::memory::{self, Reckoned};
use crate::shared::Shared;

/// One part in so many of what is free is left to the system, for rows,
const LEFT: u64 = 8;
/// but so much at least, up to three quarters of it: some systems read pieces of 8 MiB ahead, for each thread that meets a page that is not
/// there, and where a control group has no room for them it ends the process.
const LEAST_LEFT: u64 = 40 << 20;
/// So much is copied before it is looked again at what is free.
const AT_ONCE: u64 = 32 << 20;

/// Keeps some more if there is room, and lets go of what there is no room for. Says whether there may be more to be kept.
pub(crate) fn keep_some(shared: &Shared) -> bool {
    let (catalog, options) = (&shared.catalog, &shared.options);
    let (graphs, copied) = keeping(catalog);
    if graphs.is_empty() && copied.is_empty() {
        return false;
    }
    let memory = memory::in_use(catalog);
    let kept_bytes = memory.kept_bytes;
    let process = (options.process_bytes)().saturating_sub(shared.process_bytes_before);
    let needed = memory.needed().max(process.saturating_sub(kept_bytes));
    let to_come = memory::to_come(catalog, options, None, Reckoned::Above);
    let free = options.memory_limit.saturating_sub(needed);
    let free = free.saturating_sub(to_come);
    let in_files: u64 = graphs.iter().map(|graph| graph.bytes_in_files()).sum();
    let copies = of_all(&copied);
    if copies > 0 && copies.saturating_add(in_files) > free {
        // They do not come back soon, so what only seems to be in use, or is dead, does not count against them.
        let more = copies.saturating_add(in_files);
        let more = more.saturating_sub(free_now(shared));
        let_copies_go(copied, more);
        return false;
    }
    let (free, kept_bytes) = (free.saturating_sub(copies), of_all(&graphs));
    let room = room_of(free);
    if graphs.is_empty() {
        return false;
    }
    // The system can have all of it in memory. If that is not sure any more, what is kept stays.
    let fits = match kept_bytes {
        0 => in_files <= free,
        _ => in_files <= room,
    };
    let room = if fits { 0 } else { room };
    let Some(more) = room.checked_sub(kept_bytes) else {
        let_go_of(&graphs, kept_bytes - room);
        return false;
    };
    for graph in graphs {
        let before = graph.kept_bytes();
        graph.keep(more.min(AT_ONCE));
        if graph.kept_bytes() > before {
            return true;
        }
    }
    false
}

/// Whether copies of so many bytes may be made of a graph that was read.
pub(crate) fn may_copy(shared: &Shared, bytes: u64) -> bool {
    let (graphs, copied) = keeping(&shared.catalog);
    let in_files: u64 = graphs.iter().map(|graph| graph.bytes_in_files()).sum();
    let kept = of_all(&copied).saturating_add(in_files);
    bytes.saturating_add(kept) <= room_of(free_now(shared))
}

/// What is free beside what is needed and what is to come.
fn free_now(shared: &Shared) -> u64 {
    let needed = memory::in_use(&shared.catalog).needed();
    let to_come = memory::to_come(&shared.catalog, &shared.options, None, Reckoned::Now);
    let free = shared.options.memory_limit.saturating_sub(needed);
    free.saturating_sub(to_come)
}

/// How much of what is free may be used.
fn room_of(free: u64) -> u64 {
    free - (free / LEFT).max(LEAST_LEFT.min(free / 4 * 3))
}

/// Lets go of so many bytes, or of all; false if nothing was kept that could be let go of.
pub(crate) fn let_go(catalog: &Catalog, bytes: u64) -> bool {
    let (in_files, copied) = keeping(catalog);
    // Without copies a search reads more; without the others it may wait for the disk.
    let left = let_copies_go(copied, bytes);
    let_go_of(&in_files, left) < bytes
}

/// Lets so many bytes of copies go, and tells how many are left: the smallest that are enough, or else the largest first.
fn let_copies_go(mut graphs: Vec<Arc<Graph>>, bytes: u64) -> u64 {
    graphs.sort_by_key(|graph| graph.kept_bytes());
    let enough = graphs.iter().position(|graph| graph.kept_bytes() >= bytes);
    match enough {
        Some(at) => let_go_of(&graphs[at..=at], bytes),
        None => {
            graphs.reverse();
            let_go_of(&graphs, bytes)
        }
    }
}

/// Lets these go of so many bytes, and tells how many are left.
fn let_go_of(graphs: &[Arc<Graph>], bytes: u64) -> u64 {
    let go = |left: u64, graph: &Arc<Graph>| left.saturating_sub(graph.let_go(left));
    graphs.iter().fold(bytes, go)
}

fn of_all(graphs: &[Arc<Graph>]) -> u64 {
    graphs.iter().map(|graph| graph.kept_bytes()).sum()
}

/// Indexes whose vectors are in files, and graphs with copies.
fn keeping(catalog: &Catalog) -> (Vec<Arc<Graph>>, Vec<Arc<Graph>>) {
    let (mut in_files, mut copied) = (Vec::new(), Vec::new());
    for dataset in catalog.datasets() {
        for graph in dataset.indexes().iter().flat_map(|index| index.graphs()) {
            match *graph {
                Graph::SpFresh { .. } => in_files.push(graph),
                Graph::Quantized(_) if graph.kept_bytes() > 0 => copied.push(graph),
                Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => {}
            }
        }
    }
    (in_files, copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_left_an_eighth_and_what_it_reads_ahead() {
        const MIB: u64 = 1 << 20;
        let cases = [(0, 0), (8, 2), (48, 12), (80, 40), (320, 280), (800, 700)];
        for (free, room) in cases {
            assert_eq!(room_of(free * MIB), room * MIB, "{free}");
        }
    }
}

//! What a row takes in a graph, for whoever has to know before it is there.

use longbow_kernels::Metric;
use longbow_kernels::rabitq::{self, SLOTS};

use crate::chunks::ALIGN;
use crate::hnsw::{Hnsw, HnswParams};
use crate::quantized::block::Layout as Block;
use crate::quantized::level::FEWER;
use crate::quantized::{QuantizedGraph, QuantizedParams, SAVED_NODE};
use crate::space::Space;
use crate::spfresh::{Layout, SpFresh, SpFreshParams};

/// Row, twin, and level of a node, and how many lead to it.
const HEAD: usize = 18;
/// Bytes of an edge of a quantised graph besides its code: where it leads, and two terms of the estimate.
const EDGE: usize = 4 + 2 + 2;
/// Row, twin, level, and the length of two lists of links, in the file of an HNSW graph.
const HNSW_NODE: usize = 8 + 4 + 1 + 2 + 2;
/// Which row a node holds, and which node a row is in, of a quantised graph.
const PLACES: usize = 9;
/// A posting and its centroid in memory, besides the codes; and a block of it.
const POSTING: usize = 256;
const BLOCK: usize = 80;
/// What a row takes in the memory of a graph, and in its file, in bytes, on average over many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowBytes {
    /// The vector, or the code in its place.
    pub vector: usize,
    /// Where its edges lead, and what a graph of codes keeps of each.
    pub edges: usize,
    /// Its head, its share of the levels above, and what rounding to cache lines adds.
    pub other: usize,
    /// In the file that a checkpoint writes, at most.
    pub saved: usize,
    /// In the file of blocks, which is there all the time, about.
    pub blocks: usize,
}

impl RowBytes {
    /// In memory, all of it.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.vector + self.edges + self.other
    }
}

impl Hnsw {
    /// Bytes that [`Hnsw::memory_bytes`] grows by for a row: its vector and its links.
    #[must_use]
    pub fn bytes_per_row(space: Space, params: HnswParams) -> RowBytes {
        let inverse = if space.metric == Metric::Cosine { 4 } else { 0 };
        let vector = space.row_bytes() + inverse;
        // `2 m` links on the ground, and `m` on each level above, where one node in `m` is on the next.
        let above = params.m.div_ceil(params.m.saturating_sub(1).max(1));
        let edges = 4 * (2 * params.m + above);
        RowBytes {
            vector,
            edges,
            other: HEAD + vector.next_multiple_of(ALIGN) - vector,
            saved: HNSW_NODE + edges,
            blocks: 0,
        }
    }
}

impl QuantizedGraph {
    /// Bytes that [`QuantizedGraph::memory_bytes`] grows by for a row: the code of its vector, and its edges with
    /// theirs.
    #[must_use]
    pub fn bytes_per_row(space: Space, params: QuantizedParams) -> RowBytes {
        let dim = space.code_dim();
        let block = Block::new(dim, params.edge_codes).bytes();
        let edges = if params.edge_codes {
            SLOTS * EDGE + rabitq::code_bytes(dim)
        } else {
            SLOTS * size_of::<u32>()
        };
        // And of one row in so many once more on the level above.
        let total = block + block.div_ceil(FEWER as usize - 1) + PLACES;
        let node = SAVED_NODE + dim;
        RowBytes {
            vector: dim,
            edges,
            other: total - dim - edges,
            saved: node + node.div_ceil(FEWER as usize - 1),
            blocks: 0,
        }
    }
}

impl SpFresh {
    /// Bytes that a row takes in memory, and in both files: its share of a posting and of the centroid.
    #[must_use]
    pub fn bytes_per_row(space: Space, params: SpFreshParams) -> RowBytes {
        let dim = space.code_dim();
        let block = Layout::new(dim).bytes;
        // A posting is half full after it was split, and full before: three quarters on average.
        let vectors = params.split * 3 / 4;
        let blocks = vectors.div_ceil(SLOTS);
        // The centroid as its eight-bit code, and in the blocks by which all are compared.
        let centroid = dim + block / SLOTS;
        // Of vectors that are clustered, about one in three is on a boundary.
        let copies = if params.replicas > 1 { 4 } else { 3 };
        RowBytes {
            vector: centroid.div_ceil(vectors),
            edges: 0,
            other: (POSTING + blocks * BLOCK).div_ceil(vectors),
            saved: (dim + 8 + 4 * blocks).div_ceil(vectors),
            blocks: (blocks * block * copies / 3).div_ceil(vectors),
        }
    }
}

#[cfg(test)]
mod tests {
    use longbow_kernels::Scalar;

    use super::*;
    use crate::error::Result;
    use crate::vector_index::VectorIndex;

    const ROWS: u64 = 2_000;

    /// Bytes that the rows after the first hundred take each.
    fn measured(index: &dyn VectorIndex) -> Result<f64> {
        let mut state = 1u64;
        let mut before = 0;
        for row in 0..ROWS + 100 {
            if row == 100 {
                before = index.memory_bytes();
            }
            let vector: Vec<u8> = (0..index.space().dim)
                .flat_map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
                    let number = (state >> 40) as f32 / (1 << 24) as f32;
                    match index.space().scalar {
                        Scalar::F32 => number.to_le_bytes().to_vec(),
                        _ => vec![(number * 100.0) as u8],
                    }
                })
                .collect();
            index.insert(row, &vector)?;
        }
        Ok((index.memory_bytes() - before) as f64 / ROWS as f64)
    }

    fn check(index: &dyn VectorIndex, told: usize) -> Result<()> {
        let measured = measured(index)?;
        let off = told as f64 / measured;
        let what = format!("{:?}: told {told}, measured {measured}", index.space());
        // Rooms to work in, which grow with the graph, and chance on the upper levels are within it.
        assert!((0.96..1.04).contains(&off), "{what}");
        Ok(())
    }

    #[test]
    fn graphs_take_what_was_told_of_them() -> Result<()> {
        for (scalar, metric, dim) in [
            (Scalar::F32, Metric::Euclidean, 128),
            (Scalar::I8, Metric::Cosine, 128),
            (Scalar::I8, Metric::Euclidean, 200),
            (Scalar::F32, Metric::Cosine, 48),
        ] {
            let space = Space {
                scalar,
                metric,
                dim,
            };
            for edge_codes in [true, false] {
                let params = QuantizedParams {
                    edge_codes,
                    ..QuantizedParams::default()
                };
                let graph = QuantizedGraph::new(space, params)?;
                check(&graph, QuantizedGraph::bytes_per_row(space, params).total())?;
            }
            for m in [8, 16] {
                let params = HnswParams {
                    m,
                    ef_construction: 40,
                    ..HnswParams::default()
                };
                let graph = Hnsw::new(space, params)?;
                check(&graph, Hnsw::bytes_per_row(space, params).total())?;
            }
        }
        Ok(())
    }
}

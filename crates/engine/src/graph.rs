//! The graph of a vector column: with its vectors, or with codes for them.

use std::io::Write;

use arrow_schema::FieldRef;
use longbow_index::VectorIndex as _;
use longbow_index::{
    Entries, Filtered, Hnsw, IsOver, Lost, Metric, Neighbor, QuantizedGraph, Query, RowBytes,
    SearchStats, SpFresh, VectorSource, Visit,
};

use crate::block_files::Blocks;
use crate::error::{Error, Result};
use crate::graph_options::GraphOptions;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::originals::Originals;
use crate::quantization::Quantization;
use crate::remembered::Remembered;
use crate::sample::sample;
use crate::schema::VectorColumn;
use crate::view::View;

/// Vectors from which the origin of the codes is taken.
const SAMPLE: u64 = 1_000;
/// Units of effort, which are candidates of a walk, for each posting that is read: at the same effort the recall of both
/// kinds of index is much alike.
pub const EFFORT_A_POSTING: usize = 4;
/// What a row takes where there is no graph.
const NOTHING: RowBytes = RowBytes {
    vector: 0,
    edges: 0,
    other: 0,
    saved: 0,
    blocks: 0,
};

/// Which rows a search of a graph is for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Whether a row may be found.
    pub visible: &'a (dyn Fn(u64) -> bool + Sync),
    /// What is known of the rows that pass a filter, if one decides what is visible.
    pub entries: Option<Entries<'a>>,
    /// Whether walks behind a filter, and any of vectors, are to end with what they have.
    pub is_over: Option<IsOver<'a>>,
    /// The columns that will be read of what is found.
    pub reply: &'a [FieldRef],
}

impl<'a> Wanted<'a> {
    /// Those for which this holds, where no filter decides.
    pub fn visible(visible: &'a (dyn Fn(u64) -> bool + Sync)) -> Self {
        Wanted {
            visible,
            entries: None,
            is_over: None,
            reply: &[],
        }
    }
}

/// A graph.
#[derive(Debug)]
pub enum Graph {
    /// Nothing: the rows are scanned.
    Flat,
    /// With its vectors.
    Hnsw(Hnsw),
    /// With codes. Nothing is in it before its origin was chosen.
    Quantized(QuantizedGraph),
    /// Not a graph but postings, with their codes in a file. Nothing is in it before its origin was chosen.
    SpFresh {
        /// The index.
        index: SpFresh,
        /// Its file.
        blocks: Blocks,
    },
}

impl Graph {
    /// An empty graph of a kind for a column.
    ///
    /// # Errors
    /// If the parameters are out of their ranges.
    pub(crate) fn new(
        column: &VectorColumn,
        kind: IndexKind,
        options: &GraphOptions,
    ) -> Result<Self> {
        let space = column.space;
        Ok(match kind {
            IndexKind::Flat => Graph::Flat,
            IndexKind::SpFresh => {
                let blocks = options.blocks.create();
                let file = Box::new(blocks.clone());
                let index = SpFresh::new(space, options.spfresh, file)?;
                Graph::SpFresh { index, blocks }
            }
            IndexKind::Hnsw => match Quantization::of(column, options.quantization) {
                Quantization::None => Graph::Hnsw(Hnsw::new(space, options.hnsw)?),
                codes => Graph::Quantized(QuantizedGraph::new(space, options.codes(codes))?),
            },
        })
    }

    /// The kind of what [`Graph::save`] wrote.
    pub(crate) fn kind_of_saved(bytes: &[u8]) -> IndexKind {
        match SpFresh::is_saved(bytes) {
            true => IndexKind::SpFresh,
            false => IndexKind::Hnsw,
        }
    }

    /// What [`Graph::save`] wrote, if it is of a kind that the column may have now; `vectors` are those of all its rows.
    /// And, of an index in postings, what is to be inserted again since its blocks are damaged.
    ///
    /// # Errors
    /// If it is of another kind, or the index refuses it.
    pub(crate) fn load(
        column: &VectorColumn,
        options: &GraphOptions,
        (bytes, blocks): (&[u8], Option<&str>),
        vectors: &dyn VectorSource,
    ) -> Result<(Self, Option<Lost>)> {
        let space = column.space;
        let got = Self::kind_of_saved(bytes);
        if let IndexPolicy::Fixed(expected) = IndexPolicy::of(column, options.kind)
            && expected != got
        {
            return Err(Error::OtherGraph {
                expected: expected.name(),
                got: got.name(),
            });
        }
        if got == IndexKind::SpFresh {
            let blocks = match blocks {
                Some(name) => options.blocks.open(name)?,
                // It was empty.
                None => options.blocks.create(),
            };
            let file = Box::new(blocks.clone());
            let (index, lost) = SpFresh::load_sound(space, options.spfresh, bytes, file)?;
            return Ok((Graph::SpFresh { index, blocks }, lost));
        }
        let expected = Quantization::of(column, options.quantization);
        // Codes of edges are not saved, so whether there are any is decided anew.
        let graph = match (expected, QuantizedGraph::is_saved(bytes)) {
            (Quantization::None, false) => {
                Graph::Hnsw(Hnsw::load(space, options.hnsw, bytes, vectors)?)
            }
            (Quantization::None, true) => {
                return Err(Error::OtherGraph {
                    expected: expected.name(),
                    got: "codes",
                });
            }
            (codes, true) => {
                Graph::Quantized(QuantizedGraph::load(space, options.codes(codes), bytes)?)
            }
            (codes, false) => {
                return Err(Error::OtherGraph {
                    expected: codes.name(),
                    got: Quantization::None.name(),
                });
            }
        };
        Ok((graph, None))
    }

    /// What it holds of each vector.
    pub fn quantization(&self) -> Quantization {
        match self {
            Graph::Flat | Graph::Hnsw(_) => Quantization::None,
            Graph::SpFresh { .. } => Quantization::Rabitq,
            Graph::Quantized(graph) if graph.params().edge_codes => Quantization::Rabitq,
            Graph::Quantized(_) => Quantization::Sq8,
        }
    }

    /// Whether rows that wait for it get codes of their own. Those take less than the room that is reserved for the rows in
    /// the graph meanwhile; of rows in postings the memory holds less than that.
    pub(crate) fn has_coded_tail(&self) -> bool {
        match self {
            Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => false,
            Graph::Quantized(_) => true,
        }
    }

    /// Whether dead rows that are to leave it wait for searches that entered before they were.
    pub(crate) fn is_held(&self) -> bool {
        match self {
            Graph::Flat | Graph::Hnsw(_) => false,
            Graph::Quantized(graph) => graph.is_held(),
            Graph::SpFresh { index, .. } => !index.is_over(),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> IndexKind {
        match self {
            Graph::Flat => IndexKind::Flat,
            Graph::Hnsw(_) | Graph::Quantized(_) => IndexKind::Hnsw,
            Graph::SpFresh { .. } => IndexKind::SpFresh,
        }
    }

    /// Name of the file of its blocks, if it has one.
    pub fn blocks(&self) -> Option<&str> {
        match self {
            Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => None,
            Graph::SpFresh { blocks, .. } => blocks.name(),
        }
    }

    /// Says that the checkpoint for which it was saved last holds.
    ///
    /// # Errors
    /// If its file cannot be cut; it stays longer than it needs to be.
    pub(crate) fn hold(&self) -> Result<()> {
        match self {
            Graph::SpFresh { index, .. } => Ok(index.hold()?),
            Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => Ok(()),
        }
    }

    /// Keeps in memory what searches read of more blocks, of as many as fit into so many bytes.
    pub(crate) fn keep(&self, bytes: u64) {
        if let Graph::SpFresh { index, .. } = self {
            index.keep(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }

    /// Lets go of so many bytes of what is kept so, or of all, and tells how many that were.
    pub(crate) fn let_go(&self, bytes: u64) -> u64 {
        match self {
            Graph::SpFresh { index, .. } => {
                index.let_go(usize::try_from(bytes).unwrap_or(usize::MAX)) as u64
            }
            // All or none.
            Graph::Quantized(graph) if bytes > 0 => graph.let_go() as u64,
            Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => 0,
        }
    }

    /// Bytes that a row that comes takes in copies, while the graph has some.
    pub(crate) fn copied_bytes_per_row(&self) -> u64 {
        match self {
            Graph::Quantized(graph) => graph.copied_bytes_per_row() as u64,
            Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => 0,
        }
    }

    /// Bytes that are kept so, and of copies.
    pub fn kept_bytes(&self) -> u64 {
        match self {
            Graph::SpFresh { index, .. } => index.kept_bytes() as u64,
            Graph::Quantized(graph) => graph.kept_bytes() as u64,
            Graph::Flat | Graph::Hnsw(_) => 0,
        }
    }

    /// Bytes of its file of blocks, and of the vectors of its rows, which are in files too.
    pub(crate) fn bytes_in_files(&self) -> u64 {
        match self {
            Graph::SpFresh { index, .. } => {
                index.file_bytes().0 + (index.len() * index.space().row_bytes()) as u64
            }
            Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => 0,
        }
    }

    /// Whether a checkpoint and a vacuum after it make its file shorter.
    pub(crate) fn is_sparse(&self) -> bool {
        match self {
            Graph::SpFresh { index, .. } => index.is_sparse(),
            Graph::Flat | Graph::Hnsw(_) | Graph::Quantized(_) => false,
        }
    }

    /// The end of the names of its files.
    pub(crate) fn extension(&self) -> &'static str {
        match self {
            // Of which there are none.
            Graph::Flat => "flat",
            Graph::Hnsw(_) => "hnsw",
            Graph::Quantized(_) => "qgraph",
            Graph::SpFresh { .. } => "spfresh",
        }
    }

    /// Whether rows may be inserted.
    pub(crate) fn is_prepared(&self) -> bool {
        match self {
            Graph::Flat | Graph::Hnsw(_) => true,
            Graph::Quantized(graph) => graph.is_prepared(),
            Graph::SpFresh { index, .. } => index.is_prepared(),
        }
    }

    /// Chooses the origin of the codes by living rows from all over the view, unless that was done.
    ///
    /// # Errors
    /// If a batch cannot be read.
    pub(crate) fn prepare(&self, view: &View, column: &VectorColumn) -> Result<()> {
        if self.is_prepared() {
            return Ok(());
        }
        let sample = sample(view, column, SAMPLE)?;
        // Without a living row nothing is inserted either.
        if !sample.is_empty() {
            let sample = sample.iter().map(|(_, vector)| vector.as_slice());
            match self {
                Graph::Flat | Graph::Hnsw(_) => {}
                Graph::Quantized(graph) => graph.prepare(sample),
                Graph::SpFresh { index, .. } => index.prepare(sample),
            }
        }
        Ok(())
    }

    /// Adds a row of a graph that is prepared.
    ///
    /// # Errors
    /// If the graph is full.
    pub(crate) fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        match self {
            Graph::Flat => {}
            Graph::Hnsw(graph) => graph.insert(row, vector)?,
            Graph::Quantized(graph) => graph.insert(row, vector)?,
            Graph::SpFresh { index, .. } => index.insert(row, vector)?,
        }
        Ok(())
    }

    /// The same in less than half of the time, where that can be; what is left undone then is done later.
    ///
    /// # Errors
    /// As [`Graph::insert`].
    pub(crate) fn insert_in_haste(&self, row: u64, vector: &[u8]) -> Result<()> {
        match self {
            Graph::Quantized(graph) => Ok(graph.insert_in_haste(row, vector)?),
            Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => self.insert(row, vector),
        }
    }

    /// Whether how far a walk goes depends on how many rows it looks for.
    pub(crate) fn goes_by_k(&self) -> bool {
        let metric = match self {
            Graph::Quantized(graph) => graph.space().metric,
            Graph::Hnsw(graph) => graph.space().metric,
            Graph::Flat | Graph::SpFresh { .. } => return false,
        };
        metric != Metric::Dot
    }

    /// For each query the `k` rows nearest to it that are wanted, as far as a search of breadth `ef` finds them, by their
    /// exact distances. All wanted rows are alive in the view. `stats` are those of each query.
    ///
    /// # Errors
    /// If a batch cannot be read.
    pub(crate) fn search(
        &self,
        queries: &[Query],
        (k, ef): (usize, usize),
        wanted: Wanted<'_>,
        (view, column): (&View, &VectorColumn),
        stats: &mut [SearchStats],
    ) -> Result<Vec<Vec<Neighbor>>> {
        let visible = (wanted.visible, wanted.is_over);
        let filtered = wanted.entries.map(|entries| Filtered {
            k,
            ef,
            passes: wanted.visible,
            entries,
            is_over: wanted.is_over,
        });
        Ok(match self {
            Graph::Flat => vec![Vec::new(); queries.len()],
            Graph::Hnsw(graph) => {
                let search = |(query, stats)| match filtered {
                    Some(filtered) => graph.search_filtered(query, filtered, stats),
                    None => graph.search_until(query, (k, ef), visible, stats),
                };
                queries.iter().zip(stats).map(search).collect()
            }
            Graph::SpFresh { index, .. } => {
                let originals = Originals::new(view, column).replying(wanted.reply);
                let at = (k, ef.div_ceil(EFFORT_A_POSTING));
                let passing = wanted.entries.and_then(|entries| entries.passing);
                let share = passing.map(|passing| passing as f64 / view.live.max(1) as f64);
                let rows = (share, visible);
                let search =
                    |(query, stats)| index.search_filtered(query, at, rows, &originals, stats);
                let found = queries.iter().zip(stats).map(search).collect();
                originals.check()?;
                found
            }
            // A search would choose an origin without having seen a vector.
            Graph::Quantized(graph) if !graph.is_prepared() => vec![Vec::new(); queries.len()],
            Graph::Quantized(graph) => {
                let originals = Originals::new(view, column);
                let remembered = Remembered::new(&originals);
                let found = match (filtered, queries, &mut *stats) {
                    (None, [query], [stats]) if wanted.is_over.is_none() => {
                        vec![graph.search(query, k, ef, wanted.visible, &remembered, stats)]
                    }
                    (None, ..) => graph.search_each(queries, (k, ef), visible, &remembered, stats),
                    (Some(filtered), [query], [stats]) => {
                        vec![graph.search_filtered(query, filtered, &remembered, stats)]
                    }
                    (Some(filtered), ..) => {
                        graph.search_filtered_each(queries, filtered, &remembered, stats)
                    }
                };
                originals.check()?;
                found
            }
        })
    }

    /// Writes the graph; nothing for one that is flat or not prepared. No insert may run.
    ///
    /// # Errors
    /// If an insert runs, or the writer fails.
    pub(crate) fn save(&self, out: &mut dyn Write) -> Result<()> {
        match self {
            Graph::Flat => {}
            Graph::Hnsw(graph) => drop(graph.save(out)?),
            Graph::Quantized(graph) if graph.is_prepared() => drop(graph.save(out)?),
            Graph::Quantized(_) => {}
            Graph::SpFresh { index, .. } if index.is_prepared() => drop(index.save(out)?),
            Graph::SpFresh { .. } => {}
        }
        Ok(())
    }

    /// Bytes that a graph of this kind takes for a row of a column, on average over many.
    pub(crate) fn bytes_per_row(
        column: &VectorColumn,
        kind: IndexKind,
        options: &GraphOptions,
    ) -> RowBytes {
        let space = column.space;
        match kind {
            IndexKind::Flat => NOTHING,
            IndexKind::SpFresh => SpFresh::bytes_per_row(space, options.spfresh),
            IndexKind::Hnsw => match Quantization::of(column, options.quantization) {
                Quantization::None => Hnsw::bytes_per_row(space, options.hnsw),
                codes => QuantizedGraph::bytes_per_row(space, options.codes(codes)),
            },
        }
    }

    /// Begins a visit, for a reader who takes a view after it: what the view shows stays in the graph until it ends.
    pub(crate) fn enter(&self) -> Option<Visit> {
        match self {
            // Nothing leaves it.
            Graph::Flat | Graph::Hnsw(_) => None,
            Graph::Quantized(graph) => Some(graph.enter()),
            Graph::SpFresh { index, .. } => Some(index.enter()),
        }
    }

    /// Bytes of those allocated that rows left, and others will take.
    pub(crate) fn free_bytes(&self) -> usize {
        match self {
            Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => 0,
            Graph::Quantized(graph) => graph.free_bytes(),
        }
    }

    /// Rows in it.
    pub fn len(&self) -> usize {
        match self {
            Graph::Flat => 0,
            Graph::Hnsw(graph) => graph.len(),
            Graph::Quantized(graph) => graph.len(),
            Graph::SpFresh { index, .. } => index.len(),
        }
    }

    /// Whether no row is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are allocated.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Graph::Flat => 0,
            Graph::Hnsw(graph) => graph.memory_bytes(),
            Graph::Quantized(graph) => graph.memory_bytes(),
            Graph::SpFresh { index, .. } => index.memory_bytes(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

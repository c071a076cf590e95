//! What a dataset will take of memory and disk, before it is there.
//!
//! The figures are those that admission goes by ([`crate::memory`]) and those of the formats on disk.

use arrow_schema::{DataType, SchemaRef};
use longbow_index::{RowBytes, Space};
use longbow_log::frame_bytes;
use longbow_storage::{IdKind, IdMap};

use crate::error::Result;
use crate::graph::Graph;
use crate::index_choice::choose;
use crate::index_kind::{self, IndexKind};
use crate::index_policy::IndexPolicy;
use crate::memory::Memory;
use crate::moving::candidate;
use crate::options::Options;
use crate::quantization::{self, Quantization};
use crate::schema::{DatasetSchema, VectorColumn};

/// Bytes of a put besides its rows' own: the Arrow message, its place in the log and in the segment.
const BATCH_BYTES: u64 = 1_024;

/// Rows that are to come.
#[derive(Debug, Clone)]
pub struct Load {
    /// Their schema, as the first put will send it.
    pub schema: SchemaRef,
    /// How many.
    pub rows: u64,
    /// What their ids are like.
    pub ids: IdKind,
    /// Bytes of a row in the columns that are neither its id nor a vector.
    pub other_bytes: u64,
    /// Rows of a put.
    pub rows_a_put: u64,
}

/// The graph of a vector column.
#[derive(Debug, Clone)]
pub struct ColumnPlan {
    /// Name of the column.
    pub name: String,
    /// What its vectors are to the graph.
    pub space: Space,
    /// Its kind.
    pub kind: IndexKind,
    /// Whether the number of rows and the memory limit decided that.
    pub auto: bool,
    /// What the graph holds of each vector.
    pub quantization: Quantization,
    /// Why.
    pub reason: &'static str,
    /// What it takes for a row.
    pub row: RowBytes,
}

/// What a load will take. All in bytes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The graphs.
    pub columns: Vec<ColumnPlan>,
    /// A row as it is stored and logged.
    pub row_bytes: u64,
    /// What counts for the memory limit, at its most.
    pub memory: Memory,
    /// Beyond that, for as long as a checkpoint writes the largest graph.
    pub checkpoint_buffer: u64,
    /// Row segments.
    pub segments: u64,
    /// The log at its most, spare files included.
    pub log: u64,
    /// The graphs of a checkpoint; of HNSW at most, with chance on the upper levels.
    pub graph_files: u64,
    /// Files of blocks, about.
    pub block_files: u64,
}

impl Plan {
    /// Foretells what a load takes on a node with these options.
    ///
    /// # Errors
    /// If the schema would be refused.
    pub fn of(load: &Load, options: &Options) -> Result<Plan> {
        let schema = DatasetSchema::new(&load.schema, 1)?;
        index_kind::check(&load.schema, &schema.vectors)?;
        quantization::check(&load.schema, &schema.vectors)?;
        let columns = columns(&schema, load.rows, options);
        let row_bytes = row_bytes(&schema, load);
        let puts = load.rows.div_ceil(load.rows_a_put.max(1));
        let stored = load
            .rows
            .saturating_mul(row_bytes)
            .saturating_add(puts.saturating_mul(BATCH_BYTES));
        let in_memory = |column: &ColumnPlan| load.rows.saturating_mul(column.row.total() as u64);
        let saved = |column: &ColumnPlan| load.rows.saturating_mul(column.row.saved as u64);
        let blocks = |column: &ColumnPlan| load.rows.saturating_mul(column.row.blocks as u64);
        let index_bytes = columns.iter().map(in_memory).fold(0, u64::saturating_add);
        let bookkeeping_bytes = IdMap::estimated_bytes(load.ids, load.rows);
        let kept = index_bytes.saturating_add(bookkeeping_bytes);
        let room = options.memory_limit.saturating_sub(kept);
        let a_put = row_bytes
            .saturating_mul(load.rows_a_put)
            .saturating_add(BATCH_BYTES);
        Ok(Plan {
            row_bytes,
            memory: Memory {
                // While writers are busy a tail is sealed at its second helping, and before where others need its room; what
                // is being put needs some in any case.
                tail_bytes: stored
                    .min(options.seal_bytes.saturating_mul(2))
                    .min(room.max(a_put)),
                index_bytes,
                bookkeeping_bytes,
                kept_bytes: 0,
            },
            checkpoint_buffer: columns.iter().map(saved).max().unwrap_or(0),
            segments: stored,
            log: log_bytes(stored, options),
            graph_files: columns.iter().map(saved).fold(0, u64::saturating_add),
            block_files: columns.iter().map(blocks).fold(0, u64::saturating_add),
            columns,
        })
    }

    /// The most rows of such a load, up to its own, that stay within the memory limit. Where more rows make another kind of
    /// index that takes less, there may be others above it that do, too.
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn most_rows(load: &Load, options: &Options) -> Result<u64> {
        let (mut fit, mut too_many) = (0, load.rows.saturating_add(1));
        while too_many - fit > 1 {
            let rows = fit + (too_many - fit) / 2;
            let plan = Plan::of(
                &Load {
                    rows,
                    ..load.clone()
                },
                options,
            )?;
            if plan.memory.total() <= options.memory_limit {
                fit = rows;
            } else {
                too_many = rows;
            }
        }
        Ok(fit)
    }

    /// Disk when nothing is under way.
    pub fn disk(&self) -> u64 {
        self.segments
            .saturating_add(self.log)
            .saturating_add(self.graph_files)
            .saturating_add(self.block_files)
    }

    /// Disk while a checkpoint is written and the one before is still there.
    pub fn disk_peak(&self) -> u64 {
        self.disk().saturating_add(self.graph_files)
    }
}

/// What each vector column gets.
fn columns(schema: &DatasetSchema, rows: u64, options: &Options) -> Vec<ColumnPlan> {
    let graphs = &options.graphs;
    let policy = |column: &VectorColumn| IndexPolicy::of(column, graphs.kind);
    let is_auto = |column: &&VectorColumn| policy(column) == IndexPolicy::Auto;
    let auto = schema.vectors.iter().filter(is_auto);
    let auto: Vec<_> = auto
        .map(|column| candidate(column, IndexKind::Flat, rows, options))
        .collect();
    let chosen = choose(&auto, graphs.choice.least_rows, options.room());
    let mut chosen = chosen.into_iter();
    let of = |column: &VectorColumn| {
        let auto = (policy(column) == IndexPolicy::Auto).then(|| chosen.next());
        let kind = match auto.flatten() {
            Some(kind) => kind,
            None => policy(column).first(),
        };
        ColumnPlan {
            name: column.name.clone(),
            space: column.space,
            kind,
            auto: auto.is_some(),
            quantization: match kind {
                IndexKind::Flat => Quantization::None,
                IndexKind::Hnsw => Quantization::of(column, graphs.quantization),
                IndexKind::SpFresh => Quantization::Rabitq,
            },
            reason: match (kind, auto.is_some()) {
                (IndexKind::Hnsw, _) => Quantization::reason(column, graphs.quantization),
                (_, false) => "as configured",
                (IndexKind::Flat, true) => "so few rows are scanned",
                (IndexKind::SpFresh, true) => "a graph would take more than half the memory limit",
            },
            row: Graph::bytes_per_row(column, kind, graphs),
        }
    };
    schema.vectors.iter().map(of).collect()
}

/// A row in a batch without nulls.
fn row_bytes(schema: &DatasetSchema, load: &Load) -> u64 {
    let id = match load.ids {
        // With its offset.
        IdKind::Text(bytes) => bytes + 4,
        _ => width(schema.arrow.field(schema.id).data_type()),
    };
    let vectors = schema
        .vectors
        .iter()
        .map(|column| column.space.dim as u64 * width(&column.element));
    vectors.fold(id.saturating_add(load.other_bytes), u64::saturating_add)
}

fn width(data_type: &DataType) -> u64 {
    data_type.primitive_width().unwrap_or(8) as u64
}

/// Entries up to the size at which a checkpoint is made, the file that is being written, and the spare files that are
/// kept of those before.
fn log_bytes(stored: u64, options: &Options) -> u64 {
    let file = options.log_segment_bytes;
    let files = |bytes: u64| bytes.div_ceil(file.max(1)).saturating_mul(file);
    let (all, most) = (frame_bytes(stored), options.max_log_bytes);
    if all <= most {
        return files(all).saturating_add(options.log_prepared as u64 * file);
    }
    files(most).saturating_add(file).saturating_add(most)
}

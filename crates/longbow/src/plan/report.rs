//! A plan as it is told.

use longbow_engine::Plan;
use serde::Serialize;

use super::flags::Asked;

/// The plan. Bytes, and seconds.
#[derive(Debug, Serialize)]
pub struct Report {
    pub rows: u64,
    pub dim: usize,
    #[serde(rename = "type")]
    pub element: String,
    pub metric: String,
    pub index: Index,
    /// A row as it is stored and logged.
    pub row_bytes: u64,
    pub memory: Memory,
    pub disk: Disk,
    /// Seconds to index all rows on this machine, if that was measured.
    pub index_s: Option<f64>,
}

/// The index of the vector column.
#[derive(Debug, Serialize)]
pub struct Index {
    /// Its kind.
    pub kind: &'static str,
    /// Whether the number of rows and the memory limit decided that.
    pub auto: bool,
    pub quantization: &'static str,
    pub reason: &'static str,
    pub bytes_per_row: PerRow,
}

/// What it takes for a row.
#[derive(Debug, Serialize)]
pub struct PerRow {
    pub vector: usize,
    pub edges: usize,
    pub other: usize,
    pub total: usize,
}

/// Memory.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub index: u64,
    pub ids: u64,
    /// Rows that are not in a segment yet, at most.
    pub tail: u64,
    /// What counts for the limit.
    pub total: u64,
    pub limit: u64,
    pub fits: bool,
    /// Of these rows, as many as fit.
    pub most_rows: u64,
    /// Beyond the limit, while a checkpoint writes the graph.
    pub checkpoint_buffer: u64,
    /// Rows in the system's page cache, which it gives up when memory is short: searches of codes read some of them.
    pub page_cache: u64,
}

/// Disk.
#[derive(Debug, Serialize)]
pub struct Disk {
    pub segments: u64,
    /// At most.
    pub log: u64,
    /// At most.
    pub checkpoint: u64,
    /// Blocks of postings, about.
    pub blocks: u64,
    pub total: u64,
    /// While a checkpoint is written and the one before is there.
    pub peak: u64,
}

impl Report {
    /// What a plan says of its one vector column.
    pub fn new(asked: &Asked, plan: &Plan, most_rows: u64, index_s: Option<f64>) -> Report {
        let column = &plan.columns[0];
        let (row, limit) = (column.row, asked.options.memory_limit);
        Report {
            rows: asked.load.rows,
            dim: column.space.dim,
            element: asked.element.clone(),
            metric: asked.metric.clone(),
            index: Index {
                kind: column.kind.name(),
                auto: column.auto,
                quantization: column.quantization.name(),
                reason: column.reason,
                bytes_per_row: PerRow {
                    vector: row.vector,
                    edges: row.edges,
                    other: row.other,
                    total: row.total(),
                },
            },
            row_bytes: plan.row_bytes,
            memory: Memory {
                index: plan.memory.index_bytes,
                ids: plan.memory.bookkeeping_bytes,
                tail: plan.memory.tail_bytes,
                total: plan.memory.total(),
                limit,
                fits: plan.memory.total() <= limit,
                most_rows,
                checkpoint_buffer: plan.checkpoint_buffer,
                page_cache: plan.segments,
            },
            disk: Disk {
                segments: plan.segments,
                log: plan.log,
                checkpoint: plan.graph_files,
                blocks: plan.block_files,
                total: plan.disk(),
                peak: plan.disk_peak(),
            },
            index_s,
        }
    }
}

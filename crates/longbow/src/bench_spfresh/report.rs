//! What was measured, as JSON. What was not measured, or does not apply, is null or left out.

use std::path::PathBuf;

use serde::Serialize;

use super::flags::{Settings, Shape};
use super::recipe::Sizes;
use super::store::Footprint;
use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::rounded::rounded;

/// What every report begins with.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    /// The version of the program.
    pub longbow: &'static str,
    /// What was measured: `recipe`, `stream` or `large`.
    pub mode: &'static str,
    /// Where.
    pub machine: Machine,
    /// What was asked for.
    pub settings: Asked,
}

/// What was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Asked {
    /// What answered searches.
    pub index: &'static str,
    /// Elements of a vector.
    pub dim: usize,
    /// Rows at the beginning.
    pub base: usize,
    /// Queries of a pass.
    pub queries: usize,
    /// Rows of a write.
    pub update_batch: usize,
    /// Shards of postings.
    pub shards: usize,
    /// Neighbours asked for.
    pub k: usize,
    /// The effort of `--nprobe`.
    pub effort: usize,
    /// From which data was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The file that the data came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<PathBuf>,
    /// Rows that were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<usize>,
    /// How often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<usize>,
    /// Whether writes were acknowledged only once they were synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Gaussians.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub centres: Option<usize>,
    /// How far they moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<f32>,
    /// The engine's memory limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
}

impl Head {
    /// What is known before anything was measured.
    pub fn new(mode: &'static str, settings: Asked) -> Head {
        Head {
            longbow: env!("CARGO_PKG_VERSION"),
            mode,
            machine: Machine::probe(),
            settings,
        }
    }
}

impl Asked {
    /// Of rows of these sizes.
    pub fn recipe(settings: &Settings, sizes: Sizes) -> Asked {
        Asked {
            dim: sizes.dim,
            base: sizes.base,
            queries: sizes.queries,
            updates: Some(sizes.updates),
            ..Asked::of(settings)
        }
    }

    /// Of a mixture.
    pub fn mixture(settings: &Settings, shape: Shape) -> Asked {
        Asked {
            dim: shape.dim,
            base: shape.base,
            queries: shape.queries,
            seed: Some(settings.seed),
            durable: Some(settings.durable),
            centres: Some(shape.centres),
            drift: Some(shape.drift),
            ..Asked::of(settings)
        }
    }

    fn of(settings: &Settings) -> Asked {
        Asked {
            index: settings.index.name(),
            update_batch: settings.update_batch,
            k: settings.k,
            shards: settings.shards,
            effort: settings.effort,
            ..Asked::default()
        }
    }
}

/// The recipe.
#[derive(Debug, Clone, Serialize)]
pub struct RecipeReport {
    /// What every report begins with.
    #[serde(flatten)]
    pub head: Head,
    /// A way to search after each way to write; each figure is the median of all times.
    pub rows: Vec<RecipeRow>,
}

/// A way to search.
#[derive(Debug, Clone, Serialize)]
pub struct RecipeRow {
    /// What answered.
    pub index: &'static str,
    /// Its effort; null for a comparison with all rows, which has none.
    pub effort: Option<usize>,
    /// Whether the writes before were acknowledged only once they were synced.
    pub durable: bool,
    /// Seconds until the base was written and indexed.
    pub build_s: f64,
    /// Updates a second, until they were acknowledged.
    pub update_qps: f64,
    /// Searches a second, one after the other.
    pub search_qps: f64,
    /// The share of the true neighbours that was found.
    pub recall_at_k: f64,
    /// The time that half of the searches did not exceed, in microseconds.
    pub p50_us: f64,
    /// The same of 99 in 100.
    pub p99_us: f64,
}

/// Times of searches, in microseconds; null if there was none.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latencies {
    /// The time that half of the searches did not exceed.
    pub p50_us: Option<f64>,
    /// The same of 99 in 100.
    pub p99_us: Option<f64>,
    /// The same of 999 in 1,000.
    pub p999_us: Option<f64>,
}

impl Latencies {
    /// Of what was seen.
    pub fn of(seen: &Histogram) -> Latencies {
        let at = |quantile| seen.percentile_us(quantile).map(|us| rounded(us, 1));
        Latencies {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
        }
    }
}

/// What an index takes. All but its memory is of postings alone.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct IndexRow {
    /// Bytes of memory.
    pub index_bytes: u64,
    /// Postings.
    pub postings: Option<usize>,
    /// Vectors of a posting, on average.
    pub posting_mean: Option<f64>,
    /// Vectors of the longest.
    pub posting_longest: Option<usize>,
    /// Bytes of the file of blocks.
    pub block_file_bytes: Option<u64>,
    /// Of these, in blocks that hold something.
    pub block_live_bytes: Option<u64>,
    /// The former by the latter.
    pub block_file_ratio: Option<f64>,
}

impl From<Footprint> for IndexRow {
    fn from(footprint: Footprint) -> IndexRow {
        let index_bytes = footprint.memory_bytes;
        let Some(of) = footprint.postings else {
            return IndexRow {
                index_bytes,
                ..IndexRow::default()
            };
        };
        IndexRow {
            index_bytes,
            postings: Some(of.count),
            posting_mean: Some(rounded(of.entries as f64 / of.count.max(1) as f64, 1)),
            posting_longest: Some(of.longest),
            block_file_bytes: Some(of.file_bytes),
            block_live_bytes: Some(of.live_bytes),
            block_file_ratio: ratio(Some(of.file_bytes as f64), Some(of.live_bytes as f64)),
        }
    }
}

/// One figure by another, where there are both and it can be.
pub fn ratio(of: Option<f64>, by: Option<f64>) -> Option<f64> {
    let by = by.filter(|by| *by > 0.0)?;
    Some(rounded(of? / by, 3))
}

/// A stream.
#[derive(Debug, Clone, Serialize)]
pub struct StreamReport {
    /// What every report begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Seconds until the base was written and indexed.
    pub build_s: f64,
    /// Its rounds.
    pub rounds: Vec<RoundRow>,
    /// What is left after them.
    pub end: End,
}

/// A round of a stream.
#[derive(Debug, Clone, Serialize)]
pub struct RoundRow {
    /// Its number, from 1.
    pub round: usize,
    /// Rows that came.
    pub inserted: usize,
    /// Rows that went.
    pub deleted: usize,
    /// Rows that are alive after it.
    pub rows: usize,
    /// Rows written a second, until they were acknowledged; null if none was.
    pub update_qps: Option<f64>,
    /// Searches that ran beside.
    pub searches: usize,
    /// Of these, those that found fewer rows than they asked for.
    pub short_answers: usize,
    /// The share of the true neighbours that is found after it.
    pub recall_at_k: f64,
    /// How long searches took that ran beside writes and indexing.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// Bytes of the process in memory; null where the system does not tell.
    pub resident_bytes: Option<u64>,
    /// Of these, those of no file.
    pub anonymous_bytes: Option<u64>,
    /// The index after it.
    #[serde(flatten)]
    pub index: IndexRow,
}

/// What is left after a stream.
#[derive(Debug, Clone, Serialize)]
pub struct End {
    /// Searches that ran beside the writes of all rounds.
    pub beside_writes: Latencies,
    /// The index that went through all rounds, and nothing beside.
    pub churned: Idle,
    /// An index of the same rows, built anew.
    pub fresh: Idle,
    /// One by the other.
    pub ratios: Ratios,
}

/// An index without writes.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {
    /// The share of the true neighbours that is found.
    pub recall_at_k: f64,
    /// How long searches take.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// What it takes.
    #[serde(flatten)]
    pub index: IndexRow,
    /// Seconds that a build took; null for the index that was there.
    pub build_s: Option<f64>,
}

/// Figures of the index that went through all rounds, by others.
#[derive(Debug, Clone, Serialize)]
pub struct Ratios {
    /// Its recall by that of the fresh one.
    pub recall_to_fresh: Option<f64>,
    /// Its median latency by that of the fresh one.
    pub p50_to_fresh: Option<f64>,
    /// The slowest searches beside writes by those without.
    pub p999_beside_writes_to_idle: Option<f64>,
    /// Bytes of its file of blocks by those of the fresh one.
    pub block_file_to_fresh: Option<f64>,
}

impl Ratios {
    /// Of these.
    pub fn of(beside_writes: Latencies, churned: &Idle, fresh: &Idle) -> Ratios {
        let bytes = |of: &Idle| of.index.block_file_bytes.map(|bytes| bytes as f64);
        Ratios {
            recall_to_fresh: ratio(Some(churned.recall_at_k), Some(fresh.recall_at_k)),
            p50_to_fresh: ratio(churned.latencies.p50_us, fresh.latencies.p50_us),
            p999_beside_writes_to_idle: ratio(beside_writes.p999_us, churned.latencies.p999_us),
            block_file_to_fresh: ratio(bytes(churned), bytes(fresh)),
        }
    }
}

/// A large set.
#[derive(Debug, Clone, Serialize)]
pub struct LargeReport {
    /// What every report begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Bytes of all vectors.
    pub vector_bytes: u64,
    /// Seconds that writes took until they were acknowledged.
    pub insert_s: f64,
    /// Seconds from then until all were indexed.
    pub until_indexed_s: f64,
    /// Seconds until a folder with its index was open again, and the index was read.
    pub open_s: f64,
    /// The index.
    #[serde(flatten)]
    pub index: IndexRow,
    /// Searches of each effort.
    pub rows: Vec<LargeRow>,
}

/// Searches of an effort.
#[derive(Debug, Clone, Serialize)]
pub struct LargeRow {
    /// The effort.
    pub effort: usize,
    /// The share of the true neighbours that was found.
    pub recall_at_k: f64,
    /// Searches a second, one after the other.
    pub search_qps: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// Bytes that each read from the disk; null where the system does not tell.
    pub disk_bytes_per_query: Option<f64>,
    /// The same of a pass before it.
    pub first_disk_bytes_per_query: Option<f64>,
    /// Bytes of the process in memory.
    pub resident_bytes: Option<u64>,
    /// Of these, those of no file.
    pub anonymous_bytes: Option<u64>,
}

//! What was measured, as JSON.

use longbow_index::SearchStats;
use serde::Serialize;

use super::pass::Pass;
use crate::machine::Machine;
use crate::median::median;
use crate::rounded::rounded;

/// A whole report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of the program.
    pub longbow: &'static str,
    /// Where it was made.
    pub machine: Machine,
    /// The index.
    pub index: &'static str,
    /// How it keeps its vectors.
    pub quantization: &'static str,
    /// How nearness is measured.
    pub metric: String,
    /// The type of the vectors' elements.
    pub scalar: String,
    /// Threads that build, and then search.
    pub threads: usize,
    /// Neighbours asked for.
    pub k: usize,
    /// Vectors in the index.
    pub rows: usize,
    /// Their elements.
    pub dim: usize,
    /// Queries of a pass.
    pub queries: usize,
    /// Seconds that the build took.
    pub build_s: f64,
    /// Its processor time, all threads.
    pub build_cpu_s: f64,
    /// Bytes that the index takes for a vector, the vector itself included.
    pub bytes_per_vector: f64,
    /// Bytes of a vector alone.
    pub vector_bytes: usize,
    /// Seconds that the exact answers took; null if they came from a file.
    pub truth_s: Option<f64>,
    /// The level of the cache into which memory is asked for ahead: measured once an index is larger than caches are.
    pub prefetch_level: u8,
    /// Whether the index takes many queries in one call.
    pub batches: bool,
    /// What was measured at each breadth.
    pub points: Vec<Point>,
}

/// One breadth of the search. Rates and costs are the median of the passes, a query each; what was not measured or
/// is not counted is null.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// The breadth.
    pub effort: usize,
    /// The share of the true neighbours that was found.
    pub recall: f64,
    /// Queries in a second of processor time of the searching threads, one query a call.
    pub qps: Option<f64>,
    /// Queries in a second by the clock, one query a call.
    pub qps_wall: Option<f64>,
    /// As `qps`, many queries a call.
    pub qps_batched: Option<f64>,
    /// Microseconds of processor time, one query a call; of a pass of batches alone, with batches.
    pub cpu_us_per_query: Option<f64>,
    /// Bytes of the index that were read; null from an index that does not count them.
    pub bytes_touched: Option<f64>,
    /// Vectors that were compared with the query.
    pub distances: f64,
    /// Nodes of a graph whose links were followed.
    pub pops: f64,
}

/// The figures of one pass.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    qps: f64,
    qps_wall: f64,
    recall: f64,
    queries: f64,
    stats: SearchStats,
}

impl Figures {
    /// Of a pass with this recall.
    pub fn of(pass: &Pass, recall: f64) -> Figures {
        let queries = pass.found.len() as f64;
        // A clock that did not move would make a rate infinite, which JSON has no word for.
        let rate = |seconds: f64| queries / seconds.max(1e-9);
        Figures {
            qps: rate(pass.cpu.as_secs_f64()),
            qps_wall: rate(pass.wall.as_secs_f64()),
            recall,
            queries: queries.max(1.0),
            stats: pass.stats,
        }
    }
}

impl Point {
    /// Of the passes at one breadth; `None` if there was none.
    pub fn of(effort: usize, single: &[Figures], batched: &[Figures]) -> Option<Point> {
        let passes = if single.is_empty() { batched } else { single };
        let middle = |of: &[Figures], figure: fn(&Figures) -> f64| median(of.iter().map(figure));
        let qps = middle(passes, |pass| pass.qps)?;
        let per_query =
            |figure: fn(&Figures) -> f64| middle(passes, figure).map_or(0.0, |n| rounded(n, 2));
        Some(Point {
            effort,
            recall: rounded(middle(passes, |pass| pass.recall)?, 5),
            qps: middle(single, |pass| pass.qps).map(|n| rounded(n, 1)),
            qps_wall: middle(single, |pass| pass.qps_wall).map(|n| rounded(n, 1)),
            qps_batched: middle(batched, |pass| pass.qps).map(|n| rounded(n, 1)),
            cpu_us_per_query: Some(rounded(1e6 / qps, 3)),
            bytes_touched: Some(per_query(|pass| {
                pass.stats.bytes_touched as f64 / pass.queries
            }))
            .filter(|bytes| *bytes > 0.0),
            distances: per_query(|pass| pass.stats.distance_computations as f64 / pass.queries),
            pops: per_query(|pass| pass.stats.nodes_popped as f64 / pass.queries),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn figures(cpu_ms: u64, recall: f64) -> Figures {
        let stats = SearchStats {
            distance_computations: 300,
            nodes_popped: 30,
            bytes_touched: 0,
        };
        let pass = Pass {
            found: vec![Vec::new(); 10],
            cpu: Duration::from_millis(cpu_ms),
            wall: Duration::from_millis(cpu_ms * 2),
            stats,
        };
        Figures::of(&pass, recall)
    }

    #[test]
    fn a_point_is_the_median_of_its_passes() {
        let single = [figures(1, 0.9), figures(4, 0.9), figures(2, 0.9)];
        let point = Point::of(16, &single, &[figures(1, 0.8)]).expect("measured");
        assert_eq!((point.effort, point.recall), (16, 0.9));
        assert_eq!((point.qps, point.qps_wall), (Some(5000.0), Some(2500.0)));
        assert_eq!(point.qps_batched, Some(10_000.0));
        assert_eq!(point.cpu_us_per_query, Some(200.0));
        assert_eq!((point.distances, point.pops), (30.0, 3.0));
    }

    #[test]
    fn what_was_not_measured_is_null() {
        assert!(Point::of(16, &[], &[]).is_none());
        let point = Point::of(16, &[], &[figures(1, 0.8)]).expect("measured");
        assert_eq!((point.qps, point.qps_wall), (None, None));
        assert_eq!((point.recall, point.qps_batched), (0.8, Some(10_000.0)));
    }
}

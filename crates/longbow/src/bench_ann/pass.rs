//! One pass over all queries, timed.

use std::time::{Duration, Instant};

use longbow_index::{Neighbor, SearchStats};
use longbow_types::cpu_time;

use super::error::Error;
use super::index::Index;

/// How the queries are put to the index.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Neighbours asked for.
    pub k: usize,
    /// Breadth of the search.
    pub effort: usize,
    /// Threads that share the queries.
    pub threads: usize,
    /// Whether a thread hands in its queries in one call, instead of one after the other.
    pub batched: bool,
}

/// What a pass found and cost.
#[derive(Debug, Default)]
pub struct Pass {
    /// The answers, in order of the queries.
    pub found: Vec<Vec<Neighbor>>,
    /// Processor time of the threads while they searched.
    pub cpu: Duration,
    /// The longest time that a thread took by the clock.
    pub wall: Duration,
    /// What the index counted.
    pub stats: SearchStats,
}

/// Searches once for each query; `None` if batches are asked for and the index takes none.
pub fn run(index: &dyn Index, queries: &[Vec<f32>], how: How) -> Result<Option<Pass>, Error> {
    let share = queries.len().div_ceil(how.threads).max(1);
    if share >= queries.len() {
        return part(index, queries, how);
    }
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = queries
            .chunks(share)
            .map(|queries| scope.spawn(move || part(index, queries, how)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        let parts = ended.map(|part| part.unwrap_or(Err(Error::Thread)));
        parts.collect::<Result<Vec<_>, Error>>()
    })?;
    let add = |mut all: Pass, part: Option<Pass>| {
        let part = part?;
        all.found.extend(part.found);
        all.cpu += part.cpu;
        all.wall = all.wall.max(part.wall);
        all.stats.distance_computations += part.stats.distance_computations;
        all.stats.nodes_popped += part.stats.nodes_popped;
        all.stats.bytes_touched += part.stats.bytes_touched;
        Some(all)
    };
    Ok(parts.into_iter().try_fold(Pass::default(), add))
}

/// The queries of one thread.
fn part(index: &dyn Index, queries: &[Vec<f32>], how: How) -> Result<Option<Pass>, Error> {
    let mut stats = SearchStats::default();
    let (cpu, wall) = (cpu_time::of_thread(), Instant::now());
    let found = if how.batched {
        match index.search_batch(queries, how.k, how.effort, &mut stats) {
            Some(found) => found?,
            None => return Ok(None),
        }
    } else {
        let mut found = Vec::with_capacity(queries.len());
        for query in queries {
            found.push(index.search(query, how.k, how.effort, &mut stats)?);
        }
        found
    };
    Ok(Some(Pass {
        found,
        cpu: cpu_time::of_thread().saturating_sub(cpu),
        wall: wall.elapsed(),
        stats,
    }))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Finds for each query the row of that number, and takes batches if it is told so.
    pub struct Echo {
        pub batches: bool,
    }

    impl Index for Echo {
        fn search(
            &self,
            query: &[f32],
            k: usize,
            effort: usize,
            stats: &mut SearchStats,
        ) -> Result<Vec<Neighbor>, Error> {
            stats.distance_computations += effort as u64;
            stats.nodes_popped += 1;
            let hit = Neighbor {
                row: query[0] as u64,
                distance: 0.0,
            };
            Ok(vec![hit; k])
        }

        fn search_batch(
            &self,
            queries: &[Vec<f32>],
            k: usize,
            effort: usize,
            stats: &mut SearchStats,
        ) -> Option<Result<Vec<Vec<Neighbor>>, Error>> {
            let one = |query: &Vec<f32>| self.search(query, k, effort, stats);
            self.batches.then(|| queries.iter().map(one).collect())
        }

        fn memory_bytes(&self) -> usize {
            1000
        }
    }

    #[test]
    fn answers_come_in_order_and_costs_are_added_up() {
        let queries: Vec<Vec<f32>> = (0..7u8).map(|n| vec![f32::from(n)]).collect();
        for (threads, batched) in [(1, false), (3, false), (3, true), (100, true)] {
            let how = How {
                k: 1,
                effort: 5,
                threads,
                batched,
            };
            let pass = run(&Echo { batches: true }, &queries, how);
            let pass = pass.expect("no error").expect("taken");
            let rows: Vec<u64> = pass.found.iter().map(|found| found[0].row).collect();
            assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6], "{how:?}");
            assert_eq!(pass.stats.distance_computations, 35);
            assert_eq!(pass.stats.nodes_popped, 7);
            assert!(pass.wall > Duration::ZERO);
        }
    }

    #[test]
    fn batches_that_are_not_taken_are_no_pass() {
        for threads in [1, 2] {
            let how = How {
                k: 1,
                effort: 5,
                threads,
                batched: true,
            };
            let pass = run(&Echo { batches: false }, &[vec![1.0], vec![2.0]], how);
            assert!(pass.expect("no error").is_none());
        }
    }
}

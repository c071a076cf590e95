//! How many clusters a search reads for the recall that it is to have.
//!
//! Measured by rows in the place of queries: those of the run, and others, near which no row of the run needs to be. For each
//! kind it is counted in which of the clusters the nearest rows are, by the order in which a search reads them; the kind that needs
//! more of them counts.

use std::collections::HashMap;

use longbow_kernels::Kernels;
use longbow_kernels::rabitq::SLOTS;

use super::scan::SURE_OF_SOME;
use super::{CodedRun, NONE};
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::filter_cost::FilterCost;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Of how many nearest rows it is measured. A search for more than the most that was measured reads all clusters.
pub(super) const NEAREST: [usize; 4] = [1, 3, 10, 100];
/// The part of the nearest that a search may miss whose effort is no more than what it is to find. Twice the effort, half of
/// it: with a graph it is much alike.
const MISSED: f32 = 0.05;
/// More than this of the nearest is found for sure only in all clusters: where ten of the nearest of 64 rows are none elsewhere, three in 640 may
/// be by chance.
const TOLD: f32 = 1.0 - 3.0 / 640.0;
/// Efforts by which it is judged whether codes are of use.
const EFFORTS: [usize; 3] = [10, 30, 100];

impl CodedRun {
    /// Measures what searches for up to `most` rows (1, 3, 10 or 100) find that read some of the clusters, by samples of each kind of query:
    /// rows and their vectors. `between` is called after each.
    ///
    /// # Errors
    /// If a vector is none of the space.
    pub fn measure(
        &mut self,
        kinds: &[Vec<(u64, &[u8])>],
        most: usize,
        originals: &dyn VectorSource,
        between: &dyn Fn(),
    ) -> Result<()> {
        let clusters = self.cluster_of_rows();
        let mut worst = NEAREST.map(|_| vec![1f32; self.clusters()]);
        for sample in kinds.iter().filter(|sample| !sample.is_empty()) {
            let mut counts = NEAREST.map(|_| vec![0u32; self.clusters()]);
            for (row, vector) in sample {
                let own = (*row, *vector);
                self.count(&clusters, own, (most, originals), &mut counts)?;
                between();
            }
            for (worst, counts) in worst.iter_mut().zip(&counts) {
                let (mut found, all) = (0, counts.iter().sum::<u32>().max(1));
                for (worst, count) in worst.iter_mut().zip(counts) {
                    found += count;
                    *worst = worst.min(found as f32 / all as f32);
                }
            }
        }
        for (recall, nearest) in worst.iter_mut().zip(NEAREST) {
            if nearest > most {
                recall.clear();
            }
        }
        self.recall = worst;
        Ok(())
    }

    /// Counts, by the order in which clusters are read, in which are the rows nearest to a row.
    fn count(
        &self,
        clusters: &HashMap<u64, u32>,
        (own, vector): (u64, &[u8]),
        (most, originals): (usize, &dyn VectorSource),
        counts: &mut [Vec<u32>; NEAREST.len()],
    ) -> Result<()> {
        let space = self.encoder.space();
        let mut floats = vec![0f32; space.dim];
        Kernels::get().decode(space.scalar, vector, &mut floats);
        let query = Query::new(space, &floats)?;
        let mut top = TopK::new(most);
        let others = |row: u64| row != own;
        let stats = &mut SearchStats::default();
        // As searches of some clusters find them: to be surer would take many times as long.
        let few = (most, self.clusters(), SURE_OF_SOME);
        let near = self.nearest_so_sure(&query, few, &others, originals, stats);
        for row in near.0 {
            if let Some(vector) = originals.vector(row) {
                let distance = query.distance(vector);
                top.push(Neighbor { row, distance });
            }
        }
        let ranks = self.ranks(&query);
        for (place, neighbor) in top.into_sorted().iter().enumerate() {
            let rank = clusters.get(&neighbor.row).map(|of| ranks[*of as usize]);
            for (counts, nearest) in counts.iter_mut().zip(NEAREST) {
                if let Some(rank) = rank
                    && place < nearest
                {
                    counts[rank as usize] += 1;
                }
            }
        }
        Ok(())
    }

    fn cluster_of_rows(&self) -> HashMap<u64, u32> {
        let clusters = 0..self.clusters() as u32;
        let rows = clusters.flat_map(|at| {
            let blocks = self.blocks(at);
            let rows = &self.rows[blocks.start * SLOTS..blocks.end * SLOTS];
            rows.iter().map(move |row| (*row, at))
        });
        rows.filter(|(row, _)| *row != NONE).collect()
    }

    /// How many clusters a search for the `k` nearest is to read, so that it finds this part of them. All, if that was not
    /// measured, or is more than a sample tells.
    #[must_use]
    pub fn clusters_for(&self, k: usize, recall: f32) -> usize {
        let of = NEAREST.iter().position(|nearest| k <= *nearest);
        let curve = of.map_or(&[][..], |of| &self.recall[of]);
        match curve.partition_point(|reached| *reached < recall) {
            below if below < curve.len() && recall <= TOLD => below + 1,
            _ => self.clusters(),
        }
    }

    /// The recall that a search for the `k` nearest is to have by this effort, which is that of a walk that holds so many rows.
    #[must_use]
    pub fn recall_at(k: usize, ef: usize) -> f32 {
        1.0 - MISSED * k as f32 / ef.max(k).max(1) as f32
    }

    /// Whether a search is quicker by the codes than by a graph of so many rows, at one effort or another, if what passes lies
    /// around the query or elsewhere.
    #[must_use]
    pub fn is_useful(&self, rows: u64) -> bool {
        let (k, dim, passing) = (NEAREST[2], self.space().dim, self.len() as u64);
        let rows = rows.max(passing);
        EFFORTS.iter().any(|ef| {
            let clusters = self.clusters_for(k, Self::recall_at(k, *ef));
            let (coded, share) = (self.cost(k, clusters), (passing, rows));
            let cost = FilterCost::new(share, dim, (k, *ef));
            cost.is_more_than(coded, share) || coded < FilterCost::elsewhere(passing, dim, *ef).walk
        })
    }

    /// Nanoseconds that a search for the `k` nearest takes that reads so many clusters, as [`FilterCost`] tells them.
    #[must_use]
    pub fn cost(&self, k: usize, clusters: usize) -> f64 {
        let share = clusters as f64 / self.clusters().max(1) as f64;
        let codes = share * self.len() as f64;
        FilterCost::coded((codes, self.clusters()), self.space().dim, k)
    }
}

//! Rows that are far from every centroid.
//!
//! Where clusters come up that no centroid is near, such as after all of a kind of data moved, each of their rows would join
//! the posting whose centroid happens to be the least far, each another one, none of which gets so long by it that it is
//! split. A search for such rows would have to read all of these. So a row that is far from the nearest centroid begins a posting
//! of its own, which those like it join.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SpFresh;
use super::block::Member;
use super::directory::Directory;
use super::edit::Edit;
use super::posting::{Centroid, Posting};
use super::shard::{Shard, Writer};
use crate::encode::Encoded;
use crate::error::Result;

/// A vector is outlying if its squared distance to the nearest centroid is so many times that of vectors to theirs on average.
const FAR: f64 = 4.0;
/// Or so many times, and more than that of any vector of that centroid's posting, if this has enough to tell. To one of its own kind that
/// stands for a centroid, a vector is twice as far as to their mean: that alone must not make it outlying.
const FARTHEST: f64 = 2.0;
impl SpFresh {
    /// Whether a vector so far, squared, from the nearest centroid of a shard begins a posting of its own. None does while postings are
    /// shorter on average than those that a split leaves: so there are no more centroids than splits alone would make.
    pub(super) fn is_outlying(
        &self,
        directory: &Directory,
        nearest: &Posting,
        distance: f32,
    ) -> bool {
        let spread = directory.spread();
        let least = self.params.split / 2 * (directory.len() + 1);
        let times = f64::from(distance) / spread.mean();
        let farthest = nearest.len() >= self.params.merge && nearest.reach.are_within(distance);
        spread.rows() >= least as u64 && (times > FAR || (farthest && times > FARTHEST))
    }

    /// Whether most vectors of a posting would be outlying in those around it.
    pub(super) fn stands_apart(
        &self,
        directory: &Directory,
        posting: &Posting,
        around: &[Arc<Posting>],
    ) -> bool {
        let (mut outlying, mut all) = (0, 0);
        for member in posting.members(&self.layout).filter(|member| member.own) {
            all += 1;
            if let Some((nearest, distance)) = self.nearest_of(&member, around) {
                outlying += usize::from(self.is_outlying(directory, nearest, distance));
            }
        }
        2 * outlying > all
    }

    /// Makes a posting whose first vector is one that is outlying, or the first of all. Those of other postings to which
    /// its centroid is nearer than their own come to it. Returns which postings may be too long then.
    pub(super) fn begin(
        &self,
        (shard, writer): (&Shard, &mut Writer),
        vector: &Encoded,
        member: Member<'_>,
    ) -> Result<Vec<u64>> {
        let before = shard.directory.load_full();
        let centroid = Arc::new(Centroid::new(self.encoder(), &vector.floats));
        let id = writer.number();
        let around = self.nearest_postings(&before, vector, self.params.reassign);
        let mut edit = Edit::new(&before, self.encoder(), &self.layout);
        edit.create(id, Arc::clone(&centroid));
        edit.push(id, member);
        self.join(&[(id, &*centroid)], &around, &mut edit);
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        shard.moves.fetch_add(1, Ordering::Release);
        Ok(vec![id])
    }

    /// Gives each of some postings that a vector came to another centroid, if its vectors have come to lie elsewhere as it grew: a vector that it
    /// began with is none for many. It is looked at when it has doubled.
    pub(super) fn recentre_grown(
        &self,
        (shard, writer): (&Shard, &mut Writer),
        homes: &[u64],
    ) -> Result<()> {
        for id in homes {
            let len = shard.directory.load().get(*id).map_or(0, |home| home.len());
            let (times, rest) = (len / self.params.merge, len % self.params.merge);
            if rest == 0 && times.is_power_of_two() {
                self.recentre((shard, writer), *id)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use longbow_kernels::{Metric, Scalar};

    use super::*;
    use crate::checkpoint::VectorSource;
    use crate::mix::mix;
    use crate::space::{Query, Space};
    use crate::spfresh::SpFreshParams;
    use crate::spfresh::store::tests::NoFile;
    use crate::spfresh::tests::misplaced;
    use crate::stats::SearchStats;

    const DIM: usize = 128;
    const SPACE: Space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: DIM,
    };

    /// An index, and the vectors that are alive.
    struct Filled {
        index: SpFresh,
        vectors: HashMap<u64, Vec<f32>>,
        bytes: HashMap<u64, Vec<u8>>,
    }

    impl VectorSource for Filled {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            self.bytes.get(&row).map(Vec::as_slice)
        }
    }

    impl Filled {
        fn new() -> Self {
            let params = SpFreshParams {
                shards: 2,
                ..SpFreshParams::default()
            };
            let file = Box::new(NoFile::default());
            Filled {
                index: SpFresh::new(SPACE, params, file).expect("good parameters"),
                vectors: HashMap::new(),
                bytes: HashMap::new(),
            }
        }

        fn insert(&mut self, row: u64, vector: Vec<f32>) {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            self.index.insert(row, &bytes).expect("no file");
            self.bytes.insert(row, bytes);
            self.vectors.insert(row, vector);
        }

        fn sweep(&mut self) {
            let dead = |row: u64| !self.vectors.contains_key(&row);
            self.index.sweep(&dead, 0, usize::MAX).expect("no file");
        }

        /// The part of the ten nearest that searches of 16 postings find.
        fn recall(&self, queries: &[Vec<f32>]) -> f64 {
            let mut found = 0;
            for vector in queries {
                let query = Query::new(SPACE, vector).expect("finite");
                let search = |probes| {
                    let rows: (&(dyn Fn(u64) -> bool + Sync), _) =
                        (&|row| self.vectors.contains_key(&row), None);
                    let stats = &mut SearchStats::default();
                    self.index.search(&query, (10, probes), rows, self, stats)
                };
                let truth = search(usize::MAX);
                found += search(16).iter().filter(|one| truth.contains(one)).count();
            }
            found as f64 / (10 * queries.len()) as f64
        }
    }

    /// From 0 to 1.
    fn number(seed: u64) -> f32 {
        (mix(seed) >> 40) as f32 / 16_777_216.0
    }

    const ROWS: u64 = 30_000;
    const CENTRES: u64 = 300;

    /// A vector around one of some centres in a cube of length 1, moved by so much in each element.
    fn vector(row: u64, spread: f32, moved: f32) -> Vec<f32> {
        let centre = mix(row) % CENTRES;
        let element = |at: u64| {
            let noise = number((row + 1) << 16 | at) - 0.5;
            number(centre << 8 | at) + spread * noise + moved
        };
        (0..DIM as u64).map(element).collect()
    }

    /// Rows come that are those of before, moved; each of these that replaces its row, or none does. Queries are like them.
    fn moved(replaced: bool, spread: f32, moved: f32) -> (Filled, Vec<Vec<f32>>) {
        let mut filled = Filled::new();
        (0..ROWS).for_each(|row| filled.insert(row, vector(row, spread, 0.0)));
        for round in 0..5 {
            for row in (round..ROWS).step_by(20) {
                if replaced {
                    filled.vectors.remove(&row);
                }
                filled.insert(row + ROWS, vector(row, spread, moved));
            }
            filled.sweep();
        }
        let query = |at: u64| vector(at * 160 + at % 5, 0.8 * spread, moved);
        (filled, (0..150).map(query).collect())
    }

    #[test]
    fn kinds_of_rows_that_come_later_are_found() {
        for (spread, by, least) in [(0.4, 0.5, 0.99), (1.0, 0.5, 0.95), (0.2, 5.0, 0.99)] {
            let (filled, queries) = moved(false, spread, by);
            let recall = filled.recall(&queries);
            assert!(recall >= least, "{recall} for {spread}, {by}");
        }
    }

    #[test]
    fn what_joined_a_far_posting_leaves_it_once_another_is_nearer() {
        let (filled, _) = moved(true, 1.0, 0.5);
        let (all, wrong) = misplaced(&filled.index, 0.999);
        assert!(all == 30_000 && wrong < 40, "{wrong} of {all}");
    }

    /// Even where all rows are outlying, whatever came before, there is a bound to the postings.
    #[test]
    fn postings_of_outlying_rows_are_not_too_many() {
        let mut filled = Filled::new();
        let rows = 10_000;
        for row in 0..rows {
            let length = (row as f32 / 200.0).exp2().min(1e15);
            let vector = vector(row, 1.0, -0.5);
            filled.insert(row, vector.iter().map(|x| x * length).collect());
        }
        let most = rows as usize / (filled.index.params().split / 2);
        let postings = filled.index.postings();
        // Splits make some halves shorter than the other.
        assert!(4 * postings <= 5 * most, "{postings}");
    }
}

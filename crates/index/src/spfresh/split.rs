//! Postings that grew too long, and vectors whose nearest centroid changed by that: the protocol LIRE of SPFresh.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::Lut;

use super::SpFresh;
use super::block::Member;
use super::centroids::Asked;
use super::directory::Directory;
use super::edit::Edit;
use super::near::Near;
use super::posting::{Centroid, Posting};
use super::shard::{Shard, Writer};
use crate::encode::Encoded;
use crate::error::Result;
use crate::stats::SearchStats;
use crate::two_means::two_means;
use crate::vector8::Vector8;

/// Splits that one insert brings about, at most: what is too long then is split after a later one.
const CASCADE: usize = 64;

/// A posting in two, with what it was.
struct Parted {
    before: Arc<Posting>,
    ids: [u64; 2],
    centroids: [Arc<Centroid>; 2],
    second: Vec<bool>,
}

impl SpFresh {
    /// Splits those of some postings that are too long, and others that get too long by it.
    pub(super) fn split_long(
        &self,
        (shard, writer): (&Shard, &mut Writer),
        mut postings: Vec<u64>,
    ) -> Result<()> {
        for _ in 0..CASCADE {
            let Some(id) = postings.pop() else {
                break;
            };
            let directory = shard.directory.load_full();
            match directory.get(id) {
                Some(posting) if posting.len() > self.params.split => {
                    self.split((shard, writer), &directory, posting, &mut postings)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn split(
        &self,
        (shard, writer): (&Shard, &mut Writer),
        directory: &Directory,
        posting: &Arc<Posting>,
        touched: &mut Vec<u64>,
    ) -> Result<()> {
        let mut edit = Edit::new(directory, self.encoder(), &self.layout);
        let twice = self.twice(posting);
        if !twice.is_empty() && posting.len() - twice.len() <= self.params.split {
            edit.remove(posting.id, &twice);
            let directory = edit.finish(&self.store)?;
            shard.show(directory);
            return Ok(());
        }
        let parted = self.part(writer, posting);
        let around = self.around(directory, posting);
        let mut moved = self.leave_halves(&parted, &around);
        edit.take(posting.id);
        for half in 0..2 {
            let centroid = Arc::clone(&parted.centroids[half]);
            edit.create(parted.ids[half], centroid);
        }
        for (place, member) in posting.members(&self.layout).enumerate() {
            if twice.binary_search(&place).is_err() {
                let home = parted.ids[usize::from(parted.second[place])];
                edit.push(moved.remove(&place).unwrap_or(home), member);
            }
        }
        let new = [0, 1].map(|half| (parted.ids[half], &*parted.centroids[half]));
        self.join(&new, &around, &mut edit);
        touched.extend(parted.ids);
        touched.extend(around.iter().map(|posting| posting.id));
        touched.retain(|id| edit.len_of(*id) > self.params.split);
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        writer.free.push(posting.id);
        shard.moves.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Places of vectors whose row is in the posting twice, since it came both as its own and from the other side of a
    /// boundary; in ascending order.
    fn twice(&self, posting: &Posting) -> Vec<usize> {
        let members = || posting.members(&self.layout).enumerate();
        let own: HashSet<u64> = members()
            .filter(|(_, m)| m.own)
            .map(|(_, m)| m.row)
            .collect();
        let mut others = HashSet::new();
        let again =
            members().filter(|(_, m)| !m.own && (own.contains(&m.row) || !others.insert(m.row)));
        again.map(|(place, _)| place).collect()
    }

    /// Finds two centroids for the vectors of a posting. Equal vectors, which no centroids part, are cut in two.
    fn part(&self, writer: &mut Writer, posting: &Arc<Posting>) -> Parted {
        let mut floats = Vec::with_capacity(posting.len() * self.layout.dim);
        for member in posting.members(&self.layout) {
            floats.extend(member.floats());
        }
        let (centroids, second) = match two_means(&floats, self.layout.dim) {
            Some(halves) => {
                let centroid = |mean: Vec<f32>| Arc::new(Centroid::new(self.encoder(), &mean));
                (halves.means.map(centroid), halves.second)
            }
            None => {
                let half = posting.len() / 2;
                let second = (0..posting.len()).map(|place| place >= half);
                (
                    [0, 1].map(|_| Arc::clone(&posting.centroid)),
                    second.collect(),
                )
            }
        };
        Parted {
            before: Arc::clone(posting),
            ids: [writer.number(), writer.number()],
            centroids,
            second,
        }
    }

    /// The postings around one, nearest first.
    pub(super) fn around(&self, directory: &Directory, posting: &Posting) -> Vec<Arc<Posting>> {
        let mut query = Encoded::default();
        let floats: Vec<f32> = posting.centroid.floats().collect();
        self.encoder().rotated(&floats, &mut query);
        let mut near = self.nearest_postings(directory, &query, self.params.reassign + 1);
        near.retain(|other| other.id != posting.id);
        near
    }

    /// The postings with the nearest centroids.
    pub(super) fn nearest_postings(
        &self,
        directory: &Directory,
        query: &Encoded,
        count: usize,
    ) -> Vec<Arc<Posting>> {
        let near = self.nearest(directory, query, count);
        let near = near.iter();
        near.filter_map(|(id, _)| directory.get(*id).map(Arc::clone))
            .collect()
    }

    /// LIRE's first condition: a vector of the posting that was split may now be nearest to a third centroid only if
    /// the old centroid was as near as either new one. Where those go that are, by their place.
    fn leave_halves(&self, parted: &Parted, around: &[Arc<Posting>]) -> HashMap<usize, u64> {
        let mut moved = HashMap::new();
        for (place, member) in parted.before.members(&self.layout).enumerate() {
            if !member.own {
                continue;
            }
            let vector = member.vector();
            let before = self.between(vector, &parted.before.centroid);
            let halves = [0, 1].map(|half| self.between(vector, &parted.centroids[half]));
            if before > halves[0] || before > halves[1] {
                continue;
            }
            let mut nearest = (halves[usize::from(parted.second[place])], None);
            for other in around {
                let distance = self.between(vector, &other.centroid);
                if distance < nearest.0 {
                    nearest = (distance, Some(other.id));
                }
            }
            if let (_, Some(id)) = nearest {
                moved.insert(place, id);
            }
        }
        moved
    }

    /// LIRE's second condition: a vector of another posting may now be nearest to a new centroid only if that is nearer
    /// than the old one was. Since its own centroid was the nearest, all there is to compare is that with the new ones.
    pub(super) fn join(
        &self,
        new: &[(u64, &Centroid)],
        around: &[Arc<Posting>],
        edit: &mut Edit<'_>,
    ) {
        for posting in around {
            // What is nearer to the centroid than half the way to another is not nearer to that.
            let is_far = |centroid: &Centroid| {
                let between = self.between(posting.centroid.vector(), centroid);
                posting.reach.are_within(between / 4.0)
            };
            if new.iter().all(|(_, centroid)| is_far(centroid)) {
                continue;
            }
            let mut places = Vec::new();
            for (place, member) in posting.members(&self.layout).enumerate() {
                if !member.own {
                    continue;
                }
                let vector = member.vector();
                let mut nearest = (self.between(vector, &posting.centroid), None);
                for (id, centroid) in new {
                    let distance = self.between(vector, centroid);
                    if distance < nearest.0 {
                        nearest = (distance, Some(*id));
                    }
                }
                if let (_, Some(id)) = nearest {
                    places.push(place);
                    edit.push(id, member);
                }
            }
            // Vectors that came in this edit stand behind those of before, and take the places of those that go.
            edit.remove(posting.id, &places);
        }
    }

    /// The postings of a shard with the nearest centroids, and their squared distances.
    pub(super) fn nearest(
        &self,
        directory: &Directory,
        query: &Encoded,
        count: usize,
    ) -> Vec<(u64, f32)> {
        let mut lut = Lut::default();
        self.encoder().lut(query, &mut lut);
        let asked = Asked {
            encoder: self.encoder(),
            query,
            lut: &lut,
        };
        let mut near = Near::default();
        let centroids = &directory.centroids;
        near.clear(count.min(centroids.len()));
        let stats = &mut SearchStats::default();
        centroids.nearest(asked, (&self.layout, 0), &mut near, stats);
        let near = near.sorted().iter();
        near.map(|found| (found.row, found.distance)).collect()
    }

    /// Squared distance of a vector and a centroid.
    pub(super) fn between(&self, vector: Vector8, centroid: &Centroid) -> f32 {
        // SAFETY: vectors of members and of centroids have the dimension of the encoder.
        unsafe { self.encoder().between(vector, centroid.vector()) }
    }

    /// The posting where a vector would be its own, among some that are given, and how far its centroid is, squared; none
    /// if there are none.
    pub(super) fn nearest_of<'a>(
        &self,
        member: &Member<'_>,
        among: &'a [Arc<Posting>],
    ) -> Option<(&'a Arc<Posting>, f32)> {
        let distances = among
            .iter()
            .map(|posting| (posting, self.between(member.vector(), &posting.centroid)));
        distances.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.id.cmp(&b.0.id)))
    }
}

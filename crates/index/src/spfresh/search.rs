use std::collections::HashSet;
use std::sync::Arc;

use longbow_kernels::rabitq::Lut;

use super::SpFresh;
use super::centroids::Asked;
use super::cold::Missed;
use super::directory::Directory;
use super::near::{Found, Near};
use super::posting::Posting;
use super::shard::place;
use crate::checkpoint::VectorSource;
use crate::encode::Encoded;
use crate::pool::Room;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};
use crate::vector_index::IsOver;

/// Vectors that are kept beyond those that are asked for, until the exact distances are known.
const SPARE: usize = 64;

/// How many times as many postings as asked for are read since few around the query pass a filter. `k` may have been found long before, and then
/// a search does not go to the end for nearer ones.
const FARTHEST: usize = 64;

/// Room for one search.
#[derive(Default)]
pub(super) struct Scratch {
    query: Encoded,
    lut: Lut,
    pub(super) near: Near,
}

impl Room for Scratch {
    fn bytes(&self) -> usize {
        self.query.bytes() + self.lut.bytes() + self.near.bytes()
    }
}

/// Which rows are visible, and whether a search is to end with what it has.
type Visible<'a> = (&'a (dyn Fn(u64) -> bool + Sync), Option<IsOver<'a>>);

/// What a search is for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) query: &'a Query,
    pub(super) k: usize,
    /// The part of all rows that pass a filter, if there is one.
    pub(super) share: Option<f64>,
    pub(super) visible: &'a (dyn Fn(u64) -> bool + Sync),
    pub(super) is_over: Option<IsOver<'a>>,
    pub(super) originals: &'a (dyn VectorSource + Sync),
}

impl SpFresh {
    /// The `k` visible rows nearest to a query, nearest first, with exact distances, as far as they are in the `probes`
    /// postings nearest to it, of all shards together; in more, if fewer than `k` were found in these; for `usize::MAX`,
    /// exactly. Fewer than `k` are returned only if there are not more, or if `is_over` says that the search is to end with
    /// what it has. Where much is to be read, several threads do.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    #[must_use]
    pub fn search(
        &self,
        query: &Query,
        at: (usize, usize),
        rows: Visible<'_>,
        originals: &(dyn VectorSource + Sync),
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        self.search_filtered(query, at, (None, rows), originals, stats)
    }

    /// As [`SpFresh::search`], where a filter decides what is visible, which this share of all rows passes: if fewer of those around the query do, more
    /// postings are read.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    #[must_use]
    pub fn search_filtered(
        &self,
        query: &Query,
        (k, probes): (usize, usize),
        (share, (visible, is_over)): (Option<f64>, Visible<'_>),
        originals: &(dyn VectorSource + Sync),
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        assert_eq!(query.space(), self.space, "the space of the query");
        if !self.is_prepared() || k == 0 {
            return Vec::new();
        }
        let wanted = Wanted {
            query,
            k,
            share,
            visible,
            is_over,
            originals,
        };
        let mut scratch = self.pool.take();
        self.encoder().query(query.floats(), &mut scratch.query);
        let Scratch { query, lut, near } = &mut *scratch;
        self.encoder().lut(query, lut);
        let asked = Asked {
            encoder: self.encoder(),
            query,
            lut,
        };
        let (found, missed) = self.find(wanted, asked, probes, near, stats);
        self.pool.give(scratch);
        self.cold_first.learn(missed.first);
        self.cold.learn(missed.rest);
        found
    }

    /// What is nearest, and what of it was not in memory.
    fn find(
        &self,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        probes: usize,
        near: &mut Near,
        stats: &mut SearchStats,
    ) -> (Vec<Neighbor>, Missed) {
        let directories = self.directories();
        let all = directories.iter().map(|directory| directory.len()).sum();
        let (mut probes, mut sure) = (probes.max(1), probes == usize::MAX);
        let (mut missed, mut first) = (Missed::default(), None);
        let (farthest, mut before) = (probes.saturating_mul(FARTHEST), Vec::new());
        // A row may be in several postings, and some will turn out farther than their codes say.
        let most = wanted.k.saturating_mul(2).saturating_add(SPARE);
        loop {
            if sure && probes >= all {
                let part = self.exact(wanted, asked, &directories, stats);
                missed |= part.cold;
                return (part.found, missed);
            }
            near.clear(probes.min(all));
            let postings = self.nearest_to(&directories, asked, near, stats);
            if self.cold_first.is() {
                let postings = postings.iter().map(|(_, posting)| *posting);
                let reads = self.store.file.reads();
                self.ask_for_firsts(postings);
                missed.first |= self.store.file.reads() > reads;
            }
            near.clear(most);
            let mut part = self.read(&postings, wanted, asked, near);
            *stats += part.stats;
            missed |= part.cold;
            let first = *first.get_or_insert(part.sight.read);
            let times = wanted
                .share
                .and_then(|share| part.sight.times(share, first));
            if part.cut {
                add_others(&mut part.found, &before, most);
            } else if let Some(times) = times
                && probes < farthest.min(all)
            {
                probes = farthest.min((probes as f64 * times).ceil() as usize);
                before = part.found;
                continue;
            }
            if part.found.len() >= wanted.k || part.cut {
                let found = self.rerank(wanted, asked.query, &part.found, (stats, &mut missed));
                if found.len() == wanted.k || part.cut {
                    return (found, missed);
                }
            }
            // Some are read again; that is simpler than to tell them apart, and rare.
            probes = probes.saturating_mul(4);
            sure = true;
        }
    }

    /// The nearest postings of all shards, as many as `near` was cleared for, each with its shard, nearest first.
    fn nearest_to<'a>(
        &self,
        directories: &'a [Arc<Directory>],
        asked: Asked<'_>,
        near: &mut Near,
        stats: &mut SearchStats,
    ) -> Vec<(usize, &'a Arc<Posting>)> {
        for (shard, directory) in directories.iter().enumerate() {
            let centroids = &directory.centroids;
            centroids.nearest(asked, (&self.layout, shard), near, stats);
        }
        let posting = |found: &Found| {
            let (shard, id) = place(found.row);
            Some((shard, directories[shard].get(id)?))
        };
        near.sorted().iter().filter_map(posting).collect()
    }

    /// The nearest `k` of what was found by exact distance. A row is compared if the error of its code leaves it a chance.
    fn rerank(
        &self,
        wanted: Wanted<'_>,
        encoded: &Encoded,
        found: &[Found],
        (stats, missed): (&mut SearchStats, &mut Missed),
    ) -> Vec<Neighbor> {
        let Wanted {
            query,
            k,
            originals,
            ..
        } = wanted;
        let mut top = TopK::new(k);
        let reads = self.store.file.reads();
        if self.cold.is() {
            self.ask_for_rows(wanted, found);
        }
        for found in found {
            if top.len() == k && found.lower() > encoded.squared(top.bound()) {
                continue;
            }
            if let Some(vector) = originals.vector(found.row) {
                stats.distance_computations += 1;
                stats.bytes_touched += vector.len() as u64;
                top.push(Neighbor {
                    row: found.row,
                    distance: query.distance(vector),
                });
            }
        }
        missed.rest |= self.store.file.reads() > reads;
        top.into_sorted()
    }

    /// Has the rows be read, side by side, that are going to be compared.
    fn ask_for_rows(&self, wanted: Wanted<'_>, found: &[Found]) {
        let mut uppers: Vec<f32> = found.iter().map(Found::upper).collect();
        let bound = match wanted.k.checked_sub(1).filter(|last| *last < uppers.len()) {
            Some(last) => *uppers.select_nth_unstable_by(last, f32::total_cmp).1,
            None => f32::INFINITY,
        };
        for found in found {
            if found.lower() <= bound {
                wanted.originals.will_need(found.row);
            }
        }
    }
}

/// Adds what an earlier round found and a later one, which was cut, did not come by.
fn add_others(found: &mut Vec<Found>, before: &[Found], most: usize) {
    let rows: HashSet<u64> = found.iter().map(|found| found.row).collect();
    let others = before.iter().filter(|found| !rows.contains(&found.row));
    found.extend(others);
    found.sort_unstable();
    found.truncate(most);
}

use super::QuantizedGraph;
use super::ahead::Ahead;
use super::block::NONE;
use super::elsewhere::NARROW;
use super::front::Front;
use super::level::{LEVELS, Level};
use super::scratch::Scratch;
use super::walk::{Admit, Walk};
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::narrow::Narrow;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::Neighbor;
use crate::vector_index::IsOver;
use longbow_kernels::Metric;

/// Visible nodes of one chain of twins that a search looks at, or as many as it was asked for.
pub(super) const TWINS: usize = 256;
/// Searches of a batch that one thread has under way: while it takes a step of one, memory comes for the others. With more
/// of them, what comes no longer fits into the first level of the cache.
const UNDER_WAY: usize = 3;

/// Takes nodes and their twins, of rows that are visible. A node of none that is does not count.
struct Visible<'a> {
    visible: &'a (dyn Fn(u64) -> bool + Sync),
    /// Of a chain of twins.
    most: usize,
    narrow: Narrow,
    /// By how much the query was rounded.
    own: f32,
    ahead: Ahead<'a>,
}

impl Admit for Visible<'_> {
    #[inline(always)]
    unsafe fn admit(
        &self,
        level: &Level,
        (front, _): (&mut Front, &mut Front),
        found: &mut Vec<Candidate>,
        node: Candidate,
    ) {
        // SAFETY: the caller vouches for the node, and a twin that was read was written before it was chained.
        unsafe {
            let row = level.blocks.row(node.node());
            let before = found.len();
            if (self.visible)(row) {
                found.push(node);
            }
            let mut twin = level.blocks.twin(node.node());
            let mut left = self.most;
            while twin != NONE && left > 0 {
                let other = level.blocks.row(twin);
                // The row of an heir is in the chain twice.
                if other != row && (self.visible)(other) {
                    found.push(Candidate::new(node.distance(), twin));
                    left -= 1;
                }
                twin = level.blocks.twin(twin);
            }
            if found.len() == before {
                front.discount(node);
            }
        }
    }

    #[inline(always)]
    unsafe fn narrow(&self, level: &Level, front: &mut Front) {
        // SAFETY: the caller vouches for the nodes.
        unsafe { level.narrow((self.narrow, self.own), front) };
    }

    #[inline(always)]
    unsafe fn look_ahead(&self, level: &Level, followed: Option<(u32, usize)>) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.ahead.ask(&level.blocks, followed) };
    }
}

/// What is asked for, the same for all queries of a batch.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) k: usize,
    pub(super) ef: usize,
    pub(super) visible: &'a (dyn Fn(u64) -> bool + Sync),
    /// Asked from time to time whether a walk is to end with what it has found; without it, it never is.
    pub(super) is_over: Option<IsOver<'a>>,
    pub(super) originals: &'a dyn VectorSource,
}

/// A walk in steps, each of which ends when memory was asked for that the next one reads.
pub(super) trait Steps {
    /// Takes a step; false if the walk has ended. What it found is then in `scratch.found`.
    fn step(&mut self) -> bool;

    /// Ends it early: what it found are nodes of the lowest level, or nothing.
    fn cut(&mut self);

    fn scratch(&mut self) -> &mut Scratch;
}

impl Steps for Walk<'_, Visible<'_>> {
    #[inline(always)]
    fn step(&mut self) -> bool {
        Walk::step(self)
    }

    fn cut(&mut self) {
        Walk::cut(self);
    }

    #[inline(always)]
    fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// Steps between which a walk is asked whether it is to end: some microseconds.
const UNASKED: u32 = 64;

/// A walk that ends early if it is told to.
pub(super) struct Until<'a, W> {
    pub(super) walk: W,
    is_over: Option<IsOver<'a>>,
    steps: u32,
    was_cut: bool,
}

impl<'a, W> Until<'a, W> {
    pub(super) fn new(walk: W, is_over: Option<IsOver<'a>>) -> Self {
        Until {
            walk,
            is_over,
            steps: 0,
            was_cut: false,
        }
    }
}

impl<W: Steps> Steps for Until<'_, W> {
    #[inline(always)]
    fn step(&mut self) -> bool {
        if let Some(is_over) = self.is_over {
            self.steps = self.steps.wrapping_add(1);
            if !self.was_cut && self.steps.is_multiple_of(UNASKED) && is_over() {
                self.was_cut = true;
                self.walk.cut();
            }
        }
        !self.was_cut && self.walk.step()
    }

    fn cut(&mut self) {
        self.was_cut = true;
        self.walk.cut();
    }

    #[inline(always)]
    fn scratch(&mut self) -> &mut Scratch {
        self.walk.scratch()
    }
}

/// A search of a batch.
struct Search<W> {
    /// The query's place in the batch.
    place: usize,
    walk: W,
    /// Whether the walk has ended, and the vectors of the nearest that it found were asked for.
    ended: bool,
}

impl QuantizedGraph {
    /// Answers one query.
    ///
    /// # Panics
    /// If it was prepared for another space.
    pub(super) fn answer(
        &self,
        query: &Query,
        asked: Asked<'_>,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let _visit = self.enter();
        let ahead = self.ahead(asked.originals, asked.k);
        let Some(mut walk) = self.begin(query, asked, ahead) else {
            return Vec::new();
        };
        walk.run();
        self.ask_originals(asked.k, asked.originals, &mut walk.scratch);
        self.end(query, asked, walk, stats)
    }

    /// Answers many queries, several of which are under way at a time: for the same answers, a thread waits less for
    /// memory. `stats` are those of each.
    ///
    /// # Panics
    /// If one was prepared for another space.
    pub(super) fn answer_all(
        &self,
        queries: &[Query],
        asked: Asked<'_>,
        stats: &mut [SearchStats],
    ) -> Vec<Vec<Neighbor>> {
        let _visit = self.enter();
        let mut answers = vec![Vec::new(); queries.len()];
        let k = if queries.len() == 1 { asked.k } else { 0 };
        self.in_turns(
            (queries.len(), asked.k, asked.originals),
            |place| {
                let ahead = self.ahead(asked.originals, k);
                let walk = self.begin(&queries[place], asked, ahead)?;
                Some(Until::new(walk, asked.is_over))
            },
            |place, Until { walk, .. }| {
                answers[place] = self.end(&queries[place], asked, walk, &mut stats[place]);
            },
        );
        answers
    }

    /// Takes steps of several walks in turn until all of so many have ended.
    pub(super) fn in_turns<W: Steps>(
        &self,
        (queries, k, originals): (usize, usize, &dyn VectorSource),
        begin: impl Fn(usize) -> Option<W>,
        mut end: impl FnMut(usize, W),
    ) {
        let mut waiting = (0..queries).filter_map(|place| {
            let walk = begin(place)?;
            Some(Search {
                place,
                walk,
                ended: false,
            })
        });
        let mut under_way: Vec<Search<W>> = waiting.by_ref().take(UNDER_WAY).collect();
        while !under_way.is_empty() {
            let mut turn = 0;
            while let Some(search) = under_way.get_mut(turn) {
                turn += 1;
                if search.walk.step() {
                    continue;
                }
                if !std::mem::replace(&mut search.ended, true) {
                    self.ask_originals(k, originals, search.walk.scratch());
                    continue;
                }
                let ended = match waiting.next() {
                    Some(next) => std::mem::replace(search, next),
                    None => {
                        turn -= 1;
                        under_way.swap_remove(turn)
                    }
                };
                end(ended.place, ended.walk);
            }
        }
    }

    /// Begins a search; `None` if nothing can be found.
    fn begin<'a>(
        &'a self,
        query: &Query,
        asked: Asked<'a>,
        ahead: Ahead<'a>,
    ) -> Option<Walk<'a, Visible<'a>>> {
        if asked.k == 0 {
            return None;
        }
        let mut scratch = self.prepare_query(query)?;
        self.fill_lut(&mut scratch);
        let narrow = Narrow::new(self.space.metric, asked.k, asked.ef.max(1));
        let visible = Visible {
            visible: asked.visible,
            most: asked.k.max(TWINS),
            narrow,
            own: scratch.query.own_scale(),
            ahead,
        };
        match Walk::new(
            self,
            (0, LEVELS - 1),
            (narrow.most, NARROW),
            visible,
            scratch,
        ) {
            Ok(mut walk) => {
                walk.looks = self.space.metric != Metric::Dot;
                Some(walk)
            }
            Err(scratch) => {
                self.pool.give(scratch);
                None
            }
        }
    }

    /// Room with a query in it; `None` if the graph has no nodes.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    pub(super) fn prepare_query(&self, query: &Query) -> Option<Box<Scratch>> {
        assert_eq!(
            query.space(),
            self.space,
            "the space of the query is that of the index"
        );
        // Without rows the origin of the codes may not be chosen yet, and must not be by a search.
        self.ground().entry()?;
        let mut scratch = self.pool.take();
        scratch.stats = SearchStats::default();
        // For a search that ends before it walks.
        scratch.found.clear();
        self.encoder().query(query.floats(), &mut scratch.query);
        if self.ground().blocks.cut() {
            self.encoder().round_query(&mut scratch.query);
        }
        Some(scratch)
    }

    /// Fills the table by which neighbours are estimated, if they are.
    pub(super) fn fill_lut(&self, scratch: &mut Scratch) {
        if self.params.edge_codes {
            self.encoder().lut(&scratch.query, &mut scratch.lut);
        }
    }

    /// Lets nodes be compared with the eight-bit code in `scratch`.
    pub(super) fn aim(&self, scratch: &mut Scratch) {
        match self.ground().blocks.cut() {
            true => scratch.query.spread(),
            false => self.fill_lut(scratch),
        }
    }

    /// Ends a search whose walk has ended.
    fn end(
        &self,
        query: &Query,
        asked: Asked<'_>,
        walk: Walk<'_, Visible<'_>>,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let mut scratch = walk.scratch;
        // So narrow a walk may pass by less than was asked for.
        let too_narrow = scratch.found.len() < asked.k && asked.ef < asked.k;
        let mut found = Vec::new();
        if !too_narrow {
            found = self.rerank(query, asked.k, asked.originals, &mut scratch);
        }
        *stats += scratch.stats;
        self.pool.give(scratch);
        if too_narrow {
            let wider = Asked {
                ef: asked.k,
                ..asked
            };
            return self.answer(query, wider, stats);
        }
        found
    }
}

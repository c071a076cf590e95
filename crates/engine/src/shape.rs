//! The shape of an answer: which of the hits, and in what order.

use longbow_index::Neighbor;

use crate::cursor::Cursor;
use crate::diversity;
use crate::error::{Error, Result};
use crate::groups::{self, Grouping};
use crate::hit::Hit;
use crate::search::{MAX_K, Searcher};

/// Hits that are looked at for groups, in units of those asked for.
const GROUPS: usize = 2;
/// Hits that a diverse answer is chosen from, in units of those asked for, and the least.
const DIVERSE: (usize, usize) = (4, 50);
/// How much farther a search goes that did not suffice.
const FARTHER: usize = 4;

/// What is asked for beside the nearest `k`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// Hits, or groups of them, to leave out first.
    pub offset: usize,
    /// Whether the answer is a page, and the place that it begins after: none for the first page.
    pub page: Option<Option<Cursor>>,
    /// Groups in place of hits.
    pub group: Option<Grouping>,
    /// From 0 to 1: the weight of relevance against difference from the other hits.
    pub diversity: Option<f32>,
}

impl Shape {
    /// Checks what does not depend on the dataset.
    ///
    /// # Errors
    /// If a number is out of its range, or two wishes exclude each other.
    pub(crate) fn check(&self, k: usize, queries: usize) -> Result<()> {
        let bad = |field, got: String, expected| {
            Err(Error::BadValue {
                field,
                got,
                expected,
            })
        };
        if k.saturating_add(self.offset) > MAX_K {
            let got = self.offset.to_string();
            return bad("offset", got, "at most 16384 with k");
        }
        if let Some(lambda) = self.diversity
            && !(0.0..=1.0).contains(&lambda)
        {
            return bad("mmr", lambda.to_string(), "0 to 1");
        }
        if self.diversity.is_some() && k + self.offset > diversity::MOST_CANDIDATES {
            return bad("k", k.to_string(), "at most 1024 with offset, for mmr");
        }
        if let Some(group) = &self.group
            && !(1..=MAX_K).contains(&group.size)
        {
            return bad("group_size", group.size.to_string(), "1 to 16384");
        }
        let Some(page) = &self.page else {
            return Ok(());
        };
        if self.group.is_some() || self.diversity.is_some() || self.offset > 0 || queries > 1 {
            let expected = "no cursor with group_by, mmr, offset or several queries, whose answers have no place to go on from";
            return bad("cursor", "given".into(), expected);
        }
        let seen = page.map_or(0, |cursor| cursor.seen as usize);
        if seen >= MAX_K {
            let got = format!("after {seen} rows");
            return bad(
                "cursor",
                got,
                "pages up to row 16384; filter what is left, or download it",
            );
        }
        Ok(())
    }

    /// Whether the nearest `k` are all that is asked for.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Shape::default()
    }

    /// Hits of the pages before.
    fn seen(&self) -> usize {
        self.page.flatten().map_or(0, |cursor| cursor.seen as usize)
    }

    /// Whether a page of `k` is the last one, however many hits are left.
    pub(crate) fn is_last_page(&self, k: usize) -> bool {
        self.page.is_some() && self.seen().saturating_add(k) >= MAX_K
    }

    /// Hits that are looked for at first, for `k` to be given.
    pub(crate) fn depth(&self, k: usize) -> usize {
        let base = k + self.offset + self.seen();
        let depth = match (&self.group, self.diversity) {
            (Some(group), _) => base.saturating_mul(group.size).saturating_mul(GROUPS),
            (None, Some(_)) => (DIVERSE.0 * base).clamp(DIVERSE.1, diversity::MOST_CANDIDATES),
            (None, None) => base,
        };
        depth.min(MAX_K)
    }

    /// Hits that are looked for if those of `depth` did not suffice; `None` if there is no sense in it.
    pub(crate) fn deeper(&self, depth: usize) -> Option<usize> {
        let more = self.group.is_some() || self.page.is_some();
        (more && depth < MAX_K).then(|| depth.saturating_mul(FARTHER).min(MAX_K))
    }

    /// Of the hits, best first, those that are to be given.
    ///
    /// # Errors
    /// If the column of the groups is unknown, or a batch cannot be read.
    pub(crate) fn apply(&self, mut hits: Vec<Hit>, k: usize, at: &Searcher<'_>) -> Result<Shaped> {
        let mut upto = k + self.offset;
        if let Some(Some(cursor)) = &self.page {
            hits.retain(|hit| cursor.is_before(hit));
            upto = upto.min(MAX_K.saturating_sub(self.seen()));
        }
        if let Some(group) = &self.group {
            let schema = &at.view.schema.arrow;
            let field = schema.field_with_name(&group.column)?;
            let mut groups = groups::group(&hits, at.view, field, group.size)?;
            let enough = groups.len() >= upto;
            groups.truncate(upto);
            groups.drain(..self.offset.min(groups.len()));
            let room = groups.iter().filter(|hits| hits.len() < group.size);
            return Ok(Shaped {
                with_room: room.count(),
                hits: groups.into_iter().flatten().collect(),
                enough,
            });
        }
        if let Some(lambda) = self.diversity {
            hits = diversity::choose(&hits, lambda, upto, (at.view, at.column))?;
        }
        let enough = hits.len() >= upto;
        hits.truncate(upto);
        hits.drain(..self.offset.min(hits.len()));
        Ok(Shaped {
            hits,
            enough,
            with_room: 0,
        })
    }
}

/// What is given of the hits.
pub(crate) struct Shaped {
    pub hits: Vec<Hit>,
    /// Whether they are as many as asked for, or of as many groups.
    pub enough: bool,
    /// Groups that have fewer hits than they may.
    pub with_room: usize,
}

/// What was found by vectors, as hits.
pub(crate) fn hits(neighbors: &[Neighbor], at: &Searcher<'_>) -> Vec<Hit> {
    let space = at.column.space;
    let near = |neighbor: &Neighbor| Hit::near(*neighbor, space);
    neighbors.iter().map(near).collect()
}

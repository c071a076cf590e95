//! Where the entries of each shard are, for shards that number theirs.

use crate::control::{TRUNCATE, VOTE};
use crate::frame::Header;
use crate::group::Group;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// All shards of a log. Nothing but what the log holds: built by noting its entries in order, at recovery and when they
/// are acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Shards {
    shards: Mutex<HashMap<u32, Shard>>,
    /// The last index that was noted.
    noted: AtomicU64,
}

/// A vote that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Vote {
    /// The index that it was first saved with: of two votes, the one with the greater index is the newer, in whatever
    /// order copies of them lie in the log.
    pub(crate) saved: u64,
    /// The index of its last copy.
    copied: u64,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Default)]
struct Shard {
    vote: Option<Vote>,
    /// The shard index of the first entry.
    first: u64,
    /// Indexes in the log of the entries that are not void, ascending; their shard indexes are consecutive.
    indexes: VecDeque<u64>,
    /// The terms of these, each with the shard index that it begins at, ascending; empty if there are no entries.
    terms: VecDeque<(u64, u64)>,
}

impl Shards {
    /// Notes an entry, the one behind the last that was noted.
    pub(crate) fn note(&self, header: &Header, payload: &[u8]) {
        self.noted.store(header.index, Ordering::Release);
        if header.is_for_shards() {
            let mut shards = self.shards.lock();
            let shard = shards.entry(header.shard).or_default();
            shard.note(header, payload);
        }
    }

    /// Notes what is about to be acknowledged.
    pub(crate) fn note_group(&self, group: &Group) {
        if group.for_shards {
            for (pending, index) in group.entries.iter().zip(group.first..) {
                let payload = pending.payload.first().map_or(&[][..], |part| part);
                self.note(&pending.header(index, 0, 0, 0), payload);
            }
        }
        self.noted.store(group.last(), Ordering::Release);
    }

    /// The last index that was noted: what is behind it may be a vote that nobody here knows of yet.
    pub(crate) fn noted(&self) -> u64 {
        self.noted.load(Ordering::Acquire)
    }

    /// Notes that the next entry will be behind `index`.
    pub(crate) fn go_on_behind(&self, index: u64) {
        self.noted.store(index, Ordering::Release);
    }

    pub(crate) fn vote(&self, shard: u32) -> Option<Bytes> {
        let shards = self.shards.lock();
        Some(shards.get(&shard)?.vote.as_ref()?.bytes.clone())
    }

    /// Term and shard index of the last entry of a shard.
    pub(crate) fn last_of(&self, shard: u32) -> Option<(u64, u64)> {
        self.shards.lock().get(&shard)?.last()
    }

    /// The indexes in the log of a shard's entries from the beginning of the range on; none if that one is not there.
    pub(crate) fn indexes(&self, shard: u32, range: Range<u64>) -> Vec<u64> {
        let shards = self.shards.lock();
        let Some(shard) = shards.get(&shard).filter(|s| range.start >= s.first) else {
            return Vec::new();
        };
        let len = shard.indexes.len() as u64;
        let start = (range.start - shard.first).min(len);
        let end = range.end.saturating_sub(shard.first).clamp(start, len);
        let found = shard.indexes.range(start as usize..end as usize);
        found.copied().collect()
    }

    /// The votes that have no copy at `first` or behind it.
    pub(crate) fn votes_before(&self, first: u64) -> Vec<(u32, Vote)> {
        let shards = self.shards.lock();
        let votes = shards
            .iter()
            .filter_map(|(shard, state)| Some((*shard, state.vote.clone()?)));
        votes.filter(|(_, vote)| vote.copied < first).collect()
    }

    /// Forgets the entries before the index `first` of the log, but no vote.
    pub(crate) fn release(&self, first: u64) {
        self.shards.lock().retain(|_, shard| {
            shard.release(first);
            shard.vote.is_some() || !shard.indexes.is_empty()
        });
    }
}

impl Shard {
    fn note(&mut self, header: &Header, payload: &[u8]) {
        let (index, shard_index) = (header.index, header.shard_index);
        match header.kind {
            TRUNCATE => self.truncate(shard_index),
            VOTE => {
                let saved = if shard_index == 0 { index } else { shard_index };
                if self.vote.as_ref().is_none_or(|vote| vote.saved <= saved) {
                    self.vote = Some(Vote {
                        saved,
                        copied: index,
                        bytes: Bytes::copy_from_slice(payload),
                    });
                }
            }
            _ => self.push(index, header.term, shard_index),
        }
    }

    /// The shard index behind the last.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.indexes.len() as u64)
    }

    fn last(&self) -> Option<(u64, u64)> {
        let (_, term) = self.terms.back()?;
        let others = self.indexes.len() as u64 - 1;
        Some((*term, self.first + others))
    }

    /// An entry voids those that it overwrites; and where it leaves a gap, those before it: a snapshot took their place.
    fn push(&mut self, index: u64, term: u64, shard_index: u64) {
        if (self.first..=self.end()).contains(&shard_index) {
            self.truncate(shard_index - 1);
        } else {
            self.indexes.clear();
            self.terms.clear();
        }
        if self.indexes.is_empty() {
            self.first = shard_index;
        }
        self.indexes.push_back(index);
        if self.terms.back().is_none_or(|(_, last)| *last != term) {
            self.terms.push_back((shard_index, term));
        }
    }

    fn truncate(&mut self, after: u64) {
        let others = after.checked_sub(self.first);
        let kept = others.map_or(0, |others| others.saturating_add(1));
        self.indexes
            .truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        let is_empty = self.indexes.is_empty();
        self.terms.retain(|(begin, _)| *begin <= after && !is_empty);
    }

    fn release(&mut self, first: u64) {
        let gone = self.indexes.partition_point(|index| *index < first);
        self.indexes.drain(..gone);
        self.indexes.shrink_to(2 * self.indexes.len());
        self.first = self.first.saturating_add(gone as u64);
        if self.indexes.is_empty() {
            self.terms.clear();
        }
        while self.terms.get(1).is_some_and(|t| t.0 <= self.first) {
            self.terms.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(index: u64, saved: u64) -> Header {
        Header {
            index,
            shard_index: saved,
            kind: VOTE,
            ..Header::default()
        }
    }

    #[test]
    fn a_copy_of_an_older_vote_does_not_replace_a_newer_one() {
        let shards = Shards::default();
        shards.note(&vote(5, 0), b"old");
        shards.note(&vote(9, 0), b"new");
        shards.note(&vote(10, 5), b"old");
        assert_eq!(shards.vote(0).unwrap(), "new");
        assert_eq!(shards.votes_before(10).len(), 1, "the copy is not of it");
        shards.note(&vote(11, 9), b"new");
        assert!(shards.votes_before(10).is_empty());
        shards.release(20);
        assert_eq!(
            (shards.vote(0).unwrap(), shards.noted()),
            ("new".into(), 11)
        );
    }

    #[test]
    fn terms_follow_the_entries() {
        let shards = Shards::default();
        let entry = |index, shard_index, term| Header {
            index,
            shard_index,
            term,
            kind: 1,
            ..Header::default()
        };
        let truncation = |index, shard_index| Header {
            kind: TRUNCATE,
            ..entry(index, shard_index, 0)
        };
        for (index, shard_index, term) in [(1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, 5)] {
            shards.note(&entry(index, shard_index, term), b"");
        }
        shards.note(&truncation(5, 3), b"");
        assert_eq!(shards.last_of(0), Some((2, 3)));
        shards.release(2);
        shards.note(&truncation(6, 1), b"");
        assert_eq!(shards.last_of(0), None, "the first was released");
        shards.note(&entry(7, 2, 6), b"");
        assert_eq!(
            (shards.last_of(0), shards.indexes(0, 2..9)),
            (Some((6, 2)), vec![7])
        );
        shards.release(8);
        assert!(shards.shards.lock().is_empty());
    }
}

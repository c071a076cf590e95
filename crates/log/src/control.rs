//! Entries that are about the log itself. Nobody may append their kinds but the log.
//!
//! A truncation has the shard index behind which it voids as its `shard_index`, and no payload. A vote has its bytes as
//! the payload and 0 as its `shard_index`; a copy of it, made before its segment goes, has the index in the log that it
//! was first saved with. The rest of the reserved kinds is not in use: one that is to be needs a new version of the
//! segment's format, which this program refuses.

use crate::{Entry, Record};
use bytes::Bytes;
use std::ops::RangeInclusive;

/// The kinds that the log keeps for itself.
pub const RESERVED_KINDS: RangeInclusive<u8> = 240..=247;

/// The most bytes that a vote may have.
pub const MAX_VOTE_BYTES: u64 = 4096;

pub(crate) const TRUNCATE: u8 = 240;
pub(crate) const VOTE: u8 = 241;

/// What an entry of the log's own does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The entries of its shard with a greater shard index than this are void.
    Truncate {
        /// The last shard index that is not.
        after: u64,
    },
    /// Its payload is the vote of its shard.
    Vote,
}

impl Record {
    /// What it does to the log, if it is an entry of the log's own: such a one has no meaning to a state machine.
    pub fn control(&self) -> Option<Control> {
        match self.kind {
            TRUNCATE => Some(Control::Truncate {
                after: self.shard_index,
            }),
            VOTE => Some(Control::Vote),
            _ => None,
        }
    }
}

/// The entry that voids what is behind `after` in a shard.
pub(crate) fn truncation(shard: u32, after: u64, term: u64) -> Entry {
    Entry {
        shard,
        term,
        shard_index: after,
        kind: TRUNCATE,
        durable: true,
        payload: Vec::new(),
    }
}

/// The entry that holds a vote; `saved` is 0, or for a copy the index of the original.
pub(crate) fn vote(shard: u32, saved: u64, vote: Bytes) -> Entry {
    Entry {
        shard,
        term: 0,
        shard_index: saved,
        kind: VOTE,
        durable: true,
        payload: vec![vote],
    }
}

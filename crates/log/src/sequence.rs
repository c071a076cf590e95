//! The entries of one shard, as a log of its own.

use crate::control;
use crate::entry::Ack;
use crate::gate::Waiter;
use crate::group::{Done, Group};
use crate::log::{Batch, Log};
use crate::reader::Reader;
use crate::{Error, MAX_VOTE_BYTES, Record, Result};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// For shards whose entries carry a `shard_index`, as those of a Raft group do. What these answer is a matter of what
/// was acknowledged: until `done` is called, entries, truncations and votes are not there.
impl Log {
    /// Voids the entries of a shard behind `after_shard_index`: from the acknowledgement on, which always says durable,
    /// they are not part of its sequence any more. [`read`](Log::read) still gives them, and behind them the truncation,
    /// an entry of its own with this `term`. Answers its index.
    ///
    /// # Errors
    ///
    /// As [`append`](Log::append), `done` too.
    pub fn truncate(
        &self,
        shard: u32,
        after_shard_index: u64,
        term: u64,
        done: Box<dyn FnOnce(Result<Ack>) + Send>,
    ) -> Result<u64> {
        let entry = control::truncation(shard, after_shard_index, term);
        let group = Group::of_control([entry], Done::Call(done));
        self.queue(group).map(|range| range.start)
    }

    /// Saves the vote of a shard, which replaces the one before: at most [`MAX_VOTE_BYTES`], never looked at. The
    /// acknowledgement always says durable. Answers the index of the entry.
    ///
    /// # Errors
    ///
    /// As [`append`](Log::append), `done` too.
    pub fn save_vote(
        &self,
        shard: u32,
        vote: Bytes,
        done: Box<dyn FnOnce(Result<Ack>) + Send>,
    ) -> Result<u64> {
        let (len, limit) = (vote.len() as u64, MAX_VOTE_BYTES);
        let done = Done::Call(done);
        let group = match len > limit {
            true => Err((Error::TooLong { len, limit }, done)),
            false => Group::of_control([control::vote(shard, 0, vote)], done),
        };
        self.queue(group).map(|range| range.start)
    }

    /// The last vote of a shard that was saved and acknowledged. No purge loses it.
    pub fn vote(&self, shard: u32) -> Option<Bytes> {
        self.shared.shards.vote(shard)
    }

    /// Term and shard index of the last entry of a shard. `None` also if all of them were purged: what the checkpoint
    /// says is the last then.
    pub fn last_of(&self, shard: u32) -> Option<(u64, u64)> {
        self.shared.shards.last_of(shard)
    }

    /// Reads the entries of a shard whose shard indexes are in the range, consecutive from its beginning on, without those
    /// that are void: as many as fit into `max_bytes` of payload, but at least one if there is any. Empty if the first of
    /// the range is not there: not yet, or not any more.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if what is there is broken.
    pub fn read_shard(&self, shard: u32, range: Range<u64>, max_bytes: u64) -> Result<Vec<Record>> {
        let mut batch = Batch::of(max_bytes);
        let mut reader = None;
        for index in self.shared.shards.indexes(shard, range) {
            (batch.next, batch.last) = (index, index);
            if batch.is_full() {
                break;
            }
            let mut near = match self.reader_near(reader, index) {
                Ok(near) => near,
                // In the meantime. What was read before is of no use without it then, but sound.
                Err(Error::Purged { .. }) => break,
                Err(error) => return Err(error),
            };
            batch.fill(&mut near)?;
            reader = Some(near);
        }
        Ok(batch.records)
    }

    /// A reader that stands at a frame at or before `index`, not far from it: the one that there is, if that can be.
    fn reader_near(&self, reader: Option<Reader>, index: u64) -> Result<Reader> {
        let segments = self.shared.segments.lock();
        let position = segments.partition_point(|s| s.first <= index);
        let segment = position.checked_sub(1).map(|at| &segments[at]);
        if let (Some(mut reader), Some(segment)) = (reader, segment)
            && let Some(user) = &reader.user
            && Arc::ptr_eq(user, &segment.users)
        {
            let near = segment.near(index);
            if near > reader.offset {
                reader.offset = near;
                reader.link = None;
            }
            return Ok(reader);
        }
        drop(segments);
        self.reader_at(index)
    }

    /// Copies the votes that are nowhere but before the index `first` to the end of the log, and waits until the copies
    /// are durable.
    pub(crate) fn keep_votes(&self, first: u64) -> Result<()> {
        let votes = self.shared.shards.votes_before(first);
        if votes.is_empty() {
            return Ok(());
        }
        let copies = votes
            .into_iter()
            .map(|(shard, vote)| control::vote(shard, vote.saved, vote.bytes));
        let waiter = Waiter::new();
        let group = Group::of_control(copies, Done::Wait(waiter.clone()));
        self.queue_and_wait(group, &waiter).map(|_| ())
    }
}

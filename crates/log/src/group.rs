//! Entries handed in together, on their way to the disk.

use crate::entry::{Ack, Entry, checked_len};
use crate::frame::{Header, frame_bytes, payload_crc};
use crate::gate::Waiter;
use crate::{Error, RESERVED_KINDS, Result};
use bytes::Bytes;
use smallvec::SmallVec;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One checked entry. What is missing in its header is known when it is written.
pub(crate) struct Pending {
    pub(crate) len: u32,
    /// Of the payload; `None` until it is computed.
    payload_crc: Option<u32>,
    pub(crate) shard: u32,
    pub(crate) term: u64,
    pub(crate) shard_index: u64,
    pub(crate) kind: u8,
    pub(crate) payload: Vec<Bytes>,
}

impl Pending {
    fn new(entry: Entry) -> Result<Pending> {
        Ok(Pending {
            len: checked_len(&entry.payload)?,
            payload_crc: None,
            shard: entry.shard,
            term: entry.term,
            shard_index: entry.shard_index,
            kind: entry.kind,
            payload: entry.payload,
        })
    }

    /// Computes the checksum, unless that was done.
    pub(crate) fn sum(&mut self) {
        let payload = &self.payload;
        self.payload_crc.get_or_insert_with(|| payload_crc(payload));
    }

    /// Its header behind a frame with the checksum `previous`. What it says of the payload's checksum holds once that was computed.
    pub(crate) fn header(
        &self,
        index: u64,
        timestamp_us: u64,
        durable: u64,
        previous: u32,
    ) -> Header {
        Header {
            len: self.len,
            payload_crc: self.payload_crc.unwrap_or_default(),
            shard: self.shard,
            index,
            durable,
            timestamp_us,
            term: self.term,
            shard_index: self.shard_index,
            kind: self.kind,
            mark: false,
            previous,
        }
    }

    /// What it takes in the file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        frame_bytes(self.len.into())
    }
}

/// The entries of one hand-in: written together, and told about once.
pub(crate) struct Group {
    pub(crate) entries: SmallVec<[Pending; 1]>,
    /// The index of the first, given when they are queued.
    pub(crate) first: u64,
    /// When they were queued, in microseconds since the Unix epoch.
    pub(crate) timestamp_us: u64,
    /// What they take in the file and count for in the queue.
    pub(crate) bytes: u64,
    /// Where the caller sleeps meanwhile, if it does.
    pub(crate) gate: usize,
    /// To be told about only when they survive power loss.
    pub(crate) until_durable: bool,
    /// Some entry is part of a shard's sequence, or changes one, or is a vote.
    pub(crate) for_shards: bool,
    /// Why it was not written, if that was tried and the log goes on.
    pub(crate) refused: Option<Error>,
    /// The payload of a single entry as it lies in the file, once it does.
    pub(crate) mapped: Option<Bytes>,
    done: Done,
}

impl Group {
    /// Checks the entries.
    pub(crate) fn new(
        entries: impl IntoIterator<Item = Entry>,
        done: Done,
    ) -> std::result::Result<Group, (Error, Done)> {
        Group::of(entries, done, |kind| !RESERVED_KINDS.contains(&kind))
    }

    /// The same for entries of the log's own.
    pub(crate) fn of_control(
        entries: impl IntoIterator<Item = Entry>,
        done: Done,
    ) -> std::result::Result<Group, (Error, Done)> {
        Group::of(entries, done, |_| true)
    }

    fn of(
        entries: impl IntoIterator<Item = Entry>,
        done: Done,
        may_be: impl Fn(u8) -> bool,
    ) -> std::result::Result<Group, (Error, Done)> {
        let mut group = Group {
            entries: SmallVec::new(),
            first: 0,
            timestamp_us: 0,
            bytes: 0,
            gate: 0,
            until_durable: false,
            for_shards: false,
            refused: None,
            mapped: None,
            done,
        };
        for entry in entries {
            group.until_durable |= entry.durable;
            let kind = entry.kind;
            group.for_shards |= entry.shard_index != 0 || RESERVED_KINDS.contains(&kind);
            if !may_be(kind) {
                return Err((Error::ReservedKind { kind }, group.done));
            }
            match Pending::new(entry) {
                Ok(pending) => group.entries.push(pending),
                Err(error) => return Err((error, group.done)),
            }
        }
        if group.entries.is_empty() {
            return Err((Error::Empty, group.done));
        }
        group.bytes = group.entries.iter().map(Pending::bytes).sum();
        Ok(group)
    }

    /// Computes the checksums of the payloads, so that whoever writes does not have to.
    pub(crate) fn sum(&mut self) {
        self.entries.iter_mut().for_each(Pending::sum);
    }

    /// The index of its last entry.
    pub(crate) fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    /// Whether the caller is shown the bytes in the file.
    pub(crate) fn wants_map(&self) -> bool {
        self.entries.len() == 1 && matches!(self.done, Done::Call(_))
    }

    /// The gate to be opened when it is told.
    pub(crate) fn gate(&self) -> Option<usize> {
        matches!(self.done, Done::Wait(_)).then_some(self.gate)
    }

    /// Gives the completion back, of a hand-in that is not queued.
    pub(crate) fn into_done(self) -> Done {
        self.done
    }

    /// Tells whoever handed it in; a caller that sleeps is not woken by this. One that panics must not take the log with
    /// it.
    pub(crate) fn complete(&mut self, durable: Result<bool>) {
        let index = self.last();
        let result = durable.map(|durable| Ack {
            index,
            durable,
            payload: self.mapped.take(),
        });
        let done = mem::replace(&mut self.done, Done::Told);
        if catch_unwind(AssertUnwindSafe(|| done.tell(result))).is_err() {
            tracing::error!(index, "the completion of a log entry panicked");
        }
    }
}

/// Who is to be told, once.
pub(crate) enum Done {
    Call(Box<dyn FnOnce(Result<Ack>) + Send>),
    Wait(Arc<Waiter>),
    /// Nobody any more.
    Told,
}

impl Done {
    pub(crate) fn tell(self, result: Result<Ack>) {
        match self {
            Done::Call(call) => call(result),
            Done::Wait(waiter) => waiter.tell(result),
            Done::Told => {}
        }
    }
}

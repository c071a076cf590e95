//! What goes into the log and what comes out of it.

use crate::{Error, Result};
use bytes::Bytes;

/// The most payload bytes one entry may carry: 1 GiB.
pub const MAX_ENTRY_BYTES: u64 = 1 << 30;

/// Something to be logged.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The shard it belongs to.
    pub shard: u32,
    /// The term of the leader that wrote it; carried, and told by [`Log::last_of`](crate::Log::last_of).
    pub term: u64,
    /// Its index among the entries of its shard; 0 if these are not numbered. It voids those of its shard at this index
    /// and behind it, and where it leaves a gap, those before it: a snapshot took their place.
    pub shard_index: u64,
    /// What the payload is, to whoever replays it; none of [`RESERVED_KINDS`](crate::RESERVED_KINDS).
    pub kind: u8,
    /// Acknowledge it only when it survives power loss, whatever the [`SyncMode`](crate::SyncMode) says. Entries behind it
    /// wait for its acknowledgement too, because they come in order.
    pub durable: bool,
    /// The payload, in parts that are written one after the other without being copied together. At most
    /// [`MAX_ENTRY_BYTES`] in all.
    pub payload: Vec<Bytes>,
}

/// The acknowledgement of what was handed in together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// The index of the entry, or of the last of several.
    pub index: u64,
    /// Whether they survive power loss already; without that they survive kill -9.
    pub durable: bool,
    /// The payload of a single entry handed to [`Log::append`](crate::Log::append), as it lies in the log's file, where
    /// the disk can map it: whoever needs the bytes for longer may use these and give its own back. They stay readable
    /// after the log was purged.
    pub payload: Option<Bytes>,
}

/// A logged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its index: 1 for the first entry of a log, then consecutive.
    pub index: u64,
    /// The term it was appended with.
    pub term: u64,
    /// The shard it was appended for.
    pub shard: u32,
    /// The index in its shard that it was appended with.
    pub shard_index: u64,
    /// The kind it was appended with.
    pub kind: u8,
    /// When it was appended, in microseconds since the Unix epoch; never decreases along the log.
    pub timestamp_us: u64,
    /// The parts of its payload, joined. May be a slice of a read buffer of up to 1 MiB that lives as long as it does:
    /// copy what is kept for long.
    pub payload: Bytes,
}

/// The length of all parts together, if that is within the limit.
pub(crate) fn checked_len(parts: &[Bytes]) -> Result<u32> {
    let len = parts.iter().map(|p| p.len() as u64).sum();
    if len > MAX_ENTRY_BYTES {
        let limit = MAX_ENTRY_BYTES;
        return Err(Error::TooLong { len, limit });
    }
    // The limit is below 2^32.
    Ok(len as u32)
}

//! The write-ahead log: one stream of records for all shards of a node, in segment files, with group commit.
//!
//! [`Log::append`] queues an [`Entry`] and gives it the next index. Everything that is queued is handed to the operating
//! system with one vectored write, synced as the [`SyncMode`] asks, and completed in order, each step by one thread at a
//! time while others are at the next: `jobs.rs` says by whom. No interval is waited for: whatever queued while the disk was busy
//! is the next batch, after a moment for those who were just told to come back (`gathering.rs`). [`Log::append_and_wait`] is for callers that wait anyway, [`Log::append_here`] for those who have nothing better to do than a short write (`here.rs`), [`Log::append_all`] for many entries. [`Log::open`]
//! replays what is there, [`Log::read`] serves it again, [`Log::purge`] lets whole segments go that a checkpoint covers.
//!
//! Shards may number their entries by a `shard_index` from 1 on, as Raft groups do; 0 is no part of that. [`Log::truncate`]
//! voids the end of such a sequence, [`Log::read_shard`] and [`Log::last_of`] serve what is not void, [`Log::save_vote`]
//! and [`Log::vote`] keep a few bytes that no purge loses. Truncations and votes are entries like any other, of
//! [`RESERVED_KINDS`], so [`Log::read`] and the replay give them too: [`Record::control`] tells them apart. The map from
//! shard indexes to the log is in memory, 8 bytes an entry, rebuilt when the log is opened and cut by purges.
//!
//! It is *not* a state machine, and not a consensus protocol: it compares no terms, and an entry that overwrites another of
//! its shard, or leaves a gap, is taken as it comes.
//! It knows no async runtime; completions are called on its own threads or those of other callers, so they must be short
//! and must not block.
//!
//! Invariants:
//!
//! * Indexes are consecutive, begin at 1, and never skip, across segments too.
//! * **An acknowledgement holds.** In [`SyncMode::EveryAck`] an acknowledged entry survives power loss. In
//!   [`SyncMode::Background`] it survives kill -9, and power loss from the moment [`Log::durable_index`] reaches it; what
//!   power loss leaves is always a prefix of the log.
//! * **Damage is never skipped.** A broken frame is cut together with all that follows only if no frame behind it says
//!   that its index was durable, as after a crash in mid-write. Any other damage is [`Error::Damaged`], by file and
//!   offset, and changes nothing on disk. The last entries before a kill -9 are the limit of this: until a later frame
//!   vouches for them, bit rot and a torn write look the same. A clean [`Log::close`] leaves a mark that vouches, and a file
//!   beside the segments that says so too.
//! * The last acknowledged vote of a shard is in a durable frame at all times: before a segment goes, its votes are
//!   appended again.
//! * A file is written over only when nobody reads it or holds a slice of it, and no power loss can bring back the name
//!   that it had.
//! * A failed sync is never retried; a failed write or sync poisons the log, except that a full disk is survived: the
//!   entries concerned are refused with [`Error::NoSpace`], the partial write is cut, and the log goes on.
//!
//! The format is drawn in `frame.rs`, `segment.rs` and `claim.rs`.
//!
//! ```
//! use longbow_disk::MemoryDisk;
//! use longbow_log::{Entry, Log, Options, SyncMode};
//! use std::sync::{Arc, mpsc};
//!
//! let disk = Arc::new(MemoryDisk::new());
//! let options = Options { sync: SyncMode::EveryAck, ..Options::new("data/log") };
//! let (log, _) = Log::open(disk.clone(), options.clone(), 0, &mut |_| Ok(()))?;
//! let (tell, told) = mpsc::channel();
//! let entry = Entry { term: 1, kind: 1, payload: vec!["rows".into(), "more".into()], ..Entry::default() };
//! assert_eq!(log.append(entry, Box::new(move |ack| tell.send(ack).unwrap()))?, 1);
//! assert!(told.recv().unwrap()?.durable);
//! log.close()?;
//!
//! let mut seen = Vec::new();
//! let (_log, recovery) = Log::open(disk, options, 0, &mut |record| {
//!     seen.push(record.payload);
//!     Ok(())
//! })?;
//! assert_eq!((recovery.last_index, seen), (1, vec!["rowsmore".into()]));
//! # Ok::<(), longbow_log::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ahead;
mod buffers;
mod claim;
mod control;
mod damage;
mod entry;
mod error;
mod frame;
mod frames;
mod gate;
mod gathering;
mod group;
mod here;
mod jobs;
mod log;
mod observer;
mod options;
mod pace;
mod reader;
mod recovery;
mod repair;
mod replay;
mod retention;
mod segment;
mod sequence;
mod shards;
mod spares;
mod state;
mod verify;
mod walk;
mod writer;

pub use control::{Control, MAX_VOTE_BYTES, RESERVED_KINDS};
pub use entry::{Ack, Entry, MAX_ENTRY_BYTES, Record};
pub use error::{Error, Flaw, ReplayError, Result};
pub use frame::frame_bytes;
pub use here::Here;
pub use log::Log;
pub use observer::Observer;
pub use options::{Options, SyncMethod, SyncMode};
pub use recovery::Recovery;
pub use repair::Cut;
pub use replay::Replay;
pub use retention::Hold;
pub use segment::EMPTY_SEGMENT as EMPTY_SEGMENT_BYTES;
pub use verify::{Damage, Survey, Torn, records, segments, size_bytes, verify};

//! One open file.

use crate::Result;
use bytes::Bytes;
use std::fmt::Debug;
use std::io::IoSlice;

/// An open file that is appended to, overwritten, truncated, synced and read. All methods take `&self`: one thread may
/// write while another syncs and a third reads. Writes of several threads do not interleave.
pub trait File: Send + Sync + Debug {
    /// Appends all of `parts` in order, as if they were one slice, and returns the offset at which they begin.
    ///
    /// Survives kill -9 once it has returned; survives power loss only after [`sync_data`](File::sync_data). On an
    /// error any prefix of the bytes may have reached the file; [`len`](File::len) tells, `truncate` cuts.
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64>;

    /// Writes all of `parts` in order at `offset`, over what is there and beyond the end. It is an error to begin behind
    /// the end. Survives what an append survives; on an error any prefix may have reached the file.
    ///
    /// Not for bytes that anyone still reads in a view, from [`map_ahead`](File::map_ahead) or
    /// [`Disk::map`](crate::Disk::map).
    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()>;

    /// [`write_at`](File::write_at) and [`sync_data`](File::sync_data) in one, for these bytes: they survive power loss
    /// when it returns. What was written before and not synced may not. Fails like either.
    fn write_at_synced(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        self.write_at(offset, parts)?;
        self.sync_data()
    }

    /// Asks the system to begin to write these bytes to the disk, without waiting: a `sync_data` that follows has less left
    /// to do. Promises nothing, and tells no failure, which that sync will tell.
    fn start_writeback(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Makes the contents and the length durable: they survive power loss, the file's *name* only if
    /// [`Disk::sync_dir`](crate::Disk::sync_dir) was called for its folder.
    ///
    /// After an error it is unknown which of the unsynced bytes are safe, and calling again does not tell either.
    fn sync_data(&self) -> Result<()>;

    /// Cuts the file to `len` bytes; later appends begin there. Survives power loss after `sync_data`, until then the
    /// bytes that were cut may come back. It is an error to name a length beyond the end. Not for bytes that anyone still
    /// holds a view of.
    fn truncate(&self, len: u64) -> Result<()>;

    /// The length in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// A view of the first `len` bytes of the file, also of those that are not appended yet: a slice of it may be read
    /// once what it covers was appended, and from then on for as long as the view is held, also after the file was
    /// removed; nobody may write over what is read of it meanwhile. Whoever reads beyond the end of the file ends the process, so callers hand out only what was written.
    /// `None` where there is no such thing; callers then keep what they wrote in memory.
    fn map_ahead(&self, len: u64) -> Option<Bytes> {
        let _ = len;
        None
    }

    /// Fills `buf` from `offset` on and returns how many bytes there were: fewer than asked for only at the end of the
    /// file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;
}

//! Read buffers that are used again once nobody holds a slice of them: a new one costs as much as reading into it.

use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The most bytes that are kept for later.
const KEPT_BYTES: usize = 32 << 20;

/// A buffer that is no larger is not too large for anything.
const SMALL_BYTES: usize = 1 << 20;

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer that goes back where it came from, if that is still there.
struct Lent {
    bytes: Vec<u8>,
    /// How many of the bytes were read.
    found: usize,
    home: Weak<Buffers>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.found]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.keep(std::mem::take(&mut self.bytes));
        }
    }
}

impl Buffers {
    /// What `read`, which is handed `len` bytes to fill and answers how many it filled, reads.
    pub(crate) fn fill<E>(
        self: &Arc<Self>,
        len: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Bytes, E> {
        let mut bytes = self.take(len).unwrap_or_else(|| vec![0; len]);
        let found = read(&mut bytes[..len])?;
        Ok(Bytes::from_owner(Lent {
            bytes,
            found,
            home: Arc::downgrade(self),
        }))
    }

    /// A buffer of at least `len` bytes, and not of many more: a slice of it may be held for long.
    fn take(&self, len: usize) -> Option<Vec<u8>> {
        let mut kept = self.0.lock();
        let fits = len..=len.saturating_mul(2).max(SMALL_BYTES);
        let found = kept.iter().position(|bytes| fits.contains(&bytes.len()));
        if found.is_none() {
            // What does not fit makes room for what will be kept instead.
            kept.pop();
        }
        found.map(|at| kept.swap_remove(at))
    }

    fn keep(&self, bytes: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.iter().map(Vec::len).sum::<usize>() + bytes.len() <= KEPT_BYTES {
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(buffers: &Arc<Buffers>, len: usize, byte: u8) -> Bytes {
        let read = |buffer: &mut [u8]| {
            buffer.fill(byte);
            Ok::<_, ()>(buffer.len() - 1)
        };
        buffers.fill(len, read).unwrap()
    }

    #[test]
    fn a_buffer_is_used_again_only_when_no_slice_is_left() {
        let buffers = Arc::new(Buffers::default());
        let first = filled(&buffers, 100, 1);
        let slice = first.slice(10..20);
        let at = first.as_ptr();
        drop(first);
        let second = filled(&buffers, 100, 2);
        assert_ne!(second.as_ptr(), at);
        assert_eq!(slice, [1; 10][..]);
        drop(slice);
        let third = filled(&buffers, 50, 3);
        assert_eq!((third.as_ptr(), third.len()), (at, 49));
        assert_eq!(second, [2; 99][..]);
    }

    #[test]
    fn slices_outlive_the_buffers_and_no_more_is_kept_than_said() {
        let buffers = Arc::new(Buffers::default());
        let half = KEPT_BYTES / 2;
        let lent: Vec<Bytes> = (0..3).map(|_| filled(&buffers, half, 7)).collect();
        drop(lent);
        assert_eq!(buffers.0.lock().len(), 2);
        let last = filled(&buffers, 8, 9);
        assert_eq!(buffers.0.lock().len(), 1, "one made room");
        drop(buffers);
        assert_eq!((&last[..], last.len()), (&[9; 7][..], 7));
    }
}

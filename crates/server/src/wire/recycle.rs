//! Memory for bodies, used again while it is warm.
//!
//! Fresh memory is slow: the system clears each page when it is first touched, which costs more than filling it. A
//! body lives until the log has its bytes, so a stream of batches needs only as many buffers as are under way.

use arrow_buffer::MutableBuffer;
use parking_lot::Mutex;

/// Most bytes that are kept for later bodies.
const MAX_KEPT: usize = 96 << 20;
/// Smaller bodies are the allocator's business.
const MIN_KEPT: usize = 256 << 10;

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    buffers: Vec::new(),
    bytes: 0,
});

struct Kept {
    /// Empty buffers, the one given back last at the end.
    buffers: Vec<MutableBuffer>,
    bytes: usize,
}

/// A body being read; its memory goes back when the last user of the body is done. Begins at an address that is aligned
/// for Arrow.
#[derive(Debug)]
pub(crate) struct Recycled {
    pub buffer: MutableBuffer,
}

impl Recycled {
    /// An empty buffer with room for `length` bytes.
    pub fn with_capacity(length: usize) -> Self {
        let fits = |buffer: &MutableBuffer| {
            (length..=length.saturating_mul(2)).contains(&buffer.capacity())
        };
        let mut kept = KEPT.lock();
        if length >= MIN_KEPT
            && let Some(at) = kept.buffers.iter().rposition(fits)
        {
            let buffer = kept.buffers.remove(at);
            kept.bytes -= buffer.capacity();
            return Recycled { buffer };
        }
        drop(kept);
        Recycled {
            buffer: MutableBuffer::with_capacity(length),
        }
    }
}

impl AsRef<[u8]> for Recycled {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let bytes = buffer.capacity();
        let mut kept = KEPT.lock();
        if bytes >= MIN_KEPT && kept.bytes + bytes <= MAX_KEPT {
            buffer.clear();
            kept.bytes += bytes;
            kept.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_comes_back_empty_and_a_small_one_does_not() {
        let mut first = Recycled::with_capacity(MIN_KEPT * 3);
        first.buffer.extend_from_slice(&[7_u8; 100]);
        drop(first);
        let again = Recycled::with_capacity(MIN_KEPT * 2);
        assert!(again.buffer.is_empty() && again.buffer.capacity() >= MIN_KEPT * 2);
        assert!(Recycled::with_capacity(10).buffer.capacity() < MIN_KEPT);
    }
}

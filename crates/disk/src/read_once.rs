//! Reading much of a mapped file once, without driving out what others need.

use std::collections::VecDeque;
use std::ops::Range;

use crate::advice::{are_in_memory, let_go, page_bytes, will_need};

/// So much is asked for at once, and let go at once: enough for the disk to read it at full speed, and so little that whoever
/// reads a page meanwhile waits for no more than about a millisecond.
const PIECE: usize = 512 << 10;

/// Bytes of a mapped file that are read from begin to end, once: what was not in memory is asked for piece by piece ahead of the reader, and let
/// go behind it. What was there before, because others read it too, stays.
///
/// Useful for: a scan of more than fits into memory beside searches whose pages shall stay there. Not useful for: what will
/// be read again soon.
#[derive(Debug)]
pub struct ReadOnce<'a> {
    bytes: &'a [u8],
    /// Where what was not asked for yet begins.
    asked: usize,
    /// Pieces that were asked for, and where in them something was not in memory.
    pieces: VecDeque<(Range<usize>, Vec<Range<usize>>)>,
}

impl<'a> ReadOnce<'a> {
    /// Begins before the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        ReadOnce {
            bytes,
            asked: 0,
            pieces: VecDeque::new(),
        }
    }

    /// The reader is about to read from `offset` on, and has read all before. Says whether a piece was asked for.
    pub fn reach(&mut self, offset: usize) -> bool {
        let before = self.asked;
        while self.asked < self.bytes.len() && self.asked < offset.saturating_add(PIECE) {
            self.ask();
        }
        while let Some((piece, _)) = self.pieces.front()
            && piece.end <= offset
            && let Some((_, absent)) = self.pieces.pop_front()
        {
            absent.into_iter().for_each(|of| let_go(&self.bytes[of]));
        }
        self.asked > before
    }

    fn ask(&mut self) {
        let piece = self.asked..self.bytes.len().min(self.asked + PIECE);
        self.asked = piece.end;
        let bytes = &self.bytes[piece.clone()];
        let mut absent: Vec<Range<usize>> = Vec::new();
        // The first page may begin before the bytes.
        let before = bytes.as_ptr().addr() % page_bytes();
        for (page, is_there) in are_in_memory(bytes).into_iter().enumerate() {
            if is_there {
                continue;
            }
            let start = (page * page_bytes()).saturating_sub(before);
            let end = ((page + 1) * page_bytes() - before).min(bytes.len());
            let (start, end) = (piece.start + start, piece.start + end);
            match absent.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => absent.push(start..end),
            }
        }
        absent
            .iter()
            .for_each(|of| will_need(&self.bytes[of.clone()]));
        self.pieces.push_back((piece, absent));
    }
}

impl Drop for ReadOnce<'_> {
    fn drop(&mut self) {
        for (_, absent) in self.pieces.drain(..) {
            absent.into_iter().for_each(|of| let_go(&self.bytes[of]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, RealDisk};

    /// Some pages may stay: the system takes none that a processor has just put into memory and not yet into its lists.
    #[test]
    fn what_was_not_in_memory_is_hardly_after_and_what_was_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..16 * PIECE + 100).map(|at| (at % 251) as u8).collect();
        RealDisk.write_atomic(&path, &bytes).expect("a sound disk");
        RealDisk.forget(&path).expect("a sound disk");
        let map = RealDisk.map(&path).expect("it is there");
        crate::read_by_pages(&map);
        let kept = PIECE + 5_000;
        assert_eq!(map[kept], bytes[kept]);
        let resident = || are_in_memory(&map).into_iter().filter(|is| *is).count();
        let before = resident();
        let mut once = ReadOnce::new(&map[1..]);
        for at in (1..map.len()).step_by(1_000) {
            once.reach(at - 1);
            assert_eq!(map[at], bytes[at]);
        }
        drop(once);
        assert_eq!(are_in_memory(&map[kept..=kept]), [true]);
        let pages = map.len() / page_bytes();
        // A file system in memory forgets nothing.
        if before < pages / 8 {
            let after = resident();
            assert!(after < pages / 2, "{before}, then {after} of {pages}");
        }
        assert!(map == bytes);
    }

    #[test]
    fn a_reader_that_leaps_or_ends_early_lets_go_too() {
        let bytes = vec![7u8; 2 * PIECE];
        let mut once = ReadOnce::new(&bytes);
        once.reach(2 * PIECE - 1);
        assert_eq!(once.pieces.len(), 1);
        drop(once);
        let mut none = ReadOnce::new(&[]);
        none.reach(0);
        assert!(none.pieces.is_empty());
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}

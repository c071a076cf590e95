use std::sync::Arc;

use super::SpFresh;
use super::directory::Directory;
use crate::error::Result;
use crate::sync::atomic::AtomicU64;
use crate::sync::{ArcSwap, Mutex};

/// Shards of an index, at most.
pub(super) const MOST: usize = 64;
/// Where the number of the shard begins in the address of a posting.
const SHIFT: u32 = u64::BITS - MOST.ilog2();

/// A part of the rows with postings of its own: whoever changes it waits for nobody who changes another, but to write to the
/// file.
pub(super) struct Shard {
    pub(super) directory: ArcSwap<Directory>,
    pub(super) writer: Mutex<Writer>,
    /// Changes of centroids so far, and moves of vectors between them: whoever finds the nearest centroids without the lock sees whether they changed since.
    pub(super) moves: AtomicU64,
}

impl Shard {
    /// A shard with these postings, whose numbers are below `next`.
    pub(super) fn new(directory: Directory, next: u64) -> Self {
        Shard {
            directory: ArcSwap::from_pointee(directory),
            writer: Mutex::new(Writer {
                next,
                free: Vec::new(),
                swept: 0,
            }),
            moves: AtomicU64::new(0),
        }
    }

    /// Shows a directory in place of the one before; whoever calls it holds the lock of the writer.
    pub(super) fn show(&self, directory: Directory) {
        self.directory.store(Arc::new(directory));
    }
}

/// What whoever changes a shard holds.
#[derive(Debug)]
pub(super) struct Writer {
    /// Numbers of postings from this one on were never given out.
    next: u64,
    /// Numbers of postings that are gone.
    pub(super) free: Vec<u64>,
    /// Postings below this number were passed by the sweep that is under way: none of them is made anew. What a split moves
    /// there unswept leaves, if it is dead, with the next sweep.
    pub(super) swept: u64,
}

impl Writer {
    /// A number for a new posting.
    pub(super) fn number(&mut self) -> u64 {
        match self.free.iter().rposition(|id| *id >= self.swept) {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.next += 1;
                self.next - 1
            }
        }
    }
}

impl SpFresh {
    /// Has some postings of all shards be passed by, from an address on. `pass` gets a shard, the number of its posting to begin at,
    /// and how many are left, which it counts down; it returns the number that it did not get to. Returns the
    /// address to go on at; `None` once all were passed by.
    pub(super) fn step_by_step(
        &self,
        from: u64,
        postings: usize,
        mut pass: impl FnMut(&Shard, u64, &mut usize) -> Result<Option<u64>>,
    ) -> Result<Option<u64>> {
        let (first, mut from) = place(from);
        let mut left = postings;
        for (number, shard) in self.shards.iter().enumerate().skip(first) {
            if left == 0 {
                return Ok(Some(address(number, 0)));
            }
            if let Some(next) = pass(shard, from, &mut left)? {
                return Ok(Some(address(number, next)));
            }
            from = 0;
        }
        Ok(None)
    }
}

/// One number for a posting among those of all shards. They are in order by shard first.
pub(super) fn address(shard: usize, posting: u64) -> u64 {
    (shard as u64) << SHIFT | posting
}

/// The shard and the number in it of a posting.
pub(super) fn place(address: u64) -> (usize, u64) {
    (
        (address >> SHIFT) as usize,
        address & (u64::MAX >> MOST.ilog2()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_the_shard_and_the_posting() {
        for shard in [0, 1, 5, MOST - 1] {
            for posting in [0, 1, 77, u64::from(u32::MAX) + 1] {
                assert_eq!(place(address(shard, posting)), (shard, posting));
            }
        }
        assert_eq!(address(0, 9), 9);
        assert!(address(1, 0) > address(0, 1 << 40));
    }
}

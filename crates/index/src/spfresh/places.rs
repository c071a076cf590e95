//! Where slots lie in a file of blocks.
//!
//! ```text
//! | 64 first parts | 64 second parts | 64 first parts | 64 second parts | … | 64 first parts | so many second parts |
//! ```
//!
//! A search reads the first parts of all blocks that it comes by, and the second parts of a few vectors. So those
//! that are always read share their pages with each other: where the file is larger than memory, the system keeps these.

/// Slots whose first parts lie together. All first parts and all second parts of so many begin at a page of 4 KiB, since each
/// part has whole cache lines.
fn together() -> u64 {
    if cfg!(shuttle) { 1 } else { 64 }
}

/// The lengths of the two parts of a slot, in bytes; both are multiples of 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) first: usize,
    pub(super) second: usize,
}

impl Places {
    /// Bytes of both parts.
    pub(super) fn both(&self) -> usize {
        self.first + self.second
    }

    /// Where the first part of a slot begins.
    pub(super) fn first_of(&self, slot: u32) -> u64 {
        let slot = u64::from(slot);
        self.group(slot) + slot % together() * self.first as u64
    }

    /// Where the second part of a slot begins.
    pub(super) fn second_of(&self, slot: u32) -> u64 {
        let slot = u64::from(slot);
        let firsts = together() * self.first as u64;
        self.group(slot) + firsts + slot % together() * self.second as u64
    }

    /// Where a file ends that has so many slots.
    pub(super) fn end(&self, slots: usize) -> u64 {
        match (slots as u64).checked_sub(1) {
            Some(last) => self.second_of(last as u32) + self.second as u64,
            None => 0,
        }
    }

    /// The bytes of all first parts that lie together with that of a slot, if it is the first of them.
    pub(super) fn firsts(&self, slot: u32) -> Option<usize> {
        let begins = together() > 1 && u64::from(slot).is_multiple_of(together());
        begins.then_some(together() as usize * self.first)
    }

    fn group(&self, slot: u64) -> u64 {
        slot / together() * together() * self.both() as u64
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_side_by_side_and_nothing_between() {
        let places = Places {
            first: 128,
            second: 320,
        };
        let mut parts = Vec::new();
        for slot in 0..200 {
            parts.push((places.first_of(slot), 128));
            parts.push((places.second_of(slot), 320));
            assert_eq!(
                places.firsts(slot),
                (slot % 64 == 0).then_some(64 * 128),
                "slot {slot}"
            );
        }
        parts.sort_unstable();
        let end = parts.iter().fold(0, |end, (at, len)| {
            assert!(*at == end || *at >= 192 * 448, "{at} after {end}");
            at + len
        });
        assert_eq!(places.end(200), end);
        assert_eq!((places.end(0), places.end(64)), (0, 64 * 448));
        assert_eq!(places.first_of(64) % 4_096, 0);
        assert_eq!(places.second_of(64) % 4_096, 0);
    }
}

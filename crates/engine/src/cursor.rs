//! Where a page of an answer ended.

use std::fmt;

use crate::error::{Error, Result};
use crate::hit::Hit;

/// The place in the order of an answer after which the next page begins. Rows that are written between two pages come on the
/// next one if their place is there; none comes twice, unless it was written anew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cursor {
    /// [`print`](crate::SearchRequest::print) of the search whose answer this is a place in: in another's order it says nothing.
    of: u32,
    /// Rows on the pages so far.
    pub(crate) seen: u32,
    /// Of the last row.
    key: f32,
    row: u64,
}

impl Cursor {
    /// Reads what a reply gave.
    ///
    /// # Errors
    /// If no reply gave it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split('-');
        let mut hex = |digits: usize| {
            let part = parts.next()?;
            let good = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            good.then(|| u64::from_str_radix(part, 16).ok())?
        };
        let cursor = match (hex(8), hex(8), hex(8), hex(16), text.len()) {
            (Some(of), Some(seen), Some(key), Some(row), 43) => Some(Cursor {
                of: of as u32,
                seen: seen as u32,
                key: f32::from_bits(key as u32),
                row,
            }),
            _ => None,
        };
        cursor.ok_or_else(|| Error::BadValue {
            field: "cursor",
            got: format!("'{}'", text.chars().take(40).collect::<String>()),
            expected: "an empty string for the first page, or what the page before says",
        })
    }

    /// Checks that it is a place in the answer to a search.
    ///
    /// # Errors
    /// If another search gave it.
    pub(crate) fn check_of(&self, print: u32) -> Result<()> {
        if self.of == print {
            return Ok(());
        }
        Err(Error::BadValue {
            field: "cursor",
            got: format!("'{self}', of another search"),
            expected: "what the page before of the same search says: the same dataset, vector, words, filters and fusion; an empty string begins anew",
        })
    }

    /// After the last of these hits, which follow `before` in the answer to the search of this print.
    pub(crate) fn after(print: u32, before: Option<Cursor>, hits: &[Hit]) -> Option<Self> {
        let last = hits.last()?;
        let seen = before.map_or(0, |before| before.seen);
        Some(Cursor {
            of: print,
            seen: seen.saturating_add(hits.len() as u32),
            key: last.key,
            row: last.row,
        })
    }

    /// Whether a hit is behind it.
    pub(crate) fn is_before(&self, hit: &Hit) -> bool {
        let order = self.key.total_cmp(&hit.key).then(self.row.cmp(&hit.row));
        order.is_lt()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, seen, key, row) = (self.of, self.seen, self.key.to_bits(), self.row);
        write!(to, "{of:08x}-{seen:08x}-{key:08x}-{row:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let hit = |row, key| Hit {
            row,
            key,
            score: 0.0,
            distance: None,
        };
        let hits = [hit(3, -1.5), hit(u64::MAX, 0.25)];
        let cursor = Cursor::after(7, None, &hits).expect("there are hits");
        assert_eq!(Cursor::parse(&cursor.to_string()).ok(), Some(cursor));
        let next = Cursor::after(7, Some(cursor), &hits[..1]).expect("there are hits");
        assert_eq!((cursor.seen, next.seen), (2, 3));
        assert!(cursor.is_before(&hit(0, 0.3)) && !cursor.is_before(&hits[1]));
        assert!(next.is_before(&hit(4, -1.5)) && !next.is_before(&hit(2, -1.5)));
        assert_eq!(Cursor::after(7, None, &[]), None);
        assert!(cursor.check_of(7).is_ok() && cursor.check_of(8).is_err());
        for wrong in [
            "",
            "x",
            "00000007-00000001-00000000-000000000000000g",
            "00000007-+0000001-00000000-0000000000000000",
            "00000001-00000000-0000000000000000",
        ] {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
    }
}

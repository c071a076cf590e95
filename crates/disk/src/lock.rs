//! A lock that tells processes apart.

use std::fmt::Debug;

/// A held lock; dropping it, or the end of the process by any means, lets it go.
pub trait Lock: Send + Sync + Debug {}

/// What a lock file says about its holder.
pub(crate) fn describe(note: &str) -> String {
    format!("{BEGIN}{} {note}", std::process::id())
}

const BEGIN: &str = "pid ";

/// Whether a lock file begins as [`describe`] writes it, or as a loss of power left that: another file may have its name.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    let mut begin = bytes.iter().zip(BEGIN.bytes());
    begin.all(|(byte, ours)| *byte == 0 || *byte == ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_from_other_files() {
        for ours in ["", "p", "pid", "\0\0\0\0\0", describe("a node").as_str()] {
            assert!(is_ours(ours.as_bytes()), "{ours:?}");
        }
        for other in ["x", "my notes", "PID 7", "\u{7f}ELF"] {
            assert!(!is_ours(other.as_bytes()), "{other:?}");
        }
    }
}

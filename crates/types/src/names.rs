//! The nearest known name to a mistyped one.

/// The known name that differs least from `given`, if it differs little enough to be worth suggesting: at most a third of
/// its length in single-letter edits.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name longer than any option's is no typing error, and would make the comparison slow.
    if given.len() > 64 {
        return None;
    }
    known
        .map(|name| (edits(given, name), name))
        .min()
        .filter(|(edits, name)| *edits <= name.len() / 3)
        .map(|(_, name)| name)
}

/// Levenshtein's distance in bytes: insertions, deletions and replacements (V. Levenshtein, 1966).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("hnsw_m", "hnsw_m", 0),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
            assert_eq!(edits(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["listen_addr", "meta_addr", "ttl"];
        assert_eq!(
            nearest("listen_adr", known.into_iter()),
            Some("listen_addr")
        );
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(1000), known.into_iter()), None);
    }
}

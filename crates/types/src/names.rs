//! The nearest known name to a mistyped one.

/// The known name that differs least from `given`, if it differs little enough to be worth suggesting: by one letter, or at
/// most a third of its length.
pub fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name longer than any option's is no typing error, and would make the comparison slow.
    if given.len() > 64 {
        return None;
    }
    known
        .map(|name| (edits(given, name), name))
        .min()
        .filter(|(edits, name)| *edits <= 1.max(name.len() / 3))
        .map(|(_, name)| name)
}

/// Characters of a name that are compared: whoever sends megabytes has not mistyped.
const COMPARED: usize = 200;

/// How many insertions, deletions, replacements and swaps of neighbours make one text of another, in characters of the
/// beginnings: optimal string alignment (F. Damerau, "A technique for computer detection and correction of spelling errors",
/// 1964).
pub fn edits(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.chars().take(COMPARED).collect::<Vec<char>>());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut before = row.clone();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (row[j] + usize::from(x != y))
                .min(row[j + 1] + 1)
                .min(next[j] + 1);
            if i > 0 && j > 0 && (x, y) == (&b[j - 1], &a[i - 1]) {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
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
            ("titel", "title", 1),
            ("ab", "ba", 1),
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
        assert_eq!(nearest("tlt", known.into_iter()), Some("ttl"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(1000), known.into_iter()), None);
    }
}

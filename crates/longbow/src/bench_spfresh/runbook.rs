//! What is done to a stream: rounds of inserts and deletes that searches run beside, after the runbooks of the streaming
//! track of Big-ANN-Benchmarks (Simhadri et al., 2024).
//!
//! ```text
//! {"delete":100}      a line of JSON a step
//! {"insert":100}
//! {"search":200}      ends a round: at least so many searches run while the writes before it do
//! ```

use std::path::Path;

use longbow_disk::{Disk, RealDisk};
use serde::Deserialize;

use super::error::Error;

/// Rounds of the default, the part of the rows that each writes anew, and searches of each at least.
const ROUNDS: usize = 100;
const PART: usize = 100;
const SEARCHES: usize = 200;
/// Longest file, in bytes.
const LONGEST: u64 = 16 << 20;

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Step {
    Insert(usize),
    Delete(usize),
    Search(usize),
}

/// A change to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// So many rows come.
    Insert(usize),
    /// So many go.
    Delete(usize),
}

/// Writes, and searches beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// What is written, in order.
    pub writes: Vec<Write>,
    /// Searches that run meanwhile, at least.
    pub searches: usize,
}

/// A hundredth of the rows goes and as many come, a hundred times.
pub fn default_rounds(base: usize) -> Vec<Round> {
    let rows = (base / PART).max(1);
    let round = Round {
        writes: vec![Write::Delete(rows), Write::Insert(rows)],
        searches: SEARCHES,
    };
    vec![round; ROUNDS]
}

/// Reads a file. Before it there are `base` rows, and never may there be fewer than `least`.
pub fn read(path: &Path, base: usize, least: usize) -> Result<Vec<Round>, Error> {
    let wrong = |reason| Error::File {
        path: path.to_path_buf(),
        reason,
    };
    let bytes = RealDisk.read(path, LONGEST)?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    rounds(&text, base, least).map_err(wrong)
}

fn rounds(text: &str, base: usize, least: usize) -> Result<Vec<Round>, String> {
    let (mut rounds, mut round, mut rows) = (Vec::new(), Round::default(), base);
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if line.trim().is_empty() {
            continue;
        }
        let step: Step = serde_json::from_str(line).map_err(|error| {
            format!(
                "line {number}: {error}; expected {{\"insert\":N}}, {{\"delete\":N}} or {{\"search\":N}}"
            )
        })?;
        match step {
            Step::Insert(more) => {
                rows = rows
                    .checked_add(more)
                    .ok_or_else(|| format!("line {number} inserts too many rows"))?;
                round.writes.push(Write::Insert(more));
            }
            Step::Delete(fewer) => {
                rows = rows
                    .checked_sub(fewer)
                    .filter(|left| *left >= least)
                    .ok_or_else(|| {
                        format!(
                            "line {number} deletes {fewer} of {rows} rows, and {least} must be left to be found; \
                             delete fewer, or raise --base"
                        )
                    })?;
                round.writes.push(Write::Delete(fewer));
            }
            Step::Search(searches) => {
                round.searches = searches;
                rounds.push(std::mem::take(&mut round));
            }
        }
    }
    if !round.writes.is_empty() {
        rounds.push(round);
    }
    if rounds.is_empty() {
        return Err("holds no step".to_owned());
    }
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_search_ends_a_round() {
        let text =
            "{\"insert\":5}\n\n{\"delete\":3}\r\n{\"search\":7}\n{\"search\":1}\n{\"insert\":2}\n";
        let first = Round {
            writes: vec![Write::Insert(5), Write::Delete(3)],
            searches: 7,
        };
        let second = Round {
            writes: vec![],
            searches: 1,
        };
        let third = Round {
            writes: vec![Write::Insert(2)],
            searches: 0,
        };
        assert_eq!(rounds(text, 10, 10), Ok(vec![first, second, third]));
        assert_eq!(default_rounds(5_000).len(), 100);
        let writes = [Write::Delete(50), Write::Insert(50)];
        assert_eq!(default_rounds(5_000)[0].writes, writes);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("", "no step"),
            ("{\"insert\":1}\n{\"remove\":1}", "line 2: unknown variant"),
            ("insert 5", "line 1: expected value"),
            ("{\"insert\":-1}", "line 1: invalid value"),
            ("{\"insert\":1,\"delete\":1}", "line 1"),
            (
                "{\"insert\":2}\n{\"delete\":8}",
                "line 2 deletes 8 of 12 rows",
            ),
            ("{\"insert\":18446744073709551615}", "too many"),
        ] {
            let reason = rounds(text, 10, 5).expect_err(text);
            assert!(reason.contains(told), "{text}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}\":a-z0-9\n]{0,60}") {
            let _ = rounds(&text, 10, 5);
        }
    }
}

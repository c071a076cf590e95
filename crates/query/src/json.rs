//! JSON from clients: strict, and helpful where it is wrong.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::refusal::{Result, invalid};

/// Reads an object whose keys must all be known.
///
/// # Errors
/// InvalidArgument: for text that is not JSON or not an object, for a key that is not known (with the nearest one
/// that is), and for a value of the wrong type.
pub fn read<T: DeserializeOwned>(bytes: &[u8], what: &str, known: &[&str]) -> Result<T> {
    // The straight way first: a vector of 1,536 numbers should be parsed once.
    let refused = match serde_json::from_slice::<T>(bytes) {
        Ok(value) => return Ok(value),
        Err(refused) => refused,
    };
    let shown: String = String::from_utf8_lossy(bytes).chars().take(80).collect();
    let keys = known.join(", ");
    match serde_json::from_slice::<Value>(bytes) {
        Err(error) => Err(invalid(
            "bad_json",
            &format!(
                "the {what} is not JSON: {error}; send an object of the keys {keys}, got {shown}"
            ),
        )),
        Ok(Value::Object(object)) => {
            for key in object.keys() {
                check_key(key, what, known)?;
            }
            let text = format!(
                "a value of the {what} is wrong or missing: {refused}; correct it, got {shown}"
            );
            Err(invalid("bad_value", &text))
        }
        Ok(_) => Err(invalid(
            "bad_json",
            &format!(
                "the {what} is not a JSON object; send an object of the keys {keys}, got {shown}"
            ),
        )),
    }
}

/// Refuses a key that is not known.
///
/// # Errors
/// InvalidArgument, with the nearest key that is known.
pub fn check_key(key: &str, what: &str, known: &[&str]) -> Result<()> {
    if known.contains(&key) {
        return Ok(());
    }
    let nearest = known
        .iter()
        .min_by_key(|candidate| distance(key, candidate))
        .unwrap_or(&"");
    let all = known.join(", ");
    let text = format!("the {what} has no key '{key}'; did you mean '{nearest}'? Known: {all}");
    Err(invalid("unknown_key", &text))
}

/// Characters of a name that are compared: whoever sends megabytes has not mistyped.
const COMPARED: usize = 200;

/// Levenshtein's edit distance, in characters, of the beginnings.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(COMPARED).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_named() {
        let refused =
            check_key("vectr", "search", &["k", "vector", "vectors"]).expect_err("unknown");
        assert!(refused.text.contains("did you mean 'vector'"), "{refused}");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

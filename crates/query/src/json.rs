//! JSON from clients: strict, and helpful where it is wrong.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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
            let small = bytes.len() <= SEARCHED;
            let (which, why) = small
                .then(|| wrong_value::<T>(&object))
                .flatten()
                .unwrap_or_else(|| ("a value".to_owned(), refused.to_string()));
            let why = in_words_of_json(&why);
            let text = format!(
                "{which} of the {what} is wrong or missing: {why}; correct it, got {shown}"
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

/// What is expected, by names of types of ours, and by those that whoever writes JSON knows.
const TYPES: &[(&str, &str)] = &[
    ("f32", "a number"),
    ("f64", "a number"),
    ("i64", "a whole number, without a point"),
    ("u64", "a whole number from 0, without a point"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
];

/// A refusal of a value of another type, without the names that its type has here.
fn in_words_of_json(why: &str) -> String {
    let wrong = why.strip_prefix("invalid type: ");
    let Some((got, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) else {
        return why.to_owned();
    };
    let got = match got {
        "map" => "an object",
        "sequence" => "a list",
        other => other,
    };
    // Behind it may be where that is in the text.
    let (name, place) = match expected.rsplit_once(" at line ") {
        Some((name, place)) => (name, format!(" at line {place}")),
        None => (expected, String::new()),
    };
    let known = TYPES.iter().find(|(ours, _)| *ours == name);
    let name = match known {
        Some((_, theirs)) => theirs,
        None if name.starts_with("struct ") => "an object",
        None => name,
    };
    format!("got {got}, expected {name}{place}")
}

/// Bytes of an object in which the wrong value is looked for: each look reads all of it.
const SEARCHED: usize = 64 << 10;

/// Which of the values is refused, and why: the one without which something else is, or nothing. `None` if one is missing.
fn wrong_value<T: DeserializeOwned>(object: &Map<String, Value>) -> Option<(String, String)> {
    let refused = |object: &Map<String, Value>| {
        let read = serde_json::from_value::<T>(Value::Object(object.clone()));
        read.err().map(|error| error.to_string())
    };
    let why = refused(object).filter(|why| !why.starts_with("missing field"))?;
    let wrong = object.keys().find(|key| {
        let mut without = object.clone();
        without.remove(*key);
        refused(&without).as_deref() != Some(&why)
    })?;
    Some((format!("'{wrong}'"), why))
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
        .min_by_key(|candidate| longbow_types::edits(key, candidate))
        .unwrap_or(&"");
    let all = known.join(", ");
    let text = format!("the {what} has no key '{key}'; did you mean '{nearest}'? Known: {all}");
    Err(invalid("unknown_key", &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Asked {
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "id")]
        _id: i64,
        #[serde(rename = "k")]
        _k: Option<i64>,
    }

    #[test]
    fn the_wrong_value_is_named() {
        let text = |body: &str| {
            let refused = read::<Asked>(body.as_bytes(), "search", &["name", "id", "k"]);
            refused.expect_err("wrong").text
        };
        assert!(
            text(r#"{"name": "a", "id": 1, "k": "3"}"#).starts_with("'k' of the search is wrong")
        );
        assert!(
            text(r#"{"name": 7, "id": 1, "k": 3}"#).starts_with("'name' of the search is wrong")
        );
        let missing = text(r#"{"name": "a", "k": 3}"#);
        assert!(missing.starts_with("a value of the search") && missing.contains("`id`"));
        let long = format!(r#"{{"name": "{}", "id": "1"}}"#, "a".repeat(SEARCHED));
        assert!(text(&long).starts_with("a value of the search is wrong"));
    }

    #[test]
    fn no_type_of_ours_is_named() {
        #[derive(Debug, serde::Deserialize)]
        struct Typed {
            #[serde(rename = "number")]
            _number: Option<f32>,
            #[serde(rename = "whole")]
            _whole: Option<i64>,
            #[serde(rename = "yes")]
            _yes: Option<bool>,
            #[serde(rename = "list")]
            _list: Option<Vec<f32>>,
            #[serde(rename = "object")]
            _object: Option<Vec<Asked>>,
        }
        let keys = ["number", "whole", "yes", "list", "object"];
        let text = |body: &str| {
            let refused = read::<Typed>(body.as_bytes(), "search", &keys);
            refused.expect_err("wrong").text
        };
        let cases = [
            (
                r#"{"number": "0.9"}"#,
                r#"got string "0.9", expected a number"#,
            ),
            (
                r#"{"whole": 1.5}"#,
                "got floating point `1.5`, expected a whole number",
            ),
            (
                r#"{"yes": "no"}"#,
                r#"got string "no", expected true or false"#,
            ),
            (r#"{"list": 3}"#, "got integer `3`, expected a list"),
            (r#"{"object": [1]}"#, "got integer `1`, expected an object"),
            (r#"{"number": {}}"#, "got an object, expected a number"),
            (
                r#"{"number": ", expected i64"}"#,
                r#"", expected i64", expected a number"#,
            ),
            (r#"{"whole": 18446744073709551615}"#, "expected i64"),
        ];
        for (body, why) in cases {
            let text = text(body);
            assert!(text.contains(why), "{body}: {text}");
        }
        // One that is too long to look for the wrong value in it tells the place.
        let long = format!(r#"{{"whole": "{}"}}"#, "a".repeat(SEARCHED));
        assert!(text(&long).contains("expected a whole number, without a point at line 1"));
        assert_eq!(in_words_of_json("missing field `id`"), "missing field `id`");
    }

    #[test]
    fn the_nearest_key_is_named() {
        let refused =
            check_key("vectr", "search", &["k", "vector", "vectors"]).expect_err("unknown");
        assert!(refused.text.contains("did you mean 'vector'"), "{refused}");
    }
}

//! Vectors, as clients write them in JSON.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A vector: a list of numbers, or the base64 of its elements as float32, the lowest byte first, which takes a fraction of the time to
/// write and to read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vector(pub Vec<f32>);

/// Most elements for which room is made before they are there.
const AHEAD: usize = 4_096;

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Elements).map(Vector)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<f32>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("a vector: a list of numbers, or the base64 of little-endian float32 values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f32>, A::Error> {
        let mut elements = Vec::with_capacity(list.size_hint().unwrap_or(0).min(AHEAD));
        while let Some(number) = list.next_element::<f64>()? {
            let element = number as f32;
            // JSON has no infinite numbers.
            if element.is_infinite() {
                let at = elements.len();
                let text = format!(
                    "a vector has the element {number:e} at position {at}, which is beyond float32"
                );
                return Err(A::Error::custom(text));
            }
            elements.push(element);
        }
        Ok(elements)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<f32>, E> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| E::custom(format!("a vector is not in base64: {error}")))?;
        let (elements, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            let got = bytes.len();
            let text =
                format!("a vector in base64 has {got} bytes; expected four for each element");
            return Err(E::custom(text));
        }
        Ok(elements
            .iter()
            .map(|four| f32::from_le_bytes(*four))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Vec<f32>, String> {
        let read = serde_json::from_str::<Vector>(json);
        read.map(|vector| vector.0)
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(json: &str, expected: &[f32]) {
        assert_eq!(read(json).as_deref(), Ok(expected), "{json}");
    }

    #[track_caller]
    fn check_refused(json: &str, why: &str) {
        let refused = read(json).expect_err(json);
        assert!(refused.contains(why), "{json}: {refused}");
    }

    #[test]
    fn a_vector_is_a_list_or_base64() {
        check("[1, 2.5, -3e2]", &[1.0, 2.5, -300.0]);
        check("[]", &[]);
        check(r#""""#, &[]);
        check(r#""AACAPwAAIMA=""#, &[1.0, -2.5]);
        // Escapes are JSON's, and may stand for anything.
        check(r#""AACA\u0050wAAIMA=""#, &[1.0, -2.5]);
        check_refused("7", "expected a vector: a list of numbers, or the base64");
        check_refused(r#"["a"]"#, "expected f64");
        check_refused(
            "[1, -1e39]",
            "the element -1e39 at position 1, which is beyond float32",
        );
        check_refused(r#""AACAPwAAIMA""#, "not in base64");
        check_refused(r#""AACAPw A""#, "not in base64");
        check_refused(
            r#""AACAP///""#,
            "has 6 bytes; expected four for each element",
        );
    }

    proptest! {
        #[test]
        fn base64_holds_every_vector(bits in prop::collection::vec(any::<u32>(), 0..40)) {
            let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
            let told = read(&format!("\"{}\"", STANDARD.encode(bytes))).expect("base64");
            let told: Vec<u32> = told.into_iter().map(f32::to_bits).collect();
            prop_assert_eq!(told, bits);
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let json = serde_json::to_string(&text).expect("JSON");
            if let Ok(elements) = read(&json) {
                prop_assert_eq!(elements.len() * 4, STANDARD.decode(&text).expect("base64").len());
            }
        }
    }
}

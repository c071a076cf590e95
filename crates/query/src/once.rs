//! JSON values whose objects have each key once.
//!
//! What reads a [`Value`] keeps the last of several values with the same key, and forgets the others.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value in which no key is there twice.
#[derive(Debug)]
pub struct Once(pub Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Once)
    }
}

/// Reads a list of such values.
///
/// # Errors
/// For what is no list, or has a key twice.
pub fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error> {
    let values = Option::<Vec<Once>>::deserialize(deserializer)?;
    Ok(values.map(|values| values.into_iter().map(|once| once.0).collect()))
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Once(value)) = of.next_element()? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = of.next_key::<String>()? {
            let Once(value) = of.next_value()?;
            if all.contains_key(&key) {
                let text = format!("the key '{key}' is there twice in an object");
                return Err(Error::custom(text));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4);
            let object = prop::collection::btree_map(".{0,3}", inner, 0..4);
            prop_oneof![
                list.prop_map(Value::from),
                object.prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_has_each_key_once_is_read_as_ever(value in json()) {
            let text = value.to_string();
            let plain: Value = serde_json::from_str(&text).expect("JSON");
            let Once(read) = serde_json::from_str(&text).expect("JSON");
            prop_assert_eq!(read, plain);
        }
    }

    #[test]
    fn a_key_that_is_there_twice_is_named() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"[{"b": {"a": null, "c": 0, "a": 2}}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
        ] {
            let refused = serde_json::from_str::<Once>(text).expect_err(text);
            assert!(
                refused.to_string().contains("'a' is there twice"),
                "{refused}"
            );
        }
    }
}

//! JSON from clients and to them.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tonic::Status;

use crate::status::refused;

/// Reads an object whose keys must all be known.
///
/// # Errors
/// As [`longbow_query::json::read`].
pub(crate) fn read<T: DeserializeOwned>(
    bytes: &[u8],
    what: &str,
    known: &[&str],
) -> Result<T, Status> {
    longbow_query::json::read(bytes, what, known).map_err(refused)
}

/// Refuses a key that is not known.
pub(crate) fn check_key(key: &str, what: &str, known: &[&str]) -> Result<(), Status> {
    longbow_query::json::check_key(key, what, known).map_err(refused)
}

/// A JSON text as the body of an answer.
pub(crate) fn body(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

//! Numbers in requests.

use crate::refusal::{Result, invalid};

/// A number that must not be below 0.
pub(crate) fn not_negative(field: &str, value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| {
        let text = format!("{field} is {value}; expected 0 or more");
        invalid("bad_value", &text)
    })
}

/// A count that is held in memory.
pub(crate) fn count(field: &str, value: i64) -> Result<usize> {
    let value = not_negative(field, value)?;
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

//! Row storage.
#![forbid(unsafe_code)]

mod batch;
mod error;
mod layout;
mod message;
mod schema;

pub use batch::{Batch, coalesce};
pub use error::{Error, Result};
pub use layout::check_schema;
pub use message::{MAX_BATCH_ROWS, MAX_INFLATED_BYTES};
pub use schema::{schema_from_message, schema_from_text, schema_to_message, schema_to_text};

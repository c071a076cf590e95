//! The text index against a plain model, its query language in a table, and its bytes mangled.

mod bytes;
mod language;
mod model;
#[path = "../../../engine/tests/it/random.rs"]
mod random;
mod scores;

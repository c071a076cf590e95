//! Tests of storage through its public face, one module a noun.

mod batch;
mod common;
mod compact;
mod dictionaries;
mod id_map;
mod manifest;
mod pyarrow;
mod schema;
mod segment;
mod tombstones;

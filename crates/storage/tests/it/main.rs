//! Tests of storage through its public face, one module a noun.

mod batch;
mod common;
mod compact;
mod id_map;
mod manifest;
mod segment;
mod tombstones;

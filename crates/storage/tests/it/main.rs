//! Tests of storage through its public face, one module a noun.

mod batch;
mod common;
mod segment;

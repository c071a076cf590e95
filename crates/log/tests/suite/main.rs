//! The tests of the log, from outside.

mod common;
mod torn;
mod whole;

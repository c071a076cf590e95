//! The tests of the log, from outside.

mod common;
mod golden;
mod torn;
mod whole;

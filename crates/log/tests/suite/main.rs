//! The tests of the log, from outside.

mod common;
mod faults;
mod golden;
mod mangled;
mod mapped;
mod power;
mod slow;
mod torn;
mod whole;

//! The tests of the log, from outside.

mod background;
mod common;
mod faults;
mod golden;
mod mangled;
mod power;
mod torn;
mod whole;

//! The tests of the log, from outside.

mod ahead;
mod common;
mod faults;
mod golden;
mod mangled;
mod mapped;
mod power;
mod recycled;
mod repair;
mod retention;
mod shards;
mod slow;
mod together;
mod torn;
mod verify;
mod whole;

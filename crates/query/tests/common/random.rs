//! Numbers that look random and are the same in every run.

#[path = "../../../engine/tests/it/random.rs"]
mod whole;

pub use whole::{Random, mix};

impl Random {
    /// A number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1u64 << 40) as f64
    }
}

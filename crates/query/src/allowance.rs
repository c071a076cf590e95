//! What the evaluation that is under way on this thread may still make.
//!
//! An evaluation begins and ends on one thread, and what takes part in it is called by DataFusion, which hands on nothing
//! of ours: so what is left stands with the thread.

use std::cell::Cell;

use datafusion::common::DataFusionError;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Too much would be made of rows.
#[derive(Debug, thiserror::Error)]
#[error("{what} would make up to {bytes} bytes of {rows} rows, and may make {most}")]
pub(crate) struct TooMuch {
    pub what: String,
    pub bytes: u64,
    pub rows: usize,
    pub most: u64,
}

impl TooMuch {
    /// What an error says of too much, if it does.
    pub fn of(error: &DataFusionError) -> Option<&TooMuch> {
        match error.find_root() {
            DataFusionError::External(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl From<TooMuch> for DataFusionError {
    fn from(error: TooMuch) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// Gives back what was left before, also after a panic.
struct Before(u64);

impl Drop for Before {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Runs `work`, which may make so many bytes.
pub(crate) fn within<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
    let _before = Before(LEFT.replace(bytes));
    work()
}

/// Bytes that may still be made; where nobody counts, any number.
pub(crate) fn left() -> u64 {
    LEFT.get()
}

/// Says what is left.
pub(crate) fn leave(bytes: u64) {
    LEFT.set(bytes);
}

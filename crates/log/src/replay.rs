//! Whoever takes the records of a log when it is opened.

use crate::{Error, Record, ReplayError, Result};
use std::sync::Arc;

/// Takes the records of a log when it is opened, one after the other, in order; may leave the work to others until
/// [`finish`](Replay::finish).
pub trait Replay {
    /// Takes the next record.
    ///
    /// # Errors
    ///
    /// [`Error::Replay`], with the index of the record that failed: this one or one before it. Nothing more comes then.
    fn record(&mut self, record: Record) -> Result<()>;

    /// All records were handed over. The log's folder is not changed before this returns.
    ///
    /// # Errors
    ///
    /// As [`record`](Replay::record).
    fn finish(&mut self) -> Result<()>;
}

/// Does at once what it is handed.
pub(crate) struct Each<'a>(
    pub(crate) &'a mut dyn FnMut(Record) -> std::result::Result<(), ReplayError>,
);

impl Replay for Each<'_> {
    fn record(&mut self, record: Record) -> Result<()> {
        let index = record.index;
        (self.0)(record).map_err(|cause| {
            let cause = Arc::from(cause);
            Error::Replay { index, cause }
        })
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

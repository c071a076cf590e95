//! The evaluation of a predicate over rows: piece by piece, ended when its time is over, and no danger to the node if it
//! panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::Predicate;
use crate::error::{Error, Result};

/// Which rows pass; `rows` has the columns of [`Predicate::columns`], in that order. Before each piece that the predicate
/// takes, `go_on` says whether there is time for it.
///
/// # Errors
/// If a row makes the evaluation fail or panic, or there is no more time.
pub fn passing(
    predicate: &dyn Predicate,
    rows: &RecordBatch,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<BooleanBuffer> {
    let count = rows.num_rows();
    let mut passing = BooleanBufferBuilder::new(count);
    while passing.len() < count {
        go_on()?;
        let rest = rows.slice(passing.len(), count - passing.len());
        let mask = guarded(|| {
            let mask = predicate.mask(&rest)?;
            assert!(
                (1..=rest.num_rows()).contains(&mask.len()),
                "{} rows of {} were evaluated",
                mask.len(),
                rest.num_rows()
            );
            Ok(without_nulls(&mask))
        })?;
        if mask.len() == count {
            return Ok(mask);
        }
        passing.append_buffer(&mask);
    }
    Ok(passing.finish())
}

/// Runs what others wrote. It shares nothing that a panic could leave half done.
///
/// # Errors
/// Its own, and [`Error::FilterPanicked`].
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Error::FilterPanicked(said(&*panic))))
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a word").to_owned()
}

fn without_nulls(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        None => mask.values().clone(),
        Some(nulls) => mask.values() & nulls.inner(),
    }
}

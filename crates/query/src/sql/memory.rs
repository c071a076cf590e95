//! A watch over the memory of the process while statements run.
//!
//! What operators hold is told to a pool of `sql_memory_limit` bytes, but not all of it: `array_agg` of lists, for one, holds whole batches for
//! each group, and tells of the few bytes that it looks at. The node must not end by that. So whoever runs when the process is beyond the
//! node's memory limit, and has grown by more than that pool since it began, is refused as if the pool had done it.

use std::future::Future;
use std::time::Duration;

use longbow_engine::{Class, Engine};
use tokio::time::{Instant, interval_at};

use super::limits::Limits;
use crate::refusal::{Refusal, Result};

/// How often it looks: seldom enough to cost nothing, and often enough for what a statement can take meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Does some work of a statement, unless it takes too much.
///
/// # Errors
/// Those of the work, and `sql_memory`.
pub(super) async fn bounded<T>(
    engine: &Engine,
    limits: &Limits,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        refusal = exceeded(engine, limits.memory as u64) => Err(refusal),
    }
}

/// Waits until the process is beyond the node's limit, and has grown by more than `most` since the first look.
async fn exceeded(engine: &Engine, most: u64) -> Refusal {
    let options = engine.options();
    let mut looks = interval_at(Instant::now() + LOOK, LOOK);
    let mut begun = None;
    loop {
        looks.tick().await;
        let now = (options.process_bytes)();
        let grown = now.saturating_sub(*begun.get_or_insert(now));
        if now > options.memory_limit && grown > most {
            let text = format!(
                "the process holds {now} bytes, of {} that it may, and has grown by {grown} since this statement began; ask for less at a time",
                options.memory_limit
            );
            return Refusal::new(Class::ResourceExhausted, "sql_memory", &text);
        }
    }
}

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use datafusion::logical_expr::{Volatility, create_udf};
use longbow_disk::MemoryDisk;
use longbow_engine::Options;

use super::*;

/// Counts the rows of an answer.
fn rows(session: &Session, text: &str) -> Result<usize> {
    let mut answer = session.run_blocking(text, None)?;
    let mut rows = 0;
    while let Some(batch) = answer.batches.blocking_recv() {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

#[test]
fn a_statement_that_panics_is_refused_and_others_go_on() {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
    let engine = engine.expect("an engine");
    let mut session = Session::new(&engine, Limits::default(), Vec::new()).expect("a session");
    let fails = create_udf(
        "fails",
        vec![DataType::Int64],
        DataType::Int64,
        Volatility::Volatile,
        Arc::new(|_| panic!("on purpose")),
    );
    let inner = Arc::get_mut(&mut session.inner).expect("nothing runs");
    inner
        .base
        .register_udf(Arc::new(fails))
        .expect("registered");
    for text in [
        // In the rows, and in threads of DataFusion's.
        "SELECT fails(value) FROM generate_series(1, 3)",
        "SELECT fails(value), count(*) FROM generate_series(1, 3) GROUP BY 1 ORDER BY 2",
    ] {
        let refused = rows(&session, text).expect_err("a panic");
        assert_eq!(refused.code, "sql_internal", "{refused}");
        assert_eq!(refused.class, Class::Internal);
        assert_eq!(rows(&session, "SELECT * FROM generate_series(1, 3)"), Ok(3));
    }
}

/// The time is up while nobody takes the rows that are ready.
#[test]
fn rows_that_are_read_too_slowly_end_with_an_error() {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
    let engine = engine.expect("an engine");
    let session = Session::new(&engine, Limits::default(), Vec::new()).expect("a session");
    let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let endless = stream::repeat_with(move || Ok(empty.clone()));
    let endless = RecordBatchStreamAdapter::new(Arc::new(Schema::empty()), endless);
    let (sender, mut batches) = mpsc::channel(AHEAD);
    let inner = Arc::clone(&session.inner);
    let hand_out = async move {
        let now = Some(Instant::now());
        inner.hand_out(Box::pin(endless), &sender, now).await;
    };
    let read = async {
        let mut read = Vec::new();
        while let Some(batch) = batches.recv().await {
            read.push(batch.map(drop).map_err(|refusal| refusal.code));
        }
        read
    };
    let workers = session.workers.as_ref().expect("it runs");
    let ((), read) = workers.block_on(futures::future::join(hand_out, read));
    assert_eq!(read.last(), Some(&Err("timeout")), "{read:?}");
}

/// What the process holds, as the engine of the next test is told: more each time that somebody asks.
static HELD: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_statement_ends_where_the_process_holds_too_much_and_grows() {
    for (memory_limit, is_refused) in [(1 << 40, false), (64 << 20, true)] {
        let options = Options {
            memory_limit,
            process_bytes: || HELD.fetch_add(32 << 20, Ordering::Relaxed),
            ..Options::new("/data")
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).expect("an engine");
        let limits = Limits {
            memory: 64 << 20,
            timeout: Duration::from_secs(if is_refused { 300 } else { 1 }),
            ..Limits::default()
        };
        let session = Session::new(&engine, limits, Vec::new()).expect("a session");
        let endless = "SELECT count(*) FROM generate_series(1, 1000000000000000)";
        let refused = rows(&session, endless).expect_err("it does not end by itself");
        let expected = if is_refused { "sql_memory" } else { "timeout" };
        assert_eq!(refused.code, expected, "{refused}");
        assert_eq!(rows(&session, "SELECT * FROM generate_series(1, 3)"), Ok(3));
    }
}

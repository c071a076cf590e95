//! Random filtered requests beside a writer that replaces and deletes, and beside checkpoints and compaction.
//!
//! Every answer is of one moment between the beginning and the end of its request. So it holds at least `k` of the rows
//! that pass the filter at each of these moments, and no row that was at none of them: replaced or deleted before, or not
//! yet sent. Each row says its version, from which all of its values follow, so that its filter can be checked as well.
//! `QUERIES` sets how many are asked.

mod condition;
mod model;
#[path = "../common/random.rs"]
mod random;
mod reader;
mod rows;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, GraphOptions, HnswParams, Options};
use longbow_query::sql::{Limits, Session};

use crate::model::Model;
use crate::reader::Readers;

/// Threads that ask.
const READERS: usize = 3;
/// Writes between two checkpoints.
const WRITES_A_ROUND: u64 = 20;
/// Requests of which so many ask for the same that its rows get codes.
const MANY: u64 = 20_000;
/// Requests for each write, at most.
const FOR_A_WRITE: u64 = 10;

/// A dataset, and what may be seen of it.
struct Dataset {
    name: String,
    metric: &'static str,
    model: Model,
}

/// Options under which everything happens often.
fn options() -> Options {
    let plain = Options::new(Path::new("/data"));
    Options {
        log_segment_bytes: 1 << 20,
        seal_bytes: 1 << 20,
        max_log_bytes: 16 << 20,
        tidy_interval: Duration::from_millis(200),
        text_columns: vec!["word".to_owned()],
        graphs: GraphOptions {
            hnsw: HnswParams {
                m: 8,
                ef_construction: 40,
                ..plain.graphs.hnsw
            },
            ..plain.graphs
        },
        ..plain
    }
}

/// How many requests are made.
fn queries() -> u64 {
    let said = std::env::var("QUERIES").ok();
    said.map_or(2_000, |text| text.parse().expect("QUERIES is a number"))
}

/// Sets a flag when it is dropped, so that the other threads end also when a check fails.
struct EndAtDrop<'a>(&'a AtomicBool);

impl Drop for EndAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn filtered_answers_are_complete_and_hold_nothing_else_whatever_is_written() {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), options()).expect("an engine");
    let dataset = |metric: &'static str| Dataset {
        name: format!("by_{metric}"),
        metric,
        model: Model::default(),
    };
    let datasets = ["euclidean", "cosine", "dot_product"].map(dataset);
    for dataset in &datasets {
        writer::fill(&engine, dataset);
    }
    let sql = Session::new(&engine, Limits::default(), Vec::new()).expect("a session");
    let readers = Readers {
        engine: &engine,
        sql: &sql,
        datasets: &datasets,
        known: Mutex::default(),
        ways: Mutex::default(),
    };
    let (done, all) = (AtomicBool::new(false), queries());
    let (asked, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    let rounds = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _end = EndAtDrop(&done);
            writer::write(&engine, &datasets, &done, &writes);
        });
        let keeper = scope.spawn(|| {
            let _end = EndAtDrop(&done);
            keep_house(&engine, &done, &writes)
        });
        let reader = || {
            let _end = EndAtDrop(&done);
            while !done.load(Ordering::Acquire) {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                if number >= all {
                    break;
                }
                while number > FOR_A_WRITE * (1 + writes.load(Ordering::Acquire))
                    && !done.load(Ordering::Acquire)
                {
                    std::thread::yield_now();
                }
                readers.ask(number);
            }
        };
        let threads: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("a good reader"));
        writer.join().expect("a good writer");
        keeper.join().expect("a good keeper")
    });
    let ways: BTreeMap<String, usize> = readers.ways.into_inner().expect("no reader panicked");
    let writes = writes.into_inner();
    eprintln!("{all} requests beside {writes} writes and {rounds} checkpoints: {ways:?}");
    assert!(writes >= all / FOR_A_WRITE - 1 && rounds > 0);
    for way in [
        "exact_filtered",
        "graph_filtered",
        "scan",
        "sql",
        "sql_nearest",
    ] {
        assert!(ways.contains_key(way), "none went by {way}: {ways:?}");
    }
    if all >= MANY {
        assert!(ways.contains_key("clusters_filtered"), "{ways:?}");
    }
}

/// Makes checkpoints and compacts every so many writes until it is told to end; how often.
fn keep_house(engine: &Engine, done: &AtomicBool, writes: &AtomicU64) -> usize {
    let (mut rounds, mut next) = (0, 0);
    while !done.load(Ordering::Acquire) {
        if writes.load(Ordering::Acquire) < next {
            std::thread::yield_now();
            continue;
        }
        engine.checkpoint().expect("a checkpoint");
        engine.tidy().expect("compaction");
        rounds += 1;
        next = writes.load(Ordering::Acquire) + WRITES_A_ROUND;
    }
    rounds
}

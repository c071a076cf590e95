//! Readers beside writers: what was acknowledged is found at once, and what is replaced is there all the time, once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use longbow_engine::{Engine, Id, Options, Pending, PutSession, ScanRequest, SearchRequest};

use crate::compare::scan;
use crate::property::small;
use crate::random::{Random, mix};
use crate::rounds::rounds;

const DIM: usize = 8;

/// A vector that no other seed has.
fn vector(seed: u64) -> [f32; DIM] {
    std::array::from_fn(|at| (mix(seed << 4 | at as u64) >> 40) as f32 / (1 << 20) as f32)
}

/// Rows of an id, a number of their own, and a vector.
fn batch(rows: &[(i64, i64, [f32; DIM])]) -> RecordBatch {
    let numbers = Float32Array::from_iter_values(rows.iter().flat_map(|row| row.2));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::try_new(item, DIM as i32, Arc::new(numbers), None);
    let column = |of: fn(&(i64, i64, [f32; DIM])) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let columns = [
        ("id", column(|row| row.0)),
        ("number", column(|row| row.1)),
        ("vector", Arc::new(vectors.expect("whole vectors")) as _),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn open(folder: &tempfile::TempDir) -> Engine {
    let options = Options {
        seal_bytes: 256 << 10,
        max_log_bytes: 4 << 20,
        log_segment_bytes: 1 << 20,
        graphs: Options::new("").graphs,
        ..small(folder.path())
    };
    Engine::open_folder(options).expect("an empty folder opens")
}

fn session(engine: &Engine) -> PutSession {
    let schema = batch(&[]).schema();
    engine.put("d", &schema).expect("a good schema")
}

/// The ids and distances of the nearest rows.
fn nearest(engine: &Engine, query: [f32; DIM], k: usize) -> Vec<(i64, f32)> {
    let reply = engine
        .search("d", &SearchRequest::nearest(query.to_vec(), k))
        .expect("a search");
    let distances = reply.batch.column_by_name("distance").expect("a column");
    let ids = reply.batch.column_by_name("id").expect("a column");
    let ids = ids.as_primitive::<Int64Type>().values().iter().copied();
    ids.zip(
        distances
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .copied(),
    )
    .collect()
}

/// Rows below this id come and go at full speed while others are looked for.
const FLOOD: i64 = 20_000;

/// Puts rows as fast as they are acknowledged, but not much faster than they are indexed.
fn flood(engine: &Engine, done: &AtomicBool) {
    let (mut session, mut at) = (session(engine), 0);
    let mut waiting: Option<Pending> = None;
    while !done.load(Ordering::Acquire) {
        let rows = (at..at + 256)
            .map(|n| (n % FLOOD, n, vector(n as u64)))
            .collect::<Vec<_>>();
        at += 256;
        let next = session.record_batch(&batch(&rows)).expect("good rows");
        if let Some(before) = waiting.replace(next) {
            before.wait().expect("an acknowledgement");
        }
        while engine.dataset("d").expect("it is there").unindexed() > 4_000
            && !done.load(Ordering::Acquire)
        {
            std::thread::yield_now();
        }
    }
}

/// A search that begins after an acknowledgement sees what was acknowledged: rows, rows replaced, rows deleted.
#[test]
fn what_is_acknowledged_is_found_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&folder);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = EndAtDrop(&done);
        scope.spawn(|| flood(&engine, &done));
        let mut session = session(&engine);
        let mut random = Random(7);
        let mut there = HashMap::new();
        for check in 0..rounds(1_000) as u64 {
            let id = FLOOD + random.below(300) as i64;
            let (new, old) = (vector(1 << 40 | check), there.get(&id).copied());
            if old.is_some() && random.once_in(4) {
                let gone = engine
                    .delete_ids("d", vec![Id::Int(id)])
                    .and_then(Pending::wait);
                assert_eq!(gone.expect("it is there").rows, 1);
                there.remove(&id);
            } else {
                let pending = session.record_batch(&batch(&[(id, check as i64, new)]));
                pending.and_then(Pending::wait).expect("an acknowledgement");
                let found = nearest(&engine, new, 1);
                assert_eq!(found, [(id, 0.0)], "check {check}: put and not found");
                there.insert(id, new);
            }
            if let Some(old) = old {
                let found = nearest(&engine, old, 3);
                let stale = found.contains(&(id, 0.0));
                assert!(
                    !stale,
                    "check {check}: {id} was replaced or deleted, found {found:?}"
                );
            }
        }
        drop(end);
    });
}

/// Sets a flag when it is dropped, so that the other threads end also when a check fails.
struct EndAtDrop<'a>(&'a AtomicBool);

impl Drop for EndAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

const IDS: i64 = 300;

/// Replaces rows, a few at a time, by others of the same id and vector.
fn replace(engine: &Engine, batches: usize, versions: &AtomicU64) {
    let mut session = session(engine);
    let mut random = Random(11);
    for _ in 0..batches {
        let first = random.below(IDS as u64) as i64;
        let row = |id: i64| {
            let number = versions.fetch_add(1, Ordering::Relaxed) as i64;
            (id, number, vector(id as u64))
        };
        let rows = (first..first + 16)
            .map(|id| row(id % IDS))
            .collect::<Vec<_>>();
        session
            .record_batch(&batch(&rows))
            .and_then(Pending::wait)
            .expect("an acknowledgement");
    }
}

/// One scan: every id is there, once, and never an older version than in the scan before.
fn scan_all(engine: &Engine, seen: &mut HashMap<i64, i64>) {
    let rows = scan(engine, "d", &ScanRequest::default()).expect("a scan");
    assert_eq!(rows.num_rows() as i64, IDS, "every id is there once");
    let column = |name: &str| {
        let column = rows.column_by_name(name).expect("a column");
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    let mut ids = std::collections::HashSet::new();
    for (id, number) in column("id").into_iter().zip(column("number")) {
        assert!(ids.insert(id), "{id} is there twice");
        let before = seen.insert(id, number).unwrap_or(i64::MIN);
        assert!(before <= number, "{id} went back from {before} to {number}");
    }
}

/// One request for the nearest row of every vector, several times: each id is found, whichever version of it.
fn search_all(engine: &Engine, exact: bool) {
    let wanted = (0..IDS * 4).map(|n| n % IDS).collect::<Vec<_>>();
    let request = SearchRequest {
        vectors: wanted
            .iter()
            .map(|id| vector(*id as u64).to_vec())
            .collect(),
        exact,
        ..SearchRequest::nearest(Vec::new(), 1)
    };
    let reply = engine.search("d", &request).expect("a search");
    let ids = reply.ids().expect("ids");
    let missed = wanted
        .iter()
        .zip(&ids)
        .filter(|(wanted, id)| **id != Id::Int(**wanted));
    assert_eq!(ids.len(), wanted.len());
    assert_eq!(missed.collect::<Vec<_>>(), [], "exact: {exact}");
}

/// Rows that are replaced are there all the time, in one version, whatever is sealed, compacted and indexed anew
/// meanwhile.
#[test]
fn a_row_that_is_replaced_is_never_missing_and_never_there_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&folder);
    let rows = (0..IDS)
        .map(|id| (id, -1, vector(id as u64)))
        .collect::<Vec<_>>();
    session(&engine)
        .record_batch(&batch(&rows))
        .and_then(Pending::wait)
        .expect("an acknowledgement");
    let (done, versions) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _end = EndAtDrop(&done);
            replace(&engine, rounds(1_000), &versions);
        });
        scope.spawn(|| {
            let mut seen = HashMap::new();
            while !done.load(Ordering::Acquire) {
                scan_all(&engine, &mut seen);
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                engine.checkpoint().expect("a checkpoint");
                engine.tidy().expect("tidied");
            }
        });
        while !done.load(Ordering::Acquire) {
            search_all(&engine, false);
            search_all(&engine, true);
        }
    });
    search_all(&engine, false);
}

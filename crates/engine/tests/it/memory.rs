//! The memory limit: rows are refused before they, or the graphs that they will be in, pass it.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Error, GraphOptions, Id, IndexKind, Moment, Options, SearchRequest};

use crate::quantized::{
    check_recall, delete, open as open_on, options, put as put_all, rows, schema, vector,
    wait_for_the_index,
};

const LIMIT: u64 = 4 << 20;

fn open() -> Engine {
    let options = Options {
        memory_limit: LIMIT,
        seal_bytes: u64::MAX,
        ..options()
    };
    Engine::open(Arc::new(MemoryDisk::new()), options).expect("a new folder")
}

/// Puts a batch of rows; the bytes that were asked for if it is refused.
fn put(engine: &Engine, schema: &SchemaRef, ids: std::ops::Range<i64>) -> Result<(), u64> {
    let mut session = engine.put("d", schema).expect("a good schema");
    match session.record_batch(&rows(schema, ids, 0)) {
        Ok(pending) => {
            pending.wait().expect("acknowledged");
            Ok(())
        }
        Err(Error::MemoryLimit { used, asked, limit }) => {
            assert!(used <= limit && used + asked > limit && limit == LIMIT);
            Err(asked)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn short_elements_are_counted_with_their_graph() {
    let engine = open();
    let schema = schema("euclidean", DataType::Int8, None);
    // Twice the rows would fit many times; not what the graph takes for them, some 1,000 bytes each.
    let asked = put(&engine, &schema, 0..5_000).expect_err("too much");
    assert!((5_500_000..7_000_000).contains(&asked), "asked {asked}");
    assert!(engine.catalog().datasets().is_empty());

    put(&engine, &schema, 0..2_000).expect("it fits");
    // Whether the graph has the first rows by now or not.
    put(&engine, &schema, 2_000..4_000).expect_err("too much");
    wait_for_the_index(&engine);
    put(&engine, &schema, 2_000..4_000).expect_err("too much");
}

#[test]
fn rows_are_taken_up_to_the_limit_and_never_beyond() {
    for element in [DataType::Int8, DataType::Float32] {
        for said in [None, Some("none")] {
            let engine = open();
            let schema = schema("cosine", element.clone(), said);
            let mut end = 0;
            while put(&engine, &schema, end..end + 100).is_ok() {
                end += 100;
                assert!(engine.memory().total() <= LIMIT);
            }
            wait_for_the_index(&engine);
            let used = engine.memory().total();
            let share = used as f64 / LIMIT as f64;
            // What graphs take of rows that were not in them yet is reckoned on average, so by one or two hundredths it may be
            // more: the most where the machine is busy, and no row was in a graph before all were taken.
            assert!(share <= 1.02, "{element} {said:?}: {used} bytes");
            // What was refused last is a part of the rest.
            assert!(share > 0.85, "{element} {said:?}: {share} by {end} rows");
        }
    }
}

/// New versions of rows come faster than old ones leave the graph, which has no room for both.
#[test]
fn rows_that_come_again_wait_for_the_dead_to_leave() {
    const ROWS: i64 = 2_000;
    let engine = open();
    let schema = schema("euclidean", DataType::Float32, None);
    let vacant = |engine: &Engine| LIMIT.saturating_sub(engine.memory().total());
    for start in (0..ROWS).step_by(200) {
        put(&engine, &schema, start..start + 200).expect("it fits");
    }
    wait_for_the_index(&engine);
    // More than half of the limit is taken, so not all rows fit twice.
    assert!(vacant(&engine) < LIMIT / 2, "{:?}", engine.memory());
    for version in 1..=8 {
        let mut session = engine.put("d", &schema).expect("a good schema");
        for start in (0..ROWS).step_by(200) {
            let batch = rows(&schema, start..start + 200, version * 10_000);
            let pending = session.record_batch(&batch).expect("room is made");
            pending.wait().expect("acknowledged");
            assert!(engine.memory().total() <= LIMIT, "{:?}", engine.memory());
        }
    }
    wait_for_the_index(&engine);
    assert_eq!(engine.dataset("d").expect("it exists").view().live, 2_000);
    for id in (0..ROWS).step_by(37) {
        let request = SearchRequest::nearest(vector(id as u64 + 80_000), 10);
        let reply = engine.search("d", &request).expect("a search");
        let ids = reply.ids().expect("ids");
        assert_eq!((&ids[0], ids.len()), (&Id::Int(id), 10));
    }
    // What does not fit beside the living is refused, as ever.
    put(&engine, &schema, ROWS..4 * ROWS).expect_err("too much");
}

#[test]
fn a_graph_of_which_next_to_nothing_lives_is_made_anew_and_gives_its_memory_back() {
    let disk = MemoryDisk::new();
    let engine = open_on(&disk);
    let schema = schema("cosine", DataType::Float32, None);
    put_all(&engine, &schema, 0..4_000, 0);
    wait_for_the_index(&engine);
    let graph_bytes = |engine: &Engine| {
        let dataset = engine.dataset("d").expect("it exists");
        let graph = dataset.indexes()[0].graph();
        (graph.memory_bytes(), graph.len())
    };
    let (before, _) = graph_bytes(&engine);
    let moment = Moment::of(engine.dataset("d").expect("it exists"));
    let all = engine.memory().index_bytes;
    delete(&engine, 100..4_000);
    while graph_bytes(&engine).1 > 100 {
        engine.tidy().expect("a sound disk");
        std::thread::yield_now();
    }
    let (after, _) = graph_bytes(&engine);
    assert!(after < before / 4, "{before} bytes, then {after}");
    check_recall(&engine, "graph");
    // Who began before it sees the rows of then.
    let request = SearchRequest {
        ef: Some(200),
        ..SearchRequest::nearest(vector(2_000), 1)
    };
    let reply = engine.search_at(&moment, &request).expect("a search");
    assert_eq!(reply.ids().expect("ids"), [Id::Int(2_000)]);
    // As long as that is so, the old graph counts.
    assert!(
        engine.memory().index_bytes > all / 2,
        "{:?}",
        engine.memory()
    );
    drop((moment, reply));
    // Who measures its recall in the background may hold it for a little longer.
    while engine.memory().index_bytes >= all / 4 {
        std::thread::yield_now();
    }

    // Rows come into the new graph, and it is saved.
    put_all(&engine, &schema, 100..600, 0);
    wait_for_the_index(&engine);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let engine = open_on(&disk);
    wait_for_the_index(&engine);
    assert_eq!(graph_bytes(&engine).1, 600);
    check_recall(&engine, "graph");

    // Nothing lives at all; what comes then is found.
    put_all(&engine, &schema, 1_000..4_000, 0);
    wait_for_the_index(&engine);
    delete(&engine, 0..600);
    delete(&engine, 1_000..4_000);
    while graph_bytes(&engine).1 > 0 {
        engine.tidy().expect("a sound disk");
        std::thread::yield_now();
    }
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let engine = open_on(&disk);
    put_all(&engine, &schema, 0..1_000, 7);
    wait_for_the_index(&engine);
    check_recall(&engine, "graph");
}

/// Rows come, die and come again while graphs of the dead are built anew: none that lives is ever missed.
#[test]
fn rows_that_come_beside_it_are_in_the_graph_that_is_made_anew() {
    const ROUNDS: i64 = 6;
    let disk = MemoryDisk::new();
    let engine = open_on(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    for round in 0..ROUNDS {
        let first = round * 10_000;
        put_all(&engine, &schema, first..first + 3_000, 0);
        wait_for_the_index(&engine);
        std::thread::scope(|scope| {
            let tidy = scope.spawn(|| engine.tidy().expect("a sound disk"));
            delete(&engine, first..first + 3_000);
            for part in 0..10 {
                let next = first + 5_000 + 10 * part;
                put_all(&engine, &schema, next..next + 10, 0);
            }
            tidy.join().expect("it ends");
        });
        engine.tidy().expect("a sound disk");
        wait_for_the_index(&engine);
        for before in 0..=round {
            for at in 0..100 {
                let id = before * 10_000 + 5_000 + at;
                let request = SearchRequest {
                    ef: Some(100),
                    ..SearchRequest::nearest(vector(id as u64), 1)
                };
                let reply = engine.search("d", &request).expect("a search");
                assert_eq!(reply.ids().expect("ids"), [Id::Int(id)], "round {round}");
            }
        }
    }
}

/// An engine with its blocks in files: in memory they would count.
fn in_files(folder: &Path, limit: u64) -> Engine {
    let options = Options {
        path: folder.into(),
        memory_limit: limit,
        // Other tests share the process.
        process_bytes: || 0,
        seal_bytes: u64::MAX,
        graphs: GraphOptions {
            kind: IndexKind::SpFresh.into(),
            ..options().graphs
        },
        ..options()
    };
    Engine::open_folder(options).expect("a sound folder")
}

/// The same, with several times as many rows as fit into the limit.
fn with_rows_in_files(folder: &Path) -> (Engine, SchemaRef) {
    let engine = in_files(folder, LIMIT);
    let schema = schema("euclidean", DataType::Float32, None);
    put_all(&engine, &schema, 0..30_000, 0);
    assert!(engine.memory().total() <= LIMIT);
    wait_for_the_index(&engine);
    (engine, schema)
}

/// Rows that only wait for their file are no reason to refuse others: several times the limit is taken by a column whose
/// index is in a file.
#[test]
fn rows_on_their_way_into_files_make_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, schema) = with_rows_in_files(folder.path());
    assert_eq!(engine.dataset("d").expect("it exists").view().live, 30_000);
    for id in [0, 9_999, 29_999] {
        let request = SearchRequest::nearest(vector(id), 10);
        let reply = engine.search("d", &request).expect("a search");
        let ids = reply.ids().expect("ids");
        assert_eq!((&ids[0], ids.len()), (&Id::Int(id as i64), 10));
    }
    // What does not fit by itself is refused, and nothing is written for it.
    let before = engine.memory();
    put(&engine, &schema, 40_000..50_000).expect_err("too much");
    assert_eq!(engine.memory().tail_bytes, before.tail_bytes);
}

/// Of a file of blocks that does not fit into the limit with its rows, a part is kept while nothing else needs the room.
#[test]
fn what_searches_read_most_is_kept_while_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, schema) = with_rows_in_files(folder.path());
    engine.checkpoint().expect("a checkpoint");
    engine.tidy().expect("a sound disk");
    let memory = engine.memory();
    assert!(memory.kept_bytes > 100_000, "{memory:?}");
    assert!(memory.total() <= LIMIT, "{memory:?}");

    // More than is left, and less than is left without what is kept.
    let mut end = 30_000;
    while engine.memory().kept_bytes >= memory.kept_bytes {
        put(&engine, &schema, end..end + 100).expect("it fits");
        end += 100;
        assert!(end < 100_000, "{:?}", engine.memory());
    }
    assert!(engine.memory().total() <= LIMIT);
    wait_for_the_index(&engine);
    let request = SearchRequest::nearest(vector(end as u64 - 1), 10);
    let reply = engine.search("d", &request).expect("a search");
    assert_eq!(reply.ids().expect("ids")[0], Id::Int(end - 1));
    drop(engine);

    let engine = in_files(folder.path(), LIMIT);
    wait_for_the_index(&engine);
    engine.tidy().expect("a sound disk");
    assert!(engine.memory().kept_bytes > 0, "after a start, too");
    drop(engine);

    let engine = in_files(folder.path(), u64::MAX);
    wait_for_the_index(&engine);
    engine.tidy().expect("a sound disk");
    let memory = engine.memory();
    assert_eq!(memory.kept_bytes, 0, "the system has room for all");
}

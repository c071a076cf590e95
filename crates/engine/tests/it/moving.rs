//! Columns that leave the kind of their index to their size, moved from one to another while they are read and written.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_schema::{DataType, SchemaRef};
use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_engine::{
    ChoiceOptions, ColumnIndex, Engine, Error, Folder, GraphOptions, Id, IndexKind, IndexPolicy,
    Moment, Options, SearchRequest,
};

use crate::condition::{Comparison, Condition};
use crate::damage::files_below;
use crate::mortal::Mortal;
use crate::quantized::{delete, found, options, put, rows, schema, vector, wait_for_the_index};
use crate::random::Random;
use crate::rounds::rounds;

const K: usize = 10;
/// The least share of the nearest that searches without an effort of their own must find. Postings find 0.94 to 0.98 of
/// these rows, by how much of them was clustered at once; whoever loses rows on a move falls far below.
const RECALL: f64 = 0.9;
/// Bytes that a graph takes for a row of these tests, about.
const A_ROW: u64 = 1_060;

/// Without an index below 400 rows, or half of that; with a graph of up to so many.
fn auto(most_in_a_graph: u64) -> Options {
    Options {
        graphs: GraphOptions {
            kind: IndexPolicy::Auto,
            choice: ChoiceOptions {
                least_rows: 400,
                room: Some(most_in_a_graph * A_ROW),
            },
            ..options().graphs
        },
        ..options()
    }
}

fn open(disk: impl Disk + 'static, options: &Options) -> Engine {
    Engine::open(Arc::new(disk), options.clone()).expect("a sound folder")
}

fn plain() -> SchemaRef {
    schema("euclidean", DataType::Float32, None)
}

fn kind(engine: &Engine) -> IndexKind {
    engine.dataset("d").expect("it exists").indexes()[0].kind()
}

fn moving_to(engine: &Engine) -> Option<IndexKind> {
    engine.dataset("d").expect("it exists").indexes()[0].moving_to()
}

/// Waits until another index is in the place of the column's, or for so many milliseconds.
fn await_change(engine: &Engine, most: u64) {
    let Ok(dataset) = engine.dataset("d") else {
        return;
    };
    dataset.indexes()[0].wait_until_replaced(Instant::now() + Duration::from_millis(most));
}

/// Waits until the column is in an index of this kind, and on its way to no other.
fn wait_for(engine: &Engine, expected: IndexKind) {
    let began = Instant::now();
    while kind(engine) != expected || moving_to(engine).is_some() {
        let got = (kind(engine), moving_to(engine));
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "{expected:?}, not {got:?}"
        );
        await_change(engine, 5);
    }
    wait_for_the_index(engine);
}

/// How many of the nearest a search finds: of as many as it should, since none comes short.
fn hits(engine: &Engine, seed: u64) -> (u64, &'static str) {
    let moment = Moment::of(engine.dataset("d").expect("it exists"));
    let request = SearchRequest::nearest(vector((1 << 40) | seed), K);
    let exact = SearchRequest {
        exact: true,
        ..request.clone()
    };
    let ask = |request| engine.search_at(&moment, request).expect("a search");
    let (reply, exact) = (ask(&request), found(&ask(&exact)));
    let got = found(&reply);
    assert_eq!(got.len(), exact.len(), "{:?}", reply.info);
    assert_eq!(got.len(), K.min(moment.view().live as usize));
    let nearest: HashSet<_> = exact.into_iter().collect();
    let hits = got.iter().filter(|one| nearest.contains(one)).count();
    (hits as u64, reply.info.strategy)
}

fn check_recall(engine: &Engine, strategy: &str) {
    let mut all = 0;
    for seed in 0..40 {
        let (found, by) = hits(engine, seed);
        assert_eq!(by, strategy);
        all += found;
    }
    let share = all as f64 / (40 * K) as f64;
    assert!(share >= RECALL, "{strategy}: {share}");
}

/// Searches until it is told to stop, from two threads; fails if one comes short, or too much is missed on the way.
fn searched(engine: &Engine, writes: impl FnOnce()) {
    let (done, asked, got) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (done, asked, got) = (&done, &asked, &got);
            scope.spawn(move || {
                let mut seed = thread << 20;
                // On a busy machine the writes may be over before the first search.
                loop {
                    seed += 1;
                    got.fetch_add(hits(engine, seed).0, Ordering::Relaxed);
                    asked.fetch_add(K as u64, Ordering::Relaxed);
                    if done.load(Ordering::Acquire) {
                        break;
                    }
                }
            });
        }
        writes();
        done.store(true, Ordering::Release);
    });
    let share = got.into_inner() as f64 / asked.into_inner() as f64;
    assert!(share >= RECALL, "recall on the way: {share}");
}

fn block_files(disk: &MemoryDisk) -> usize {
    let files = files_below(disk, Path::new("data/datasets"));
    let name = |path: &Path| {
        path.file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned()
    };
    let blocks = files
        .iter()
        .filter(|(path, _)| name(path).starts_with("blocks-"));
    blocks.count()
}

#[test]
fn a_column_moves_as_it_grows_and_shrinks_and_searches_go_on() {
    let disk = MemoryDisk::new();
    let limit = 8 << 20;
    let mut options = auto(0);
    options.graphs.choice.room = None;
    options.memory_limit = limit;
    let engine = open(disk.clone(), &options);
    let schema = plain();
    put(&engine, &schema, 0..399, 0);
    wait_for(&engine, IndexKind::Flat);
    check_recall(&engine, "exact");
    put(&engine, &schema, 399..2_000, 0);
    // Whoever waits for the index waits for one that is yet to be begun.
    wait_for_the_index(&engine);
    assert_eq!(kind(&engine), IndexKind::Hnsw);
    check_recall(&engine, "graph");
    searched(&engine, || {
        for first in (2_000..8_000).step_by(250) {
            put(&engine, &schema, first..first + 250, 0);
            let used = engine.memory().total();
            assert!(used <= limit, "{used} bytes");
        }
        wait_for(&engine, IndexKind::SpFresh);
    });
    check_recall(&engine, "graph");
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(block_files(&disk), 1);
    searched(&engine, || {
        delete(&engine, 0..6_500);
        wait_for(&engine, IndexKind::Hnsw);
    });
    check_recall(&engine, "graph");
    // The last checkpoint needs it.
    assert_eq!(block_files(&disk), 1);
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(block_files(&disk), 0);
    searched(&engine, || {
        delete(&engine, 6_500..7_900);
        wait_for(&engine, IndexKind::Flat);
    });
    check_recall(&engine, "exact");
    assert_eq!(engine.memory().index_bytes, 0);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    let engine = open(disk, &options);
    assert_eq!(
        (kind(&engine), engine.rebuilt_graphs()),
        (IndexKind::Flat, 0)
    );
    check_recall(&engine, "exact");
}

#[test]
fn a_move_that_a_crash_ends_begins_anew() {
    let (disk, options) = (MemoryDisk::new(), auto(2_500));
    let engine = open(disk.clone(), &auto(100_000));
    put(&engine, &plain(), 0..6_000, 0);
    wait_for(&engine, IndexKind::Hnsw);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    // Now that is too much for a graph. Nothing is named by a checkpoint until the crash.
    let engine = open(disk.clone(), &options);
    while kind(&engine) == IndexKind::Hnsw && moving_to(&engine).is_none() {
        std::thread::yield_now();
    }
    let crashed = disk.crash();
    drop(engine);
    let mut as_it_was = options.clone();
    as_it_was.graphs.kind = IndexKind::Hnsw.into();
    let engine = open(crashed.clone(), &as_it_was);
    wait_for(&engine, IndexKind::Hnsw);
    assert_eq!(engine.rebuilt_graphs(), 0);
    assert_eq!(block_files(&crashed), 0, "of the move that ended");
    drop(engine);
    let engine = open(crashed.clone(), &options);
    hits(&engine, 1);
    wait_for(&engine, IndexKind::SpFresh);
    assert_eq!(engine.rebuilt_graphs(), 0);
    check_recall(&engine, "graph");
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(block_files(&crashed), 1);
    let engine = open(crashed.crash(), &options);
    wait_for(&engine, IndexKind::SpFresh);
    assert_eq!(engine.rebuilt_graphs(), 0);
    check_recall(&engine, "graph");
}

/// Rows come and go past the borders until the disk dies. The rows that must be there then: one that was to be deleted
/// when it died may be there or not.
fn live(engine: &Engine, random: &mut Random) -> Range<i64> {
    let (schema, mut there) = (plain(), 0..0);
    let mut lives = || -> Result<(), Error> {
        for _ in 0..12 {
            let next = there.end + 100 + random.below(300) as i64;
            let mut session = engine.put("d", &schema)?;
            let batch = rows(&schema, there.end..next, 0);
            session.record_batch(&batch)?.wait()?;
            there.end = next;
            if random.once_in(2) {
                let doomed = there.start..next - random.below((next - there.start) as u64) as i64;
                there.start = doomed.end;
                let doomed = doomed.map(Id::Int).collect();
                engine.delete_ids("d", doomed)?.wait()?;
            }
            if random.once_in(2) {
                engine.checkpoint()?;
            }
            await_change(engine, random.below(60));
        }
        Ok(())
    };
    // On a dead disk all is refused.
    let _ = lives();
    there
}

#[test]
fn whenever_the_process_dies_no_row_is_lost_and_no_file_is_missing() {
    let options = auto(700);
    let (mut moved, least) = (0, rounds(16) as u64);
    for seed in 0..8 * least {
        // How far a life comes depends on the threads.
        if seed >= least && moved > 0 {
            break;
        }
        let mut random = Random(seed);
        let disk = MemoryDisk::new();
        let mortal = Mortal::new(Arc::new(disk.clone()), 100 + random.below(900));
        let engine = open(mortal, &options);
        let there = live(&engine, &mut random);
        let indexes = engine.dataset("d").map(|dataset| dataset.indexes());
        let kind_of = |indexes: &Vec<Arc<ColumnIndex>>| indexes[0].kind();
        moved += u32::from(indexes.is_ok_and(|all| kind_of(&all) == IndexKind::SpFresh));
        drop(engine);
        let left = match random.once_in(2) {
            true => disk.crash_keeping(&mut |_, unsynced| random.below(unsynced + 1)),
            false => disk.crash_keeping(&mut |_, unsynced| unsynced),
        };
        let found = Folder::open(Arc::new(left.clone()), Path::new("data"), "test");
        let found = found.and_then(|folder| folder.verify(&mut |_| Ok(())));
        let damages = found.expect("a folder").damages;
        assert!(damages.is_empty(), "{seed}: {damages:?}");
        let engine = open(left.clone(), &options);
        let Ok(dataset) = engine.dataset("d") else {
            assert!(there.is_empty(), "{seed}");
            continue;
        };
        let mut missing = there.filter(|id| dataset.find(&Id::Int(*id)).is_none());
        assert_eq!(missing.next(), None, "{seed}");
        hits(&engine, seed);
        // Wherever it goes from here, only its own file stays.
        let began = Instant::now();
        let rest = || {
            engine.checkpoint().expect("a checkpoint");
            usize::from(kind(&engine) == IndexKind::SpFresh) == block_files(&left)
                && moving_to(&engine).is_none()
        };
        while !rest() {
            assert!(began.elapsed() < Duration::from_secs(60), "{seed}");
            await_change(&engine, 20);
        }
        assert_eq!(engine.rebuilt_graphs(), 0, "{seed}");
    }
    assert!(moved > 0, "no life came to postings");
}

/// A checkpoint that failed after a column had left its postings removed their file, which the last one still named.
#[test]
fn blocks_of_the_last_checkpoint_outlive_a_failed_one() {
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let options = Options {
        seal_bytes: u64::MAX,
        ..auto(500)
    };
    let engine = open(disk.clone(), &options);
    let schema = plain();
    for _ in 0..4 {
        put(&engine, &schema, 0..600, 0);
        wait_for(&engine, IndexKind::SpFresh);
        delete(&engine, 240..600);
        wait_for(&engine, IndexKind::Hnsw);
    }
    put(&engine, &schema, 0..600, 0);
    wait_for(&engine, IndexKind::SpFresh);
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(block_files(&memory), 1);
    delete(&engine, 240..600);
    wait_for(&engine, IndexKind::Hnsw);
    disk.fail(Operation::Rename, 1, Fault::NoSpace);
    engine
        .checkpoint()
        .expect_err("the manifest is not replaced");
    assert_eq!(block_files(&memory), 1);
    let engine = open(memory.crash(), &options);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0);
    hits(&engine, 1);
}

#[test]
fn a_flat_column_has_no_index_and_wants_none() {
    let (disk, mut options) = (MemoryDisk::new(), auto(0));
    options.graphs.kind = IndexKind::Hnsw.into();
    let engine = open(disk.clone(), &options);
    put(&engine, &plain(), 0..1_000, 0);
    wait_for(&engine, IndexKind::Hnsw);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    // What was saved of another kind is left.
    options.graphs.kind = IndexKind::Flat.into();
    let engine = open(disk.clone(), &options);
    assert_eq!(kind(&engine), IndexKind::Flat);
    put(&engine, &plain(), 1_000..3_000, 0);
    assert_eq!(engine.dataset("d").expect("it exists").unindexed(), 0);
    wait_for_the_index(&engine);
    assert_eq!(
        (kind(&engine), engine.rebuilt_graphs()),
        (IndexKind::Flat, 0)
    );
    check_recall(&engine, "exact");
    assert_eq!(engine.memory().index_bytes, 0);
    let few = Condition::new("id", Comparison::Lt, 100).shared();
    let request = SearchRequest {
        filter: Some(few),
        recall_target: Some(0.9),
        ..SearchRequest::nearest(vector(7), K)
    };
    let reply = engine.search("d", &request).expect("a search");
    assert_eq!(
        (reply.info.strategy, reply.batch.num_rows()),
        ("exact_filtered", K)
    );
}

/// Room for a graph of some 3,000 rows beside what else there is.
#[test]
fn rows_are_admitted_by_the_kind_that_they_will_be_in() {
    for (policy, admitted) in [
        (IndexPolicy::Auto, true),
        (IndexKind::Flat.into(), true),
        (IndexKind::SpFresh.into(), true),
        (IndexKind::Hnsw.into(), false),
    ] {
        let mut options = auto(0);
        options.graphs.kind = policy;
        options.graphs.choice.room = None;
        options.memory_limit = 5 << 20;
        let engine = open(MemoryDisk::new(), &options);
        let schema = plain();
        put(&engine, &schema, 0..2_000, 0);
        let mut session = engine.put("d", &schema).expect("a good schema");
        let put = session.record_batch(&rows(&schema, 2_000..5_000, 0));
        match put {
            Ok(put) => drop(put.wait().expect("acknowledged")),
            Err(Error::MemoryLimit { .. }) => assert!(!admitted, "{policy:?}"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(
            engine.dataset("d").expect("it exists").view().live == 5_000,
            admitted
        );
        wait_for_the_index(&engine);
        if policy == IndexPolicy::Auto {
            wait_for(&engine, IndexKind::SpFresh);
        }
        let used = engine.memory().total();
        assert!(used <= options.memory_limit, "{used} bytes");
    }
}

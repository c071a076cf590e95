//! What deleting gives back: of half of the rows half of the disk and of the memory, once it is tidied up.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Id, Memory, Options, Quantization, SearchRequest, TextQuery};

use crate::damage::files_below;
use crate::random::mix;

/// Enough for a graph of whole vectors to be built anew when half of its rows are dead.
const ROWS: i64 = 24_000;
/// The share that may be left. What is not by row, and room that is kept for the next rows, does not halve.
const LEFT: f64 = 0.6;

fn vectors(ids: &[i64], dim: i32) -> FixedSizeListArray {
    let element = |id: i64, at: i32| (mix((id as u64) << 8 | at as u64) >> 40) as f32;
    let of = |id: &i64| {
        let id = *id;
        Some((0..dim).map(move |at| Some(element(id, at))))
    };
    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(ids.iter().map(of), dim)
}

/// A column whose graph holds codes, one whose graph holds whole vectors, and texts.
fn batch(ids: &[i64]) -> RecordBatch {
    let texts = ids.iter().map(|id| {
        let word = |at: u64| format!("w{}", mix(*id as u64 ^ at << 32) % 5_000);
        let words: Vec<String> = (0..12).map(word).collect();
        format!("own{id} {}", words.join(" "))
    });
    let columns = [
        ("id", Arc::new(Int64Array::from(ids.to_vec())) as _),
        ("codes", Arc::new(vectors(ids, 96)) as _),
        ("whole", Arc::new(vectors(ids, 16)) as _),
        ("text", Arc::new(StringArray::from_iter_values(texts)) as _),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn wait(engine: &Engine) {
    let dataset = engine.dataset("d").expect("it is there");
    assert!(dataset.wait_for_index(Duration::from_secs(600)));
}

/// Bytes of files by the first part of their names, all of them under "all".
fn disk_bytes(disk: &MemoryDisk) -> [(&'static str, u64); 4] {
    let files = files_below(disk, Path::new("data/datasets"));
    ["rows-", "graph-", "text-", ""].map(|begin| {
        let named = files.iter().filter(|(path, _)| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(begin))
        });
        let bytes = named.map(|(_, bytes)| bytes.len() as u64).sum();
        (if begin.is_empty() { "all" } else { begin }, bytes)
    })
}

fn check(what: &str, before: u64, after: u64) {
    let share = after as f64 / before as f64;
    eprintln!("{what}: {before} bytes, then {after}: {share:.3}");
    assert!(
        share <= LEFT,
        "{what}: {share:.3} of {before} bytes are left"
    );
}

#[test]
fn half_of_the_rows_give_half_of_the_space_back() {
    let disk = MemoryDisk::new();
    let options = Options {
        seal_bytes: 2 << 20,
        tidy_interval: Duration::from_secs(3_600),
        ..Options::new("data")
    };
    let engine = Engine::open(Arc::new(disk.clone()), options.clone()).expect("an empty folder");
    let ids: Vec<i64> = (0..ROWS).collect();
    let mut session = engine.put("d", &batch(&[]).schema()).expect("a schema");
    for ids in ids.chunks(1_000) {
        let pending = session.record_batch(&batch(ids)).expect("good rows");
        pending.wait().expect("acknowledged");
    }
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    let (disk_before, memory_before) = (disk_bytes(&disk), engine.memory());

    let odd = ids.iter().filter(|id| *id % 2 == 1);
    let deleted = engine.delete_ids("d", odd.map(|id| Id::Int(*id)).collect());
    let deleted = deleted
        .and_then(|deleted| deleted.wait())
        .expect("they are there");
    assert_eq!(deleted.rows, ROWS as u64 / 2);
    tidy_up(&engine);

    for (before, after) in disk_before.iter().zip(disk_bytes(&disk)) {
        check(&format!("files {}", before.0), before.1, after.1);
    }
    // What left the graph of codes is kept for the next rows; a start gives it back. A graph that was replaced goes when the last
    // thread leaves it, which may be one that measures recall while nobody wants the processor.
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let memory = engine.memory();
        if memory.total() < memory_before.total() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{memory:?}, before: {memory_before:?}"
        );
        std::thread::yield_now();
    }
    check_found(&engine);
    drop((session, engine));
    let engine = Engine::open(Arc::new(disk), options).expect("a sound folder");
    wait(&engine);
    let parts = |memory: Memory| [("indexes", memory.index_bytes), ("all", memory.total())];
    for (before, after) in parts(memory_before).iter().zip(parts(engine.memory())) {
        check(&format!("memory, {}", before.0), before.1, after.1);
    }
    check_found(&engine);
}

/// Compacts, and waits until the dead have left the indexes; then checkpoints, of which the second removes what the first
/// replaced.
fn tidy_up(engine: &Engine) {
    let dataset = engine.dataset("d").expect("it is there");
    let codes = || {
        let indexes = dataset.indexes();
        let by_codes = |graph: Quantization| graph != Quantization::None;
        let lens = indexes
            .iter()
            .filter(|index| by_codes(index.graph().quantization()));
        lens.map(|index| index.graph().len() as i64).sum::<i64>()
    };
    while engine.tidy().expect("a sound disk") > 0 || codes() > ROWS * 11 / 20 {
        std::thread::yield_now();
    }
    wait(engine);
    for _ in 0..2 {
        engine.checkpoint().expect("a checkpoint");
    }
}

/// The other half is there, by each way.
fn check_found(engine: &Engine) {
    assert_eq!(
        engine.dataset("d").expect("it is there").view().live,
        ROWS as u64 / 2
    );
    for id in [0, 5_000, 11_998, 23_998] {
        for (column, dim) in [("codes", 96), ("whole", 16)] {
            let vector = vectors(&[id], dim).value(0);
            let vector = arrow_array::cast::AsArray::as_primitive::<Float32Type>(&vector);
            let request = SearchRequest {
                column: Some(column.to_owned()),
                ..SearchRequest::nearest(vector.values().to_vec(), 1)
            };
            let found = engine.search("d", &request).expect("a search");
            assert_eq!(found.ids().expect("ids"), [Id::Int(id)], "{column}");
        }
        for (id, count) in [(id, 1), (id + 1, 0)] {
            let words = TextQuery {
                text: format!("own{id}"),
                columns: None,
            };
            let found = engine.text_search("d", &words, 10).expect("a query");
            assert_eq!(found.len(), count, "own{id}");
        }
    }
}

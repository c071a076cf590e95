//! `longbow plan` beside what an engine then really takes.

mod run;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch};
use longbow_engine::{Engine, Error, GraphOptions, IndexKind, Options, Quantization};
use serde_json::Value;

const DIM: usize = 128;

fn mixed(seed: u64) -> u64 {
    let z = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Rows of vectors around a few centres, with ids that do not count up.
fn batch(first: u64, rows: u64, dim: usize) -> RecordBatch {
    let number = |seed: u64| (mixed(seed) >> 40) as f32 / 8_388_608.0 - 1.0;
    let vector = |row: u64| {
        let element = |at: u64| number((row % 50) << 30 | at) + 0.3 * number((row + 1) << 12 | at);
        Some((0..dim as u64).map(element).map(Some).collect::<Vec<_>>())
    };
    let vectors = (first..first + rows).map(vector);
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, dim as i32);
    let ids = (first..first + rows).map(|row| mixed(row) as i64);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_from_iter([("id", ids), ("vector", Arc::new(vectors) as _)]).expect("columns")
}

fn plan(args: &str) -> Value {
    let mut command = run::longbow();
    command.arg("plan").args(args.split_whitespace());
    let (code, out, err) = run::run(command.args(["--json", "-"]));
    assert_eq!((code, err.as_str()), (0, ""), "{args}");
    serde_json::from_str(&out).expect("JSON")
}

fn figure(plan: &Value, part: &str, name: &str) -> f64 {
    plan[part][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{part} {name} in {plan}"))
}

/// Bytes of the files below a folder whose names begin so.
fn bytes(folder: &std::path::Path, prefix: &str) -> f64 {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file"));
    let sizes = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type().expect("known").is_dir() {
            true => bytes(&entry.path(), prefix),
            false if name.starts_with(prefix) => entry.metadata().expect("there").len() as f64,
            false => 0.0,
        }
    });
    sizes.sum()
}

fn within(what: &str, told: f64, real: f64, tolerance: f64) {
    let share = told / real;
    assert!(
        (share - 1.0).abs() <= tolerance,
        "{what}: told {told}, real {real}"
    );
}

/// What postings take depends on how the vectors lie, so it is told roughly.
#[test]
fn what_is_told_of_postings_is_about_what_they_take() {
    const ROWS: u64 = 6_000;
    let told = plan(&format!("--rows {ROWS} --dim {DIM} --vector-index spfresh"));
    assert_eq!(told["index"]["kind"], "spfresh");
    let folder = tempfile::tempdir().expect("a folder");
    let defaults = Options::new(folder.path());
    let graphs = GraphOptions {
        kind: IndexKind::SpFresh.into(),
        ..defaults.graphs
    };
    let engine = Engine::open_folder(Options { graphs, ..defaults }).expect("a new folder");
    let rows = batch(0, ROWS, DIM);
    let mut session = engine.put("d", &rows.schema()).expect("a good schema");
    let put = session.record_batch(&rows).expect("good rows");
    put.wait().expect("acknowledged");
    let dataset = engine.dataset("d").expect("there");
    assert!(dataset.wait_for_index(Duration::from_secs(300)));
    engine.checkpoint().expect("room");
    let memory = dataset.indexes()[0].graph().memory_bytes() as f64;
    within("index", figure(&told, "memory", "index"), memory, 0.5);
    let files = |prefix: &str| bytes(folder.path(), prefix);
    let (saved, blocks) = (files("graph-"), files("blocks-"));
    within("centroids", figure(&told, "disk", "checkpoint"), saved, 0.5);
    within("blocks", figure(&told, "disk", "blocks"), blocks, 0.6);
    engine.close().expect("closed");
}

#[test]
fn what_is_told_is_what_an_engine_takes() {
    const ROWS: u64 = 6_000;
    for (quantization, name) in [
        (Quantization::Rabitq, "rabitq"),
        (Quantization::None, "none"),
    ] {
        let told = plan(&format!("--rows {ROWS} --dim {DIM} --quantization {name}"));
        assert_eq!(told["index"]["quantization"], name);
        let folder = tempfile::tempdir().expect("a folder");
        let defaults = Options::new(folder.path());
        let graphs = GraphOptions {
            quantization: Some(quantization),
            ..defaults.graphs
        };
        let engine = Engine::open_folder(Options { graphs, ..defaults }).expect("a new folder");
        let schema = batch(0, 1, DIM).schema();
        let mut session = engine.put("d", &schema).expect("a good schema");
        for first in (0..ROWS).step_by(1_000) {
            let put = session
                .record_batch(&batch(first, 1_000, DIM))
                .expect("good rows");
            put.wait().expect("acknowledged");
        }
        let tail = engine.memory().tail_bytes as f64;
        within("tail", figure(&told, "memory", "tail"), tail, 0.02);
        let dataset = engine.dataset("d").expect("there");
        assert!(dataset.wait_for_index(Duration::from_secs(300)));
        // What `check_readiness` says of the index, and what the accounting counts.
        let graph = dataset.indexes()[0].graph().memory_bytes() as f64;
        within("index", figure(&told, "memory", "index"), graph, 0.05);
        let ids = engine.memory().bookkeeping_bytes as f64;
        // Which of the map's parts has doubled is chance: within 10 % of what is expected in all of 4,000 draws.
        within("ids", figure(&told, "memory", "ids"), ids, 0.15);
        engine.checkpoint().expect("room");
        within(
            "segments",
            figure(&told, "disk", "segments"),
            bytes(folder.path(), "rows-"),
            0.02,
        );
        let (most, file) = (
            figure(&told, "disk", "checkpoint"),
            bytes(folder.path(), "graph-"),
        );
        assert!(
            file <= 1.01 * most && file > 0.5 * most,
            "{name}: told {most}, real {file}"
        );
        assert!(bytes(&folder.path().join("log"), "") <= figure(&told, "disk", "log"));
        engine.close().expect("closed");
    }
}

#[test]
fn as_many_rows_fit_as_are_told_to() {
    let told = plan("--rows 1000000 --dim 1024 --quantization none --memory-limit 64MiB");
    assert_eq!(told["memory"]["fits"], false);
    let most = figure(&told, "memory", "most_rows");
    let folder = tempfile::tempdir().expect("a folder");
    let defaults = Options::new(folder.path());
    let graphs = GraphOptions {
        quantization: Some(Quantization::None),
        ..defaults.graphs
    };
    let options = Options {
        graphs,
        memory_limit: 64 << 20,
        ..defaults
    };
    let engine = Engine::open_folder(options).expect("a new folder");
    let mut session = engine
        .put("d", &batch(0, 1, 1_024).schema())
        .expect("a good schema");
    let mut rows = 0;
    loop {
        match session.record_batch(&batch(rows, 250, 1_024)) {
            Ok(put) => drop(put.wait().expect("acknowledged")),
            Err(Error::MemoryLimit { .. }) => break,
            Err(other) => panic!("{other}"),
        }
        rows += 250;
    }
    // The last batches may wait for what is on its way into files.
    within("rows", most, rows as f64, 0.08);
}

#[test]
fn the_table_says_which_index_and_whether_it_fits() {
    let table = |args: &str| {
        let mut command = run::longbow();
        let (code, out, _) = run::run(command.arg("plan").args(args.split_whitespace()));
        assert_eq!(code, 0, "{args}");
        out
    };
    let small = table("--rows 1000 --dim 768 --memory-limit 1GiB");
    assert!(
        small.contains("rabitq (codes from 96 dimensions on)"),
        "{small}"
    );
    assert!(
        small.contains("fits") && !small.contains("does not fit"),
        "{small}"
    );
    assert!(!small.contains("time to index"), "{small}");
    let dot = table("--rows 100000000 --dim 768 --metric dot_product --memory-limit 1GiB");
    assert!(
        dot.contains("none (codes for inner products only if the field asks for them)"),
        "{dot}"
    );
    assert!(dot.contains("does not fit; "), "{dot}");
    let timed = table("--rows 3000 --dim 16 --type int8 --measure");
    assert!(timed.contains("time to index"), "{timed}");
}

#[test]
fn what_no_node_would_take_is_refused() {
    for args in [
        "--rows 10",
        "--rows 0 --dim 4",
        "--rows 10 --dim 4 --quantization pq",
        "--rows 10 --dim 4 --type text",
    ] {
        let mut command = run::longbow();
        let (code, _, err) = run::run(command.arg("plan").args(args.split_whitespace()));
        assert_eq!(code, 2, "{args}: {err}");
    }
}

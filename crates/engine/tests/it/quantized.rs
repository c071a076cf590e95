//! Columns whose graphs hold codes in place of vectors: the same promises, and the same distances.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{
    Engine, FileKind, Filter, Folder, GraphOptions, Id, Options, QUANTIZATION_KEY, Quantization,
    SearchReply, SearchRequest, SyncMode,
};

use crate::condition::{Comparison, Condition};
use crate::damage::files_below;
use crate::random::mix;

pub const DIM: usize = 128;
/// Elements that the others follow from, so that there are neighbours to find.
const LATENT: usize = 12;

pub fn options() -> Options {
    Options {
        sync: SyncMode::EveryAck,
        seal_bytes: 256 << 10,
        tidy_interval: Duration::from_secs(3_600),
        ..Options::new("data")
    }
}

pub fn open_with(disk: &MemoryDisk, quantization: Option<Quantization>) -> Engine {
    let graphs = GraphOptions {
        quantization,
        ..options().graphs
    };
    let options = Options {
        graphs,
        ..options()
    };
    Engine::open(Arc::new(disk.clone()), options).expect("a sound folder")
}

pub fn open(disk: &MemoryDisk) -> Engine {
    open_with(disk, None)
}

/// A number from -1 to 1.
fn number(seed: u64) -> f32 {
    (mix(seed) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// The vector of a seed: the same mixture of some of its own numbers, far from the origin.
pub fn vector(seed: u64) -> Vec<f32> {
    let own: Vec<f32> = (0..LATENT as u64)
        .map(|at| number(seed << 8 | at))
        .collect();
    let element = |at: usize| {
        let weight = |of: usize| number((1 << 60) | (at * LATENT + of) as u64);
        let mixed: f32 = own.iter().enumerate().map(|(of, x)| x * weight(of)).sum();
        5.0 + mixed
    };
    (0..DIM).map(element).collect()
}

/// The schema of these rows, where a field may say something of quantization.
pub fn schema(metric: &str, element: DataType, said: Option<&str>) -> SchemaRef {
    let item = Arc::new(Field::new("item", element, true));
    let said = said.map(|said| (QUANTIZATION_KEY.to_owned(), said.to_owned()));
    let vector = Field::new("vector", DataType::FixedSizeList(item, DIM as i32), true);
    let fields = vec![
        Field::new("id", DataType::Int64, true),
        vector.with_metadata(said.into_iter().collect()),
    ];
    let metric = HashMap::from([("longbow.metric".to_owned(), metric.to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, metric))
}

/// Rows with these ids, the vector of each of the seed `id + version`.
pub fn rows(schema: &SchemaRef, ids: Range<i64>, version: u64) -> RecordBatch {
    let numbers = ids.clone().flat_map(|id| vector(id as u64 + version));
    let numbers: ArrayRef = Arc::new(Float32Array::from_iter_values(numbers));
    let DataType::FixedSizeList(item, _) = schema.field(1).data_type() else {
        panic!("the second column has vectors");
    };
    let numbers = arrow_cast::cast(&numbers, item.data_type()).expect("numbers");
    let vectors = FixedSizeListArray::try_new(Arc::clone(item), DIM as i32, numbers, None);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let columns = vec![ids, Arc::new(vectors.expect("whole vectors")) as _];
    RecordBatch::try_new(Arc::clone(schema), columns).expect("columns of one length")
}

pub fn put(engine: &Engine, schema: &SchemaRef, ids: Range<i64>, version: u64) {
    let mut session = engine.put("d", schema).expect("a good schema");
    for start in ids.clone().step_by(1_000) {
        let batch = rows(schema, start..ids.end.min(start + 1_000), version);
        let pending = session.record_batch(&batch).expect("good rows");
        pending.wait().expect("acknowledged");
    }
}

pub fn delete(engine: &Engine, ids: Range<i64>) {
    let dead = engine.delete_ids("d", ids.map(Id::Int).collect());
    dead.and_then(|dead| dead.wait()).expect("known ids");
}

pub fn wait_for_the_index(engine: &Engine) {
    let dataset = engine.dataset("d").expect("it exists");
    assert!(dataset.wait_for_index(Duration::from_secs(300)));
    assert_eq!(dataset.unindexed(), 0);
}

/// Waits until all rows that died have left the graph, but for the few for which none would begin.
pub fn settle(engine: &Engine) {
    let dataset = engine.dataset("d").expect("it exists");
    let index = &dataset.indexes()[0];
    while index.graph().len() as u64 > dataset.view().live * 51 / 50 + 64 {
        engine.tidy().expect("a sound disk");
        std::thread::yield_now();
    }
}

fn kind(engine: &Engine) -> Quantization {
    let dataset = engine.dataset("d").expect("it exists");
    dataset.indexes()[0].graph().quantization()
}

pub fn found(reply: &SearchReply) -> Vec<(Id, u32)> {
    let distances = reply.batch.column_by_name("distance").expect("a column");
    let distances = distances.as_primitive::<Float32Type>().values();
    let bits = distances.iter().map(|distance| distance.to_bits());
    reply.ids().expect("ids").into_iter().zip(bits).collect()
}

/// The share of the nearest that searches by the strategy find. Each answer is whole, and has the bits of the scan.
pub fn recall(engine: &Engine, strategy: &str, filter: Option<Arc<dyn Filter>>) -> f64 {
    const K: usize = 10;
    let live = engine.dataset("d").expect("it exists").view().live as usize;
    let mut hits = 0;
    for seed in 0..40u64 {
        let request = SearchRequest {
            filter: filter.clone(),
            ..SearchRequest::nearest(vector((1 << 40) | seed), K)
        };
        let all = SearchRequest {
            exact: true,
            k: live.min(longbow_engine::MAX_K),
            ..request.clone()
        };
        let exact = found(&engine.search("d", &all).expect("a search"));
        let reply = engine.search("d", &request).expect("a search");
        assert_eq!(reply.info.strategy, strategy);
        let got = found(&reply);
        assert_eq!(got.len(), K.min(exact.len()), "{:?}", reply.info);
        let all: HashMap<_, _> = exact.iter().cloned().collect();
        for (id, bits) in &got {
            // The farthest of very many are not in the scan.
            if exact.len() < longbow_engine::MAX_K || all.contains_key(id) {
                assert_eq!(all.get(id), Some(bits), "distance of {id}");
            }
        }
        let nearest: HashSet<_> = exact[..got.len()].iter().collect();
        hits += got.iter().filter(|one| nearest.contains(one)).count();
    }
    hits as f64 / (40 * K) as f64
}

pub fn check_recall(engine: &Engine, strategy: &str) {
    let recall = recall(engine, strategy, None);
    assert!(recall >= 0.97, "{strategy}: recall {recall}");
}

#[test]
fn rows_are_found_through_upserts_deletes_a_restart_and_a_kill() {
    for (metric, element) in [
        ("euclidean", DataType::Float32),
        ("cosine", DataType::Float16),
    ] {
        let disk = MemoryDisk::new();
        let engine = open(&disk);
        let schema = schema(metric, element, None);
        put(&engine, &schema, 0..4_000, 0);
        wait_for_the_index(&engine);
        assert_eq!(kind(&engine), Quantization::Rabitq);
        check_recall(&engine, "graph");

        delete(&engine, 0..700);
        put(&engine, &schema, 1_000..1_700, 50_000);
        wait_for_the_index(&engine);
        check_recall(&engine, "graph");
        engine.checkpoint().expect("a checkpoint");
        // In the log only.
        put(&engine, &schema, 4_000..4_100, 0);
        delete(&engine, 700..900);

        // As a kill leaves it.
        let engine = open(&disk.crash());
        wait_for_the_index(&engine);
        assert_eq!(engine.rebuilt_graphs(), 0);
        wait_for_the_index(&engine);
        check_recall(&engine, "graph");
        let dataset = engine.dataset("d").expect("it exists");
        assert_eq!(dataset.view().live, 3_200);
        // Those that died leave it, whether they died before or after the kill.
        settle(&engine);
        assert_eq!(dataset.indexes()[0].graph().len(), 3_200);
        check_recall(&engine, "graph");
    }
}

#[test]
fn rows_that_compaction_dropped_do_not_come_back_by_the_graph() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..80, 0);
    engine.checkpoint().expect("a checkpoint");
    put(&engine, &schema, 80..4_000, 0);
    wait_for_the_index(&engine);
    // Most of a segment, and so few of all that they stay in the graph.
    delete(&engine, 0..70);
    while engine.tidy().expect("a sound disk") > 0 {}
    let kept: u64 = engine
        .dataset("d")
        .expect("it exists")
        .view()
        .segments
        .iter()
        .map(|segment| segment.meta().rows)
        .sum();
    assert!(kept < 4_000, "compaction dropped rows");
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);

    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0);
    let graph = engine.dataset("d").expect("it exists").indexes()[0].graph();
    assert_eq!(graph.len(), 4_000, "the graph has them still");
    check_recall(&engine, "graph");
}

#[test]
fn a_filter_finds_its_rows_by_the_graph() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put(
        &engine,
        &schema("euclidean", DataType::Float32, None),
        0..20_100,
        0,
    );
    wait_for_the_index(&engine);
    let half = Condition::new("id", Comparison::Lt, 10_050).shared();
    let recall = recall(&engine, "graph_filtered", Some(half));
    assert!(recall >= 0.97, "recall {recall}");
}

#[test]
fn few_rows_are_scanned_and_the_graph_begins_with_many() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    for id in 0..50 {
        put(&engine, &schema, id..id + 1, 0);
    }
    wait_for_the_index(&engine);
    assert_eq!(recall(&engine, "graph_and_tail", None), 1.0);
    // Without a row in it, the graph is not saved.
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0);
    assert_eq!(recall(&engine, "graph_and_tail", None), 1.0);
    put(&engine, &schema, 50..2_000, 0);
    wait_for_the_index(&engine);
    check_recall(&engine, "graph");
}

#[test]
fn most_rows_may_leave_a_graph() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..13_000, 0);
    wait_for_the_index(&engine);
    delete(&engine, 1_000..12_000);
    settle(&engine);
    let graph = engine.dataset("d").expect("it exists").indexes()[0].graph();
    assert_eq!(graph.len(), 2_000);
    assert_eq!(graph.quantization(), Quantization::Rabitq);
    check_recall(&engine, "graph");
}

#[test]
fn the_field_decides_before_the_node_and_the_node_before_the_column() {
    use Quantization::{None as Plain, Rabitq, Sq8};
    for (said, node, element, metric, expected) in [
        (None, None, DataType::Float32, "euclidean", Rabitq),
        (None, Some(Plain), DataType::Float32, "euclidean", Plain),
        (Some("none"), None, DataType::Float32, "cosine", Plain),
        (Some("none"), Some(Rabitq), DataType::Int8, "cosine", Plain),
        (
            Some("rabitq"),
            Some(Plain),
            DataType::UInt8,
            "cosine",
            Rabitq,
        ),
        (None, None, DataType::Float32, "dot_product", Plain),
        (None, Some(Rabitq), DataType::Float32, "dot_product", Plain),
        (
            Some("rabitq"),
            None,
            DataType::Float32,
            "dot_product",
            Rabitq,
        ),
        (
            Some("sq8"),
            Some(Plain),
            DataType::Float32,
            "dot_product",
            Sq8,
        ),
        (None, Some(Rabitq), DataType::Float64, "euclidean", Plain),
        (Some("sq8"), None, DataType::Float16, "cosine", Sq8),
        (None, Some(Sq8), DataType::Float32, "euclidean", Sq8),
    ] {
        let disk = MemoryDisk::new();
        let engine = open_with(&disk, node);
        put(&engine, &schema(metric, element, said), 0..300, 0);
        wait_for_the_index(&engine);
        assert_eq!(kind(&engine), expected, "{said:?} {node:?} {metric}");
        let graph = engine.dataset("d").expect("it exists").indexes()[0].graph();
        assert_eq!(graph.len(), 300);
        engine.checkpoint().expect("a checkpoint");
        engine.close().expect("closed");
        drop(engine);
        let engine = open_with(&disk, node);
        wait_for_the_index(&engine);
        assert_eq!(engine.rebuilt_graphs(), 0);
        assert_eq!(kind(&engine), expected);
    }
}

#[test]
fn a_graph_of_the_other_kind_is_built_anew() {
    use Quantization::{None as Plain, Rabitq};
    for (before, after) in [(Plain, Rabitq), (Rabitq, Plain)] {
        let disk = MemoryDisk::new();
        let engine = open_with(&disk, Some(before));
        put(
            &engine,
            &schema("euclidean", DataType::Float32, None),
            0..2_000,
            0,
        );
        wait_for_the_index(&engine);
        engine.checkpoint().expect("a checkpoint");
        engine.close().expect("closed");
        drop(engine);
        let engine = open_with(&disk, Some(after));
        wait_for_the_index(&engine);
        assert_eq!(engine.rebuilt_graphs(), 1);
        assert_eq!(kind(&engine), after);
        check_recall(&engine, "graph");
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_changes() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let refused = |schema: &SchemaRef, code: &str, words: &[&str]| {
        let error = engine.put("d", schema).expect_err("it cannot be");
        assert_eq!(error.code(), code);
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let f32 = || DataType::Float32;
    let bad = "bad_quantization";
    let words = ["'vector'", "'pq'", "rabitq", "none"];
    refused(&schema("euclidean", f32(), Some("pq")), bad, &words);
    let words = ["'vector'", "'rabitq'", "float32", "none"];
    refused(
        &schema("cosine", DataType::Float64, Some("rabitq")),
        bad,
        &words,
    );
    assert!(engine.catalog().datasets().is_empty());

    put(&engine, &schema("cosine", f32(), Some("none")), 0..10, 0);
    let words = ["'vector'", "'d'", "rabitq", "none", "new dataset"];
    let changed = schema("cosine", f32(), Some("rabitq"));
    refused(&changed, "quantization_changed", &words);
    // What says nothing changes nothing.
    put(&engine, &schema("cosine", f32(), None), 10..300, 0);
    wait_for_the_index(&engine);
    assert_eq!(kind(&engine), Quantization::None);
}

#[test]
fn a_damaged_graph_of_codes_is_told_and_built_anew() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put(
        &engine,
        &schema("cosine", DataType::Float32, None),
        0..1_000,
        0,
    );
    wait_for_the_index(&engine);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    let files = files_below(&disk, Path::new("data"));
    let is_graph = |path: &Path| path.extension().is_some_and(|end| end == "qgraph");
    let graphs: Vec<_> = files.iter().filter(|(path, _)| is_graph(path)).collect();
    let [(path, bytes)] = graphs[..] else {
        panic!("one graph: {graphs:?}");
    };
    let mut broken = bytes.clone();
    broken[bytes.len() / 2] ^= 1;
    disk.write_atomic(path, &broken).expect("written");

    let folder = Folder::open(Arc::new(disk.clone()), Path::new("data"), "a test");
    let found = folder.expect("nobody has it").verify(&mut |_| Ok(()));
    let damages = found.expect("it can be looked over").damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(
        (damages[0].kind, &damages[0].file),
        (FileKind::Graphs, path)
    );
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 1);
    check_recall(&engine, "graph");
    // The next checkpoint removes the broken file.
    engine.checkpoint().expect("a checkpoint");
    let files = files_below(&disk, Path::new("data"));
    let graphs: Vec<_> = files.iter().filter(|(path, _)| is_graph(path)).collect();
    assert!(graphs.len() == 1 && graphs[0].0 != *path);
}

#[test]
fn codes_of_edges_come_and_go_with_a_start() {
    use Quantization::{Rabitq, Sq8};
    let disk = MemoryDisk::new();
    let schema = schema("euclidean", DataType::Float32, None);
    let engine = open_with(&disk, Some(Rabitq));
    put(&engine, &schema, 0..6_000, 0);
    let mut bytes = Vec::new();
    drop(engine);
    for kind_now in [Rabitq, Sq8, Rabitq, Sq8] {
        let engine = open_with(&disk, Some(kind_now));
        wait_for_the_index(&engine);
        assert_eq!((kind(&engine), engine.rebuilt_graphs()), (kind_now, 0));
        check_recall(&engine, "graph");
        bytes.push(engine.memory().index_bytes);
        engine.checkpoint().expect("a checkpoint");
        engine.close().expect("closed");
    }
    assert!(
        bytes[1] * 3 < bytes[0] && bytes[3] * 3 < bytes[2],
        "{bytes:?}"
    );
}

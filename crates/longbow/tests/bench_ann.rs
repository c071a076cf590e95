//! `longbow bench ann` from outside: what it prints, and what it refuses. The figures depend on the machine; what is checked
//! is that they are there and can be true.

mod run;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Int64Array, ListArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

/// Points of a grid, so that each has neighbours of equal distance.
fn grid(path: &Path, side: u8) {
    let mut file = Vec::new();
    for x in 0..side {
        for y in 0..side {
            file.extend(2i32.to_le_bytes());
            file.extend(f32::from(x).to_le_bytes());
            file.extend(f32::from(y).to_le_bytes());
        }
    }
    std::fs::write(path, file).expect("room");
}

fn longbow(folder: &Path, args: &str) -> (i32, String, String) {
    let (base, queries) = (folder.join("base.fvecs"), folder.join("queries.fvecs"));
    grid(&base, 30);
    grid(&queries, 5);
    let mut command = run::longbow();
    command.args(["bench", "ann", "--base"]).arg(base);
    command.arg("--queries").arg(queries);
    run::run(command.args(args.split_whitespace()))
}

fn number(point: &Value, key: &str) -> f64 {
    point[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {point}"))
}

#[test]
fn all_indexes_are_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    for index in ["rabitq", "hnsw", "flat"] {
        let args = format!("--index {index} --sweep 10,300 --repeat 2 --threads 2 --json -");
        let (code, out, err) = longbow(folder.path(), &args);
        assert_eq!((code, err.as_str()), (0, ""), "{index}");
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(
            (&report["index"], &report["rows"]),
            (&index.into(), &900.into())
        );
        assert_eq!(
            (&report["dim"], &report["queries"]),
            (&2.into(), &25.into())
        );
        assert!(number(&report, "bytes_per_vector") > 8.0);
        let points = report["points"].as_array().expect("a list");
        assert_eq!(points.len(), 2, "{index}");
        for point in points {
            assert!(
                number(point, "qps") > 0.0 && number(point, "qps_wall") > 0.0,
                "{point}"
            );
            assert!(number(point, "distances") >= 10.0, "{point}");
            // Only the graph of codes counts bytes; batches are taken by all.
            assert_eq!(
                point["bytes_touched"].is_null(),
                index != "rabitq",
                "{index}"
            );
            assert!(number(point, "qps_batched") > 0.0);
        }
        assert_eq!(number(&points[1], "recall"), 1.0, "{index}");
    }
}

/// A Parquet file of lists in column `emb`, beside ids.
fn parquet(path: &Path, lists: ArrayRef) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..lists.len() as i64));
    let batch = RecordBatch::try_from_iter([("id", ids), ("emb", lists)]).expect("columns");
    let file = std::fs::File::create(path).expect("room");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a schema");
    writer.write(&batch).expect("room");
    writer.close().expect("room");
}

#[test]
fn vectors_and_answers_are_read_from_parquet() {
    let folder = tempfile::tempdir().expect("a folder");
    let (base, truth) = (
        folder.path().join("base.parquet"),
        folder.path().join("truth.parquet"),
    );
    let points = (0..50).map(|x| Some([Some(x as f32), Some(0.0)]));
    let points = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(points, 2);
    parquet(&base, Arc::new(points));
    // Each is its own nearest.
    let answers = (0..50).map(|x| Some([Some(x)]));
    parquet(
        &truth,
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(answers)),
    );
    let mut command = run::longbow();
    command.args([
        "bench", "ann", "--index", "flat", "--k", "1", "--repeat", "1",
    ]);
    command
        .args(["--sweep", "1", "--column", "emb", "--json", "-", "--base"])
        .arg(&base);
    command
        .arg("--queries")
        .arg(&base)
        .arg("--truth")
        .arg(&truth);
    let (code, out, err) = run::run(&mut command);
    assert_eq!((code, err.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["rows"], &report["dim"]), (&50.into(), &2.into()));
    assert_eq!(number(&report["points"][0], "recall"), 1.0);
}

#[test]
fn the_table_has_a_line_a_breadth() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, out, _) = longbow(folder.path(), "--sweep 20,40 --repeat 1 --limit 100");
    assert_eq!(code, 0);
    assert!(
        out.contains("100 vectors of 2 x float32, 25 queries"),
        "{out}"
    );
    let begins = |word: &str| {
        out.lines()
            .any(|line| line.split_whitespace().next() == Some(word))
    };
    assert!(begins("20") && begins("40"), "{out}");
}

#[test]
fn passes_are_made_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("base.fvecs");
    grid(&base, 10);
    let mut command = run::longbow();
    command
        .args(["bench", "ann", "--serve", "--base"])
        .arg(&base);
    command.arg("--queries").arg(&base);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program was built");
    let mut input = child.stdin.take().expect("piped");
    let requests =
        "{\"effort\":50,\"batched\":false}\n{\"effort\":50,\"batched\":true}\n{\"effort\":50}\n";
    input.write_all(requests.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert_eq!(lines[0]["ready"]["rows"], 100);
    assert!(number(&lines[1], "recall") > 0.9 && number(&lines[1], "qps") > 0.0);
    assert!(number(&lines[2], "qps_batched") > 0.0 && lines[2]["qps"].is_null());
    assert!(lines[3]["error"].is_string(), "{}", lines[3]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, _, err) = longbow(folder.path(), "--k 901");
    assert!(code == 1 && err.contains("900 vectors"), "{code} {err}");
    let (code, _, err) = longbow(folder.path(), "--truth none.npy");
    assert!(code == 1 && err.contains("none.npy"), "{code} {err}");
    let (code, _, _) = longbow(folder.path(), "--index none");
    assert_eq!(code, 2);
    let (base, queries) = (
        folder.path().join("far.fvecs"),
        folder.path().join("queries.fvecs"),
    );
    std::fs::write(
        &base,
        [
            2i32.to_le_bytes(),
            1f32.to_le_bytes(),
            1e30f32.to_le_bytes(),
        ]
        .concat(),
    )
    .expect("room");
    for (metric, expected) in [("euclidean", 1), ("cosine", 0)] {
        let mut command = run::longbow();
        command
            .args(["bench", "ann", "--k", "1", "--metric", metric])
            .arg("--base")
            .arg(&base);
        let (code, _, err) = run::run(command.arg("--queries").arg(&queries));
        assert_eq!(code, expected, "{err}");
        assert_eq!(err.contains("overflow"), expected == 1, "{err}");
    }
}

//! `longbow bench spfresh` from outside: what it prints, and what it refuses. The figures depend on the machine; what is
//! checked is that they are there and can be true.

mod run;

use std::path::Path;

use serde_json::{Value, json};

/// Runs it in a folder, which must be empty but for the files named when it has ended.
fn longbow(folder: &Path, args: &str) -> (i32, String, String) {
    let mut command = run::longbow();
    command.args(["bench", "spfresh", "--dir"]).arg(folder);
    let told = run::run(command.args(args.split_whitespace()).current_dir(folder));
    let left = std::fs::read_dir(folder).expect("a folder");
    let left: Vec<_> = left.map(|entry| entry.expect("a name").path()).collect();
    let only_files = left.iter().all(|path| path.is_file());
    assert!(only_files, "{left:?} after {args}");
    told
}

fn report(folder: &Path, args: &str) -> Value {
    let (code, out, err) = longbow(folder, &format!("{args} --json -"));
    assert_eq!((code, err.as_str()), (0, ""), "{args}");
    serde_json::from_str(&out).expect("JSON")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {row}"))
}

fn rows<'a>(report: &'a Value, key: &str) -> &'a [Value] {
    report[key].as_array().expect("a list")
}

/// The effort and durability of each row.
fn ways(report: &Value) -> Vec<(Value, Value)> {
    let way = |row: &Value| (row["effort"].clone(), row["durable"].clone());
    rows(report, "rows").iter().map(way).collect()
}

#[test]
fn the_recipe_is_measured_in_every_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = "--dim 12 --base 600 --updates 300 --queries 20 --update-batch 64 --k 5 --repeat 2";
    for (index, durable) in [("spfresh", ""), ("hnsw", "--durable")] {
        let args = format!("{sizes} --index {index} --nprobe 2 --sweep 8,4000 {durable}");
        let report = report(folder.path(), &args);
        assert_eq!(report["mode"], "recipe");
        let settings = &report["settings"];
        for (key, value) in [
            ("dim", 12),
            ("base", 600),
            ("updates", 300),
            ("queries", 20),
            ("update_batch", 64),
            ("k", 5),
            ("effort", 8),
            ("seed", 404),
            ("repeat", 2),
        ] {
            assert_eq!(settings[key], value, "{key}");
        }
        assert!(number(&report["machine"], "cores") >= 1.0);
        let mut expected = Vec::new();
        for durable in [false, true].into_iter().skip(usize::from(index == "hnsw")) {
            for effort in [json!(8), json!(4000), Value::Null] {
                expected.push((effort, json!(durable)));
            }
        }
        assert_eq!(ways(&report), expected, "{index}");
        for row in rows(&report, "rows") {
            let exact = row["effort"].is_null();
            assert_eq!(row["index"], if exact { "exact" } else { index });
            for figure in ["build_s", "update_qps", "search_qps", "p50_us"] {
                assert!(number(row, figure) > 0.0, "{figure} in {row}");
            }
            assert!(number(row, "p99_us") >= number(row, "p50_us"), "{row}");
            let recall = number(row, "recall_at_k");
            let everything = exact || row["effort"] == 4000;
            assert!(
                if everything {
                    recall == 1.0
                } else {
                    recall > 0.2
                },
                "{row}"
            );
        }
    }
}

#[test]
fn the_data_comes_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let row =
        |id: usize, x: usize| json!({"id": id, "values": [x, 0], "version": 0, "deleted": false});
    let base: Vec<Value> = (0..40).map(|n| row(n + 7, n)).collect();
    // The second update of a row counts, and one is of a row that was not there.
    let updates = json!([[7, [100, 0]], [7, [200, 0]], [1000, [201, 0]]]);
    let file = json!({"base": base, "updates": updates, "queries": [[199, 0], [0, 0]]});
    let path = folder.path().join("set.json");
    std::fs::write(&path, file.to_string()).expect("room");
    let found = report(
        folder.path(),
        "--dataset set.json --k 2 --index exact --repeat 1",
    );
    let settings = &found["settings"];
    assert_eq!(
        (&settings["dim"], &settings["base"]),
        (&json!(2), &json!(40))
    );
    assert_eq!(settings["updates"], 3);
    assert_eq!(settings["dataset"], "set.json");
    assert!(settings["seed"].is_null());
    assert_eq!(
        ways(&found),
        [(Value::Null, json!(false)), (Value::Null, json!(true))]
    );
    let all_found = |row: &Value| number(row, "recall_at_k") == 1.0;
    assert!(rows(&found, "rows").iter().all(all_found), "{found}");
    std::fs::write(&path, file.to_string().replace("[200,0]", "[200]")).expect("room");
    let (code, _, err) = longbow(folder.path(), "--dataset set.json");
    assert!(
        code == 1 && err.contains("row 1 of updates has 1 values"),
        "{err}"
    );
    std::fs::write(&path, file.to_string().replace("\"queries\"", "\"asked\"")).expect("room");
    let (code, _, err) = longbow(folder.path(), "--dataset set.json");
    assert!(
        code == 1 && err.contains("missing field `queries`"),
        "{err}"
    );
    let (code, _, err) = longbow(folder.path(), "--dataset none.json");
    assert!(code == 1 && err.contains("none.json"), "{err}");
}

#[test]
fn a_stream_is_searched_while_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let runbook =
        "{\"insert\":200}\n{\"delete\":150}\n{\"search\":40}\n{\"search\":5}\n{\"insert\":20}\n";
    std::fs::write(folder.path().join("book"), runbook).expect("room");
    let sizes = "--dim 8 --base 600 --queries 15 --centres 6 --drift 0.5 --k 4 --nprobe 200";
    let report = report(folder.path(), &format!("--stream book {sizes}"));
    assert_eq!(
        (&report["mode"], &report["settings"]["centres"]),
        (&json!("stream"), &json!(6))
    );
    let rounds = rows(&report, "rounds");
    let of = |key: &str| {
        rounds
            .iter()
            .map(|row| row[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("rows"), [650, 650, 670]);
    assert_eq!(of("inserted"), [200, 0, 20]);
    assert_eq!(of("deleted"), [150, 0, 0]);
    // All postings are read, by codes of so few elements that one of the 60 may be missed; nobody ever finds fewer than
    // are there.
    let mut recalls = rounds.iter().map(|row| number(row, "recall_at_k"));
    assert!(recalls.all(|recall| recall > 0.96), "{rounds:?}");
    assert_eq!(of("short_answers"), [0, 0, 0]);
    assert!(number(&rounds[0], "searches") >= 40.0 && rounds[2]["searches"] == 0);
    assert!(number(&rounds[0], "update_qps") > 0.0 && rounds[1]["update_qps"].is_null());
    assert!(number(&rounds[1], "p999_us") > 0.0 && rounds[2]["p50_us"].is_null());
    for row in rounds {
        assert!(number(row, "resident_bytes") > number(row, "anonymous_bytes"));
        assert!(number(row, "postings") >= 1.0 && number(row, "posting_longest") >= 1.0);
        assert!(number(row, "block_file_bytes") >= number(row, "block_live_bytes"));
    }
    let end = &report["end"];
    for part in ["churned", "fresh"] {
        assert!(number(&end[part], "recall_at_k") > 0.96, "{part}");
        assert!(number(&end[part], "p999_us") > 0.0, "{part}");
    }
    assert!(end["churned"]["build_s"].is_null() && number(&end["fresh"], "build_s") > 0.0);
    assert!(number(&end["ratios"], "recall_to_fresh") > 0.96);
    assert!(number(&end["ratios"], "p999_beside_writes_to_idle") > 0.0);
    assert!(number(&end["ratios"], "block_file_to_fresh") > 0.0);
}

#[test]
fn rounds_are_told_as_they_end() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("book"), "{\"search\":3}\n{\"search\":3}").expect("room");
    let args =
        "--stream book --dim 4 --base 50 --queries 5 --index hnsw --durable --json told.json";
    let (code, out, err) = longbow(folder.path(), args);
    assert_eq!((code, err.as_str()), (0, ""));
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let begins: Vec<String> = out.lines().filter_map(first).collect();
    let place = |word: &str| begins.iter().position(|begin| begin == word);
    assert!(
        place("round") < place("1") && place("1") < place("2"),
        "{out}"
    );
    assert!(
        place("churned").is_some() && place("fresh").is_some(),
        "{out}"
    );
    let told = std::fs::read(folder.path().join("told.json")).expect("written");
    let told: Value = serde_json::from_slice(&told).expect("JSON");
    assert_eq!(told["settings"]["durable"], true);
    // A graph has no postings.
    assert!(told["rounds"][0]["postings"].is_null());
}

#[test]
fn a_large_set_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = "--large --dim 8 --base 3000 --queries 10 --centres 5 --k 3 --nprobe 1 --sweep 16000 --memory-limit 64MiB";
    let report = report(folder.path(), args);
    assert_eq!(report["mode"], "large");
    assert_eq!(report["settings"]["memory_limit_bytes"], 64 << 20);
    assert_eq!(number(&report, "vector_bytes"), 3000.0 * 32.0);
    assert!(number(&report, "block_file_bytes") > 0.0 && number(&report, "open_s") > 0.0);
    let rows = rows(&report, "rows");
    assert_eq!(
        (&rows[0]["effort"], &rows[1]["effort"]),
        (&json!(4), &json!(16_000))
    );
    assert_eq!(number(&rows[1], "recall_at_k"), 1.0);
    for row in rows {
        assert!(
            number(row, "recall_at_k") > 0.1 && number(row, "search_qps") > 0.0,
            "{row}"
        );
        assert!(number(row, "disk_bytes_per_query") >= 0.0 && number(row, "resident_bytes") > 0.0);
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for args in [
        "--k 11 --base 10",
        "--index none",
        "--stream default --updates 5",
        "--centres 5",
        "--dataset x --dim 5",
    ] {
        let (code, _, err) = longbow(folder.path(), args);
        assert!(code == 2 && err.contains("--"), "{args}: {code} {err}");
    }
    std::fs::write(
        folder.path().join("book"),
        "{\"search\":1}\n{\"delete\":95}",
    )
    .expect("room");
    let (code, _, err) = longbow(folder.path(), "--stream book --base 100");
    assert!(
        code == 1 && err.contains("line 2 deletes 95 of 100 rows"),
        "{err}"
    );
    let (code, _, err) = longbow(folder.path(), "--stream none --base 100");
    assert!(code == 1 && err.contains("none"), "{err}");
}

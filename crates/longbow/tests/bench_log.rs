//! `longbow bench log` and `longbow capacity` from outside: what they print, and what they refuse. The figures depend on the
//! machine; what is checked is that they are there and can be true.

mod run;

use std::path::Path;

use serde_json::Value;

fn longbow(args: &str) -> (i32, String, String) {
    run::run(run::longbow().args(args.split_whitespace()))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort_unstable();
    names
}

fn number(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {row}"))
}

/// Figures of one row that must hold whatever the machine.
fn check_row(row: &Value) {
    for key in [
        "entries_per_s",
        "mb_per_s",
        "p50_us",
        "entries",
        "cpu_us_per_entry",
    ] {
        assert!(number(row, key) > 0.0, "{key} in {row}");
    }
    let percentiles = ["p50_us", "p95_us", "p99_us", "max_us"].map(|key| number(row, key));
    assert!(percentiles.is_sorted(), "{row}");
    // Each figure is a median of its own, so that they agree only roughly; here there is one round.
    let payload = number(row, "entries_per_s") * number(row, "entry_bytes") / 1e6;
    assert!(
        (payload - number(row, "mb_per_s")).abs() <= 0.01 + payload * 0.01,
        "{row}"
    );
    match row["sync"].as_str() {
        Some("none") => assert!(row["entries_per_sync"].is_null(), "{row}"),
        Some("fdatasync" | "dsync") => {
            assert!(number(row, "syncs_per_s") > 0.0, "{row}");
            assert!(number(row, "raw_p99_us") > 0.0, "{row}");
            let blocking = row["mode"] == "blocking";
            let under_way = number(row, "callers") * number(row, "batch");
            // Entries that share a sync were under way together; a window may cut a batch in two.
            assert!(
                !blocking || number(row, "entries_per_sync") <= under_way * 2.0,
                "{row}"
            );
        }
        _ => {}
    }
    let offered = row["mode"] == "offered";
    assert_eq!(row["offered_per_s"].is_u64(), offered, "{row}");
    assert!(!offered || row["ratio_to_raw"].is_null(), "{row}");
}

#[test]
fn a_report_has_every_row_with_every_key() {
    let dir = folder();
    let svg = dir.path().join("curves.svg");
    let (code, stdout, stderr) = longbow(&format!(
        "bench log report --quick --seconds 0.05 --repeat 1 --callers 1,2 --batch 1,10 --rate 500 --linger 0,1ms \
         --segment-size 1MiB,256KiB --entry-bytes 100 --json - --dir {} --svg {}",
        dir.path().display(),
        svg.display()
    ));
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(number(&report["machine"], "cores") >= 1.0, "{report}");
    // Two batches, each with fdatasync, with dsync, and without a sync.
    assert_eq!(report["raw"].as_array().map(Vec::len), Some(6), "{report}");
    let rows = report["rows"].as_array().expect("a list");
    let of = |test: &str| rows.iter().filter(|row| row["test"] == test).count();
    let counts = [
        "matrix",
        "large_entries",
        "offered",
        "segment_size",
        "sync",
        "linger",
    ]
    .map(of);
    let skipped = report["skipped"].as_array().expect("a list");
    // On a machine that is slow beyond measure the last ones may be skipped, and are named then.
    assert_eq!(
        rows.len() + skipped.len(),
        12 + 2 + 1 + 2 + 8 + 4,
        "{stderr}"
    );
    assert!(
        !skipped.is_empty() || counts == [12, 2, 1, 2, 8, 4],
        "{counts:?}"
    );
    let keys = "test callers batch mode sync entries_per_s mb_per_s syncs_per_s entries_per_sync p50_us p95_us p99_us \
                max_us ratio_to_raw raw_p99_us cpu_us_per_entry";
    for row in rows {
        for key in keys.split_whitespace() {
            assert!(row.get(key).is_some(), "{key} in {row}");
        }
        check_row(row);
    }
    let stages = report["stages"].as_array().expect("a list");
    let share: f64 = stages.iter().map(|stage| number(stage, "share")).sum();
    assert!(
        !skipped.is_empty() || (share - 1.0).abs() < 0.01,
        "{report}"
    );
    let picture = std::fs::read_to_string(&svg).expect("the curves");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(
        picture.matches("<g ").count(),
        picture.matches("</g>").count()
    );
    assert_eq!(names(dir.path()), ["curves.svg"]);
}

#[test]
fn the_four_commands_print_tables() {
    let dir = folder();
    for (command, words) in [
        (
            "throughput --entries 200 --batch 1,50 --mode pipelined",
            "pipelined",
        ),
        ("latency --entries 20 --sync dsync", "dsync"),
        ("concurrent --callers 3 --entries 30", "concurrent"),
        ("stages --entries 20", "reply"),
    ] {
        let (code, stdout, stderr) = longbow(&format!(
            "bench log {command} --segment-size 256KiB --quick --dir {}",
            dir.path().display()
        ));
        assert_eq!(code, 0, "{command}: {stderr}");
        assert!(
            stdout.contains("The raw disk") && stdout.contains(words),
            "{stdout}"
        );
        assert_eq!(names(dir.path()), [""; 0], "{command}");
    }
}

#[test]
fn a_log_is_read_again_beside_its_files() {
    let dir = folder();
    let (code, stdout, stderr) = longbow(&format!(
        "bench log recovery --entries 3000 --repeat 1 --segment-size 256KiB --json - --dir {}",
        dir.path().display()
    ));
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let rows = report["recovery"].as_array().expect("a list");
    let whats: Vec<&str> = rows.iter().filter_map(|row| row["what"].as_str()).collect();
    assert_eq!(whats, ["read warm", "open warm", "read cold", "open cold"]);
    for row in rows {
        // Seconds are told to the millisecond.
        let seconds = number(row, "bytes") / 1e6 / number(row, "mb_per_s");
        assert!((seconds - number(row, "seconds")).abs() < 0.001, "{row}");
        assert!(number(row, "ratio_to_raw_read") > 0.0, "{row}");
    }
    let (code, stdout, _) = longbow(&format!(
        "bench log recovery --quick --entries 300 --segment-size 256KiB --dir {}",
        dir.path().display()
    ));
    assert!(code == 0 && stdout.contains("open cold"), "{stdout}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn json_goes_to_a_file_beside_the_table() {
    let dir = folder();
    let file = dir.path().join("report.json");
    let (code, stdout, stderr) = longbow(&format!(
        "bench log concurrent --callers 2 --entries 40 --batch 4 --segment-size 256KiB --quick --dir {} --json {}",
        dir.path().display(),
        file.display()
    ));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("concurrent"), "{stdout}");
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let row = &report["rows"][0];
    assert_eq!((&row["entries"], &row["callers"]), (&80.into(), &2.into()));
    check_row(row);
}

#[test]
fn a_wrong_flag_ends_with_2_and_says_why() {
    for (args, words) in [
        ("bench", "log"),
        ("bench log throughput --callers 3", "--callers"),
        (
            "bench log report --sync fsync",
            "fdatasync, dsync, background or none",
        ),
        ("bench log report --callers 0", "from 1 to 1024"),
        ("bench log concurrent --rate 10 --mode blocking", "exclude"),
        (
            "bench log concurrent --callers 1024 --batch 100000",
            "lower --callers",
        ),
        ("capacity --writes-per-second 10", "--entry-bytes"),
        (
            "capacity --writes-per-second 1 --entry-bytes 1 --replication 3 --retention-days 1 --nodes 2",
            "--nodes is 2",
        ),
    ] {
        let (code, stdout, stderr) = longbow(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args}: {stderr}");
        assert!(stderr.contains(words), "{args}: {stderr}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_ends_with_1_and_is_named() {
    let dir = folder();
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    let (code, _, stderr) = longbow(&format!(
        "bench log latency --quick --dir {}",
        file.display()
    ));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains(&file.display().to_string()), "{stderr}");
}

#[test]
fn capacity_is_told_as_a_table_and_as_json() {
    let asked = "capacity --writes-per-second 10000 --entry-bytes 1KiB --replication 3 --retention-days 5 --nodes 3";
    let (code, stdout, stderr) = longbow(asked);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("2.65 TB") && stdout.contains("4.42 TB"),
        "{stdout}"
    );
    let (code, stdout, stderr) = longbow(&format!("{asked} --json"));
    assert_eq!(code, 0, "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(answer["plain"]["disk_per_day"], 2_654_208_000_000u64);
    let framed = number(&answer["framed"], "disk_per_day");
    assert!(framed > 2_654_208_000_000.0, "{answer}");
}

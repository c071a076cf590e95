//! `longbow verify`, `longbow repair` and `longbow log tail` from outside, on folders of which one byte is wrong.

mod folder;
mod run;
mod tail;

use std::path::{Path, PathBuf};

use folder::{Node, fill, flip, one_of, snapshot};
use run::{longbow, run};
use serde_json::Value;

fn offline(command: &str, folder: &Path, more: &[&str]) -> (i32, String, String) {
    let mut program = longbow();
    program
        .args(command.split(' '))
        .arg("--data-path")
        .arg(folder);
    run(program.args(more))
}

fn json_of(folder: &Path) -> (i32, Value) {
    let (code, stdout, stderr) = offline("verify", folder, &["--json"]);
    let found = serde_json::from_str(&stdout);
    (
        code,
        found.unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}")),
    )
}

/// The kinds of files, where one of each lies, and a byte of it that matters.
fn kinds(folder: &Path) -> [(&'static str, PathBuf, usize); 6] {
    let dataset = folder.join("datasets/1");
    [
        ("log", one_of(&folder.join("log"), ".log"), 200),
        ("manifest", folder.join("MANIFEST"), 60),
        ("rows", one_of(&dataset, ".arrow"), 700),
        ("tombstones", one_of(&dataset, ".roaring"), 30),
        ("graphs", one_of(&dataset, ".hnsw"), 30),
        ("texts", one_of(&dataset, ".text"), 30),
    ]
}

#[test]
fn a_whole_folder_is_whole_and_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let before = snapshot(folder.path());
    let (code, stdout, stderr) = offline("verify", folder.path(), &[]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.ends_with("\nwhole\n"), "{stdout}");
    assert!(
        stderr.contains("100 %") && stderr.contains("MB/s"),
        "{stderr}"
    );
    let (code, found) = json_of(folder.path());
    assert_eq!(
        (code, &found["whole"], &found["torn"]),
        (0, &true.into(), &Value::Null)
    );
    for tally in found["files"].as_array().expect("a list") {
        assert!(tally["files"].as_u64() > Some(0), "{tally}");
        assert!(tally["bytes"].as_u64() > Some(0), "{tally}");
        let counted = tally["entries"].as_u64() > Some(0);
        assert_eq!(counted, tally["kind"] != "graphs", "{tally}");
    }
    assert_eq!(snapshot(folder.path()), before);
    let (code, stdout, _) = offline("repair", folder.path(), &["--accept-loss"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("nothing to repair"), "{stdout}");
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn a_flipped_bit_is_found_in_every_kind_of_file() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    for (kind, file, at) in kinds(folder.path()) {
        flip(&file, at);
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let (code, stdout, stderr) = offline("verify", folder.path(), &[]);
        assert_eq!(code, 3, "{kind}: {stdout}{stderr}");
        assert!(
            stdout.contains(name) && stdout.contains("damaged in 1 place"),
            "{stdout}"
        );
        let (code, found) = json_of(folder.path());
        assert_eq!((code, &found["whole"]), (3, &false.into()), "{found}");
        let damage = &found["damages"][0];
        assert_eq!(damage["kind"], kind, "{found}");
        let path = damage["file"].as_str().expect("a path");
        assert!(Path::new(path) == file, "{damage}");
        if let Some(offset) = damage["offset"].as_u64() {
            assert!(offset <= at as u64, "{damage}");
        }
        assert_eq!(damage["first_index"].is_u64(), kind == "log", "{damage}");
        flip(&file, at);
    }
    assert_eq!(json_of(folder.path()).0, 0);
}

#[test]
fn all_damage_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let all: Vec<_> = kinds(folder.path())
        .into_iter()
        .filter(|(kind, ..)| *kind != "manifest")
        .collect();
    for (_, file, at) in &all {
        flip(file, *at);
    }
    std::fs::remove_file(&all[1].1).expect("removed");
    let (_, found) = json_of(folder.path());
    let kinds: Vec<_> = found["damages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|d| &d["kind"])
        .collect();
    assert_eq!(
        kinds,
        ["log", "rows", "tombstones", "graphs", "texts"],
        "{found}"
    );
}

#[test]
fn a_folder_with_a_node_or_without_data_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::start(folder.path());
    let pid = format!("pid {}", node.pid());
    for command in ["verify", "repair", "log tail"] {
        let (code, stdout, stderr) = offline(command, folder.path(), &[]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains(&pid) && stderr.contains("stop"), "{stderr}");
    }
    node.stop();
    assert_eq!(offline("verify", folder.path(), &[]).0, 0);

    let other = tempfile::tempdir().expect("a folder");
    for path in [other.path().to_path_buf(), other.path().join("nowhere")] {
        let (code, stdout, stderr) = offline("verify", &path, &[]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains("no data folder"), "{stderr}");
    }
    assert!(snapshot(other.path()).is_empty(), "nothing was made there");
}

#[test]
fn a_damaged_log_is_cut_when_that_is_accepted_and_the_node_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = fill(folder.path());
    let file = one_of(&folder.path().join("log"), ".log");
    flip(&file, 200);
    let (_, stderr) = Node::refuses(folder.path());
    assert!(stderr.contains("longbow repair"), "{stderr}");
    let broken = snapshot(folder.path());

    let (code, stdout, _) = offline("repair", folder.path(), &[]);
    assert_eq!(code, 3, "{stdout}");
    let last = format!("to at least {}", written.last);
    for words in ["Nothing was changed", "--accept-loss", "Lost are", &last] {
        assert!(stdout.contains(words), "{words:?} in {stdout}");
    }
    assert_eq!(snapshot(folder.path()), broken);

    let (code, stdout, stderr) = offline("repair", folder.path(), &["--accept-loss"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let after = snapshot(folder.path());
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let kept: Vec<_> = after
        .iter()
        .filter(|(path, _)| path.starts_with("lost/"))
        .collect();
    for (path, bytes) in broken.iter().filter(|(path, _)| path.starts_with("log/")) {
        let there = after.get(path) == Some(bytes) || kept.iter().any(|(_, kept)| *kept == bytes);
        assert!(there, "{path} is gone");
    }
    assert!(kept.iter().any(|(path, _)| path.ends_with(name)), "{name}");
    assert_eq!(offline("verify", folder.path(), &[]).0, 0);
    Node::start(folder.path()).stop();
    assert_eq!(folder::rows(folder.path()), written.rows_in_checkpoint);
}

#[test]
fn a_damaged_graph_goes_and_no_row_with_it() {
    for missing in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let written = fill(folder.path());
        let file = one_of(&folder.path().join("datasets/1"), ".hnsw");
        flip(&file, 30);
        if missing {
            std::fs::remove_file(&file).expect("removed");
        }
        let (code, stdout, _) = offline("repair", folder.path(), &[]);
        assert_eq!(code, 3);
        assert!(stdout.contains("No rows are lost"), "{stdout}");
        let (code, stdout, stderr) = offline("repair", folder.path(), &["--accept-loss"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        Node::start(folder.path()).stop();
        assert_eq!(folder::rows(folder.path()), written.rows);
    }
}

#[test]
fn damaged_rows_stay_and_so_does_everything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let all = kinds(folder.path());
    for (kind, file, at) in &all[1..4] {
        flip(file, *at);
        flip(&all[0].1, 200);
        let broken = snapshot(folder.path());
        let (code, stdout, stderr) = offline("repair", folder.path(), &["--accept-loss"]);
        assert_eq!(code, 3, "{kind}: {stdout}{stderr}");
        assert!(
            stdout.contains("cannot be repaired") && stdout.contains("backup"),
            "{stdout}"
        );
        assert_eq!(snapshot(folder.path()), broken, "{kind}");
        flip(&all[0].1, 200);
        flip(file, *at);
    }
}

#[test]
fn the_log_is_printed_entry_by_entry() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = fill(folder.path());
    let tail = |more: &[&str]| {
        let (code, stdout, stderr) = offline("log tail", folder.path(), more);
        assert_eq!(code, 0, "{stderr}");
        let lines = stdout.lines().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let entries: Vec<Value> = tail(&["--json", "--from", "0"])
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let indexes: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry["index"].as_u64())
        .collect();
    let expected: Vec<_> = (indexes[0]..=written.last).collect();
    assert_eq!(indexes, expected);
    let last = &entries[entries.len() - 1];
    assert_eq!(
        (&last["kind"], &last["subject"]),
        (&"put".into(), &"words".into())
    );
    assert!(
        last["bytes"].as_u64() > Some(100) && last["shard"].is_u64(),
        "{last}"
    );
    let time = last["time"].as_str().expect("a time");
    assert!(
        time.starts_with("20") && time.ends_with('Z') && time.len() == 27,
        "{time}"
    );

    let three = tail(&["--limit", "3"]);
    assert_eq!(three.len(), 3);
    let text = &three[2];
    assert!(
        text.contains(&written.last.to_string()) && text.contains("put"),
        "{text}"
    );
    let from = (written.last - 4).to_string();
    assert_eq!(tail(&["--from", &from, "--limit", "2"]).len(), 2);
    assert_eq!(tail(&["--from", &from]).len(), 5);

    flip(&one_of(&folder.path().join("log"), ".log"), 200);
    let (code, _, stderr) = offline("log tail", folder.path(), &[]);
    assert_eq!(code, 3);
    assert!(stderr.contains("damaged"), "{stderr}");
}

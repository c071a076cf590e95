//! What belongs to one room stays there: files, the network, and code that the compiler can't check.

use crate::rust;
use crate::tree::{File, Tree};

/// What a file of the product names, without comments, strings and tests.
fn product_code(tree: &Tree) -> impl Iterator<Item = (&File, String)> {
    let test_files: Vec<String> = tree
        .files
        .iter()
        .filter(|file| file.is_product())
        .flat_map(|file| {
            rust::test_modules(&rust::code(&file.text))
                .into_iter()
                .map(|name| module(&file.path, &name))
        })
        .collect();
    tree.files
        .iter()
        .filter(|file| file.is_product())
        .filter(move |file| {
            let stem = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
            !test_files
                .iter()
                .any(|test| stem == test || stem.starts_with(&format!("{test}/")))
        })
        .map(|file| (file, rust::without_tests(&rust::code(&file.text))))
}

/// The path, without ending, of a module that a file declares.
fn module(path: &str, name: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{name}"),
        file => format!("{folder}/{}/{name}", file.trim_end_matches(".rs")),
    }
}

/// Reads `/proc`, the control group and the configuration file, before there is a data folder.
const MAY_OPEN: [&str; 1] = ["crates/types/src/host.rs"];

/// Only the room `disk` names files of the operating system.
pub fn only_disk_opens_files(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    let elsewhere =
        |file: &&File| file.room() != Some("disk") && !MAY_OPEN.contains(&file.path.as_str());
    for (file, code) in product_code(tree).filter(|(file, _)| elsewhere(file)) {
        for (at, word) in rust::words(&code) {
            let path = code[at + word.len()..].starts_with("::");
            let opens =
                ["fs", "OpenOptions", "memmap2"].contains(&word) && (path || in_path(&code, at));
            if opens || word == "File" && path {
                complaints.push(format!(
                    "{}:{}: `{word}` outside of disk",
                    file.path,
                    rust::line(&code, at)
                ));
            }
        }
    }
    complaints
}

fn in_path(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end();
    before.ends_with("::")
        || before.ends_with('{')
        || before.ends_with(',')
        || before.ends_with("use")
}

/// What only one room may name: the room, and the words.
const ONLY: [(&str, &[&str]); 2] = [
    ("server", &["arrow_flight", "axum", "tonic"]),
    ("python", &["arrow_pyarrow", "pyo3"]),
];

/// Only the room `server` names the network's protocols, and only the room `python` names Python.
pub fn each_outside_has_its_room(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (file, code) in product_code(tree) {
        for (room, names) in ONLY.iter().filter(|(room, _)| file.room() != Some(room)) {
            for (at, word) in rust::words(&code).filter(|(_, word)| names.contains(word)) {
                complaints.push(format!(
                    "{}:{}: `{word}` outside of {room}",
                    file.path,
                    rust::line(&code, at)
                ));
            }
        }
    }
    complaints
}

const UNSAFE_ROOMS: [&str; 3] = ["kernels", "index", "disk"];

/// How far above a block its reason may stand: a long reason, and a statement that begins before the block.
const REASON_LINES: usize = 12;

/// `unsafe` is in three rooms only, each block with its reason; the other crates forbid it to themselves.
pub fn unsafe_has_its_rooms_and_reasons(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.with_ending(".rs").filter(|file| file.room().is_some()) {
        let room_may = file.room().is_some_and(|room| UNSAFE_ROOMS.contains(&room));
        let code = rust::code(&file.text);
        for (at, _) in rust::words(&code).filter(|(_, word)| *word == "unsafe") {
            let line = rust::line(&code, at);
            if !room_may {
                complaints.push(format!(
                    "{}:{line}: `unsafe` in a room that may not",
                    file.path
                ));
            } else if needs_reason(&code[at..]) && !has_reason(&file.text, line) {
                complaints.push(format!(
                    "{}:{line}: `unsafe` without a SAFETY comment",
                    file.path
                ));
            }
        }
        let root = file.is("/src/lib.rs") || file.is("/src/main.rs");
        if root && !room_may && !file.text.contains("#![forbid(unsafe_code)]") {
            complaints.push(format!("{}: does not forbid unsafe code", file.path));
        }
    }
    complaints
}

/// Blocks and implementations do; functions state their contract in their documentation, which clippy asks for.
fn needs_reason(code: &str) -> bool {
    let next = code["unsafe".len()..].trim_start();
    next.starts_with('{') || next.starts_with("impl")
}

fn has_reason(text: &str, line: usize) -> bool {
    let from = line.saturating_sub(REASON_LINES + 1);
    text.lines()
        .skip(from)
        .take(line - from)
        .any(|line| line.contains("// SAFETY:"))
}

#[test]
fn files_opened_outside_of_disk_are_found() {
    let bad = "use std::{fs, io};\nfn f() { std::fs::read(p); File::open(p); }\n// fs::read\n#[cfg(test)]\nmod t { use std::fs; }";
    let tree = Tree::sample(&[
        ("crates/log/src/a.rs", bad),
        ("crates/disk/src/a.rs", bad),
        ("crates/log/tests/a.rs", bad),
        (
            "crates/log/src/lib.rs",
            "#[cfg(test)]\nmod model;\nlet fs = 1;",
        ),
        ("crates/log/src/model.rs", bad),
        ("crates/types/src/host.rs", bad),
    ]);
    let expected = [
        "crates/log/src/a.rs:1: `fs` outside of disk",
        "crates/log/src/a.rs:2: `fs` outside of disk",
        "crates/log/src/a.rs:2: `File` outside of disk",
    ];
    assert_eq!(only_disk_opens_files(&tree), expected);
}

#[test]
fn the_network_and_python_outside_of_their_rooms_are_found() {
    let (network, python) = ("use tonic::Status;\n// axum\n", "use pyo3::prelude::*;\n");
    let tree = Tree::sample(&[
        ("crates/engine/src/a.rs", network),
        ("crates/server/src/a.rs", network),
        ("crates/python/src/a.rs", python),
        ("crates/server/src/b.rs", python),
    ]);
    assert_eq!(
        each_outside_has_its_room(&tree),
        [
            "crates/engine/src/a.rs:1: `tonic` outside of server",
            "crates/server/src/b.rs:1: `pyo3` outside of python"
        ]
    );
}

#[test]
fn unsafe_without_room_or_reason_is_found() {
    let (with, without) = (
        "// SAFETY: checked above.\nunsafe { f() }",
        "\n\nunsafe { f() }\nunsafe fn g() {}",
    );
    let tree = Tree::sample(&[
        ("crates/log/src/a.rs", with),
        ("crates/disk/src/a.rs", with),
        ("crates/disk/src/b.rs", without),
        ("crates/log/src/lib.rs", ""),
        ("crates/types/src/lib.rs", "#![forbid(unsafe_code)]"),
    ]);
    let expected = [
        "crates/log/src/a.rs:2: `unsafe` in a room that may not",
        "crates/disk/src/b.rs:3: `unsafe` without a SAFETY comment",
        "crates/log/src/lib.rs: does not forbid unsafe code",
    ];
    assert_eq!(unsafe_has_its_rooms_and_reasons(&tree), expected);
}

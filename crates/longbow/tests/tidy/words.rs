//! What must not stand in the tree. The words are put together here, so that this file does not hold them itself.

use crate::tree::{File, Tree};

const CODE: [&str; 5] = [".rs", ".py", ".sh", "Makefile", ".toml"];

/// Put off, switched off, or left lying about.
const LATER: [&str; 8] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("unimple", "mented!"),
    concat!("to", "do!("),
    concat!("#[ign", "ore"),
    concat!("allow(dead", "_code)"),
    concat!("db", "g!("),
];

/// Nothing is put off, switched off or left over from a search for a fault.
pub fn nothing_is_left_for_later(tree: &Tree) -> Vec<String> {
    find(
        tree.files
            .iter()
            .filter(|file| CODE.iter().any(|ending| file.is(ending))),
        &LATER,
    )
}

/// Paths of a single machine, and hosts that packages happen to come from.
const FOREIGN: [&str; 8] = [
    concat!("/wo", "rk/"),
    concat!("/tmp/bri", "efs"),
    concat!("/ro", "ot/"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js."),
    concat!("deb.deb", "ian.org"),
];

/// The project does not depend on where it was written or where its packages came from.
pub fn the_tree_speaks_of_itself_alone(tree: &Tree) -> Vec<String> {
    find(tree.files.iter(), &FOREIGN)
}

fn find<'a>(files: impl Iterator<Item = &'a File>, words: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (i, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{}:{}: `{word}`", file.path, i + 1));
            }
        }
    }
    complaints
}

/// No blanks at the ends of lines, no tabs but in a Makefile, and a line break at the end of a file.
pub fn lines_are_clean(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    let kept = |file: &&File| {
        CODE.iter()
            .chain(&[".md", ".yml", ".ci/run"])
            .any(|ending| file.is(ending))
    };
    for file in tree.files.iter().filter(kept) {
        for (i, line) in file.text.lines().enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                complaints.push(format!(
                    "{}:{}: blanks at the end of the line",
                    file.path,
                    i + 1
                ));
            }
            if line.contains('\t') && !file.is("Makefile") {
                complaints.push(format!("{}:{}: a tab", file.path, i + 1));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            complaints.push(format!("{}: no line break at the end", file.path));
        }
    }
    complaints
}

#[test]
fn what_is_put_off_is_found() {
    for word in LATER {
        let text = format!("a\nb {word} c\n");
        let tree = Tree::sample(&[("a.rs", &text), ("notes.txt", &text)]);
        assert_eq!(
            nothing_is_left_for_later(&tree),
            [format!("a.rs:2: `{word}`")]
        );
    }
}

#[test]
fn foreign_places_are_found_in_any_file() {
    for word in FOREIGN {
        let tree = Tree::sample(&[
            ("notes.txt", &format!("x {word}y\n")),
            ("b.rs", "fn work() {}\n"),
        ]);
        assert_eq!(
            the_tree_speaks_of_itself_alone(&tree),
            [format!("notes.txt:1: `{word}`")]
        );
    }
}

#[test]
fn unclean_lines_are_found() {
    let tree = Tree::sample(&[
        ("a.rs", "x \ny\n"),
        ("b.py", "x"),
        ("c.md", "\tx\n"),
        ("Makefile", "\tx\n"),
        ("d.tsv", "x\t"),
    ]);
    let expected = [
        "a.rs:1: blanks at the end of the line",
        "b.py: no line break at the end",
        "c.md:1: a tab",
    ];
    assert_eq!(lines_are_clean(&tree), expected);
}

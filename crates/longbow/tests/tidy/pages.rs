//! What a newcomer reads first.

use crate::tree::{File, Tree};

const MIN_PAGE: usize = 10;

/// Every crate begins with a page that says what it is and what it is not.
pub fn every_crate_begins_with_a_page(tree: &Tree) -> Vec<String> {
    let root =
        |file: &&File| file.room().is_some() && (file.is("/src/lib.rs") || file.is("/src/main.rs"));
    let page = |file: &File| {
        file.text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .count()
    };
    let short = tree
        .files
        .iter()
        .filter(root)
        .filter(|file| page(file) < MIN_PAGE);
    short
        .map(|file| {
            format!(
                "{}: begins with {} lines of page, fewer than {MIN_PAGE}",
                file.path,
                page(file)
            )
        })
        .collect()
}

/// Every link of a Markdown file to a file of the tree leads to one.
pub fn links_lead_somewhere(tree: &Tree) -> Vec<String> {
    let broken = |file: &File| -> Vec<String> {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let targets =
            links(&file.text).filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        let paths = targets
            .map(|link| link.split('#').next().unwrap_or_default())
            .filter(|path| !path.is_empty());
        let missing = paths.filter(|path| !exists(tree, &join(folder, path)));
        missing
            .map(|path| format!("{}: links to {path}, which is not there", file.path))
            .collect()
    };
    tree.with_ending(".md").flat_map(broken).collect()
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0))
}

fn join(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let known = tree
        .files
        .iter()
        .any(|file| file.path == path || file.path.starts_with(&format!("{path}/")));
    known
        || tree
            .root
            .as_ref()
            .is_some_and(|root| root.join(path).exists())
}

#[test]
fn a_crate_without_a_page_is_found() {
    let page = "//! A line.\n".repeat(MIN_PAGE);
    let late = format!("use x;\n{page}");
    let tree = Tree::sample(&[
        ("crates/a/src/lib.rs", &page),
        ("crates/b/src/lib.rs", &late),
        ("crates/b/src/c.rs", ""),
    ]);
    let expected = ["crates/b/src/lib.rs: begins with 0 lines of page, fewer than 10"];
    assert_eq!(every_crate_begins_with_a_page(&tree), expected);
}

#[test]
fn a_link_to_nowhere_is_found() {
    let page =
        "[a](../README.md#top) [b](https://example.org/x) [c](#here) [d](nowhere.md) [e](sub)";
    let tree = Tree::sample(&[
        ("docs/a.md", page),
        ("README.md", ""),
        ("docs/sub/x.md", ""),
    ]);
    assert_eq!(
        links_lead_somewhere(&tree),
        ["docs/a.md: links to nowhere.md, which is not there"]
    );
}

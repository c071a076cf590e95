//! An option that nothing reads is a lie.

use longbow_types::{Availability, OPTIONS};

use crate::rust;
use crate::tree::Tree;

/// Every option that is offered is read outside of the crate that defines it.
pub fn every_option_is_read(tree: &Tree) -> Vec<String> {
    let readers = tree
        .files
        .iter()
        .filter(|file| file.is_product() && file.room() != Some("types"));
    let code: Vec<String> = readers
        .map(|file| rust::without_tests(&rust::code(&file.text)))
        .collect();
    let read = |key: &str| {
        code.iter()
            .any(|code| rust::words(code).any(|(at, word)| word == key && is_field(code, at)))
    };
    let offered = OPTIONS
        .iter()
        .filter(|spec| spec.availability == Availability::Now);
    offered
        // The table itself reads this one, to let other addresses pass.
        .filter(|spec| spec.key != "insecure" && !read(spec.key))
        .map(|spec| {
            format!(
                "option {}: nothing reads it; read it or mark it as not available",
                spec.key
            )
        })
        .collect()
}

fn is_field(code: &str, at: usize) -> bool {
    code[..at].trim_end().ends_with('.')
}

#[test]
fn an_option_that_nothing_reads_is_found() {
    let unread = |text: &str| {
        let tree = Tree::sample(&[
            ("crates/engine/src/a.rs", text),
            ("crates/types/src/b.rs", "config.hnsw_m"),
        ]);
        every_option_is_read(&tree)
            .iter()
            .any(|complaint| complaint.starts_with("option hnsw_m:"))
    };
    assert!(unread("let hnsw_m = 1; // config.hnsw_m"));
    assert!(unread(
        "#[cfg(test)] mod tests { fn f() { config.hnsw_m } }"
    ));
    assert!(!unread("f(config.hnsw_m)"));
}

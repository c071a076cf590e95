//! The rules of the house, held by a test. Each rule is a function from the files of the tree to complaints, and has a
//! test of its own on a bad sample, so that it is known to be able to fail.

mod arrows;
mod functions;
mod options;
mod pages;
mod rooms;
mod rust;
mod tree;
mod words;

use tree::Tree;

/// All rules.
const RULES: [fn(&Tree) -> Vec<String>; 12] = [
    arrows::crates_point_down,
    functions::files_are_short,
    functions::functions_are_short,
    options::every_option_is_read,
    pages::every_crate_begins_with_a_page,
    pages::links_lead_somewhere,
    rooms::only_disk_opens_files,
    rooms::each_outside_has_its_room,
    rooms::unsafe_has_its_rooms_and_reasons,
    words::nothing_is_left_for_later,
    words::lines_are_clean,
    words::the_tree_speaks_of_itself_alone,
];

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::read();
    assert!(
        tree.files.len() > 20,
        "only {} files found: the walk is wrong",
        tree.files.len()
    );
    let complaints: Vec<String> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    assert!(
        complaints.is_empty(),
        "{} complaints:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

//! Crates depend downwards only.

use crate::tree::Tree;

/// What each crate may stand on. A crate that is not here may not exist; add it with its arrows, on purpose.
const ARROWS: [(&str, &[&str]); 12] = [
    ("types", &[]),
    ("kernels", &[]),
    ("disk", &[]),
    ("index", &["kernels"]),
    ("log", &["disk"]),
    ("storage", &["disk"]),
    ("text", &[]),
    (
        "engine",
        &[
            "types", "kernels", "index", "disk", "log", "storage", "text",
        ],
    ),
    ("query", &["types", "engine", "disk"]),
    ("server", &["types", "engine", "query"]),
    ("python", &["types", "disk", "engine", "query"]),
    (
        "longbow",
        &[
            "types", "kernels", "index", "disk", "log", "engine", "server",
        ],
    ),
];

/// No crate depends on one that it may not stand on, not even in its tests.
pub fn crates_point_down(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.with_ending("/Cargo.toml") {
        let Some(room) = file.room() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            complaints.push(format!(
                "{}: a crate without arrows in the tidy test",
                file.path
            ));
            continue;
        };
        let manifest: toml::Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                complaints.push(format!("{}: {error}", file.path));
                continue;
            }
        };
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let names = manifest
                .get(table)
                .and_then(toml::Value::as_table)
                .into_iter()
                .flat_map(toml::Table::keys);
            let ours = names.filter_map(|name| name.strip_prefix("longbow-"));
            for name in ours.filter(|name| !allowed.contains(name) && *name != room) {
                complaints.push(format!("{}: {room} may not stand on {name}", file.path));
            }
        }
    }
    complaints
}

#[test]
fn an_arrow_that_points_up_is_found() {
    let up = "[package]\nname = 'x'\n[dependencies]\nserde = '1'\nlongbow-engine = { path = '' }";
    let dev = "[dev-dependencies]\nlongbow-server.workspace = true";
    let tree = Tree::sample(&[
        ("crates/disk/Cargo.toml", up),
        ("crates/engine/Cargo.toml", dev),
        ("crates/server/Cargo.toml", up),
        ("crates/attic/Cargo.toml", ""),
        ("crates/log/Cargo.toml", "[dependencies"),
    ]);
    let complaints = crates_point_down(&tree);
    assert_eq!(complaints.len(), 4, "{complaints:?}");
    assert_eq!(
        complaints[0],
        "crates/disk/Cargo.toml: disk may not stand on engine"
    );
    assert_eq!(
        complaints[1],
        "crates/engine/Cargo.toml: engine may not stand on server"
    );
    assert!(complaints[2].contains("attic"), "{complaints:?}");
}

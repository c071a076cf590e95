//! The text files of the repository.

use std::path::{Path, PathBuf};

/// A text file.
pub struct File {
    /// From the repository's root, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl File {
    /// Whether the name ends so.
    pub fn is(&self, ending: &str) -> bool {
        self.path.ends_with(ending)
    }

    /// The room (crate) it lies in, if it lies in one.
    pub fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether it is Rust that ends up in the program: not a test, an example or a benchmark.
    pub fn is_product(&self) -> bool {
        let inside = self.path.split('/').nth(2);
        self.is(".rs") && self.room().is_some() && inside == Some("src")
    }
}

/// All of them.
pub struct Tree {
    /// Where it lies; nowhere for a sample.
    pub root: Option<PathBuf>,
    /// In no order.
    pub files: Vec<File>,
}

/// Larger files are data.
const MAX_TEXT: u64 = 1 << 20;

impl Tree {
    /// Reads the repository that this test belongs to.
    pub fn read() -> Tree {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("the repository is there");
        let mut files = Vec::new();
        walk(&root, &root, &mut files);
        Tree {
            root: Some(root),
            files,
        }
    }

    /// A made-up tree.
    #[cfg(test)]
    pub fn sample(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).into(),
            text: (*text).into(),
        };
        Tree {
            root: None,
            files: files.iter().map(file).collect(),
        }
    }

    /// The files with this ending.
    pub fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.is(ending))
    }
}

/// Made by builds or by tools, or data.
const SKIPPED: [&str; 5] = ["target", "__pycache__", "data", "build", "node_modules"];
const HIDDEN_BUT_OURS: [&str; 3] = [".ci", ".cargo", ".gitignore"];

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&name.as_str());
        if hidden
            || SKIPPED.contains(&name.as_str())
            || name.ends_with(".egg-info")
            || name == "Cargo.lock"
        {
            continue;
        }
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            walk(root, &path, files);
        } else if kind.is_file()
            && entry.metadata().is_ok_and(|meta| meta.len() <= MAX_TEXT)
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let path = path
                .strip_prefix(root)
                .expect("below the root")
                .to_string_lossy()
                .replace('\\', "/");
            files.push(File { path, text });
        }
    }
}

#[test]
fn a_file_knows_its_room() {
    let tree = Tree::sample(&[
        ("crates/disk/src/lib.rs", ""),
        ("crates/disk/tests/a.rs", ""),
        ("demo/run.py", ""),
    ]);
    let rooms: Vec<_> = tree
        .files
        .iter()
        .map(|file| (file.room(), file.is_product()))
        .collect();
    assert_eq!(
        rooms,
        [(Some("disk"), true), (Some("disk"), false), (None, false)]
    );
}

//! Data folders for tests, and nodes on them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use longbow_engine::{Engine, Id, Options};
use rustix::process::{Pid, Signal, kill_process};

use crate::run::longbow;

/// What a folder was filled with.
pub struct Written {
    /// Living rows of the checkpoint, and in all.
    pub rows_in_checkpoint: u64,
    pub rows: u64,
    /// The last index of the log.
    pub last: u64,
}

fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    let vector = |id: i64| {
        Some(
            (0..8)
                .map(|i| Some(((id * 31 + i * 7) % 101) as f32))
                .collect::<Vec<_>>(),
        )
    };
    let vectors =
        FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(ids.clone().map(vector), 8);
    let texts = StringArray::from_iter_values(ids.clone().map(|id| format!("word {}", id % 9)));
    let ids = Int64Array::from(ids.collect::<Vec<_>>());
    let columns = [
        ("id", Arc::new(ids) as _),
        ("vector", Arc::new(vectors) as _),
        ("text", Arc::new(texts) as _),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Fills a folder with every kind of file, and more in the log than the checkpoint has, over several segments.
pub fn fill(folder: &Path) -> Written {
    let options = Options {
        log_segment_bytes: 16 << 10,
        ..Options::new(folder)
    };
    let engine = Engine::open_folder(options).expect("an empty folder");
    let put = |ids: std::ops::Range<i64>| {
        let batch = batch(ids);
        let mut session = engine.put("words", &batch.schema()).expect("a good schema");
        let pending = session.record_batch(&batch).expect("good rows");
        pending.wait().expect("acknowledged");
    };
    put(0..500);
    let dead = (0..20).map(Id::Int).collect();
    let deleted = engine.delete_ids("words", dead).expect("known ids");
    deleted.wait().expect("acknowledged");
    let dataset = engine.dataset("words").expect("it is there");
    assert!(dataset.wait_for_index(Duration::from_secs(300)));
    engine.checkpoint().expect("a checkpoint");
    for start in 0..30 {
        put(1000 + start * 50..1050 + start * 50);
    }
    let (last, _) = engine.log_indices();
    engine.close().expect("closed");
    Written {
        rows_in_checkpoint: 480,
        rows: 480 + 30 * 50,
        last,
    }
}

/// Living rows of a folder.
pub fn rows(folder: &Path) -> u64 {
    let engine = Engine::open_folder(Options::new(folder)).expect("a sound folder");
    engine.recovered().rows
}

/// Flips a bit of a file.
pub fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).expect("a file");
    bytes[at] ^= 1;
    std::fs::write(file, bytes).expect("written");
}

/// The first file of a folder with this ending.
pub fn one_of(folder: &Path, ending: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .min();
    found.unwrap_or_else(|| panic!("no {ending} in {}", folder.display()))
}

/// All files but the lock, by their paths within the folder.
pub fn snapshot(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below").to_string_lossy();
            if name != "LOCK" {
                files.insert(name.into_owned(), std::fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

/// A node that runs. It is killed if the test ends early.
pub struct Node(Child, String);

impl Node {
    fn spawn(folder: &Path) -> (Node, String) {
        let mut command = longbow();
        command.args(["serve", "--data-path"]).arg(folder);
        for flag in ["--listen-addr", "--meta-addr", "--metrics-addr"] {
            command.args([flag, "127.0.0.1:0"]);
        }
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("started");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut ready)
            .expect("a line or the end");
        (Node(child, ready.clone()), ready)
    }

    /// Starts one and waits until it is up.
    pub fn start(folder: &Path) -> Node {
        let (mut node, ready) = Node::spawn(folder);
        if !ready.starts_with("longbow ready") {
            let (_, said) = node.end();
            panic!("{said}");
        }
        node
    }

    /// Expects that none starts; its exit code, and what it says.
    pub fn refuses(folder: &Path) -> (Option<i32>, String) {
        let (mut node, ready) = Node::spawn(folder);
        assert_eq!(ready, "", "it started");
        node.end()
    }

    /// Where its data server listens.
    pub fn uri(&self) -> String {
        let mut words = self.1.split_whitespace();
        let data = words.find_map(|word| word.strip_prefix("data="));
        format!("grpc://{}", data.expect("a node that is up"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Stops it and expects it to end well.
    pub fn stop(mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::TERM).expect("sent");
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
    }

    fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("UTF-8");
        (self.0.wait().expect("ended").code(), said)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // After `end` the process is gone already, and there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

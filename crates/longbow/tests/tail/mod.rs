//! `longbow log tail --uri` from outside: the log of a node that runs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::{Node, Written, fill};
use crate::run::{longbow, run};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

fn tail(node: &Node, more: &[&str]) -> (i32, String, String) {
    let uri = node.uri();
    run(longbow().args(["log", "tail", "--uri", &uri]).args(more))
}

fn filled(folder: &Path) -> (Written, Node) {
    (fill(folder), Node::start(folder))
}

#[test]
fn a_node_says_of_its_log_what_its_folder_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let (written, node) = filled(folder.path());
    let from = (written.last - 4).to_string();
    let variants: [&[&str]; 5] = [
        &[],
        &["--limit", "3"],
        &["--from", &from],
        &["--from", &from, "--limit", "2"],
        &["--json", "--from", &from],
    ];
    let asked = variants.map(|more| tail(&node, more));
    node.stop();
    for (more, online) in variants.iter().zip(asked) {
        let mut offline = longbow();
        offline
            .args(["log", "tail", "--data-path"])
            .arg(folder.path());
        assert_eq!(online, run(offline.args(*more)), "{more:?}");
        assert_eq!(online.0, 0, "{}", online.2);
    }
}

/// A `log tail --follow` that runs. It is killed if the test ends early.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(node: &Node, more: &[&str]) -> Follower {
        let mut command = longbow();
        command.args(["log", "tail", "--json", "--follow", "--uri", &node.uri()]);
        let piped = command
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().expect("started");
        let stdout = child.stdout.take().expect("piped");
        let (to, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| to.send(line))
        });
        Follower { child, lines }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(LONG).expect("a line in time");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Its exit code, and what it complained of.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("UTF-8");
        (self.child.wait().expect("ended").code(), said)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // After `end` the process is gone already, and there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_is_followed_until_an_interrupt_which_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (written, node) = filled(folder.path());
    let follower = Follower::start(&node, &["--limit", "2"]);
    assert_eq!(follower.next()["index"], written.last - 1);
    assert_eq!(follower.next()["index"], written.last);
    let pid = i32::try_from(follower.child.id())
        .ok()
        .and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), Signal::INT).expect("sent");
    assert_eq!(follower.end(), (Some(0), String::new()));
    node.stop();
}

#[test]
fn a_follower_does_not_hold_up_a_node_that_stops_and_says_where_to_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (written, node) = filled(folder.path());
    let follower = Follower::start(&node, &["--limit", "1"]);
    assert_eq!(follower.next()["index"], written.last);
    node.stop();
    let (code, said) = follower.end();
    assert_eq!(code, Some(1), "{said}");
    let next = format!("from sequence {}", written.last + 1);
    assert!(
        said.contains("node_stopped") && said.contains(&next),
        "{said}"
    );
}

#[test]
fn what_cannot_be_followed_is_told() {
    let cases: [(&[&str], i32, &str); 5] = [
        (
            &["--uri", "grpc://127.0.0.1:1"],
            1,
            "cannot reach grpc://127.0.0.1:1",
        ),
        (
            &["--uri", "127.0.0.1:3000"],
            1,
            "like grpc://127.0.0.1:3000",
        ),
        (
            &["--uri", "grpc://x:1", "--data-path", "x"],
            2,
            "cannot be used with",
        ),
        (&["--data-path", "x", "--follow"], 2, "cannot be used with"),
        (&["--follow"], 2, "--uri <URI>"),
    ];
    for (args, code, words) in cases {
        let (ended, stdout, stderr) = run(longbow().args(["log", "tail"]).args(args));
        assert_eq!((ended, stdout.as_str()), (code, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{words:?} in {stderr}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (_, node) = filled(folder.path());
    let (code, _, stderr) = tail(&node, &["--from", "1"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("log_purged: ") && stderr.contains("begins at"),
        "{stderr}"
    );
    node.stop();
}

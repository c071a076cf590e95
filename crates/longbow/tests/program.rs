//! The `longbow` program from outside: exit codes, messages, the start and the stop.

mod run;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use run::{longbow, run};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_wrong_command_line_or_configuration_ends_with_2_and_says_why() {
    let cases: [(&str, &str, &[&str]); 7] = [
        ("serve --hnsw-n 16", "", &["--hnsw-n", "--hnsw-m"]),
        (
            "serve --hnsw-m 1",
            "",
            &["hnsw_m", "\"1\"", "from 2 to 128"],
        ),
        (
            "serve",
            "LONGBOW_DATA_PTH=x",
            &["LONGBOW_DATA_PTH", "LONGBOW_DATA_PATH"],
        ),
        (
            "serve",
            "LONGBOW_TTL=1h",
            &["ttl", "not available in this version"],
        ),
        (
            "serve --listen-addr 0.0.0.0:0",
            "",
            &["0.0.0.0:0", "--insecure"],
        ),
        (
            "serve --config /nonexistent.toml",
            "",
            &["/nonexistent.toml"],
        ),
        (
            "config",
            "LONGBOW_CONFIG=/nonexistent.toml",
            &["/nonexistent.toml"],
        ),
    ];
    for (args, variable, words) in cases {
        let mut command = longbow();
        let (code, stdout, stderr) =
            run(command.args(args.split(' ')).envs(variable.split_once('=')));
        assert_eq!((code, stdout.as_str()), (2, ""), "{args}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{word:?} in {stderr}");
        }
    }
}

#[test]
fn config_shows_value_and_source_of_every_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("longbow.toml");
    std::fs::write(&file, "hnsw_ef_search = 77\nwal_segment_size = \"8MiB\"\n").expect("written");
    let mut command = longbow();
    command
        .args(["config", "--hnsw-m", "24", "--config"])
        .arg(&file);
    let (code, stdout, stderr) = run(command.env("LONGBOW_MAX_MEMORY", "1GiB"));
    assert_eq!(code, 0, "{stderr}");
    for line in [
        "hnsw_m = 24    [flag --hnsw-m]".to_owned(),
        format!(
            "hnsw_ef_search = 77    [key hnsw_ef_search of {}]",
            file.display()
        ),
        format!(
            "wal_segment_size = 8MiB    [key wal_segment_size of {}]",
            file.display()
        ),
        "memory_limit = 1GiB    [variable LONGBOW_MAX_MEMORY]".to_owned(),
        "data_path = ./data    [default]".to_owned(),
    ] {
        assert!(stdout.contains(&line), "{line} in {stdout}");
    }
}

#[test]
fn the_version_is_told() {
    let expected = format!("longbow {}\n", env!("CARGO_PKG_VERSION"));
    for args in [["version"], ["--version"]] {
        assert_eq!(
            run(longbow().args(args)),
            (0, expected.clone(), String::new())
        );
    }
}

#[test]
fn the_page_of_the_documentation_is_the_one_in_the_tree() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let written = std::fs::read_to_string(page).expect("docs/configuration.md");
    let (code, printed, _) = run(longbow().args(["config", "--markdown"]));
    assert_eq!(code, 0);
    assert_eq!(
        written, printed,
        "run `longbow config --markdown > docs/configuration.md`"
    );
}

/// A server under test. It is killed if the test ends early.
struct Server {
    child: Child,
    ready: String,
}

impl Server {
    fn start(folder: &Path) -> Server {
        let mut child = serve(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut ready)
            .expect("a line or the end");
        Server {
            child,
            ready: ready.trim_end().to_owned(),
        }
    }

    fn field(&self, name: &str) -> &str {
        let words = self.ready.split(' ');
        words
            .filter_map(|word| word.split_once('='))
            .find(|(key, _)| *key == name)
            .map_or("", |(_, value)| value)
    }

    /// Sends a signal and gives the exit code and what was logged.
    fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id");
        kill_process(pid, signal).expect("sent");
        let code = self.child.wait().expect("ended").code();
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut log)
            .expect("UTF-8");
        (code, log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` the process is gone already, and there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(folder: &Path) -> Command {
    let mut command = longbow();
    command.args(["serve", "--data-path"]).arg(folder);
    for flag in ["--listen-addr", "--meta-addr", "--metrics-addr"] {
        command.args([flag, "127.0.0.1:0"]);
    }
    command
}

#[test]
fn the_server_says_where_it_is_and_stops_cleanly_on_either_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("there");
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&path);
        assert!(
            server.ready.starts_with("longbow ready data=127.0.0.1:"),
            "{}",
            server.ready
        );
        for name in ["data", "meta", "http"] {
            let addr: std::net::SocketAddr = server.field(name).parse().expect("an address");
            assert_ne!(addr.port(), 0, "{}", server.ready);
            std::net::TcpStream::connect(addr).expect("somebody listens");
        }
        assert!(
            server.ready.ends_with(&format!(" path={}", path.display())),
            "{}",
            server.ready
        );
        let (code, log) = server.stop(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.lines()
                .any(|line| line.contains(r#""message":"ready""#)),
            "{log}"
        );
    }
}

#[test]
fn a_second_server_on_the_same_folder_or_port_ends_with_1_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Server::start(folder.path());
    assert!(first.ready.starts_with("longbow ready"), "{}", first.ready);

    let (code, stdout, stderr) = run(&mut serve(folder.path()));
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(
        stderr.contains("lock") && stderr.contains(&folder.path().display().to_string()),
        "{stderr}"
    );

    let other = tempfile::tempdir().expect("a folder");
    let data = first.field("data").to_owned();
    let mut command = longbow();
    command.args([
        "serve",
        "--meta-addr",
        "127.0.0.1:0",
        "--metrics-addr",
        "127.0.0.1:0",
        "--listen-addr",
        &data,
    ]);
    let (code, stdout, stderr) = run(command.arg("--data-path").arg(other.path()));
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.contains(&data) && stderr.contains("use"), "{stderr}");

    assert_eq!(first.stop(Signal::TERM).0, Some(0));
}

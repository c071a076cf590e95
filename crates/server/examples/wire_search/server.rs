//! The program, serving a folder.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Outcome;

/// A server on free ports of the loopback address; ends when dropped.
pub struct Server {
    /// Where its data server listens.
    pub data: String,
    child: Child,
}

impl Server {
    /// Starts it and waits until it says that it is ready.
    pub fn start(binary: &Path, folder: &Path) -> Outcome<Server> {
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data-path").arg(folder);
        for flag in ["--listen-addr", "--meta-addr", "--metrics-addr"] {
            command.args([flag, "127.0.0.1:0"]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| {
            format!("{binary:?} cannot be started: {error}; build it, or name another by --binary")
        })?;
        let mut server = Server {
            data: String::new(),
            child,
        };
        let out = server.child.stdout.take().ok_or("no output")?;
        for line in BufReader::new(out).lines() {
            let line = line?;
            if let Some(rest) = line.strip_prefix("longbow ready data=") {
                let address = rest.split(' ').next().unwrap_or_default();
                server.data = format!("http://{address}");
                return Ok(server);
            }
        }
        Err("the server ended before it was ready".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its folder is a copy that goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

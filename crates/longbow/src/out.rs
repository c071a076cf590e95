//! Standard output and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use longbow_disk::{Disk, RealDisk};
use serde::Serialize;

/// The command line or the configuration is wrong.
pub const BAD_CONFIGURATION: u8 = 2;

/// A data folder is damaged.
pub const DAMAGED: u8 = 3;

/// Prints a line. A reader that has gone away is no error of ours.
pub fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => complain(&format!("cannot write to standard output: {error}"), 1),
    }
}

/// Prints a report: as JSON if that is to go to `-`, else as text, with the JSON in the file that was named.
pub fn publish(
    report: &impl Serialize,
    json: Option<&Path>,
    text: impl FnOnce() -> String,
) -> ExitCode {
    let told = match serde_json::to_string_pretty(report) {
        Ok(told) => told,
        Err(error) => return complain(&format!("cannot write the report: {error}"), 1),
    };
    match json {
        Some(path) if path.as_os_str() == "-" => return print(&told),
        Some(path) => {
            if let Err(error) = RealDisk.write_atomic(path, told.as_bytes()) {
                return complain(&error.to_string(), 1);
            }
        }
        None => {}
    }
    print(&text())
}

/// Says on standard error what is wrong, and gives the exit code.
pub fn complain(message: &str, code: u8) -> ExitCode {
    // If standard error is gone too there is nobody left to tell.
    let _ = writeln!(std::io::stderr().lock(), "longbow: {message}");
    ExitCode::from(code)
}

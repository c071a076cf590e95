//! Standard output and exit codes.

use std::io::Write;
use std::process::ExitCode;

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

/// Says on standard error what is wrong, and gives the exit code.
pub fn complain(message: &str, code: u8) -> ExitCode {
    // If standard error is gone too there is nobody left to tell.
    let _ = writeln!(std::io::stderr().lock(), "longbow: {message}");
    ExitCode::from(code)
}

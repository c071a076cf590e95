//! Running the program under test.

use std::process::{Command, Output, Stdio};

/// The program under test, with nothing of the environment that it reads.
pub fn longbow() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longbow"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LONGBOW_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Its exit code, and what it said.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program was built");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        status.code().expect("not killed"),
        text(stdout),
        text(stderr),
    )
}

//! The log of the process: structured lines on standard error.

use std::io::{self, IsTerminal};

use longbow_types::{Config, LogFormat};
use tracing_subscriber::filter::EnvFilter;

/// Sends the log to standard error in the format and from the level that the configuration says. Libraries below us
/// stay at `warn` unless all is asked for.
pub fn start(config: &Config) {
    let level = &config.log_level;
    let directives = match level.as_str() {
        "trace" => "trace".to_owned(),
        "error" => "error".to_owned(),
        _ => format!(
            "warn,longbow={level},{}",
            ROOMS.map(|room| format!("{room}={level}")).join(",")
        ),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(directives))
        .with_writer(io::stderr);
    match config.log_format {
        LogFormat::Json => builder.json().flatten_event(true).init(),
        LogFormat::Console => {
            let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            builder.compact().with_ansi(colours).init();
        }
    }
}

/// The crates of ours that log.
const ROOMS: [&str; 4] = [
    "longbow_server",
    "longbow_engine",
    "longbow_storage",
    "longbow_log",
];

//! The `longbow` program: `serve`, `config`, `verify`, `repair`, `log tail`, `bench log`, `bench ann`, `bench spfresh`, `plan`, `sql`, `capacity`, `version`.
//!
//! It reads the command line, sets up the log, and hands over to the server's crate. What it is not: a place for logic
//! of the database.
//!
//! Exit codes: 0 after a clean stop (SIGTERM or SIGINT), 1 if the server can't start or fails, 2 if the command line or
//! the configuration is wrong, 3 if a data folder is damaged. Standard output carries only what was asked for: the
//! settings, the version, a report, or the one line `longbow ready …` of a server that is up. All else goes to standard
//! error.
//!
//! ```text
//! longbow serve --data-path ./data --listen-addr 127.0.0.1:0
//! ```
#![forbid(unsafe_code)]

mod args;
mod banner;
mod bench_ann;
mod bench_log;
mod bench_spfresh;
mod capacity;
mod chart;
mod cli;
mod config_cmd;
mod dice;
mod histogram;
mod logging;
mod machine;
mod median;
mod offline;
mod out;
mod plan;
mod rounded;
mod scratch;
mod serve;
mod sql_cmd;

use std::process::ExitCode;

/// Requests allocate on many threads and free on others, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::parse() {
        cli::Command::Serve { inputs } => serve::serve(inputs),
        cli::Command::Config { inputs } => config_cmd::list(inputs),
        cli::Command::BenchLog { settings } => bench_log::run(settings.map(|settings| *settings)),
        cli::Command::BenchAnn { settings } => bench_ann::run(settings.map(|settings| *settings)),
        cli::Command::BenchSpfresh { settings } => {
            bench_spfresh::run(settings.map(|settings| *settings))
        }
        cli::Command::Capacity { asked } => capacity::run(asked),
        cli::Command::Plan { asked } => plan::run(asked.map(|asked| *asked)),
        cli::Command::Sql { asked } => sql_cmd::run(&asked),
        cli::Command::Offline { asked } => offline::run(asked),
        cli::Command::Markdown => config_cmd::markdown(),
        cli::Command::Version => out::print(&format!("longbow {}", env!("CARGO_PKG_VERSION"))),
    }
}

//! The command line, made from the table of options, so that no flag can be missing.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use longbow_types::{ConfigError, Inputs, Kind, OPTIONS, Spec};

use crate::{bench_ann, bench_log, bench_spfresh, capacity, offline, plan, sql_cmd};

/// What was asked for.
pub enum Command {
    /// Run the server.
    Serve {
        /// What its configuration is made from, or why it can't be read.
        inputs: Result<Inputs, ConfigError>,
    },
    /// Print the settings.
    Config {
        /// As for `Serve`.
        inputs: Result<Inputs, ConfigError>,
    },
    /// Print the page of the documentation that describes them.
    Markdown,
    /// Measure the write-ahead log.
    BenchLog {
        /// What is asked for, or what is wrong with it.
        settings: Result<Box<bench_log::Settings>, String>,
    },
    /// Measure an index.
    BenchAnn {
        /// What is asked for, or what is wrong with it.
        settings: Result<Box<bench_ann::Settings>, String>,
    },
    /// Measure updates and searches of the engine.
    BenchSpfresh {
        /// What is asked for, or what is wrong with it.
        settings: Result<Box<bench_spfresh::Settings>, String>,
    },
    /// Say what a load takes.
    Capacity {
        /// The load, and whether as JSON; or what is wrong with it.
        asked: Result<(capacity::Load, bool), String>,
    },
    /// Say what a dataset will take.
    Plan {
        /// The dataset and the node, or what is wrong with them.
        asked: Result<Box<plan::Asked>, String>,
    },
    /// Run a SQL statement on a node.
    Sql {
        /// Which, and where.
        asked: sql_cmd::Asked,
    },
    /// Do something with a data folder that no node runs on.
    Offline {
        /// What.
        asked: offline::Asked,
    },
    /// Print the version.
    Version,
}

/// Reads the command line of this process. Help, or a mistake in it, ends the process here, the latter with exit code 2.
pub fn parse() -> Command {
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("serve", matches)) => Command::Serve {
            inputs: inputs(matches),
        },
        Some(("config", matches)) if matches.get_flag("markdown") => Command::Markdown,
        Some(("config", matches)) => Command::Config {
            inputs: inputs(matches),
        },
        Some(("bench", matches)) => bench(matches),
        Some(("capacity", matches)) => Command::Capacity {
            asked: capacity::load(matches),
        },
        Some(("plan", matches)) => Command::Plan {
            asked: plan::asked(matches).map(Box::new),
        },
        Some(("sql", matches)) => Command::Sql {
            asked: sql_cmd::asked(matches),
        },
        Some((name, matches)) => match offline::asked(name, matches) {
            Some(asked) => Command::Offline { asked },
            None => Command::Version,
        },
        None => Command::Version,
    }
}

fn bench(matches: &ArgMatches) -> Command {
    match matches.subcommand() {
        Some(("ann", matches)) => Command::BenchAnn {
            settings: bench_ann::settings(matches).map(Box::new),
        },
        Some(("spfresh", matches)) => Command::BenchSpfresh {
            settings: bench_spfresh::settings(matches).map(Box::new),
        },
        Some((_, matches)) => Command::BenchLog {
            settings: bench_log::settings(matches).map(Box::new),
        },
        None => Command::BenchLog {
            settings: Err("bench: nothing to measure was named".to_owned()),
        },
    }
}

fn command() -> clap::Command {
    let markdown = Arg::new("markdown")
        .long("markdown")
        .action(ArgAction::SetTrue)
        .help("Print the page docs/configuration.md instead");
    clap::Command::new("longbow")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A vector database that speaks Apache Arrow")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(settings(
            clap::Command::new("serve").about("Run the server"),
        ))
        .subcommand(
            settings(
                clap::Command::new("config")
                    .about("Print every setting, where it came from, and what it means"),
            )
            .arg(markdown),
        )
        .subcommands(offline::commands())
        .subcommand(
            clap::Command::new("bench")
                .about("Measure this machine")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(bench_ann::command())
                .subcommand(bench_log::command())
                .subcommand(bench_spfresh::command()),
        )
        .subcommand(capacity::command())
        .subcommand(plan::command())
        .subcommand(sql_cmd::command())
        .subcommand(clap::Command::new("version").about("Print the version"))
}

/// Gives a command the flag of every option.
fn settings(command: clap::Command) -> clap::Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("A TOML file of settings [env: LONGBOW_CONFIG]");
    OPTIONS
        .iter()
        .fold(command.arg(config), |command, spec| command.arg(flag(spec)))
}

fn flag(spec: &'static Spec) -> Arg {
    let default = match spec.default_words() {
        "" => String::new(),
        words => format!(" [default: {words}]"),
    };
    let arg = Arg::new(spec.key)
        .long(spec.flag.as_str())
        .value_name("VALUE")
        .action(ArgAction::Set)
        .allow_hyphen_values(true)
        .help(format!(
            "{} [env: {}]{default}",
            spec.meaning, spec.variable
        ))
        .long_help(format!(
            "{}\nAllowed: {}. [env: {}]{default}",
            spec.meaning,
            spec.kind.allowed(),
            spec.variable
        ))
        .hide(spec.availability == longbow_types::Availability::NotYet);
    // `--insecure` alone means true.
    let arg = match spec.kind {
        Kind::Flag => arg
            .num_args(0..=1)
            .default_missing_value("true")
            .allow_hyphen_values(false),
        _ => arg,
    };
    spec.aliases
        .iter()
        .fold(arg, |arg, alias| arg.alias(alias.replace('_', "-")))
}

fn inputs(matches: &ArgMatches) -> Result<Inputs, ConfigError> {
    let given = |spec: &Spec| {
        Some((
            spec.flag.clone(),
            matches.get_one::<String>(spec.key)?.clone(),
        ))
    };
    let flags = OPTIONS.iter().filter_map(given).collect();
    Inputs::of_process(flags, matches.get_one::<PathBuf>("config").cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(args: &[&str]) -> Vec<(String, String)> {
        let args = ["longbow", "serve"].iter().chain(args);
        let matches = command().try_get_matches_from(args).expect("valid");
        let (_, matches) = matches.subcommand().expect("serve");
        inputs(matches).expect("no file").flags
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_option_is_a_flag() {
        for spec in OPTIONS.iter() {
            let expected = vec![(spec.flag.clone(), "x".to_owned())];
            assert_eq!(flags(&[&format!("--{}", spec.flag), "x"]), expected);
            for alias in spec.aliases {
                assert_eq!(
                    flags(&[&format!("--{}=x", alias.replace('_', "-"))]),
                    expected
                );
            }
        }
    }

    #[test]
    fn a_switch_needs_no_value() {
        let switched = |value: &str| vec![("insecure".to_owned(), value.to_owned())];
        assert_eq!(flags(&["--insecure"]), switched("true"));
        assert_eq!(flags(&["--insecure=false"]), switched("false"));
        assert_eq!(flags(&["--insecure", "--hnsw-m", "8"]).len(), 2);
    }

    #[test]
    fn an_unknown_flag_is_met_with_the_nearest() {
        let error = command()
            .try_get_matches_from(["longbow", "serve", "--data-pth", "x"])
            .expect_err("unknown");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--data-path"), "{error}");
    }
}

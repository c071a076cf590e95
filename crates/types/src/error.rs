//! Why a configuration was refused.

use std::fmt;
use std::path::PathBuf;

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command line, without its dashes.
    Flag(String),
    /// An environment variable, by its full name.
    Environment(String),
    /// A key of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The key as it stands in the file.
        key: String,
    },
    /// Nobody set it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(name) => write!(f, "flag --{name}"),
            Source::Environment(name) => write!(f, "variable {name}"),
            Source::File { path, key } => write!(f, "key {key} of {}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A configuration that can't be started with. Each text names the wrong value and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A name that no option has.
    #[error("unknown setting: {origin}{}; `longbow config` lists them all", did_you_mean(.nearest))]
    Unknown {
        /// Where it was found.
        origin: Source,
        /// The known name that looks most like it, in the same spelling.
        nearest: Option<String>,
    },
    /// A value that the option does not take.
    #[error("bad value for {name}: {value:?} ({origin}); allowed: {allowed}")]
    BadValue {
        /// The option, as in the table.
        name: &'static str,
        /// What was given.
        value: String,
        /// Where it was given.
        origin: Source,
        /// What would have been taken.
        allowed: String,
    },
    /// The same option given twice in one place, under two of its names.
    #[error("{name} is set twice: {first} and {second}; keep one of them")]
    SetTwice {
        /// The option, as in the table.
        name: &'static str,
        /// The one met first.
        first: Source,
        /// The other.
        second: Source,
    },
    /// An option whose feature this version does not have.
    #[error(
        "{name} = {value:?} ({origin}): not available in this version; leave it at its default, {default:?}"
    )]
    NotYet {
        /// The option, as in the table.
        name: &'static str,
        /// What was given.
        value: String,
        /// Where it was given.
        origin: Source,
        /// The only value taken now.
        default: String,
    },
    /// A server would be reachable from other machines without encryption and authentication.
    #[error(
        "{name} = {addr} ({origin}) is reachable from other machines, and this version has neither TLS nor \
         authentication; use a loopback address such as 127.0.0.1, or say --insecure if the network is trusted"
    )]
    Exposed {
        /// The option, as in the table.
        name: &'static str,
        /// The address.
        addr: std::net::SocketAddr,
        /// Where it was given.
        origin: Source,
    },
    /// The configuration file can't be read.
    #[error("cannot read the configuration file {}: {source}; check --config and LONGBOW_CONFIG", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The configuration file is no TOML.
    #[error("the configuration file {} is not valid TOML: {source}", .path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where and why, from the parser.
        source: Box<toml::de::Error>,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name}?"),
        None => String::new(),
    }
}

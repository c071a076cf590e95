//! What one statement may take, and what a session is told of its node.

use std::time::Duration;

use longbow_types::Config;

/// What statements may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Memory that all running statements together may hold in hash tables, sorts and the like, in bytes.
    pub memory: usize,
    /// How long one statement may run, its client's reading included; zero: for ever.
    pub timeout: Duration,
    /// Time from which on a statement is logged as slow; zero: none is.
    pub slow: Duration,
    /// Longest statement, in bytes.
    pub length: usize,
    /// Threads that run statements.
    pub threads: usize,
}

impl Limits {
    /// The keys of the configuration that they are read from, beside `slow_query`.
    pub const KEYS: [&str; 3] = ["sql_max_length", "sql_memory_limit", "sql_timeout"];

    /// As configured.
    #[must_use]
    pub fn configured(config: &Config) -> Limits {
        Limits {
            memory: config.sql_memory_limit,
            timeout: config.sql_timeout,
            slow: config.slow_query,
            length: config.sql_max_length,
            ..Limits::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 256 << 20,
            timeout: Duration::from_secs(300),
            slow: Duration::from_secs(1),
            length: 4 << 20,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// A setting of the node, as the table `longbow.config` tells it.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its key.
    pub name: String,
    /// Its value, as text.
    pub value: String,
    /// What it does.
    pub meaning: String,
}

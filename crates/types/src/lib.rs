//! What every room of Longbow may know: its configuration and its metrics.
//!
//! * [`Config`] holds every setting with its type. It is made by [`resolve()`] from flags, environment variables, a TOML
//!   file and defaults, in this order. One table, [`OPTIONS`], says which settings there are; flags, variables, file keys,
//!   `longbow config` and `docs/configuration.md` are all derived from it.
//! * [`Metrics`] holds every metric of the process with its help text; [`Metrics::render`] writes them for Prometheus.
//! * [`host`] asks the machine for what defaults depend on: memory, cores, name; [`cpu_time`] how long threads had a processor.
//!
//! This crate is *not* a place for shared helpers, and it knows nothing of datasets, Arrow or the network: it has no
//! behaviour beyond reading settings and counting.
//!
//! Invariants:
//!
//! * An unknown name or a bad value never passes silently: [`resolve()`] fails with the name, the value, where it came
//!   from, what is allowed, and the nearest known name.
//! * An option whose feature is not built ([`Availability::NotYet`]) is refused when it is set to anything but its default.
//! * Labels of metrics are bounded: methods, statuses and kinds are fixed words; a dataset's series go when it goes.
//!
//! ```
//! use longbow_types::{Host, Inputs, resolve};
//!
//! let inputs = Inputs {
//!     flags: vec![("hnsw-m".into(), "32".into())],
//!     environment: vec![("LONGBOW_HNSW_M".into(), "8".into()), ("LONGBOW_WAL_LINGER".into(), "2ms".into())],
//!     file: None,
//!     host: Host::example(),
//! };
//! let config = resolve(&inputs)?.config();
//! assert_eq!(config.hnsw_m, 32); // a flag wins over the environment
//! assert_eq!(config.wal_linger.as_millis(), 2);
//! # Ok::<(), longbow_types::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

pub mod cpu_time;
mod error;
mod from_value;
pub mod host;
mod index_choice;
mod inputs;
mod listing;
mod metrics;
mod names;
mod options;
mod quantization_choice;
mod resolve;
mod value;

pub use error::{ConfigError, Source};
pub use host::Host;
pub use index_choice::IndexChoice;
pub use inputs::{ConfigFile, Inputs};
pub use listing::{markdown, text};
pub use metrics::{Metrics, gauge, metrics};
pub use names::{edits, nearest};
pub use options::{Availability, Config, Fallback, OPTIONS, Spec};
pub use quantization_choice::QuantizationChoice;
pub use resolve::{Resolved, Setting, resolve};
pub use value::{Kind, LogFormat, Unsynced, Value, WalSyncMethod};

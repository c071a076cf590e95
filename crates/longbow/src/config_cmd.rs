//! `longbow config`: every setting, where it came from, and what it means.

use std::process::ExitCode;

use longbow_types::{ConfigError, Inputs, resolve};

use crate::out::{BAD_CONFIGURATION, complain, print};

/// Prints the settings in force.
pub fn list(inputs: Result<Inputs, ConfigError>) -> ExitCode {
    match inputs.and_then(|inputs| resolve(&inputs)) {
        Ok(resolved) => print(longbow_types::text(&resolved).trim_end()),
        Err(error) => complain(&error.to_string(), BAD_CONFIGURATION),
    }
}

/// Prints the page of the documentation.
pub fn markdown() -> ExitCode {
    print(longbow_types::markdown().trim_end())
}

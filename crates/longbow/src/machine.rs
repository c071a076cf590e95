//! The machine that figures were taken on.

use longbow_kernels::Kernels;
use longbow_types::Host;
use serde::Serialize;

/// The machine, as far as it matters to a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Cores that the process may use.
    pub cores: usize,
    /// Bytes of memory that it may use.
    pub memory_bytes: u64,
    /// The processor's architecture.
    pub architecture: &'static str,
    /// The instructions that distances use.
    pub simd: String,
    /// The operating system and its release.
    pub system: String,
    /// Processes that wanted to run, in the mean of the minute before: above a few tenths, others disturb the figures.
    pub load_before: f64,
}

impl Machine {
    /// Asks it.
    pub fn probe() -> Machine {
        let host = Host::probe();
        let name = rustix::system::uname();
        let load = rustix::system::sysinfo().loads[0];
        // The load is a fixed-point number with 16 binary places.
        let hundredths = (load as f64 / 65_536.0 * 100.0).round();
        Machine {
            cores: host.cores,
            memory_bytes: host.memory,
            architecture: std::env::consts::ARCH,
            simd: Kernels::get().isa().to_string(),
            system: format!(
                "{} {}",
                name.sysname().to_string_lossy(),
                name.release().to_string_lossy()
            ),
            load_before: hundredths / 100.0,
        }
    }
}

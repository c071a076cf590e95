//! The clock of benchmarks.

use std::sync::OnceLock;
use std::time::Instant;

/// Seconds that this thread has run, which other load disturbs little; where the system does not tell, those that passed.
pub fn thread_seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let wall = || START.get_or_init(Instant::now).elapsed().as_secs_f64();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_cpu = stat.and_then(|stat| stat.split(' ').next()?.parse::<u64>().ok());
    on_cpu.map_or_else(wall, |ns| ns as f64 / 1e9)
}

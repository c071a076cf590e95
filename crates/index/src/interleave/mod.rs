//! Concurrency under a scheduler that explores interleavings, `shuttle`. Built with `--cfg shuttle` alone: `make interleave`.
//!
//! Each test is executed many times, each time in another order of all accesses to what threads share (see
//! [`crate::sync`]): half of the times in a random order, half with few preemptions at random places, by probabilistic
//! concurrency testing (Burckhardt et al., ASPLOS 2010), which finds the rare ones. A failure prints its schedule; the
//! variable `SCHEDULE` has a test executed by that schedule alone.

mod graph;
mod pool;
mod visits;

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Preemptions of an execution, at most.
const PREEMPTIONS: usize = 3;
/// Of the schedulers, unless the variable `SHUTTLE_RANDOM_SEED` says another.
const SEED: u64 = 1;
/// Bytes of a thread's stack.
const STACK: usize = 256 << 10;

/// Executes a test as often as the variable `ITERATIONS` says (200 if it says nothing), or one in `cost` of those.
pub(crate) fn explore(cost: usize, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    if let Ok(schedule) = std::env::var("SCHEDULE") {
        return execute(ReplayScheduler::new_from_encoded(&schedule), &test);
    }
    let iterations = std::env::var("ITERATIONS").map_or(200, |iterations| {
        iterations.parse().expect("ITERATIONS is a number")
    });
    let each = usize::div_ceil(iterations, 2 * cost);
    execute(RandomScheduler::new_from_seed(SEED, each), &test);
    execute(PctScheduler::new_from_seed(SEED, PREEMPTIONS, each), &test);
}

fn execute(scheduler: impl Scheduler + 'static, test: &Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    let test = Arc::clone(test);
    Runner::new(scheduler, config).run(move || test());
}

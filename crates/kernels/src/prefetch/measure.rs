//! Which level of the cache is the better aim, on this machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{LINE, Level, prefetch_into};

/// Bytes that are read in a row, as of a node of a graph.
const RUN: usize = 2048;
/// Runs between the one that is asked for and the one that is read.
const AHEAD: usize = 4;
/// Parts of the memory, by turns for the one level and the other.
const PARTS: usize = 32;
/// Passes over all parts. The first does not count: memory that was just taken can be slow for a moment, and tell nothing.
const PASSES: usize = 3;
/// Times as fast as with the first that reading must be with the second: what comes into the first is nearer when it is read, which tells
/// where more is done with it than here. A Zen 4 is 1.6 to 2.4 times as fast.
const FASTER: f64 = 1.3;

/// The level for which reading runs of `memory` in no order is faster if they are asked for before. It takes some milliseconds.
///
/// The memory should be more than the caches hold, and written, since pages that never were are all the same one. Less than half a
/// megabyte tells nothing, and the answer is then the first.
#[must_use]
pub fn measure(memory: &[u8]) -> Level {
    let runs: Vec<&[u8]> = memory.chunks_exact(RUN).collect();
    let part = runs.len() / PARTS;
    if part < 2 * AHEAD {
        return Level::First;
    }
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..PASSES * PARTS {
        let level = [Level::First, Level::Second][number % 2];
        // Runs of a part lie as far from each other as they can.
        let order: Vec<&[u8]> = (0..part)
            .map(|at| runs[scrambled(at, part) * PARTS + number % PARTS])
            .collect();
        let took = time(level, &order);
        if number >= PARTS {
            times[number % 2].push(took);
        }
    }
    let [first, second] = times.map(undisturbed);
    if first.as_secs_f64() > FASTER * second.as_secs_f64() {
        Level::Second
    } else {
        Level::First
    }
}

/// A number below `count` for each below it, far from those of its neighbours: steps of the golden section.
fn scrambled(at: usize, count: usize) -> usize {
    let mut step = (count as f64 * 0.618) as usize | 1;
    while gcd(step, count) != 1 {
        step += 2;
    }
    at * step % count
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn time(level: Level, runs: &[&[u8]]) -> Duration {
    let begun = Instant::now();
    let mut sum = 0u64;
    for (at, run) in runs.iter().enumerate() {
        if let Some(next) = runs.get(at + AHEAD) {
            prefetch_into(level, next.as_ptr(), next.len());
        }
        let lines = run.chunks_exact(LINE);
        sum += lines.map(|line| u64::from(line[0])).sum::<u64>();
    }
    black_box(sum);
    begun.elapsed()
}

/// The time of a part that nothing else on the machine disturbed, probably: a quarter took less.
fn undisturbed(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_a_part_is_read_once() {
        for count in [1, 2, 8, 63, 64, 100, 1024] {
            let mut seen: Vec<usize> = (0..count).map(|at| scrambled(at, count)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn memory_that_tells_nothing_is_left_at_the_first_level() {
        for bytes in [0, RUN, PARTS * (2 * AHEAD - 1) * RUN] {
            assert_eq!(measure(&vec![1; bytes]), Level::First, "{bytes}");
        }
    }

    #[test]
    fn prefetches_aim_where_they_are_told() {
        let memory = vec![1; PARTS * 2 * AHEAD * RUN + 7];
        // Which it is depends on the machine; that it reads within the memory does not.
        let _either = measure(&memory);
        assert_eq!(Level::aimed_at(), Level::First);
        Level::Second.aim();
        super::super::prefetch_all(memory.as_ptr(), memory.len());
        assert_eq!(Level::aimed_at(), Level::Second);
        Level::First.aim();
    }
}

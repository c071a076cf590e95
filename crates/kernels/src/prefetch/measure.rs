//! Which level of the cache is the better aim, on this machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{CacheLevel, LINE, prefetch_into};

/// Bytes that are read in a row, as of a node of a graph.
const RUN: usize = 2048;
/// Runs between the one that is asked for and the one that is read.
const AHEAD: usize = 4;
/// Parts of the memory, by turns for the one level and the other. Odd, so that to both levels come as many runs at the begin of a page as
/// at its end, and runs of a part do not all fall into the same few places of a cache.
const PARTS: usize = 93;
/// Parts that do not count: memory that was just taken can be slow for a moment, and tell nothing.
const FIRST_PARTS: usize = 31;
/// Times as fast as with the first that reading must be with the second: what comes into the first is nearer when it is read, which tells
/// where more is done with it than here.
const FASTER: f64 = 1.3;

/// The level for which reading runs of `memory` in no order is faster if they are asked for before. It takes some milliseconds.
///
/// The memory should be more than the caches hold, and written, since pages that never were are all the same one. Less than one and
/// a half megabytes tell nothing, and the answer is then the first.
#[must_use]
pub fn measure(memory: &[u8]) -> CacheLevel {
    let runs: Vec<&[u8]> = memory.chunks_exact(RUN).collect();
    let part = runs.len() / PARTS;
    if part < 2 * AHEAD {
        return CacheLevel::First;
    }
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..PARTS {
        let level = [CacheLevel::First, CacheLevel::Second][number % 2];
        // Runs that are read one after the other lie far from each other.
        let order: Vec<&[u8]> = (0..part)
            .map(|at| runs[scrambled(at, part) * PARTS + number])
            .collect();
        let took = time(level, &order);
        if number >= FIRST_PARTS {
            times[number % 2].push(took);
        }
    }
    better(times)
}

/// The better level, by what reading a part took with each.
fn better(times: [Vec<Duration>; 2]) -> CacheLevel {
    let [first, second] = times.map(undisturbed);
    if first.as_secs_f64() > FASTER * second.as_secs_f64() {
        CacheLevel::Second
    } else {
        CacheLevel::First
    }
}

/// The time of a part that nothing else on the machine disturbed, probably: a quarter took less.
fn undisturbed(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 4]
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

fn time(level: CacheLevel, runs: &[&[u8]]) -> Duration {
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
    fn each_level_reads_both_halves_of_pages_and_counts_as_often() {
        let mut reads = [[0; 2]; 2];
        for number in FIRST_PARTS..PARTS {
            // Of two runs of a part, one after the other by their places.
            for place in [number, PARTS + number] {
                reads[number % 2][place % 2] += 1;
            }
        }
        assert_eq!(reads, [[31; 2]; 2]);
    }

    #[test]
    fn the_second_level_must_be_clearly_better() {
        let times = |micros: [u64; 8]| micros.map(Duration::from_micros).to_vec();
        // Some parts were disturbed.
        let first = times([100, 900, 101, 100, 800, 102, 100, 700]);
        for (second, level) in [
            ([70, 71, 70, 900, 70, 800, 72, 70], CacheLevel::Second),
            ([80, 81, 82, 80, 80, 81, 80, 80], CacheLevel::First),
            ([300, 310, 300, 300, 300, 320, 300, 300], CacheLevel::First),
        ] {
            assert_eq!(better([first.clone(), times(second)]), level, "{second:?}");
        }
    }

    #[test]
    fn memory_that_tells_nothing_is_left_at_the_first_level() {
        for bytes in [0, RUN, PARTS * 2 * AHEAD * RUN - 1] {
            assert_eq!(measure(&vec![1; bytes]), CacheLevel::First, "{bytes}");
        }
    }

    #[test]
    fn prefetches_aim_where_they_are_told() {
        let memory = vec![1; PARTS * 2 * AHEAD * RUN + 7];
        // Which it is depends on the machine; that it reads within the memory does not.
        let _either = measure(&memory);
        assert_eq!(CacheLevel::aimed_at(), CacheLevel::First);
        CacheLevel::Second.aim();
        super::super::prefetch_all(memory.as_ptr(), memory.len());
        assert_eq!(CacheLevel::aimed_at(), CacheLevel::Second);
        CacheLevel::First.aim();
    }
}

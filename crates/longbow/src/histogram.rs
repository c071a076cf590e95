//! How often each latency was seen, and its percentiles.

use std::time::Duration;

/// Each octave of values has `2^SUB_BITS` buckets, so that a value is known to within 1/128 of itself.
const SUB_BITS: u32 = 7;

/// How often each latency was seen. Its buckets are as wide as they are far from zero, like those of HdrHistogram (Gil
/// Tene), so that millions of latencies take 60 KB and noting one takes two additions.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Histogram {
    /// One that has seen nothing.
    pub fn new() -> Histogram {
        Histogram {
            counts: vec![0; bucket(u64::MAX) + 1],
            total: 0,
            max: 0,
        }
    }

    /// Notes a latency.
    pub fn note(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max = self.max.max(ns);
    }

    /// Adds what another has seen.
    pub fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The latency in microseconds that the share `quantile` (0 to 1) of all does not exceed, never less than it really
    /// is; `None` if nothing was seen.
    pub fn percentile_us(&self, quantile: f64) -> Option<f64> {
        let rank = ((quantile * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_end(index).min(self.max) as f64 / 1e3);
            }
        }
        None
    }

    /// The longest, in microseconds; `None` if nothing was seen.
    pub fn max_us(&self) -> Option<f64> {
        (self.total > 0).then(|| self.max as f64 / 1e3)
    }
}

/// Values below 256 have a bucket each; above, the eight leading bits choose it.
fn bucket(ns: u64) -> usize {
    let bits = 64 - ns.leading_zeros();
    let shift = bits.saturating_sub(SUB_BITS + 1);
    ((shift as usize) << SUB_BITS) + (ns >> shift) as usize
}

/// The largest value of a bucket.
fn upper_end(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    let lowest = ((index - (shift << SUB_BITS)) as u64) << shift;
    lowest + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for ns in values {
            histogram.note(Duration::from_nanos(*ns));
        }
        histogram
    }

    #[test]
    fn percentiles_of_the_numbers_to_a_hundred() {
        let values: Vec<u64> = (1..=100).map(|ms| ms * 1000).collect();
        let histogram = of(&values);
        for (quantile, us) in [(0.0, 1.0), (0.5, 50.0), (0.95, 95.0), (0.99, 99.0)] {
            let found = histogram.percentile_us(quantile).expect("not empty");
            assert!((us..=us * 1.008).contains(&found), "{quantile}: {found}");
        }
        assert_eq!(histogram.percentile_us(1.0), Some(100.0));
        assert_eq!(histogram.max_us(), Some(100.0));
    }

    #[test]
    fn nothing_seen_has_no_percentile() {
        let empty = Histogram::new();
        assert_eq!((empty.percentile_us(0.5), empty.max_us()), (None, None));
    }

    #[test]
    fn buckets_are_in_order_without_gaps() {
        for index in 0..bucket(u64::MAX) {
            let end = upper_end(index);
            assert_eq!((bucket(end), bucket(end + 1)), (index, index + 1));
        }
        assert_eq!(upper_end(bucket(u64::MAX)), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_percentile_is_never_flattered_and_nearly_exact(
            mut values in prop::collection::vec(0u64..1 << 45, 1..300),
            quantile in 0.0f64..=1.0,
        ) {
            let found = of(&values).percentile_us(quantile).expect("not empty") * 1e3;
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            prop_assert!(found >= exact * (1.0 - 1e-9), "{found} {exact}");
            prop_assert!(found <= exact * (1.0 + 1.0 / 128.0) + 1e-6, "{found} {exact}");
        }
    }
}

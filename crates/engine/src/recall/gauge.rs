//! The recall of what was served, averaged over the last samples.

use std::collections::VecDeque;

/// Samples that the mean is taken of.
const WINDOW: usize = 500;

/// Shares of the true neighbours that were answered, of the last samples.
#[derive(Debug, Default)]
pub(crate) struct Gauge(VecDeque<f32>);

impl Gauge {
    pub fn push(&mut self, recall: f32) {
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(recall);
    }

    /// How many samples it holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|recall| f64::from(*recall)).sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_the_last_samples() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.mean(), None);
        gauge.push(0.0);
        gauge.push(0.5);
        assert_eq!(gauge.mean(), Some(0.25));
        for _ in 0..WINDOW {
            gauge.push(1.0);
        }
        assert_eq!((gauge.len(), gauge.mean()), (WINDOW, Some(1.0)));
        gauge.push(0.0);
        assert_eq!(gauge.mean(), Some(1.0 - 1.0 / WINDOW as f64));
    }
}

//! Until when a request may take.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The end of a request's time, if it has one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// So long after the start; never, if there is no limit.
    pub fn after(started: Instant, limit: Option<Duration>) -> Self {
        Deadline(limit.and_then(|limit| Some((started.checked_add(limit)?, limit))))
    }

    /// How much time is left; any, if there is no limit.
    pub fn left(&self) -> Option<Duration> {
        self.0
            .map(|(end, _)| end.saturating_duration_since(Instant::now()))
    }

    /// The same, or this moment if that is earlier.
    pub(crate) fn or_at(self, end: Instant) -> Self {
        match self.0 {
            Some((own, _)) if own <= end => self,
            other => Deadline(Some((
                end,
                other.map_or(Duration::ZERO, |(_, limit)| limit),
            ))),
        }
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// [`Error::Timeout`] if there is none.
    pub fn check(&self) -> Result<()> {
        match self.0 {
            Some((end, limit)) if Instant::now() > end => Err(Error::Timeout(limit)),
            _ => Ok(()),
        }
    }
}

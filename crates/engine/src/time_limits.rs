//! How long a search may take.

use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::error::Result;
use crate::search_request::SearchRequest;

/// Until when a search may go on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeLimits {
    /// After it the search is refused, in the words of what was asked for.
    pub deadline: Deadline,
    /// From it on the search ends with what it has.
    budget: Option<Instant>,
}

impl TimeLimits {
    /// What a request asks for that came at `started`.
    pub fn of(request: &SearchRequest, started: Instant) -> Self {
        // What is too far away to be told is never.
        let end = |limit: Duration| started.checked_add(limit);
        TimeLimits {
            deadline: Deadline::after(started, request.timeout),
            budget: request.budget.and_then(end),
        }
    }

    /// Whether the search may have to end early.
    pub fn have_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Whether the search is to end with what it has.
    pub fn are_spent(&self) -> bool {
        self.budget.is_some_and(|end| Instant::now() >= end)
    }

    /// For what is of no use unless it is whole: it ends as well where the budget does.
    pub fn of_whole(&self) -> Deadline {
        match self.budget {
            Some(end) => self.deadline.or_at(end),
            None => self.deadline,
        }
    }

    /// # Errors
    /// If the time is over after which the search is refused.
    pub fn check(&self) -> Result<()> {
        self.deadline.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeout: Option<Duration>, budget: Option<Duration>) -> TimeLimits {
        let request = SearchRequest {
            timeout,
            budget,
            ..SearchRequest::nearest(vec![0.0], 1)
        };
        TimeLimits::of(&request, Instant::now())
    }

    #[test]
    fn a_budget_ends_a_search_and_a_timeout_refuses_it() {
        let none = limits(None, None);
        assert!(none.check().is_ok() && !none.are_spent() && !none.have_budget());
        let spent = limits(None, Some(Duration::ZERO));
        assert!(spent.check().is_ok() && spent.are_spent() && spent.have_budget());
        for long in [Duration::from_secs(3_600), Duration::MAX] {
            let ample = limits(Some(long), Some(long));
            assert!(ample.check().is_ok() && !ample.are_spent());
        }
    }
}

//! The log of slow searches.

use std::time::Duration;

use crate::explain::Explain;
use crate::reply::QueryInfo;

/// Whether what took so long is to be logged, by the option: zero is never.
pub(crate) fn is_slow(took: Duration, least: Duration) -> bool {
    !least.is_zero() && took >= least
}

/// Logs a search that took long: where its time went, and why it went as it did.
pub(crate) fn report(dataset: &str, took: Duration, info: &QueryInfo, explain: &Explain) {
    let filter = explain.filter.as_ref();
    tracing::warn!(
        target: "longbow::slow",
        dataset,
        took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        plan_us = info.plan_us,
        index_us = info.index_us,
        filter_us = filter.map_or(0, |filter| filter.filter_us),
        strategy = info.strategy,
        asked = info.asked,
        returned = info.returned,
        ef = info.ef,
        rows = explain.rows,
        rows_passing = filter.map(|filter| filter.rows_passing),
        rows_scanned = info.rows_scanned,
        distance_computations = info.distance_computations,
        nodes_popped = info.nodes_popped,
        bytes_read = explain.bytes_read,
        steps = explain.steps.join("; "),
        "slow search"
    );
}

//! Many queries, answered in messages that are bounded, each of which says how far it has come.

use bytes::Bytes;
use longbow_engine::QueryInfo;
use serde::Serialize;

/// Most queries that are answered by one message: enough to keep the cores busy, and few enough that answers stream.
const QUERIES: usize = 512;
/// Most rows that are answered by one message, but for a single query.
const ROWS: usize = 1 << 16;

/// Queries for `k` rows each that one message answers.
pub(crate) fn most_queries(k: usize) -> usize {
    (ROWS / k.max(1)).clamp(1, QUERIES)
}

/// The metadata of a message that answers some of many queries.
#[derive(Serialize)]
pub(crate) struct Progress<'a> {
    /// Queries that are answered, by this message and those before it.
    pub queries_done: usize,
    /// Queries that were asked so far.
    pub queries_asked: usize,
    /// How this message's queries were answered.
    pub query: &'a QueryInfo,
}

impl Progress<'_> {
    /// As JSON.
    pub fn body(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_answers_many_small_queries_or_few_large_ones() {
        for (k, expected) in [(10, 512), (128, 512), (129, 508), (16_384, 4)] {
            assert_eq!(most_queries(k), expected, "k {k}");
        }
        for k in [0, usize::MAX] {
            assert!((1..=QUERIES).contains(&most_queries(k)), "k {k}");
        }
    }
}

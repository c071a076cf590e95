//! A stream as curves over its rounds.

use super::report::{RoundRow, StreamReport};
use crate::chart::{self, Label, Panel, Scale, gather};

/// Recall, latency, memory and the file of a stream; `None` if it has no round.
pub fn draw(report: &StreamReport) -> Option<String> {
    let rounds = &report.rounds;
    let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    chart::draw(vec![
        panel(
            "Recall after each round",
            Label("recall", Scale::Linear),
            rounds,
            &[("recall", &|row| Some(row.recall_at_k))],
        ),
        panel(
            "Searches beside writes and indexing",
            Label("microseconds", Scale::Log),
            rounds,
            &[
                ("p50", &|row| row.latencies.p50_us),
                ("p99", &|row| row.latencies.p99_us),
                ("p99.9", &|row| row.latencies.p999_us),
            ],
        ),
        panel(
            "Memory and the file of blocks",
            Label("MiB", Scale::Log),
            rounds,
            &[
                ("process, of no file", &|row| mib(row.anonymous_bytes)),
                ("index", &|row| mib(Some(row.index.index_bytes))),
                ("file of blocks", &|row| mib(row.index.block_file_bytes)),
                ("of it in use", &|row| mib(row.index.block_live_bytes)),
            ],
        ),
    ])
}

/// A figure of a round, if it has it.
type Figure<'a> = (&'static str, &'a dyn Fn(&RoundRow) -> Option<f64>);

fn panel(title: &'static str, y: Label, rounds: &[RoundRow], figures: &[Figure<'_>]) -> Panel {
    let points = figures.iter().flat_map(|(name, of)| {
        let points = rounds.iter().filter_map(move |row| Some((row, of(row)?)));
        points.map(|(row, y)| ((*name).to_owned(), row.round as f64, y))
    });
    Panel {
        title,
        x: Label("round", Scale::Linear),
        y,
        series: gather((Scale::Linear, y.1), points),
    }
}

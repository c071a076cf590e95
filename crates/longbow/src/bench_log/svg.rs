//! The curves of a report.

use super::report::{Report, Row};
use crate::chart::{self, Label, Panel, Scale, gather};

/// The curves that a report has; `None` if it has none.
pub fn draw(report: &Report) -> Option<String> {
    chart::draw(vec![
        throughput(
            &report.rows,
            "blocking",
            "Throughput, callers that wait for each batch",
        ),
        throughput(
            &report.rows,
            "pipelined",
            "Throughput, callers with four batches under way",
        ),
        latency(&report.rows),
    ])
}

/// Entries a second by callers, a curve for each batch, from the rows that vary both.
fn throughput(rows: &[Row], mode: &str, title: &'static str) -> Panel {
    let rows = rows.iter().filter(|row| {
        row.mode == mode && ["matrix", "throughput", "concurrent"].contains(&row.test)
    });
    let points = rows.map(|row| {
        let name = format!("batch {}{}", row.batch, variant(row));
        (name, row.callers as f64, row.entries_per_s)
    });
    Panel {
        title,
        x: Label("callers", Scale::Log),
        y: Label("entries/s", Scale::Log),
        series: gather((Scale::Log, Scale::Log), points),
    }
}

/// Latency by offered load.
fn latency(rows: &[Row]) -> Panel {
    let points = rows
        .iter()
        .filter(|row| ["offered", "throughput", "latency", "concurrent"].contains(&row.test))
        .filter_map(|row| Some((row, row.offered_per_s? as f64)))
        .flat_map(|(row, rate)| {
            let variant = variant(row);
            [("p50", row.p50_us), ("p99", row.p99_us)]
                .map(|(name, us)| (format!("{name}{variant}"), rate, us / 1e3))
        });
    Panel {
        title: "Latency by offered load, from when an entry was due",
        x: Label("entries/s offered", Scale::Log),
        y: Label("milliseconds", Scale::Log),
        series: gather((Scale::Log, Scale::Log), points),
    }
}

/// What else may tell the rows of one command apart.
fn variant(row: &Row) -> String {
    let mut text = String::new();
    if row.sync != "fdatasync" {
        text.push_str(&format!(", {}", row.sync));
    }
    if row.linger_us > 0 {
        text.push_str(&format!(", linger {} us", row.linger_us));
    }
    if row.segment_size != 64 << 20 {
        text.push_str(&format!(
            ", {}",
            longbow_types::Value::Bytes(row.segment_size)
        ));
    }
    text
}

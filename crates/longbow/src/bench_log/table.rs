//! A report for a reader at a terminal.

use std::fmt::Write;

use super::raw::RawRow;
use super::recovery::RecoveryRow;
use super::report::{Report, Row};
use super::stages::StageRow;

/// All of a report, as tables.
pub fn tables(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "longbow {} bench log {}, {:.0} s\n{}, {}, {} cores, {:.1} GB memory, {:.1} GB free on the disk, load before {:.1}\n",
        report.longbow,
        report.command,
        report.seconds,
        machine.system,
        machine.architecture,
        machine.cores,
        machine.memory_bytes as f64 / 1e9,
        report.disk_free_bytes as f64 / 1e9,
        machine.load_before
    );
    section(&mut text, "The raw disk, one thread", raw(&report.raw));
    section(&mut text, "The log", rows(&report.rows));
    section(&mut text, "Stages of one write", stages(&report.stages));
    section(&mut text, "Recovery", recovery(&report.recovery));
    for label in &report.skipped {
        // Writing into a string can't fail.
        let _ = writeln!(text, "skipped for lack of time: {label}");
    }
    text.trim_end().to_owned()
}

/// A table under a title, if it has rows.
fn section(text: &mut String, title: &str, lines: Vec<Vec<String>>) {
    if lines.len() < 2 {
        return;
    }
    let columns = lines[0].len();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let _ = writeln!(text, "\n{title}");
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  "));
    }
}

fn titles(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn raw(rows: &[RawRow]) -> Vec<Vec<String>> {
    let names = [
        "bytes/sync",
        "sync",
        "syncs/s",
        "MB/s",
        "p50 us",
        "p95 us",
        "p99 us",
        "max us",
    ];
    let mut lines = vec![titles(&names)];
    lines.extend(rows.iter().map(|row| {
        vec![
            row.bytes_per_sync.to_string(),
            row.sync.to_owned(),
            figure(row.syncs_per_s),
            figure(row.mb_per_s),
            figure(row.p50_us),
            figure(row.p95_us),
            figure(row.p99_us),
            figure(row.max_us),
        ]
    }));
    lines
}

fn rows(rows: &[Row]) -> Vec<Vec<String>> {
    let names = [
        "test",
        "callers",
        "batch",
        "mode",
        "sync",
        "entry B",
        "segment",
        "linger us",
        "offered/s",
        "entries/s",
        "MB/s",
        "syncs/s",
        "entries/sync",
        "p50 us",
        "p95 us",
        "p99 us",
        "max us",
        "of raw",
        "raw p99 us",
        "cpu us/entry",
    ];
    let mut lines = vec![titles(&names)];
    lines.extend(rows.iter().map(|row| {
        vec![
            row.test.to_owned(),
            row.callers.to_string(),
            row.batch.to_string(),
            row.mode.to_owned(),
            row.sync.to_owned(),
            row.entry_bytes.to_string(),
            longbow_types::Value::Bytes(row.segment_size).to_string(),
            row.linger_us.to_string(),
            row.offered_per_s
                .map_or_else(|| "-".to_owned(), |rate| rate.to_string()),
            figure(row.entries_per_s),
            figure(row.mb_per_s),
            figure(row.syncs_per_s),
            perhaps(row.entries_per_sync),
            figure(row.p50_us),
            figure(row.p95_us),
            figure(row.p99_us),
            figure(row.max_us),
            row.ratio_to_raw
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            perhaps(row.raw_p99_us),
            perhaps(row.cpu_us_per_entry),
        ]
    }));
    lines
}

fn stages(rows: &[StageRow]) -> Vec<Vec<String>> {
    let mut lines = vec![titles(&[
        "stage", "mean us", "p50 us", "p99 us", "share", "what",
    ])];
    lines.extend(rows.iter().map(|row| {
        vec![
            row.stage.to_owned(),
            figure(row.mean_us),
            figure(row.p50_us),
            figure(row.p99_us),
            format!("{:.1} %", row.share * 100.0),
            row.what.to_owned(),
        ]
    }));
    lines
}

fn recovery(rows: &[RecoveryRow]) -> Vec<Vec<String>> {
    let mut lines = vec![titles(&[
        "what",
        "entry B",
        "MB",
        "seconds",
        "MB/s",
        "of read",
        "entries/s",
    ])];
    lines.extend(rows.iter().map(|row| {
        vec![
            row.what.to_owned(),
            row.entry_bytes.to_string(),
            figure(row.bytes as f64 / 1e6),
            format!("{:.3}", row.seconds),
            figure(row.mb_per_s),
            format!("{:.2}", row.ratio_to_raw_read),
            perhaps(row.entries_per_s),
        ]
    }));
    lines
}

fn perhaps(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

/// Three digits or a whole number.
fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut text = String::new();
        let lines = vec![titles(&["a", "long name"]), titles(&["12345", "1"])];
        section(&mut text, "T", lines);
        assert_eq!(text, "\nT\n      a  long name\n  12345          1\n");
        section(&mut text, "Empty", vec![titles(&["a"])]);
        assert!(!text.contains("Empty"));
    }

    #[test]
    fn figures_have_three_digits_or_are_whole() {
        let shown = [0.0, 9.876, 98.76, 987.6, 123_456.7].map(figure);
        assert_eq!(shown, ["0.00", "9.88", "98.8", "988", "123457"]);
        assert_eq!(perhaps(None), "-");
    }
}

//! A plan as text.

use crate::capacity::decimal;

use super::report::Report;

/// A line a figure.
pub fn text(report: &Report) -> String {
    let bytes = |name: &str, bytes: u64| line(name, &decimal(u128::from(bytes), "B"));
    let (index, memory, disk) = (&report.index, &report.memory, &report.disk);
    let row = &index.bytes_per_row;
    let name = match index.kind {
        "flat" | "spfresh" => index.kind,
        _ => index.quantization,
    };
    let (vector, other) = match name {
        "none" => ("vector", "head, levels above, rounding"),
        "spfresh" => ("its share of a centroid", "its share of a posting"),
        _ => ("code of the vector", "head, levels above, rounding"),
    };
    let count = |name: &str, count: usize| line(name, &format!("{count} B"));
    let fits = match memory.fits {
        true => "fits".to_owned(),
        false => format!("does not fit; {} rows do", memory.most_rows),
    };
    let mut lines = vec![
        format!(
            "{} rows of {} x {}, {}, {} bytes each as stored",
            report.rows, report.dim, report.element, report.metric, report.row_bytes
        ),
        format!(
            "index: {}{name} ({})",
            if index.auto { "auto, now " } else { "" },
            index.reason
        ),
        String::new(),
        "a row in the index".to_owned(),
        count(vector, row.vector),
        count("edges", row.edges),
        count(other, row.other),
        count("together", row.total),
        String::new(),
        "memory".to_owned(),
        bytes("index", memory.index),
        bytes("ids", memory.ids),
        bytes("rows not in a segment yet, at most", memory.tail),
        bytes("together, as the limit counts", memory.total),
        bytes("limit", memory.limit),
        line("", &fits),
        bytes(
            "besides, while a checkpoint is written",
            memory.checkpoint_buffer,
        ),
        bytes("besides, page cache for all stored rows", memory.page_cache),
        String::new(),
        "disk".to_owned(),
        bytes("row segments", disk.segments),
        bytes("log, at most", disk.log),
        bytes("index in a checkpoint", disk.checkpoint),
        bytes("blocks of the index", disk.blocks),
        bytes("together", disk.total),
        bytes("while a checkpoint is written", disk.peak),
    ];
    if let Some(seconds) = report.index_s {
        lines.extend([
            String::new(),
            line("time to index, on this machine, about", &time(seconds)),
        ]);
    }
    lines.join("\n")
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<42}{value:>16}")
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_words_of_their_size() {
        let told = [1.4, 119.0, 600.0, 7_200.0, 90_000.0].map(time);
        assert_eq!(told, ["1 s", "119 s", "10 min", "2.0 h", "25.0 h"]);
    }
}

//! A report for a reader at a terminal.

use super::report::{Point, Report};

const TITLES: [&str; 9] = [
    "effort",
    "recall",
    "QPS/core",
    "batched",
    "QPS wall",
    "CPU us",
    "distances",
    "pops",
    "bytes",
];

/// All of a report.
pub fn text(report: &Report) -> String {
    let machine = &report.machine;
    let truth = report.truth_s.map_or_else(
        || "exact answers from a file".to_owned(),
        |seconds| format!("exact answers in {seconds:.1} s"),
    );
    let mut text = format!(
        "longbow {} bench ann: {}, quantization {}, {}\n\
         {} vectors of {} x {}, {} queries, recall@{}, {} thread(s); {truth}\n\
         built in {:.1} s, {:.1} CPU s; {:.0} bytes a vector, {} of them the vector\n\
         {}, {}, {}, {} cores, load before {:.1}; memory is asked for into the cache's level {}\n\n",
        report.longbow,
        report.index,
        report.quantization,
        report.metric,
        report.rows,
        report.dim,
        report.scalar,
        report.queries,
        report.k,
        report.threads,
        report.build_s,
        report.build_cpu_s,
        report.bytes_per_vector,
        report.vector_bytes,
        machine.system,
        machine.architecture,
        machine.simd,
        machine.cores,
        machine.load_before,
        report.prefetch_level,
    );
    let titles = TITLES.map(str::to_owned);
    for line in [titles].into_iter().chain(report.points.iter().map(cells)) {
        let cells: Vec<String> = line.iter().map(|cell| format!("{cell:>9}")).collect();
        text.push_str(cells.join(" ").trim_end());
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn cells(point: &Point) -> [String; TITLES.len()] {
    let whole = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |n| format!("{n:.0}"));
    [
        point.effort.to_string(),
        format!("{:.4}", point.recall),
        whole(point.qps),
        whole(point.qps_batched),
        whole(point.qps_wall),
        point
            .cpu_us_per_query
            .map_or_else(|| "-".to_owned(), |us| format!("{us:.1}")),
        whole(Some(point.distances)),
        whole(Some(point.pops)),
        whole(point.bytes_touched),
    ]
}

//! Reports for a reader at a terminal.

use super::report::{
    End, Head, Idle, IndexRow, LargeReport, Latencies, RecipeReport, RoundRow, StreamReport,
};

/// What was measured, where.
pub fn head(head: &Head) -> String {
    let (asked, machine) = (&head.settings, &head.machine);
    format!(
        "longbow {} bench spfresh: {} by {}, {} rows of {} x float32, {} queries, recall@{}\n\
         {}, {}, {}, {} cores, load before {:.1}\n",
        head.longbow,
        head.mode,
        asked.index,
        asked.base,
        asked.dim,
        asked.queries,
        asked.k,
        machine.system,
        machine.architecture,
        machine.simd,
        machine.cores,
        machine.load_before,
    )
}

/// All of a recipe.
pub fn recipe(report: &RecipeReport) -> String {
    let titles = [
        "index",
        "effort",
        "durable",
        "build s",
        "updates/s",
        "searches/s",
        "recall",
        "p50 us",
        "p99 us",
    ];
    let mut lines = vec![line(titles.map(str::to_owned))];
    for row in &report.rows {
        lines.push(line([
            row.index.to_owned(),
            row.effort
                .map_or_else(|| "all".to_owned(), |n| n.to_string()),
            if row.durable { "yes" } else { "no" }.to_owned(),
            format!("{:.3}", row.build_s),
            format!("{:.0}", row.update_qps),
            format!("{:.0}", row.search_qps),
            format!("{:.4}", row.recall_at_k),
            format!("{:.0}", row.p50_us),
            format!("{:.0}", row.p99_us),
        ]));
    }
    format!("{}\n{}", head(&report.head), lines.join("\n"))
}

/// The titles of a stream's rounds.
pub fn round_titles() -> String {
    let titles = [
        "round",
        "rows",
        "recall",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "searches",
        "updates/s",
        "RSS MiB",
        "postings",
        "mean",
        "longest",
        "file MiB",
        "file/live",
    ];
    line(titles.map(str::to_owned))
}

/// One round of a stream.
pub fn round(row: &RoundRow) -> String {
    let [p50, p99, p999] = times(row.latencies);
    let [postings, mean, longest, file, ratio] = postings(&row.index);
    line([
        row.round.to_string(),
        row.rows.to_string(),
        format!("{:.4}", row.recall_at_k),
        p50,
        p99,
        p999,
        row.searches.to_string(),
        figure(row.update_qps, 0),
        mebibytes(row.resident_bytes),
        postings,
        mean,
        longest,
        file,
        ratio,
    ])
}

/// What is left after a stream. Its rounds were told as they came.
pub fn end(report: &StreamReport) -> String {
    let End {
        beside_writes,
        churned,
        fresh,
        ratios,
    } = &report.end;
    let titles = [
        "at the end",
        "recall",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "postings",
        "mean",
        "longest",
        "file MiB",
        "file/live",
    ];
    let idle = |name: &str, idle: &Idle| {
        let [p50, p99, p999] = times(idle.latencies);
        let [postings, mean, longest, file, ratio] = postings(&idle.index);
        let recall = format!("{:.4}", idle.recall_at_k);
        line([
            name.to_owned(),
            recall,
            p50,
            p99,
            p999,
            postings,
            mean,
            longest,
            file,
            ratio,
        ])
    };
    let [p50, p99, p999] = times(*beside_writes);
    format!(
        "\n{}\n{}\n{}\n\nbeside writes p50 {p50}, p99 {p99}, p99.9 {p999} us, which is {} times the idle p99.9\n\
         churned by fresh: recall {}, p50 {}, file of blocks {}",
        line(titles.map(str::to_owned)),
        idle("churned", churned),
        idle("fresh", fresh),
        figure(ratios.p999_beside_writes_to_idle, 2),
        figure(ratios.recall_to_fresh, 3),
        figure(ratios.p50_to_fresh, 3),
        figure(ratios.block_file_to_fresh, 3),
    )
}

/// All of a large set.
pub fn large(report: &LargeReport) -> String {
    let titles = [
        "effort",
        "recall",
        "searches/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "disk B",
        "before",
        "RSS MiB",
        "anon MiB",
    ];
    let mut lines = vec![line(titles.map(str::to_owned))];
    for row in &report.rows {
        let [p50, p99, p999] = times(row.latencies);
        lines.push(line([
            row.effort.to_string(),
            format!("{:.4}", row.recall_at_k),
            format!("{:.0}", row.search_qps),
            p50,
            p99,
            p999,
            figure(row.disk_bytes_per_query, 0),
            figure(row.first_disk_bytes_per_query, 0),
            mebibytes(row.resident_bytes),
            mebibytes(row.anonymous_bytes),
        ]));
    }
    format!(
        "{}{} MiB of vectors, memory limit {} MiB, index {} MiB in memory and {} MiB in its file\n\
         written in {:.1} s, indexed {:.1} s later, opened again in {:.2} s\n\n{}",
        head(&report.head),
        mebibytes(Some(report.vector_bytes)),
        mebibytes(report.head.settings.memory_limit_bytes),
        mebibytes(Some(report.index.index_bytes)),
        mebibytes(report.index.block_file_bytes),
        report.insert_s,
        report.until_indexed_s,
        report.open_s,
        lines.join("\n")
    )
}

fn times(of: Latencies) -> [String; 3] {
    [of.p50_us, of.p99_us, of.p999_us].map(|us| figure(us, 0))
}

fn postings(index: &IndexRow) -> [String; 5] {
    let whole = |n: Option<usize>| figure(n.map(|n| n as f64), 0);
    [
        whole(index.postings),
        figure(index.posting_mean, 1),
        whole(index.posting_longest),
        mebibytes(index.block_file_bytes),
        figure(index.block_file_ratio, 2),
    ]
}

fn figure(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |n| format!("{n:.places$}"))
}

fn mebibytes(bytes: Option<u64>) -> String {
    figure(bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 1)
}

fn line<const N: usize>(cells: [String; N]) -> String {
    let cells = cells.map(|cell| format!("{cell:>10}"));
    cells.join(" ").trim_end().to_owned()
}

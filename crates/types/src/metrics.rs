//! Every metric of the process, with its help text. Labels are bounded: see the crate's page.

use std::sync::LazyLock;

use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::host;

/// Bounds of durations in seconds, from 20 microseconds to 10 seconds in steps of 1, 2, 5: a search lies at the one end, a
/// long transfer or a slow disk's sync at the other.
const SECONDS: [f64; 18] = [
    20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 200e-3,
    500e-3, 1.0, 2.0, 5.0, 10.0,
];

/// What indexes may hold of each vector.
const QUANTIZATIONS: [&str; 3] = ["none", "rabitq", "sq8"];

/// Makes the struct and its registration from one table.
macro_rules! metrics {
    ($(#[doc = $help:literal] $field:ident: $type:ident, $name:literal $(, $label:literal)*;)+) => {
        /// The metrics. Take the process's own by [`metrics()`]; every field may be used from any thread.
        #[derive(Debug)]
        pub struct Metrics {
            registry: Registry,
            $(#[doc = $help] pub $field: $type,)+
        }

        impl Metrics {
            fn new() -> prometheus::Result<Metrics> {
                let registry = Registry::new();
                $(
                    let $field = <$type as Make>::make($name, $help.trim(), &[$($label),*])?;
                    registry.register(Box::new($field.clone()))?;
                )+
                Ok(Metrics { registry, $($field,)+ })
            }
        }

        /// Names, types, labels and help texts of all metrics, in the order of the table.
        #[cfg(test)]
        const TABLE: &[(&str, &str, &[&str], &str)] = &[$(($name, stringify!($type), &[$($label),*], $help)),+];
    };
}

/// How a kind of metric is made from its name, help text and labels.
trait Make: Sized {
    fn make(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<Self>;
}

macro_rules! make {
    ($($type:ident: |$name:ident, $help:ident, $labels:pat_param| $made:expr;)+) => {$(
        impl Make for $type {
            fn make($name: &str, $help: &str, $labels: &[&str]) -> prometheus::Result<$type> {
                $made
            }
        }
    )+};
}

make! {
    IntCounter: |name, help, _| IntCounter::new(name, help);
    IntGauge: |name, help, _| IntGauge::new(name, help);
    Histogram: |name, help, _| Histogram::with_opts(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()));
    IntCounterVec: |name, help, labels| IntCounterVec::new(Opts::new(name, help), labels);
    GaugeVec: |name, help, labels| GaugeVec::new(Opts::new(name, help), labels);
    IntGaugeVec: |name, help, labels| IntGaugeVec::new(Opts::new(name, help), labels);
    HistogramVec: |name, help, labels| {
        HistogramVec::new(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()), labels)
    };
}

metrics! {
    /// Flight calls by method and outcome (`ok`, or the code of the error).
    flight_operations: IntCounterVec, "longbow_flight_operations_total", "method", "status";
    /// Seconds from the start of a Flight call to its end.
    flight_duration: HistogramVec, "longbow_flight_duration_seconds", "method";
    /// Rows that came in or went out, by method and outcome.
    flight_rows: IntCounterVec, "longbow_flight_rows_processed_total", "method", "status";
    /// Bytes of Arrow bodies that came in or went out, by method.
    flight_bytes: IntCounterVec, "longbow_flight_bytes_processed_total", "method";
    /// Batches sent by DoGet: as received (`zero_copy_retain`), a part of that (`slice`), or encoded anew (`encode`).
    doget_zero_copy: IntCounterVec, "longbow_doget_zero_copy_total", "type";
    /// Seconds of a vector search inside the engine, by the kind of index that answered.
    search_latency: HistogramVec, "longbow_vector_search_latency_seconds", "index";
    /// Share of the true nearest neighbours that searches of an index (a vector column) answered, averaged over the last 500 that were compared with an exact scan.
    search_recall: GaugeVec, "longbow_search_recall", "dataset", "index";
    /// Rows in the index of a vector column.
    index_size: IntGaugeVec, "longbow_vector_index_size", "dataset", "column";
    /// Bytes of memory of the index of a vector column; `quantization` says what it holds of each vector.
    index_bytes: IntGaugeVec, "longbow_vector_index_bytes", "dataset", "column", "quantization";
    /// Rows that are stored and not yet in the index; searches scan them exactly.
    index_queue_depth: IntGaugeVec, "longbow_index_queue_depth", "dataset";
    /// Rows of a dataset that can be found.
    dataset_rows: IntGaugeVec, "longbow_dataset_rows", "dataset";
    /// Rows deleted or replaced whose space is not yet free.
    tombstones: IntGaugeVec, "longbow_tombstones_total", "dataset";
    /// Seconds spent waiting for a dataset's lock, by operation.
    lock_wait: HistogramVec, "longbow_dataset_lock_wait_duration_seconds", "operation";
    /// Bytes appended to the write-ahead log.
    wal_bytes: IntCounter, "longbow_wal_bytes_written_total";
    /// Seconds of each sync of the write-ahead log.
    wal_fsync: Histogram, "longbow_wal_fsync_duration_seconds";
    /// Bytes of the log that are acknowledged and not yet synced.
    wal_unsynced: IntGauge, "longbow_wal_unsynced_bytes";
    /// Bytes of memory by what holds them; `resident` is what the operating system counts.
    memory: IntGaugeVec, "longbow_memory_bytes", "kind";
    /// The limit that memory is kept under.
    memory_limit: IntGauge, "longbow_memory_limit_bytes";
    /// Always 1; the labels say what runs.
    build_info: IntGaugeVec, "longbow_build_info", "version", "simd";
}

static METRICS: LazyLock<Metrics> =
    LazyLock::new(|| Metrics::new().expect("the table of metrics is valid, which a test shows"));

/// The metrics of this process.
pub fn metrics() -> &'static Metrics {
    &METRICS
}

impl Metrics {
    /// All metrics in Prometheus' text format, with the resident memory as it is now.
    pub fn render(&self) -> String {
        if let Some(bytes) = host::resident_bytes() {
            self.memory
                .with_label_values(&["resident"])
                .set(gauge(bytes));
        }
        let mut out = String::new();
        // Encoding into a string fails only for an empty family, and those are not gathered.
        let _ = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut out);
        out
    }

    /// Says what runs: the version, and the instruction set of the distance kernels.
    pub fn set_build_info(&self, version: &str, simd: &str) {
        self.build_info.with_label_values(&[version, simd]).set(1);
    }

    /// Sets the bytes of an index by dataset, column and quantization, and drops what was said of it by another: its kind
    /// may have changed.
    pub fn set_index_bytes(&self, labels: [&str; 3], bytes: u64) {
        let [dataset, column, now] = labels;
        for other in QUANTIZATIONS.into_iter().filter(|other| *other != now) {
            // A series that was never used is not there to remove.
            let series = [dataset, column, other];
            let _ = self.index_bytes.remove_label_values(&series);
        }
        let series = self.index_bytes.with_label_values(&labels);
        series.set(gauge(bytes));
    }

    /// Drops the series of a dataset that is gone, with those of its vector columns.
    pub fn forget_dataset(&self, dataset: &str, columns: &[&str]) {
        for family in [
            &self.index_queue_depth,
            &self.dataset_rows,
            &self.tombstones,
        ] {
            // A series that was never used is not there to remove.
            let _ = family.remove_label_values(&[dataset]);
        }
        for column in columns {
            let _ = self.index_size.remove_label_values(&[dataset, column]);
            let _ = self.search_recall.remove_label_values(&[dataset, column]);
            for quantization in QUANTIZATIONS {
                let _ = self
                    .index_bytes
                    .remove_label_values(&[dataset, column, quantization]);
            }
        }
    }
}

/// A count as a gauge has it; beyond 2^63 it stays there.
pub fn gauge(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_name_help_and_labels() {
        let own = Metrics::new().expect("valid");
        own.flight_operations
            .with_label_values(&["DoPut", "ok"])
            .inc();
        own.flight_duration
            .with_label_values(&["DoPut"])
            .observe(30e-6);
        own.flight_rows
            .with_label_values(&["DoPut", "ok"])
            .inc_by(7);
        own.flight_bytes.with_label_values(&["DoPut"]).inc_by(9);
        own.doget_zero_copy.with_label_values(&["slice"]).inc();
        own.search_latency.with_label_values(&["hnsw"]).observe(0.1);
        own.index_size.with_label_values(&["d", "vector"]).set(1);
        own.search_recall
            .with_label_values(&["d", "vector"])
            .set(0.98);
        own.index_bytes
            .with_label_values(&["d", "vector", "rabitq"])
            .set(1);
        // Of one index one series.
        own.set_index_bytes(["d", "vector", "none"], 1);
        assert!(!own.render().contains("rabitq"));
        own.index_queue_depth.with_label_values(&["d"]).set(1);
        own.dataset_rows.with_label_values(&["d"]).set(1);
        own.tombstones.with_label_values(&["d"]).set(1);
        own.lock_wait.with_label_values(&["apply"]).observe(0.1);
        own.set_build_info("0.1.0", "avx2");
        let text = own.render();
        for (name, _, labels, _) in TABLE {
            assert!(
                text.contains(&format!("# HELP {name} ")),
                "{name} in {text}"
            );
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
            assert!(!lines.is_empty(), "{name}");
            for label in *labels {
                assert!(
                    lines
                        .iter()
                        .all(|line| line.contains(&format!("{label}=\""))),
                    "{label} in {lines:?}"
                );
            }
        }
        assert!(
            text.contains(r#"longbow_flight_rows_processed_total{method="DoPut",status="ok"} 7"#),
            "{text}"
        );
        assert!(
            text.contains(r#"longbow_memory_bytes{kind="resident"}"#),
            "{text}"
        );
        assert!(
            text.contains(
                r#"longbow_flight_duration_seconds_bucket{method="DoPut",le="0.00005"} 1"#
            ),
            "{text}"
        );
    }

    /// The table in `docs/operations.md` is this one.
    #[test]
    fn the_page_for_operators_has_all_metrics() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
        let page = std::fs::read_to_string(path).expect("docs/operations.md");
        let told: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `longbow_"))
            .collect();
        let row = |(name, kind, labels, help): &(&str, &str, &[&str], &str)| {
            let kind = match kind.trim_start_matches("Int").trim_end_matches("Vec") {
                "Counter" => "counter",
                "Gauge" => "gauge",
                _ => "histogram",
            };
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = labels.join(", ");
            format!("| `{name}` | {kind} | {labels} | {} |", help.trim())
        };
        assert_eq!(told, TABLE.iter().map(row).collect::<Vec<_>>());
    }

    #[test]
    fn a_dataset_that_is_gone_leaves_no_series() {
        let own = Metrics::new().expect("valid");
        for dataset in ["gone", "kept"] {
            own.dataset_rows.with_label_values(&[dataset]).set(1);
            own.index_size
                .with_label_values(&[dataset, "vector"])
                .set(1);
            own.search_recall
                .with_label_values(&[dataset, "vector"])
                .set(0.5);
            for quantization in ["none", "rabitq", "sq8"] {
                own.index_bytes
                    .with_label_values(&[dataset, "vector", quantization])
                    .set(1);
            }
        }
        own.forget_dataset("gone", &["vector", "never"]);
        let text = own.render();
        assert!(!text.contains("gone") && text.contains("kept"), "{text}");
    }

    #[test]
    fn the_process_has_one_set() {
        assert!(std::ptr::eq(metrics(), metrics()));
        assert_eq!(gauge(u64::MAX), i64::MAX);
    }
}

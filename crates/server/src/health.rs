//! Health and gauges, asked for over HTTP.

use longbow_engine::Engine;
use longbow_types::metrics;
use parking_lot::Mutex;

use crate::http::Health;

/// The health of this node.
#[derive(Debug)]
pub(crate) struct NodeHealth {
    engine: Engine,
    /// Datasets whose gauges were shown, with their vector columns; those that are gone are dropped.
    shown: Mutex<Vec<(String, Vec<String>)>>,
}

impl NodeHealth {
    /// The health of a node with this engine.
    pub fn new(engine: Engine) -> Self {
        NodeHealth {
            engine,
            shown: Mutex::new(Vec::new()),
        }
    }
}

impl Health for NodeHealth {
    fn ready(&self) -> Result<(), String> {
        self.engine
            .check_writable()
            .map_err(|error| error.to_string())
    }

    fn refresh_metrics(&self) {
        let all = metrics();
        let datasets = self.engine.catalog().datasets();
        let mut shown = self.shown.lock();
        for (name, columns) in shown.drain(..) {
            if !datasets.iter().any(|dataset| dataset.name == name) {
                all.forget_dataset(
                    &name,
                    &columns.iter().map(String::as_str).collect::<Vec<_>>(),
                );
            }
        }
        for dataset in datasets {
            let name = dataset.name.as_str();
            let view = dataset.view();
            all.dataset_rows
                .with_label_values(&[name])
                .set(gauge(view.live));
            all.index_queue_depth
                .with_label_values(&[name])
                .set(gauge(dataset.unindexed()));
            let stored = view
                .segments
                .iter()
                .map(|segment| segment.rows())
                .sum::<u64>();
            let fresh = view
                .tail
                .iter()
                .map(|held| held.batch.rows() as u64)
                .sum::<u64>();
            let dead = (stored + fresh).saturating_sub(view.live);
            all.tombstones.with_label_values(&[name]).set(gauge(dead));
            let mut columns = Vec::new();
            for index in dataset.indexes().iter() {
                let graph = index.graph();
                all.index_size
                    .with_label_values(&[name, &index.column])
                    .set(gauge(graph.len() as u64));
                all.set_index_bytes(
                    [name, &index.column, graph.quantization().name()],
                    graph.memory_bytes() as u64,
                );
                if let Some(recall) = index.recall() {
                    all.search_recall
                        .with_label_values(&[name, &index.column])
                        .set(recall);
                }
                columns.push(index.column.clone());
            }
            shown.push((dataset.name.clone(), columns));
        }
        let memory = self.engine.memory();
        all.memory
            .with_label_values(&["tail"])
            .set(gauge(memory.tail_bytes));
        all.memory
            .with_label_values(&["index"])
            .set(gauge(memory.index_bytes));
        all.memory
            .with_label_values(&["bookkeeping"])
            .set(gauge(memory.bookkeeping_bytes));
        all.memory
            .with_label_values(&["kept"])
            .set(gauge(memory.kept_bytes));
        all.memory_limit
            .set(gauge(self.engine.options().memory_limit));
        all.wal_unsynced.set(gauge(self.engine.unsynced_bytes()));
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

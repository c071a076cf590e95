//! What the node tells of itself, as tables of the schema `longbow`.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::{MemTable, TableProvider};
use longbow_engine::{ColumnIndex, Engine, IndexKind, metric_name, namespace_of};

use super::limits::Setting;
use super::running::Running;

/// The tables.
pub(super) const TABLES: [&str; 6] = [
    "config", "datasets", "indexes", "log", "queries", "segments",
];

/// What the tables tell beside the engine.
#[derive(Debug)]
pub(super) struct System {
    /// The node's settings.
    pub settings: Vec<Setting>,
    /// The statements under way.
    pub running: Arc<Running>,
}

type Told = Result<RecordBatch, ArrowError>;

impl System {
    /// One of the tables as of now; nothing if there is none of this name.
    pub fn table(
        &self,
        engine: &Engine,
        name: &str,
    ) -> Option<Result<Arc<dyn TableProvider>, ArrowError>> {
        let told = match name {
            "config" => self.config(),
            "datasets" => datasets(engine),
            "indexes" => indexes(engine),
            "log" => log(engine),
            "queries" => self.queries(),
            "segments" => segments(engine),
            _ => return None,
        };
        Some(told.and_then(|batch| {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]]);
            let table = table.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            Ok(Arc::new(table) as _)
        }))
    }

    fn config(&self) -> Told {
        let column = |of: fn(&Setting) -> &String| texts(self.settings.iter().map(of));
        RecordBatch::try_from_iter([
            ("name", column(|setting| &setting.name)),
            ("value", column(|setting| &setting.value)),
            ("meaning", column(|setting| &setting.meaning)),
        ])
    }

    fn queries(&self) -> Told {
        let list = self.running.list();
        RecordBatch::try_from_iter([
            ("number", counts(list.iter().map(|(number, ..)| *number))),
            ("statement", texts(list.iter().map(|(_, text, _)| text))),
            (
                "elapsed_us",
                counts(list.iter().map(|(.., micros)| *micros)),
            ),
        ])
    }
}

fn datasets(engine: &Engine) -> Told {
    let all = engine.catalog().datasets();
    let views: Vec<_> = all.iter().map(|dataset| dataset.view()).collect();
    RecordBatch::try_from_iter([
        ("name", texts(all.iter().map(|dataset| &dataset.name))),
        (
            "namespace",
            texts(all.iter().map(|dataset| namespace_of(&dataset.name))),
        ),
        (
            "metric",
            texts(views.iter().map(|view| metric_name(view.schema.metric))),
        ),
        ("rows", counts(views.iter().map(|view| view.live))),
        ("bytes", counts(views.iter().map(|view| view.bytes()))),
        (
            "columns",
            counts(
                views
                    .iter()
                    .map(|view| view.schema.arrow.fields().len() as u64),
            ),
        ),
        (
            "segments",
            counts(views.iter().map(|view| view.segments.len() as u64)),
        ),
        (
            "unindexed",
            counts(all.iter().map(|dataset| dataset.unindexed())),
        ),
    ])
}

fn indexes(engine: &Engine) -> Told {
    let all = engine.catalog().datasets();
    let all: Vec<_> = all
        .iter()
        .flat_map(|dataset| {
            let indexes = dataset.indexes();
            let named = indexes.iter().map(|index| {
                let (waiting, live) = (dataset.waiting(index), dataset.view().live);
                let told = (waiting, index.is_calibrated(live));
                (dataset.name.clone(), Arc::clone(index), told)
            });
            named.collect::<Vec<_>>()
        })
        .collect();
    let graphs: Vec<_> = all.iter().map(|(_, index, _)| index.graph()).collect();
    let recall: Vec<Option<f64>> = all.iter().map(|(_, index, _)| index.recall()).collect();
    let calibrated: Vec<bool> = all.iter().map(|(_, _, (_, told))| *told).collect();
    let auto: Vec<bool> = all.iter().map(|(_, index, _)| index.is_auto()).collect();
    let moving = |index: &ColumnIndex| index.moving_to().map(IndexKind::name);
    let moving_to: Vec<_> = all.iter().map(|(_, index, _)| moving(index)).collect();
    RecordBatch::try_from_iter_with_nullable([
        (
            "dataset",
            texts(all.iter().map(|(dataset, ..)| dataset)),
            false,
        ),
        (
            "column",
            texts(all.iter().map(|(_, index, _)| &index.column)),
            false,
        ),
        (
            "index",
            texts(graphs.iter().map(|graph| graph.kind().name())),
            false,
        ),
        ("auto", Arc::new(BooleanArray::from(auto)), false),
        ("moving_to", Arc::new(StringArray::from(moving_to)), true),
        (
            "quantization",
            texts(graphs.iter().map(|graph| graph.quantization().name())),
            false,
        ),
        (
            "rows",
            counts(graphs.iter().map(|graph| graph.len() as u64)),
            false,
        ),
        (
            "bytes",
            counts(graphs.iter().map(|graph| graph.memory_bytes() as u64)),
            false,
        ),
        (
            "waiting",
            counts(all.iter().map(|(_, _, (waiting, _))| *waiting)),
            false,
        ),
        (
            "calibrated",
            Arc::new(BooleanArray::from(calibrated)),
            false,
        ),
        ("recall", Arc::new(Float64Array::from(recall)), true),
    ])
}

fn segments(engine: &Engine) -> Told {
    let all = engine.catalog().datasets();
    let all: Vec<_> = all
        .iter()
        .map(|dataset| (&dataset.name, dataset.view()))
        .collect();
    let sealed = || {
        all.iter()
            .flat_map(|(name, view)| view.segments.iter().map(move |segment| (name, segment)))
    };
    RecordBatch::try_from_iter([
        ("dataset", texts(sealed().map(|(name, _)| name))),
        (
            "first_row",
            counts(sealed().map(|(_, segment)| segment.first_row())),
        ),
        (
            "last_row",
            counts(sealed().map(|(_, segment)| segment.last_row())),
        ),
        ("rows", counts(sealed().map(|(_, segment)| segment.rows()))),
        (
            "batches",
            counts(sealed().map(|(_, segment)| segment.batches().len() as u64)),
        ),
        (
            "bytes",
            counts(
                sealed()
                    .map(|(_, segment)| segment.batches().iter().map(|batch| batch.bytes()).sum()),
            ),
        ),
    ])
}

fn log(engine: &Engine) -> Told {
    let (last, durable) = engine.log_indices();
    RecordBatch::try_from_iter([
        ("last_index", counts([last])),
        ("durable_index", counts([durable])),
        ("unsynced_bytes", counts([engine.unsynced_bytes()])),
        (
            "pressure",
            Arc::new(StringArray::from(vec![engine.pressure().unwrap_or("none")])),
        ),
    ])
}

fn texts(values: impl IntoIterator<Item = impl AsRef<str>>) -> ArrayRef {
    // Arrow wants to know how many there are.
    let values: Vec<_> = values.into_iter().collect();
    Arc::new(StringArray::from_iter_values(values))
}

fn counts(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

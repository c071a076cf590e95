//! An engine on a folder of its own, with one dataset of ids and vectors.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longbow_engine::{
    Dataset, Engine, Graph, INDEX_KEY, Id, IndexKind, Options, Pending, SearchRequest, SyncMode,
};
use longbow_types::{Host, Inputs, resolve};

use super::error::Error;

const DATASET: &str = "rows";
/// How long the index may take to catch up.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// How an engine is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Elements of a vector.
    pub dim: usize,
    /// The kind of index.
    pub kind: IndexKind,
    /// Whether a write is acknowledged only once it was synced.
    pub durable: bool,
    /// Shards of postings.
    pub shards: usize,
    /// Settings beside the defaults of a node, as flags.
    pub settings: Vec<(String, String)>,
}

/// An engine that is open.
#[derive(Debug)]
pub struct Store {
    engine: Engine,
    schema: SchemaRef,
    durable: bool,
}

/// What an index takes, as far as its kind tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Footprint {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Of postings: what they are like.
    pub postings: Option<Postings>,
}

/// What postings are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Postings {
    /// How many there are.
    pub count: usize,
    /// Vectors of the longest.
    pub longest: usize,
    /// Vectors of all, each counted as often as it is in one.
    pub entries: usize,
    /// Bytes of the file of blocks.
    pub file_bytes: u64,
    /// Of these, in blocks that hold something.
    pub live_bytes: u64,
}

impl Store {
    /// Opens an engine as a node would be by default, with an empty dataset if the folder is new.
    pub fn open(path: &Path, opening: &Opening) -> Result<Store, Error> {
        let options = options(path, opening)?;
        let engine = Engine::open_folder(options)?;
        let schema = schema(opening);
        engine.put(DATASET, &schema)?.finish()?;
        Ok(Store {
            engine,
            schema,
            durable: opening.durable,
        })
    }

    /// Writes a batch of rows and waits until it is acknowledged: from then on searches find it.
    pub fn insert(&self, ids: &[i64], vectors: &[f32]) -> Result<(), Error> {
        let batch = self.batch(ids, vectors)?;
        let mut put = self.engine.put(DATASET, &self.schema)?;
        self.acknowledged(put.record_batch(&batch)?)
    }

    /// Deletes rows and waits until that is acknowledged.
    pub fn delete(&self, ids: &[i64]) -> Result<(), Error> {
        let ids = ids.iter().copied().map(Id::Int).collect();
        self.acknowledged(self.engine.delete_ids(DATASET, ids)?)
    }

    fn acknowledged(&self, pending: Pending) -> Result<(), Error> {
        let applied = pending.wait()?;
        if self.durable && !applied.durable {
            return Err(Error::Promise(
                "a write was acknowledged before it was synced",
            ));
        }
        Ok(())
    }

    /// Waits until the index has taken all rows.
    pub fn settle(&self) -> Result<(), Error> {
        let dataset = self.dataset()?;
        if dataset.wait_for_index(PATIENCE) {
            return Ok(());
        }
        Err(Error::Slow {
            missing: dataset.unindexed(),
            seconds: PATIENCE.as_secs(),
        })
    }

    /// The ids that a search finds, nearest first.
    pub fn search(&self, request: &SearchRequest) -> Result<Vec<i64>, Error> {
        let reply = self.engine.search(DATASET, request)?.batch;
        let ids = reply.column_by_name("id");
        let ids = ids.and_then(|ids| ids.as_primitive_opt::<Int64Type>());
        let ids = ids.ok_or(Error::Promise("a reply came without ids"))?;
        Ok(ids.values().to_vec())
    }

    /// What the index takes.
    pub fn footprint(&self) -> Result<Footprint, Error> {
        let mut footprint = Footprint::default();
        for index in self.dataset()?.indexes().iter() {
            let graph = index.graph();
            footprint.memory_bytes += graph.memory_bytes() as u64;
            if let Graph::SpFresh { index, .. } = &*graph {
                let (longest, entries) = index.lengths();
                let (file_bytes, free) = index.file_bytes();
                footprint.postings = Some(Postings {
                    count: index.postings(),
                    longest,
                    entries,
                    file_bytes,
                    live_bytes: file_bytes.saturating_sub(free),
                });
            }
        }
        Ok(footprint)
    }

    /// Takes out of the index and its file what is in no use.
    pub fn vacuum(&self) -> Result<(), Error> {
        self.engine.tidy()?;
        Ok(())
    }

    /// Makes a checkpoint, so that the index need not be built again when the folder is opened.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.engine.checkpoint()?;
        Ok(())
    }

    /// Ends the engine.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.engine.close()?)
    }

    fn dataset(&self) -> Result<Arc<Dataset>, Error> {
        Ok(self.engine.dataset(DATASET)?)
    }

    fn batch(&self, ids: &[i64], vectors: &[f32]) -> Result<RecordBatch, Error> {
        let DataType::FixedSizeList(item, dim) = self.schema.field(1).data_type() else {
            return Err(Error::Promise("the column of vectors has none"));
        };
        let elements = Arc::new(Float32Array::from(vectors.to_vec()));
        let vectors = FixedSizeListArray::try_new(Arc::clone(item), *dim, elements, None)?;
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let columns = vec![ids, Arc::new(vectors) as ArrayRef];
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// The options of a node that was told nothing but these settings.
fn options(path: &Path, opening: &Opening) -> Result<Options, Error> {
    let inputs = Inputs {
        flags: opening.settings.clone(),
        environment: Vec::new(),
        file: None,
        host: Host::probe(),
    };
    let resolved = resolve(&inputs).map_err(|error| Error::Mismatch(error.to_string()))?;
    let mut options = Options::configured(&resolved.config());
    options.path = PathBuf::from(path);
    options.graphs.spfresh.shards = opening.shards;
    if opening.durable {
        options.sync = SyncMode::EveryAck;
    }
    Ok(options)
}

fn schema(opening: &Opening) -> SchemaRef {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let dim = i32::try_from(opening.dim).unwrap_or(i32::MAX);
    let kind = HashMap::from([(INDEX_KEY.to_owned(), opening.kind.name().to_owned())]);
    let vectors = Field::new("vector", DataType::FixedSizeList(item, dim), true);
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        vectors.with_metadata(kind),
    ]))
}

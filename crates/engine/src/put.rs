//! The front of the write path: a stream of Arrow messages is checked and handed to the log.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use longbow_index::Space;
use longbow_kernels::Kernels;
use longbow_storage::{Batch, Dictionaries, check_id_lengths, check_schema};

use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::entry::{Op, SchemaText, Small};
use crate::error::{Error, Result};
use crate::index_kind;
use crate::quantization;
use crate::recall_target;
use crate::schema::{DatasetSchema, stored_schema};
use crate::shared::Pending;
use crate::text_column;
use crate::vectors::Vectors;

/// What a stream of batches may ask for.
#[derive(Debug, Clone, Copy)]
pub struct PutOptions {
    /// Whether batches are acknowledged only when they survive power loss, whatever the engine's sync mode says.
    pub until_durable: bool,
    /// Whether columns that the dataset does not have are added to it; else they are refused. A dataset that is created has
    /// those of its first batch either way.
    pub add_columns: bool,
}

impl Default for PutOptions {
    fn default() -> Self {
        PutOptions {
            until_durable: false,
            add_columns: true,
        }
    }
}

impl PutOptions {
    /// The schema of a dataset after a put: `None` if that adds nothing.
    fn evolve(
        self,
        dataset: &str,
        schema: &DatasetSchema,
        stored: &SchemaRef,
    ) -> Result<Option<Arc<DatasetSchema>>> {
        let grown = schema.evolve(dataset, stored)?;
        if let (Some(grown), false) = (&grown, self.add_columns) {
            let known = schema.arrow.fields().len();
            for new in &grown.arrow.fields()[known..] {
                schema.column(dataset, new.name())?;
            }
        }
        Ok(grown)
    }
}

/// One client's stream of batches into one dataset.
///
/// The dataset is created, or its schema grown, by the first batch that is good; a stream that holds only bad
/// batches changes nothing. A stream without any batch creates an empty dataset at [`PutSession::finish`].
#[derive(Debug)]
pub struct PutSession {
    engine: Engine,
    name: String,
    /// The schema as it is kept.
    stored: SchemaRef,
    /// Reads the batches of a client that sends dictionaries; what is kept has none.
    dictionaries: Option<Dictionaries>,
    target: Option<Target>,
    options: PutOptions,
}

#[derive(Debug)]
struct Target {
    dataset: Arc<Dataset>,
    schema: Arc<DatasetSchema>,
}

impl Engine {
    /// Begins a stream of batches into a dataset, which need not exist yet.
    ///
    /// # Errors
    /// If the name or the schema is not acceptable, or does not fit the dataset.
    pub fn put(&self, dataset: &str, schema: &SchemaRef) -> Result<PutSession> {
        self.put_with(dataset, schema, PutOptions::default())
    }

    /// [`Engine::put`] with wishes.
    ///
    /// # Errors
    /// As [`Engine::put`].
    pub fn put_with(
        &self,
        dataset: &str,
        schema: &SchemaRef,
        options: PutOptions,
    ) -> Result<PutSession> {
        PutSession::new(self.clone(), dataset, schema, options)
    }
}

impl PutSession {
    fn new(engine: Engine, name: &str, incoming: &SchemaRef, options: PutOptions) -> Result<Self> {
        crate::catalog::check_name(name)?;
        let stored = Arc::new(stored_schema(incoming));
        let meaning = DatasetSchema::new(&stored, 1)?;
        let known = engine.shared().catalog.find(name);
        let known = known.map(|dataset| Arc::clone(&dataset.view().schema));
        if let Some(known) = &known {
            options.evolve(name, known, &stored)?;
        }
        check_types(known.as_deref(), &stored)?;
        index_kind::check(&stored, &meaning.vectors)?;
        quantization::check(&stored, &meaning.vectors)?;
        recall_target::check(&stored, &meaning.vectors)?;
        text_column::check(&stored)?;
        check_schema(&stored)?;
        let dictionaries = has_dictionaries(incoming)
            .then(|| Dictionaries::new(incoming))
            .transpose()?;
        Ok(PutSession {
            engine,
            name: name.to_owned(),
            stored,
            dictionaries,
            target: None,
            options,
        })
    }

    /// Takes one Arrow IPC message of the stream. `None` for a message without rows of its own (a dictionary).
    /// Blocks while the dataset is created or its schema grows, and may write and apply a small batch itself, so call it where
    /// blocking is allowed.
    ///
    /// # Errors
    /// If the batch is not acceptable; nothing of it is kept then.
    pub fn message(&mut self, header: Bytes, body: Bytes) -> Result<Option<Pending>> {
        let Some(dictionaries) = &mut self.dictionaries else {
            let as_it_comes = match self.fitting_schema() {
                Some(schema) => schema,
                None => Arc::clone(&self.stored),
            };
            let batch = Batch::from_message(&as_it_comes, header, body)?;
            return self.batch(batch).map(Some);
        };
        let message = root_as_message(&header).map_err(longbow_storage::Error::from)?;
        if message.header_type() == MessageHeader::DictionaryBatch {
            dictionaries.add(&header, body)?;
            return Ok(None);
        }
        let batch = dictionaries.read(header, body)?;
        self.record_batch(&batch).map(Some)
    }

    /// Takes a batch from this process.
    ///
    /// # Errors
    /// As [`PutSession::message`].
    pub fn record_batch(&mut self, batch: &RecordBatch) -> Result<Pending> {
        let columns = batch.columns().iter().zip(self.stored.fields());
        let plain = columns.map(|(column, field)| Ok(arrow_cast::cast(column, field.data_type())?));
        let plain =
            RecordBatch::try_new(Arc::clone(&self.stored), plain.collect::<Result<Vec<_>>>()?)?;
        self.batch(Batch::from_record_batch(&plain)?)
    }

    /// Ends the stream; creates the dataset if it had no batch at all.
    ///
    /// # Errors
    /// If the dataset cannot be created.
    pub fn finish(mut self) -> Result<()> {
        if self.target.is_none() && self.engine.shared().catalog.find(&self.name).is_none() {
            self.prepare()?;
        }
        Ok(())
    }

    /// The dataset's own schema object, if the stream's batches can be kept under it as they are.
    fn fitting_schema(&self) -> Option<SchemaRef> {
        let schema = match &self.target {
            Some(target) => Arc::clone(&target.schema),
            None => Arc::clone(&self.engine.shared().catalog.find(&self.name)?.view().schema),
        };
        schema
            .same_columns(&self.stored)
            .then(|| Arc::clone(&schema.arrow))
    }

    /// The dataset's schema as it will be with the columns of this stream.
    fn schema_after(&self) -> Result<Arc<DatasetSchema>> {
        if let Some(target) = &self.target {
            return Ok(Arc::clone(&target.schema));
        }
        let Some(dataset) = self.engine.shared().catalog.find(&self.name) else {
            return DatasetSchema::new(&self.stored, 1);
        };
        let schema = Arc::clone(&dataset.view().schema);
        let grown = self.options.evolve(&self.name, &schema, &self.stored)?;
        Ok(grown.unwrap_or(schema))
    }

    fn batch(&mut self, batch: Batch) -> Result<Pending> {
        if batch.rows() == 0 {
            return Err(Error::EmptyBatch);
        }
        let schema = self.schema_after()?;
        let meaning = DatasetSchema::new(&batch.schema(), 0)?;
        check_values(&meaning, &schema, &batch)?;
        let taken = self
            .engine
            .admit((&self.name, &schema), batch.rows(), batch.bytes())?;
        loop {
            let Target { dataset, schema } = self.prepare()?;
            let (dataset, schema) = (Arc::clone(dataset), Arc::clone(schema));
            let batch = if schema.same_columns(&batch.schema()) {
                batch.clone()
            } else {
                batch.with_schema(&schema.arrow)?
            };
            let waited = std::time::Instant::now();
            let intake = dataset.intake.lock();
            let wait = &longbow_types::metrics().lock_wait;
            wait.with_label_values(&["put"])
                .observe(waited.elapsed().as_secs_f64());
            if intake.dropped || !Arc::ptr_eq(&intake.schema, &schema) {
                // Dropped or grown in between: look again, after whoever does it is done.
                drop(intake);
                drop(self.engine.shared().catalog.ordering.lock());
                self.target = None;
                continue;
            }
            let op = Op::Put {
                dataset: dataset.number,
                schema_version: schema.version,
                batch: Arc::new(batch),
            };
            return self.engine.shared().submit(
                op,
                self.options.until_durable,
                intake,
                Some(taken),
            );
        }
    }

    /// The dataset to put into: created, and with all columns of this stream.
    fn prepare(&mut self) -> Result<&Target> {
        if self.target.is_none() {
            let dataset = self.engine.create_if_missing(&self.name, &self.stored)?;
            let schema = self.grow(&dataset)?;
            self.target = Some(Target { dataset, schema });
        }
        self.target
            .as_ref()
            .ok_or_else(|| Error::DatasetNotFound(self.name.clone()))
    }

    /// Grows the dataset's schema by the columns that the stream adds, and gives the schema to check batches against.
    fn grow(&self, dataset: &Dataset) -> Result<Arc<DatasetSchema>> {
        let mut intake = dataset.intake.lock();
        let grown = self
            .options
            .evolve(&dataset.name, &intake.schema, &self.stored)?;
        if let Some(grown) = grown {
            let schema = SchemaText::new(&grown.arrow);
            let op = Small::Schema {
                dataset: dataset.number,
                version: grown.version,
                schema,
            };
            self.engine.shared().submit_small(op, ())?.wait()?;
            intake.schema = grown;
        }
        Ok(Arc::clone(&intake.schema))
    }
}

fn has_dictionaries(schema: &SchemaRef) -> bool {
    let mut types = schema.fields().iter().map(|field| field.data_type());
    types.any(|data_type| matches!(data_type, DataType::Dictionary(..)))
}

/// Whether a type is null, or of lists or structs of it.
fn has_null(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            has_null(of.data_type())
        }
        DataType::Map(of, _) => has_null(of.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_null(field.data_type())),
        _ => false,
    }
}

/// A column that is new must have a type: it keeps that of its first batch.
fn check_types(known: Option<&DatasetSchema>, stored: &SchemaRef) -> Result<()> {
    let is_new = |name: &str| known.is_none_or(|known| known.arrow.index_of(name).is_err());
    let mut fields = stored.fields().iter();
    match fields.find(|field| has_null(field.data_type()) && is_new(field.name())) {
        Some(field) => Err(Error::NullColumn {
            column: field.name().clone(),
            got: field.data_type().to_string(),
        }),
        None => Ok(()),
    }
}

/// Ids and vectors must be there, ids not too long and vectors finite: what the applier would refuse must not reach
/// the log.
fn check_values(schema: &DatasetSchema, known: &DatasetSchema, batch: &Batch) -> Result<()> {
    check_not_null(batch, schema.id, "id")?;
    check_id_lengths(&batch.column(schema.id)?)?;
    for column in &schema.vectors {
        check_not_null(batch, column.index, &column.name)?;
        let Some(vectors) = Vectors::of(batch, column)? else {
            continue;
        };
        // A batch need not say again how its vectors are compared.
        let known = known.vectors.iter().find(|of| of.name == column.name);
        let metric = known.map_or(column.space.metric, |of| of.space.metric);
        let space = Space {
            metric,
            ..column.space
        };
        check_elements((&column.name, space), &vectors, batch.rows())?;
    }
    Ok(())
}

/// Of elements that are not finite, or too large, there are no distances.
fn check_elements(
    (column, space): (&str, Space),
    vectors: &Vectors<'_>,
    rows: usize,
) -> Result<()> {
    let kernels = Kernels::get();
    let (scalar, most) = (space.scalar, space.largest_element());
    if kernels.all_within(scalar, vectors.bytes(), most) {
        return Ok(());
    }
    let is_bad = |row: &usize| !kernels.all_within(scalar, vectors.rows(*row, 1), most);
    let row = (0..rows).find(is_bad).unwrap_or(0);
    let mut floats = vec![0.0; space.dim];
    kernels.decode(scalar, vectors.rows(row, 1), &mut floats);
    let column = column.to_owned();
    Err(match floats.iter().all(|x| x.is_finite()) {
        true => Error::TooLarge {
            column,
            row,
            value: floats.into_iter().find(|x| x.abs() > most).unwrap_or(most),
            most,
        },
        false => Error::NotFinite { column, row },
    })
}

fn check_not_null(batch: &Batch, at: usize, column: &str) -> Result<()> {
    if batch.null_count(at) == 0 && batch.child_null_count(at) == 0 {
        return Ok(());
    }
    let array = batch.column(at)?;
    let lists = array.as_fixed_size_list_opt();
    let holds_null = |row: &usize| {
        array.is_null(*row) || lists.is_some_and(|lists| lists.value(*row).null_count() > 0)
    };
    let row = (0..batch.rows()).find(holds_null).unwrap_or(0);
    Err(Error::NullValue {
        column: column.to_owned(),
        row,
    })
}

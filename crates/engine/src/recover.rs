//! Opening a data folder: the last checkpoint, then the log after it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longbow_disk::Disk;
use longbow_log::Log;
use longbow_storage::{DatasetManifest, IdMap, Manifest, Segment, Tombstones};

use crate::block_files::BlockFiles;
use crate::catalog::Catalog;
use crate::checkpoint::{MANIFEST, covered, file_number, sweep_folder};
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::dead::DeadRows;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::loading::Load;
use crate::observer::LogMetrics;
use crate::options::Options;
use crate::replay::replaying;
use crate::schema::{DatasetSchema, VectorColumn};
use crate::shared::Shared;
use crate::tail::Tail;
use crate::text_column::TextColumn;
use crate::text_index::TextIndex;
use crate::view::View;

/// Dead rows of a checkpoint died before any log entry that a reader can ask about.
const DEAD_BEFORE: u64 = 1;

/// What opening a folder found.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Number of the checkpoint, 0 if there was none.
    pub checkpoint: u64,
    /// Datasets in all.
    pub datasets: usize,
    /// Living rows in all.
    pub rows: u64,
    /// Log entries applied after the checkpoint.
    pub replayed: u64,
    /// Bytes of the log's files, all of which were read.
    pub log_bytes: u64,
    /// Bytes of a torn tail that were cut from the log: writes that were never acknowledged.
    pub cut_bytes: u64,
    /// How long it took.
    pub took: Duration,
}

/// Reads a data folder.
///
/// # Errors
/// If anything in it is damaged or of a newer version; nothing is changed then.
pub(crate) fn recover(
    disk: Arc<dyn Disk>,
    mut options: Options,
) -> Result<(Shared, Recovered, Vec<Load>)> {
    let root = options.path.join("datasets");
    options.graphs.blocks = BlockFiles::new(Arc::clone(&disk), root);
    let started = Instant::now();
    let mut recovered = Recovered::default();
    let manifest_path = options.path.join(MANIFEST);
    let found = Manifest::read(disk.as_ref(), &manifest_path)?;
    refuse_missing_log(disk.as_ref(), &options.path, found.is_some())?;
    let manifest = found.unwrap_or_default();
    recovered.checkpoint = manifest.checkpoint;
    let (catalog, loads) = load(disk.as_ref(), &options, &manifest)?;
    let after = covered(&manifest);
    let log_options = log_options(&options);
    let ((log, found), replayed) = replaying(&catalog, &options.graphs, |replayer| {
        Ok(Log::open_with(
            Arc::clone(&disk),
            log_options,
            after,
            replayer,
        )?)
    })?;
    catalog
        .datasets()
        .iter()
        .for_each(|dataset| dataset.open_intake());
    // Only now: whatever is wrong with the folder was found by then, and nothing of it was touched.
    // What the manifest before this one names may go only when that one cannot come back.
    disk.sync_dir(&options.path)?;
    let root = options.path.join("datasets");
    sweep_folder(disk.as_ref(), &root, &manifest, &|_, _| false)?;
    let next_file = next_file(disk.as_ref(), &options)?;
    options.graphs.blocks.begin(next_file);
    let datasets = catalog.datasets();
    recovered.datasets = datasets.len();
    recovered.rows = datasets.iter().map(|dataset| dataset.view().live).sum();
    recovered.replayed = replayed;
    recovered.log_bytes = found.bytes;
    recovered.cut_bytes = found.cut_bytes;
    recovered.took = started.elapsed();
    let shared = Shared::new(options, disk, log, catalog, manifest.checkpoint, next_file);
    let saved = manifest.datasets.iter().flat_map(|saved| &saved.indexes);
    shared.unsaved.expect(saved.map(|index| index.bytes).sum());
    Ok((shared, recovered, loads))
}

/// How the log is opened.
fn log_options(options: &Options) -> longbow_log::Options {
    longbow_log::Options {
        segment_size: options.log_segment_bytes,
        sync: options.sync,
        sync_method: options.sync_method,
        prepared_segments: options.log_prepared,
        // As much as the log may take anyway: the next gigabyte goes where the last one went. Nothing where files are memory.
        spare_bytes: match options.is_reopened {
            true => options.max_log_bytes,
            false => 0,
        },
        low_priority: Arc::new(crate::indexer::stand_back_for_all),
        segment_age: options.log_segment_age,
        retain_age: options.log_retain_age,
        retain_bytes: options.log_retain_bytes,
        max_queued_bytes: options.log_queued_bytes,
        linger: options.linger,
        max_batch_entries: options.log_batch_entries,
        observer: Arc::new(LogMetrics),
        ..longbow_log::Options::new(options.path.join("log"))
    }
}

/// A folder with rows and without a log is not a new one: opened as such it would lose acknowledged writes, and its
/// rows would be swept away as leftovers.
pub(crate) fn refuse_missing_log(disk: &dyn Disk, folder: &Path, has_manifest: bool) -> Result<()> {
    let holds = |path: &Path| Ok::<_, Error>(disk.exists(path)? && !disk.list(path)?.is_empty());
    let path = folder.join("log");
    let has_log = !longbow_log::segments(disk, &path)?.is_empty();
    if has_log || !(has_manifest || holds(&folder.join("datasets"))?) {
        return Ok(());
    }
    let path = path.display().to_string();
    Err(Error::LogMissing { path })
}

fn load(disk: &dyn Disk, options: &Options, manifest: &Manifest) -> Result<(Catalog, Vec<Load>)> {
    let mut loads = Vec::new();
    let mut datasets = Vec::with_capacity(manifest.datasets.len());
    for saved in &manifest.datasets {
        datasets.push(Arc::new(load_dataset(disk, options, saved, &mut loads)?));
    }
    let namespaces = manifest.namespaces.clone();
    let next_dataset = manifest.next_dataset.max(1);
    let catalog = Catalog::restored(manifest.catalog_index, next_dataset, namespaces, datasets)
        .with_text_columns(Arc::from(&options.text_columns[..]));
    Ok((catalog, loads))
}

fn load_dataset(
    disk: &dyn Disk,
    options: &Options,
    saved: &DatasetManifest,
    loads: &mut Vec<Load>,
) -> Result<Dataset> {
    let dir = options.path.join("datasets").join(saved.number.to_string());
    let schema = DatasetSchema::new(&saved.schema, saved.schema_version)?;
    let mut segments = Vec::with_capacity(saved.segments.len());
    for meta in &saved.segments {
        segments.push(Arc::new(Segment::open(disk, &dir.join(&meta.file), meta)?));
    }
    let tombstones = match &saved.tombstones {
        None => Tombstones::default(),
        Some(file) => Tombstones::load(disk, &dir.join(&file.file), file)?,
    };
    let mut dead = DeadRows::default();
    tombstones
        .iter()
        .for_each(|row| dead.mark(row, DEAD_BEFORE));
    let mut view = View {
        index: saved.applied.max(DEAD_BEFORE),
        next_row: saved.next_row,
        live: 0,
        schema: Arc::clone(&schema),
        segments: Arc::new(segments),
        tail: Tail::default(),
        dead,
    };
    mark_missing(&mut view);
    let ids = load_ids(&view)?;
    view.live = ids.len() as u64;
    let mut indexes = Vec::with_capacity(schema.vectors.len());
    for column in &schema.vectors {
        let (index, load) = load_index(disk, options, saved, &view, column)?;
        indexes.push(index);
        loads.extend(load);
    }
    let text = load_text(options, saved, &schema);
    let dataset = Dataset::from_parts(
        saved.number,
        &saved.name,
        view,
        ids,
        indexes,
        options.graphs.of_dataset(saved.number),
    );
    Ok(dataset.with_text(text))
}

/// The text index, to be read if it is over the columns of today.
fn load_text(options: &Options, saved: &DatasetManifest, schema: &DatasetSchema) -> TextIndex {
    let chosen: Arc<[String]> = Arc::from(&options.text_columns[..]);
    let columns = TextColumn::all(schema, &chosen);
    let columns: Vec<_> = columns.iter().map(TextColumn::saved).collect();
    let same = saved.text.clone().filter(|text| text.columns == columns);
    if same.is_none() && !columns.is_empty() {
        tracing::info!(
            dataset = saved.name,
            "text index is built anew: none is saved of these columns"
        );
    }
    TextIndex::new(chosen, same)
}

/// Marks the rows dead that compaction dropped. Those that a graph holds still must not be taken for living ones, and
/// no tombstone tells of them.
fn mark_missing(view: &mut View) {
    let runs: Vec<(u64, u64)> = view
        .parts(0)
        .flat_map(|part| part.runs)
        .map(|run| (run.first_row, run.len as u64))
        .collect();
    let mut next = 0;
    for (first_row, len) in runs {
        view.dead.mark_all(next..first_row, DEAD_BEFORE);
        next = first_row + len;
    }
    view.dead.mark_all(next..view.next_row, DEAD_BEFORE);
}

/// The id map is not stored: the id columns of the segments hold all of it.
fn load_ids(view: &View) -> Result<IdMap> {
    let mut ids = IdMap::new(view.schema.arrow.field(view.schema.id).data_type())?;
    for part in view.parts(0) {
        let runs = part
            .runs
            .iter()
            .map(|run| (run.first_row, run.start, run.len));
        ids.insert_runs(
            part.batch,
            view.schema.id,
            runs,
            &mut |row| view.is_visible(row),
            &mut |_| {},
        )?;
    }
    Ok(ids)
}

/// The index of a column, and what is to be read into it.
fn load_index(
    disk: &dyn Disk,
    options: &Options,
    saved: &DatasetManifest,
    view: &View,
    column: &VectorColumn,
) -> Result<(Arc<ColumnIndex>, Option<Load>)> {
    let graphs = options.graphs.of_dataset(saved.number);
    let policy = IndexPolicy::of(column, graphs.kind);
    let mut indexes = saved.indexes.iter();
    let found = indexes.find(|index| index.column == column.name);
    let (Some(saved_index), true) = (found, policy != IndexKind::Flat.into()) else {
        let fresh = ColumnIndex::new(column, policy.first(), &graphs, 0)?;
        return Ok((Arc::new(fresh), None));
    };
    let dir = options.path.join("datasets").join(saved.number.to_string());
    let bytes = disk.map(&dir.join(&saved_index.file))?;
    let kind = match policy {
        IndexPolicy::Fixed(kind) => kind,
        IndexPolicy::Auto => Graph::kind_of_saved(&bytes),
    };
    let index = ColumnIndex::new(column, kind, &graphs, 0)?.loading(saved_index.clone());
    let index = Arc::new(index);
    let load = Load {
        dataset: saved.name.clone(),
        number: saved.number,
        index: Arc::clone(&index),
        column: column.clone(),
        view: view.clone(),
        saved: saved_index.clone(),
        bytes,
    };
    Ok((index, Some(load)))
}

/// One more than the greatest number in the names of the folder's files.
fn next_file(disk: &dyn Disk, options: &Options) -> Result<u64> {
    let root = options.path.join("datasets");
    let mut next = 1;
    if !disk.exists(&root)? {
        return Ok(next);
    }
    for folder in disk.list(&root)? {
        for file in disk.list(&root.join(folder))? {
            if let Some(number) = file_number(&file) {
                next = next.max(number + 1);
            }
        }
    }
    Ok(next)
}

//! Checkpoints: everything up to a log index in synced files, named by one manifest that replaces the last.
//!
//! The order of steps is what makes it safe. Files get new names and are synced before the manifest names them;
//! the manifest is replaced atomically; only then is the log before it purged and are unnamed files removed. A crash
//! at any point leaves either the old manifest with the log it needs or the new one with the files it names.

use std::collections::HashSet;
use std::io::IoSlice;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use longbow_disk::Disk;
use longbow_storage::{DatasetManifest, IndexRef, Manifest, Tombstones, crc32c};
use parking_lot::MutexGuard;

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::seal::{folder, seal_locked};
use crate::shared::Shared;
use crate::text_file;
use crate::view::View;

/// Name of the manifest in the data folder.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The right to make checkpoints. Nobody removes files of the last one, and nothing writes over blocks that it names, while another
/// has it.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

/// Makes a checkpoint, and returns what it consists of.
///
/// # Errors
/// If the disk refuses anything; the last checkpoint and the whole log after it stay. [`Error::Unsure`] if the disk
/// failed a sync before, which leaves open what of earlier files is on it.
pub(crate) fn make(shared: &Shared, _turn: &Turn<'_>) -> Result<Manifest> {
    let _files = shared.files.lock();
    if let Some(cause) = shared.unsure.get() {
        return Err(Error::Unsure(cause.clone()));
    }
    let began = Instant::now();
    shared.unsaved.begin_saving();
    let number = shared.checkpoint.load(Ordering::Acquire) + 1;
    let first_file = shared.next_file.load(Ordering::Relaxed);
    let path = shared.options.path.join(MANIFEST);
    let manifest = match write(shared, number, &path) {
        Ok(manifest) => manifest,
        Err(error) => {
            match Manifest::read(shared.disk.as_ref(), &path) {
                Ok(found) if found.as_ref().is_none_or(|found| found.checkpoint < number) => {
                    discard(shared, first_file, &found.unwrap_or_default());
                }
                // It was replaced, perhaps not durably: both what the old and what the new one names must stay.
                _ => drop(shared.unsure.set(error.to_string())),
            }
            return Err(error);
        }
    };
    shared.checkpoint.store(number, Ordering::Release);
    shared.unsaved.saved(began.elapsed());
    for dataset in shared.catalog.datasets() {
        for index in dataset.indexes().iter() {
            if let Err(error) = index.graph().hold() {
                let (dataset, column) = (&dataset.name, &index.column);
                tracing::warn!(dataset, column, %error, "a file of blocks stays longer than it needs to be");
            }
        }
    }
    shared.log.purge(covered(&manifest))?;
    sweep(shared, &manifest)?;
    Ok(manifest)
}

/// Makes a checkpoint if that saves enough work of the indexers.
///
/// # Errors
/// As [`make`].
pub(crate) fn save_work(shared: &Shared, turn: &Turn<'_>) -> Result<()> {
    let is_sound = shared.log.poisoned().is_none() && shared.unsure.get().is_none();
    let moves = |dataset: &Arc<Dataset>| {
        let indexes = dataset.indexes();
        indexes.iter().any(|index| index.moving_to().is_some())
    };
    // Of an index that is being built to take another's place a checkpoint holds nothing.
    let is_settled = !shared.catalog.datasets().iter().any(moves);
    if is_sound && is_settled && shared.unsaved.is_worth_saving(shared.options.index_work) {
        make(shared, turn)?;
    }
    Ok(())
}

/// The log index up to which a checkpoint holds everything.
pub(crate) fn covered(manifest: &Manifest) -> u64 {
    let datasets = manifest.datasets.iter().map(|dataset| dataset.applied);
    datasets
        .min()
        .unwrap_or(u64::MAX)
        .min(manifest.catalog_index)
}

/// Writes the files of a checkpoint, and the manifest that names them.
fn write(shared: &Shared, number: u64, path: &Path) -> Result<Manifest> {
    // What was applied before the catalog and the views are read is in them.
    let applied = *shared.applied.borrow();
    let (catalog_index, namespaces, datasets) = shared.catalog.snapshot();
    // After the catalog was read, so that it is above the numbers of all datasets in it.
    let next_dataset = *shared.catalog.ordering.lock();
    let mut manifests = Vec::with_capacity(datasets.len());
    for dataset in &datasets {
        manifests.push(save(shared, dataset, applied)?);
    }
    let manifest = Manifest {
        checkpoint: number,
        catalog_index: catalog_index.max(applied),
        next_dataset,
        namespaces,
        datasets: manifests,
    };
    // Entries that the files hold must not be lost by the log: an index given twice would be skipped at replay.
    shared.log.sync()?;
    manifest.write(shared.disk.as_ref(), path)?;
    Ok(manifest)
}

/// Removes what a failed checkpoint wrote, as far as the disk lets it: files that neither a view nor the last manifest
/// uses, with numbers from `first_file` on. What is left goes with the next checkpoint.
fn discard(shared: &Shared, first_file: u64, last: &Manifest) {
    let _unmade = shared.options.graphs.blocks.hold_back();
    for dataset in shared.catalog.datasets() {
        let dir = folder(shared, dataset.number);
        let mut known = last.datasets.iter();
        let known = known.find(|known| known.number == dataset.number);
        // Blocks of an index that was replaced since, whose numbers are others than those of the files here.
        let named = known.map(files_of).unwrap_or_default();
        for file in shared.disk.list(&dir).unwrap_or_default() {
            let new = file_number(&file).is_some_and(|number| number >= first_file);
            if new && !named.contains(file.as_str()) && !holds(&dataset, &file) {
                let _ = shared.disk.remove(&dir.join(&file));
            }
        }
    }
}

/// The number in the name of a file of a dataset.
pub(crate) fn file_number(file: &str) -> Option<u64> {
    let (_, rest) = file.split_once('-')?;
    rest.split_once('.')?.0.parse().ok()
}

/// Writes what one dataset needs beyond its segments so far.
fn save(shared: &Shared, dataset: &Dataset, applied: u64) -> Result<DatasetManifest> {
    // Indexes first: every row that they hold is then in the view taken after.
    let mut graphs = Vec::new();
    let dir = folder(shared, dataset.number);
    shared.disk.create_dir_all(&dir)?;
    let mut text = None;
    if shared.options.is_reopened {
        for index in dataset.indexes().iter() {
            graphs.extend(save_index(shared, dataset, index)?);
        }
        text = Some(text_file::save(shared, dataset)?);
    }
    // From here on this moment counts: rows that came while it was sealed are left to the log.
    let view = seal_locked(shared, dataset, true)?;
    let dead = dead_rows(&view);
    let tombstones = if dead.is_empty() {
        None
    } else {
        let path = shared.new_file(dataset.number, "dead", "roaring");
        Some(dead.save(shared.disk.as_ref(), &path)?)
    };
    if let Err(error) = settle(shared, &dir, &view) {
        // A second sync may succeed although the bytes are gone, so there must be none.
        let _ = shared.unsure.set(error.to_string());
        return Err(error);
    }
    Ok(DatasetManifest {
        number: dataset.number,
        name: dataset.name.clone(),
        schema: Arc::clone(&view.schema.arrow),
        schema_version: view.schema.version,
        options: Default::default(),
        applied: view.index.max(applied),
        next_row: view.next_row,
        segments: view
            .segments
            .iter()
            .map(|segment| segment.meta().clone())
            .collect(),
        tombstones,
        indexes: graphs,
        text: text.and_then(|text| text_file::named(text, dataset, &view)),
    })
}

/// Writes what is new of an index; none if nothing is in it.
fn save_index(shared: &Shared, dataset: &Dataset, index: &ColumnIndex) -> Result<Option<IndexRef>> {
    if let Some(saved) = index.unread() {
        // Later rows are not in it, and will be indexed when it is read.
        return Ok(Some(saved));
    }
    let mut bytes = Vec::new();
    let still = index.hold_still();
    if index.has_gaps(&still) {
        // Rows behind the gap would be inserted twice after a start; so all are inserted anew then.
        let (dataset, column) = (&dataset.name, &index.column);
        tracing::error!(dataset, column, "an index is not saved, for it lacks rows");
        return Ok(None);
    }
    let rows_end = index.watermark();
    let graph = index.graph();
    if let Err(error) = graph.save(&mut bytes) {
        if graph.blocks().is_some() {
            // A second sync may succeed although blocks are gone, so there must be none.
            let _ = shared.unsure.set(error.to_string());
        }
        return Err(error);
    }
    drop(still);
    if bytes.is_empty() {
        return Ok(None);
    }
    let path = shared.new_file(dataset.number, "graph", graph.extension());
    let file = write_file(shared, &path, &bytes)?;
    let (column, crc32c) = (index.column.clone(), crc32c(&bytes));
    Ok(Some(IndexRef {
        column,
        file,
        bytes: bytes.len() as u64,
        crc32c,
        rows_end,
        blocks: graph.blocks().map(str::to_owned),
    }))
}

/// Makes the segments of a view durable, which were sealed since the last checkpoint without a sync, and the names of
/// all files.
fn settle(shared: &Shared, dir: &Path, view: &View) -> Result<()> {
    for segment in view.segments.iter() {
        let path = dir.join(&segment.meta().file);
        shared.disk.open(&path)?.sync_data()?;
    }
    Ok(shared.disk.sync_dir(dir)?)
}

/// Rows that lie in the view's batches and are dead.
fn dead_rows(view: &View) -> Tombstones {
    let mut dead = Tombstones::default();
    for part in view.parts(0) {
        for run in &part.runs {
            if view.dead.may_hold(run.first_row, run.len as u64) {
                let rows = run.first_row..run.first_row + run.len as u64;
                for row in rows.filter(|row| view.dead.is_dead(*row, view.index)) {
                    dead.insert(row);
                }
            }
        }
    }
    dead
}

/// Writes and syncs the file of an index, and gives the file's name.
pub(crate) fn write_file(shared: &Shared, path: &Path, bytes: &[u8]) -> Result<String> {
    let file = shared.disk.create(path)?;
    for chunk in bytes.chunks(1 << 26) {
        file.append_vectored(&[IoSlice::new(chunk)])?;
    }
    file.sync_data()?;
    Ok(path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned())
}

/// Removes the files that the manifest does not name and no view will ask for again; those still mapped stay
/// readable until their last reader is done.
pub(crate) fn sweep(shared: &Shared, manifest: &Manifest) -> Result<()> {
    let root = shared.options.path.join("datasets");
    let _unmade = shared.options.graphs.blocks.hold_back();
    sweep_folder(shared.disk.as_ref(), &root, manifest, &|number, name| {
        // Sealed or compacted after the views of the checkpoint were taken.
        shared
            .catalog
            .by_number(number)
            .is_some_and(|dataset| holds(&dataset, name))
    })
}

fn holds(dataset: &Arc<Dataset>, name: &str) -> bool {
    dataset
        .view()
        .segments
        .iter()
        .any(|segment| segment.meta().file == name)
        || dataset.text().holds(name)
        || dataset.indexes().iter().any(|index| index.holds(name))
}

/// Removes the files below `root` that neither the manifest names nor `is_used` knows, and the folders of datasets that
/// are not in the manifest and have no file left.
pub(crate) fn sweep_folder(
    disk: &dyn Disk,
    root: &Path,
    manifest: &Manifest,
    is_used: &dyn Fn(u64, &str) -> bool,
) -> Result<()> {
    if !disk.exists(root)? {
        return Ok(());
    }
    for name in disk.list(root)? {
        let Ok(number) = name.parse::<u64>() else {
            continue;
        };
        let folder = root.join(&name);
        let dataset = manifest
            .datasets
            .iter()
            .find(|dataset| dataset.number == number);
        let named = dataset.map(files_of).unwrap_or_default();
        let mut kept = 0;
        for file in disk.list(&folder)? {
            if named.contains(file.as_str()) || is_used(number, &file) {
                kept += 1;
            } else {
                disk.remove(&folder.join(&file))?;
            }
        }
        if kept == 0 && dataset.is_none() {
            // Of a dropped dataset, or of a new one, which makes it again when it has files.
            disk.remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

/// The names of all files of a dataset.
pub(crate) fn files_of(dataset: &DatasetManifest) -> HashSet<&str> {
    let segments = dataset.segments.iter().map(|segment| &segment.file);
    let tombstones = dataset.tombstones.iter().map(|dead| &dead.file);
    let indexes = dataset.indexes.iter();
    let indexes = indexes.flat_map(|index| iter::once(&index.file).chain(&index.blocks));
    let pieces = dataset.text.iter().flat_map(|text| &text.pieces);
    let texts = pieces.map(|piece| &piece.file);
    let all = segments.chain(tombstones).chain(indexes).chain(texts);
    all.map(String::as_str).collect()
}

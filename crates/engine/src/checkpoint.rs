//! Checkpoints: everything up to a log index in synced files, named by one manifest that replaces the last.
//!
//! The order of steps is what makes it safe. Files get new names and are synced before the manifest names them;
//! the manifest is replaced atomically; only then is the log before it purged and are unnamed files removed. A crash
//! at any point leaves either the old manifest with the log it needs or the new one with the files it names.

use std::collections::HashSet;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_disk::Disk;
use longbow_storage::{DatasetManifest, IndexRef, Manifest, Tombstones, crc32c};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::seal::{folder, seal_locked};
use crate::shared::Shared;
use crate::view::View;

/// Name of the manifest in the data folder.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// Makes a checkpoint and returns its number.
///
/// # Errors
/// If the disk refuses anything; the last checkpoint and the whole log after it stay.
pub(crate) fn make(shared: &Shared) -> Result<u64> {
    let _files = shared.files.lock();
    // What was applied before the catalog and the views are read is in them.
    let applied = shared.applied.load(Ordering::Acquire);
    let next_dataset = *shared.catalog.ordering.lock();
    let (catalog_index, namespaces, datasets) = shared.catalog.snapshot();
    let mut manifests = Vec::with_capacity(datasets.len());
    for dataset in &datasets {
        manifests.push(save(shared, dataset, applied)?);
    }
    let number = shared.checkpoint.load(Ordering::Acquire) + 1;
    let manifest = Manifest {
        checkpoint: number,
        catalog_index: catalog_index.max(applied),
        next_dataset,
        namespaces,
        datasets: manifests,
    };
    // Entries that the files hold must not be lost by the log: an index given twice would be skipped at replay.
    shared.log.sync()?;
    manifest.write(shared.disk.as_ref(), &shared.options.path.join(MANIFEST))?;
    shared.checkpoint.store(number, Ordering::Release);
    let covered = manifest
        .datasets
        .iter()
        .map(|dataset| dataset.applied)
        .min();
    shared
        .log
        .purge(covered.unwrap_or(u64::MAX).min(manifest.catalog_index))?;
    sweep(shared, &manifest)?;
    Ok(number)
}

/// Writes what one dataset needs beyond its segments so far.
fn save(shared: &Shared, dataset: &Dataset, applied: u64) -> Result<DatasetManifest> {
    // Graphs first: every row that they hold is then in the view taken after.
    let mut graphs = Vec::new();
    let dir = folder(shared, dataset.number);
    shared.disk.create_dir_all(&dir)?;
    for index in dataset.indexes().iter() {
        let mut bytes = Vec::new();
        let still = index.hold_still();
        let rows_end = index.watermark();
        index.graph().save(&mut bytes)?;
        drop(still);
        let file = write_file(shared, dataset.number, &bytes)?;
        let (column, crc32c) = (index.column.clone(), crc32c(&bytes));
        graphs.push(IndexRef {
            column,
            file,
            bytes: bytes.len() as u64,
            crc32c,
            rows_end,
        });
    }
    seal_locked(shared, dataset, true)?;
    let view = dataset.view();
    for segment in view.segments.iter() {
        // Sealed since the last checkpoint, perhaps without a sync.
        shared
            .disk
            .open(&dir.join(&segment.meta().file))?
            .sync_data()?;
    }
    let dead = dead_rows(&view);
    let tombstones = if dead.is_empty() {
        None
    } else {
        let path = shared.new_file(dataset.number, "dead", "roaring");
        Some(dead.save(shared.disk.as_ref(), &path)?)
    };
    shared.disk.sync_dir(&dir)?;
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
    })
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

/// Writes and syncs a graph, and gives the file's name.
fn write_file(shared: &Shared, dataset: u64, bytes: &[u8]) -> Result<String> {
    let path = shared.new_file(dataset, "graph", "hnsw");
    let file = shared.disk.create(&path)?;
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
}

/// Removes the files below `root` that neither the manifest names nor `is_used` knows.
pub(crate) fn sweep_folder(
    disk: &dyn Disk,
    root: &Path,
    manifest: &Manifest,
    is_used: &dyn Fn(u64, &str) -> bool,
) -> Result<()> {
    if !disk.exists(root)? {
        return Ok(());
    }
    for folder in disk.list(root)? {
        let Ok(number) = folder.parse::<u64>() else {
            continue;
        };
        let named: HashSet<String> = manifest
            .datasets
            .iter()
            .filter(|dataset| dataset.number == number)
            .flat_map(|dataset| {
                let segments = dataset.segments.iter().map(|segment| segment.file.clone());
                let tombstones = dataset.tombstones.iter().map(|file| file.file.clone());
                segments
                    .chain(tombstones)
                    .chain(dataset.indexes.iter().map(|index| index.file.clone()))
            })
            .collect();
        for file in disk.list(&root.join(&folder))? {
            if !named.contains(&file) && !is_used(number, &file) {
                disk.remove(&root.join(&folder).join(&file))?;
            }
        }
    }
    Ok(())
}

//! The engine: opened on a data folder, shared by everybody who reads and writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use arrow_schema::SchemaRef;
use longbow_disk::{Disk, Lock};
use parking_lot::Mutex;

use crate::apply::Applied;
use crate::catalog::{Catalog, check_name};
use crate::coder;
use crate::dataset::Dataset;
use crate::deadline::Deadline;
use crate::entry::{Op, SchemaText, Small};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::Id;
use crate::loading::Load;
use crate::options::Options;
use crate::recall::{Pace, calibrate, measure_samples};
use crate::recover::{Recovered, recover};
use crate::shared::{Pending, Shared};
use crate::{backup, checkpoint, compact, hot, indexer, loading, maintenance, recall, vacuum};

/// Rows that count as one piece of work that waits for the indexers.
const QUEUED_ROWS: u64 = 256;

/// A vector database on one data folder. Cloning shares it; the last [`Engine::close`] or drop ends its threads.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    recovered: Recovered,
    threads: Mutex<Option<Threads>>,
    /// Held for as long as the folder is ours.
    _lock: Box<dyn Lock>,
}

#[derive(Debug)]
struct Threads {
    applier: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Opens a data folder, creating it if it is empty: reads the last checkpoint, replays the log after it, and
    /// starts the threads. Everything that was ever acknowledged is there again when this returns; graphs are read after
    /// that, and until then rows are scanned.
    ///
    /// # Errors
    /// If another process holds the folder, if it is damaged or of a newer version, or an unfinished backup by its name, or if the disk fails.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        backup::check_finished(&options.path)?;
        let made = disk.create_dir_all(&options.path);
        made.map_err(Error::FolderRefused)?;
        let lock = lock_folder(disk.as_ref(), &options.path, "longbow")?;
        let (shared, recovered, loads) = recover(disk, options)?;
        let shared = Arc::new(shared);
        let threads = Threads::start(&shared, loads);
        let inner = Inner {
            shared,
            recovered,
            threads: Mutex::new(Some(threads)),
            _lock: lock,
        };
        Ok(Engine {
            inner: Arc::new(inner),
        })
    }

    /// [`Engine::open`] on the disk of this machine.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_folder(options: Options) -> Result<Self> {
        Self::open(Arc::new(longbow_disk::RealDisk), options)
    }

    /// What opening the folder found.
    pub fn recovered(&self) -> &Recovered {
        &self.inner.recovered
    }

    /// Graphs of the last checkpoint that could not be read, and so are built anew: all of them once the indexes are ready.
    pub fn rebuilt_graphs(&self) -> usize {
        self.shared().rebuilt_graphs.load(Ordering::Relaxed)
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.shared().options
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// A dataset by name.
    ///
    /// # Errors
    /// If there is none.
    pub fn dataset(&self, name: &str) -> Result<Arc<Dataset>> {
        self.shared().catalog.get(name)
    }

    /// The datasets and namespaces.
    pub fn catalog(&self) -> &Catalog {
        &self.shared().catalog
    }

    /// Deletes rows by id: all of them, or none if one is unknown.
    ///
    /// # Errors
    /// If the dataset or an id is unknown, or the log refuses.
    pub fn delete_ids(&self, dataset: &str, ids: Vec<Id>) -> Result<Pending> {
        let dataset = self.dataset(dataset)?;
        // Refuse before the log is written; the applier checks again, in the order of the log.
        if let Some(unknown) = ids.iter().find(|id| dataset.find(id).is_none()) {
            return Err(unknown.unknown_in(&dataset.name, &dataset.view().schema.arrow));
        }
        let intake = dataset.intake.lock();
        if intake.dropped {
            return Err(Error::DatasetNotFound(dataset.name.clone()));
        }
        let op = Small::DeleteIds {
            dataset: dataset.number,
            ids,
        };
        self.shared().submit_small(op, intake)
    }

    /// Deletes the rows that pass a filter, as of now.
    ///
    /// # Errors
    /// If the dataset or the filter is wrong, or the log refuses.
    pub fn delete_where(&self, dataset: &str, filter: &dyn Filter) -> Result<Pending> {
        let dataset = self.dataset(dataset)?;
        let view = dataset.view();
        let limits = (Deadline::default(), self.shared().filter_room());
        let filters = &dataset.filters;
        let (rows, _) = filters.rows(filter, &dataset.name, &view, limits)?;
        let rows = rows.iter_from(0).filter(|row| view.is_visible(*row));
        let rows = rows.collect();
        let intake = dataset.intake.lock();
        if intake.dropped {
            return Err(Error::DatasetNotFound(dataset.name.clone()));
        }
        let op = Op::DeleteRows {
            dataset: dataset.number,
            rows,
        };
        self.shared().submit(op, false, intake, None)
    }

    /// Drops a dataset with all its rows. Blocks until that is acknowledged.
    ///
    /// # Errors
    /// If there is none of that name, or the log refuses.
    pub fn drop_dataset(&self, name: &str) -> Result<Applied> {
        let _ordering = self.shared().catalog.ordering.lock();
        let dataset = self.dataset(name)?;
        dataset.intake.lock().dropped = true;
        let drop = Small::DropDataset {
            dataset: dataset.number,
        };
        let dropped = self.shared().submit_small(drop, ()).and_then(Pending::wait);
        if dropped.is_err() {
            // The log refused, so the dataset stays, and takes puts again once the log does.
            dataset.intake.lock().dropped = false;
        }
        self.shared().maintenance.ring();
        dropped
    }

    /// Creates a namespace; one that exists stays as it is. Blocks until that is acknowledged.
    ///
    /// # Errors
    /// If the name is not acceptable, or the log refuses.
    pub fn create_namespace(&self, name: &str) -> Result<Applied> {
        check_name(name)?;
        let _ordering = self.shared().catalog.ordering.lock();
        self.shared()
            .submit_small(
                Small::CreateNamespace {
                    name: name.to_owned(),
                },
                (),
            )?
            .wait()
    }

    /// Deletes a namespace without datasets. Blocks until that is acknowledged.
    ///
    /// # Errors
    /// If there is none of that name, or it holds datasets, or the log refuses.
    pub fn delete_namespace(&self, name: &str) -> Result<Applied> {
        let _ordering = self.shared().catalog.ordering.lock();
        let datasets = self.catalog().datasets_in(name)?;
        if datasets > 0 {
            return Err(Error::NamespaceNotEmpty {
                name: name.to_owned(),
                datasets,
            });
        }
        self.shared()
            .submit_small(
                Small::DeleteNamespace {
                    name: name.to_owned(),
                },
                (),
            )?
            .wait()
    }

    pub(crate) fn create_if_missing(&self, name: &str, schema: &SchemaRef) -> Result<Arc<Dataset>> {
        if let Some(dataset) = self.catalog().find(name) {
            return Ok(dataset);
        }
        let mut next_number = self.shared().catalog.ordering.lock();
        if let Some(dataset) = self.catalog().find(name) {
            return Ok(dataset);
        }
        let schema = SchemaText::new(schema);
        let create = Small::CreateDataset {
            dataset: *next_number,
            name: name.to_owned(),
            schema,
        };
        self.shared().submit_small(create, ())?.wait()?;
        *next_number += 1;
        self.dataset(name)
    }

    /// Makes a checkpoint now and returns its number. Reads and writes go on meanwhile. Waits for a backup that copies the last one.
    ///
    /// # Errors
    /// If the disk fails; the last checkpoint stays the valid one.
    pub fn checkpoint(&self) -> Result<u64> {
        let turn = self.shared().checkpoints.lock();
        Ok(checkpoint::make(self.shared(), &turn)?.checkpoint)
    }

    /// Writes segments and graphs anew that hold too many dead rows, and joins small segments; what housekeeping does
    /// every [`Options::tidy_interval`]. Where files of blocks hold much that is in no use, this makes checkpoints too, after
    /// which they are cut; housekeeping waits for the next ones. Keeps in memory what searches of such files read most, as far as
    /// there is room. Returns the number of datasets whose segments changed.
    ///
    /// # Errors
    /// If the disk fails; what was there stays.
    pub fn tidy(&self) -> Result<usize> {
        let mut changed = 0;
        for dataset in self.catalog().datasets() {
            changed += usize::from(compact::compact(self.shared(), &dataset)?);
            vacuum::vacuum(&dataset, &self.options().graphs)?;
        }
        if self.has_sparse_files() {
            // What the last checkpoint names is free once another holds, and blocks that move into it are named by the one
            // after that.
            self.checkpoint()?;
            for dataset in self.catalog().datasets() {
                vacuum::vacuum(&dataset, &self.options().graphs)?;
            }
            self.checkpoint()?;
        }
        while hot::keep_some(self.shared()) {}
        Ok(changed)
    }

    /// Whether checkpoints and moves of blocks make files shorter.
    fn has_sparse_files(&self) -> bool {
        let datasets = self.catalog().datasets();
        let is_sparse = |dataset: &Arc<Dataset>| {
            let indexes = dataset.indexes();
            indexes.iter().any(|index| index.graph().is_sparse())
        };
        datasets.iter().any(is_sparse)
    }

    /// Measures the samples of searches of a dataset that wait, and returns how many.
    ///
    /// # Errors
    /// If there is no such dataset, or a batch cannot be read.
    pub fn measure_recall(&self, dataset: &str) -> Result<usize> {
        let dataset = self.dataset(dataset)?;
        let mut all = 0;
        for index in dataset.indexes().iter() {
            let pace = Pace::new(self.shared(), (&dataset, index), None);
            while let more @ 1.. = measure_samples(&pace)? {
                all += more;
            }
        }
        Ok(all)
    }

    /// Calibrates the indexes of a dataset now, and measures the samples of searches that wait; what a background thread
    /// does with the share [`Options::recall_share`] of a core. Indexes of few rows are left, for they are scanned.
    ///
    /// # Errors
    /// If there is no such dataset, or a batch cannot be read.
    pub fn calibrate(&self, dataset: &str) -> Result<()> {
        self.measure_recall(dataset)?;
        let dataset = self.dataset(dataset)?;
        for index in dataset.indexes().iter() {
            if index.graph().len() as u64 >= recall::LEAST_ROWS {
                calibrate(&Pace::new(self.shared(), (&dataset, index), None))?;
            }
        }
        Ok(())
    }

    /// Index of the last log entry, and of the last that is durable.
    pub fn log_indices(&self) -> (u64, u64) {
        (
            self.shared().log.last_index(),
            self.shared().log.durable_index(),
        )
    }

    /// Bytes of the log that are acknowledged and not yet synced.
    pub fn unsynced_bytes(&self) -> u64 {
        self.shared().log.unsynced_bytes()
    }

    /// Whether writers should slow down, and why.
    pub fn pressure(&self) -> Option<&'static str> {
        let shared = self.shared();
        if let longbow_log::SyncMode::Background {
            max_unsynced_bytes, ..
        } = shared.options.sync
            && shared.log.unsynced_bytes() > max_unsynced_bytes / 2
        {
            return Some("wal_pressure");
        }
        if shared.log.queued_bytes() > shared.log.max_queued_bytes() / 2 {
            return Some("wal_pressure");
        }
        let waiting: u64 = self
            .catalog()
            .datasets()
            .iter()
            .map(|dataset| dataset.unindexed())
            .sum();
        let queued = waiting / QUEUED_ROWS;
        (queued > shared.options.index_queue as u64).then_some("index_backlog")
    }

    /// Why the node takes no writes, if it does not.
    ///
    /// # Errors
    /// If the log was poisoned by a failed write or sync, or the engine is closing.
    pub fn check_writable(&self) -> Result<()> {
        if let Some(cause) = self.shared().log.poisoned() {
            return Err(Error::Stopped(cause.to_string()));
        }
        if self.shared().stopping.load(Ordering::Acquire) {
            return Err(Error::Stopped("it is shutting down".into()));
        }
        if self.shared().applier.has_failed() {
            return Err(Error::Stopped("applying a write has failed".into()));
        }
        Ok(())
    }

    /// Ends the threads after everything handed in was written, synced and answered. Later writes are refused.
    /// Harmless to call twice.
    ///
    /// # Errors
    /// If the last sync fails.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        let Some(threads) = self.threads.lock().take() else {
            return Ok(());
        };
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.indexers.ring_all();
        self.shared.starved.ring();
        self.shared.coder.stop();
        self.shared.maintenance.ring();
        self.shared.recall.ring();
        for thread in threads.others {
            // A thread that panicked has said so; the state it left is on disk.
            let _ = thread.join();
        }
        if let Err(error) = checkpoint::save_work(&self.shared, &self.shared.checkpoints.lock()) {
            // Nothing but time is lost.
            tracing::warn!(%error, "indexes are not saved, and are made again at the next start");
        }
        // Everything queued is written, synced and handed to the applier by then.
        let closed = self.shared.log.close();
        self.shared.applier.close();
        let _ = threads.applier.join();
        Ok(closed?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closing the engine");
        }
    }
}

impl Threads {
    fn start(shared: &Arc<Shared>, loads: Vec<Load>) -> Self {
        let spawn = |name: String, body: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name).spawn(body);
            thread.expect("the system has threads to give at start")
        };
        let applied = Arc::clone(shared);
        let applier = spawn(
            "apply".into(),
            Box::new(move || applied.applier.run(|entry| applied.apply(entry))),
        );
        let loader = Arc::clone(shared);
        let mut others = vec![spawn(
            "load".into(),
            Box::new(move || loading::run(&loader, loads)),
        )];
        for worker in 0..shared.options.index_workers.max(1) {
            let shared = Arc::clone(shared);
            others.push(spawn(
                format!("index-{worker}"),
                Box::new(move || indexer::run(&shared, worker, indexer::Share::Idle)),
            ));
        }
        let starved = Arc::clone(shared);
        others.push(spawn(
            "index-steady".into(),
            Box::new(move || indexer::run(&starved, 0, indexer::Share::Steady)),
        ));
        let coded = Arc::clone(shared);
        others.push(spawn(
            "index-codes".into(),
            Box::new(move || coder::run(&coded)),
        ));
        let maintained = Arc::clone(shared);
        others.push(spawn(
            "maintenance".into(),
            Box::new(move || maintenance::run(&maintained)),
        ));
        let measured = Arc::clone(shared);
        others.push(spawn(
            "recall".into(),
            Box::new(move || recall::run(&measured)),
        ));
        Threads { applier, others }
    }
}

/// Takes the lock of a data folder; `purpose` is told to whoever finds it taken.
pub(crate) fn lock_folder(disk: &dyn Disk, path: &Path, purpose: &str) -> Result<Box<dyn Lock>> {
    match disk.lock(&path.join("LOCK"), purpose) {
        Ok(lock) => Ok(lock),
        Err(error @ longbow_disk::Error::Held { .. }) => Err(Error::Locked {
            holder: error.to_string(),
        }),
        Err(error) => Err(error.into()),
    }
}

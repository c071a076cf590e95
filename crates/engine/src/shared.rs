//! What the engine's threads and callers share, and the one way into the log.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use longbow_disk::Disk;
use longbow_log::{Entry, Log};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::applier::Applier;
use crate::apply::{Applied, Committed};
use crate::bell::Bell;
use crate::catalog::Catalog;
use crate::coder::Coder;
use crate::entry::{Op, Small};
use crate::error::{Error, Result};
use crate::helpers::Helpers;
use crate::options::Options;
use crate::room::{MOST_WAITERS, OnTheWay, Taken};
use crate::unsaved::UnsavedWork;

/// A write of up to so many bytes is written to the log and applied by who hands it in, if nobody is at that. Of larger ones the
/// next is received meanwhile.
const HERE_BYTES: usize = 512 << 10;

/// State shared by the engine's callers and threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub options: Options,
    pub disk: Arc<dyn Disk>,
    pub log: Log,
    pub catalog: Catalog,
    /// Every entry up to this index was applied. Whoever follows the log waits on it.
    pub applied: watch::Sender<u64>,
    /// Number of the last checkpoint.
    pub checkpoint: AtomicU64,
    pub stopping: AtomicBool,
    /// Applies what the log has taken.
    pub applier: Arc<Applier>,
    pub indexers: Bell,
    /// Rung only at the end; the steady indexer sleeps on it.
    pub starved: Bell,
    /// Rounds in which an idle indexer got something done.
    pub jobs_done: AtomicU64,
    /// Makes codes of rows that wait for an index.
    pub coder: Coder,
    pub maintenance: Bell,
    /// What the indexers did that no checkpoint holds.
    pub unsaved: UnsavedWork,
    /// Graphs of the last checkpoint that could not be read.
    pub rebuilt_graphs: AtomicUsize,
    /// Text indexes of the last checkpoint that could not be read.
    pub rebuilt_texts: AtomicUsize,
    /// Rung only at the end; the thread that measures recall sleeps on it.
    pub recall: Bell,
    /// Whether there were searches since the thread that measures recall looked last.
    pub searched: AtomicBool,
    /// For requests of many queries.
    pub helpers: Helpers,
    /// Held by whoever changes files of segments: sealing, compaction and checkpoints take turns.
    pub files: Mutex<()>,
    /// Held by whoever makes checkpoints, see [`Turn`](crate::checkpoint::Turn). Taken before `files`.
    pub checkpoints: Mutex<()>,
    /// Held by whoever makes a backup.
    pub backing_up: Mutex<()>,
    /// Set when a sync of files failed: what of them is on the disk is not known until the folder is opened anew, so
    /// no checkpoint may rely on them.
    pub unsure: OnceLock<String>,
    pub on_the_way: Arc<OnTheWay>,
    /// For each who may wait for more room.
    pub waiters: Semaphore,
    /// Held by the thread that looks whether indexes are to be moved.
    pub moving: Mutex<()>,
    /// What the process held in memory before the engine began.
    pub process_bytes_before: u64,
    /// Number in the name of the next file.
    pub next_file: AtomicU64,
}

impl Shared {
    pub fn new(
        options: Options,
        disk: Arc<dyn Disk>,
        log: Log,
        catalog: Catalog,
        checkpoint: u64,
        next_file: u64,
    ) -> Self {
        let applied = watch::Sender::new(log.last_index());
        let process_bytes_before = (options.process_bytes)();
        Shared {
            options,
            disk,
            log,
            catalog,
            applied,
            checkpoint: AtomicU64::new(checkpoint),
            stopping: AtomicBool::new(false),
            applier: Arc::default(),
            indexers: Bell::default(),
            starved: Bell::default(),
            jobs_done: AtomicU64::new(0),
            coder: Coder::default(),
            maintenance: Bell::default(),
            unsaved: UnsavedWork::default(),
            rebuilt_graphs: AtomicUsize::new(0),
            rebuilt_texts: AtomicUsize::new(0),
            recall: Bell::default(),
            searched: AtomicBool::new(false),
            helpers: Helpers::new(),
            files: Mutex::new(()),
            checkpoints: Mutex::new(()),
            backing_up: Mutex::new(()),
            on_the_way: Arc::default(),
            waiters: Semaphore::new(MOST_WAITERS),
            moving: Mutex::new(()),
            process_bytes_before,
            unsure: OnceLock::new(),
            next_file: AtomicU64::new(next_file),
        }
    }

    /// A search is answered. What many threads have in their caches is written only if it changes.
    pub fn note_search(&self) {
        if !self.searched.load(Ordering::Relaxed) {
            self.searched.store(true, Ordering::Relaxed);
        }
    }

    /// A name that no file has had: of a new file of a dataset.
    pub fn new_file(&self, dataset: u64, stem: &str, extension: &str) -> std::path::PathBuf {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        crate::seal::folder(self, dataset).join(format!("{stem}-{number:012}.{extension}"))
    }

    /// Hands an operation to the log. It is applied, and the [`Pending`] answered, once the log has it as safely
    /// as the sync mode says, or survives power loss; also if the caller drops the [`Pending`]. `held` is let go of as soon as the
    /// operation has its place in the log, and `taken` when it is applied. Small ones may be written and applied before this returns.
    pub fn submit<H>(
        &self,
        op: Op,
        until_durable: bool,
        held: H,
        taken: Option<Taken>,
    ) -> Result<Pending> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(Error::Stopped("it is shutting down".into()));
        }
        let (kind, payload) = op.encode()?;
        let bytes: usize = payload.iter().map(Bytes::len).sum();
        let entry = Entry {
            shard: shard_of(&op),
            kind,
            payload,
            durable: until_durable,
            ..Entry::default()
        };
        let (reply, answer) = oneshot::channel();
        let applier = Arc::clone(&self.applier);
        let done = move |ack: longbow_log::Result<longbow_log::Ack>| match ack {
            // Whoever applies outlives the log; at shutdown the log is drained first.
            Ok(ack) => applier.push(Committed {
                index: ack.index,
                durable: ack.durable,
                payload: ack.payload,
                op,
                taken,
                reply,
            }),
            Err(refused) => {
                let _ = reply.send(Err(refused.into()));
            }
        };
        if bytes > HERE_BYTES {
            self.log.append(entry, Box::new(done))?;
        } else {
            let queued = self.log.append_here(entry, Box::new(done))?;
            drop(held);
            let apply = |entry| self.apply(entry);
            self.applier.commit_here(|| drop(queued), apply);
        }
        Ok(Pending(answer))
    }

    /// Applies an entry, which is the next of the log.
    pub fn apply(&self, mut entry: Committed) {
        let index = entry.index;
        let taken = entry.taken.take();
        let answer = entry.apply(&self.catalog, &self.options.graphs);
        drop(taken);
        // Before the writer is answered, who may look for its entry in the change feed at once.
        self.applied.send_replace(index);
        answer.send();
        self.indexers.ring();
        self.coder.note_rows();
    }

    /// [`Shared::submit`] for the operations that are not hot.
    pub fn submit_small<H>(&self, op: Small, held: H) -> Result<Pending> {
        self.submit(Op::Small(op), false, held, None)
    }
}

/// Shards are one to a dataset on a single node; the log only carries the number.
fn shard_of(op: &Op) -> u32 {
    let number = match op {
        Op::Put { dataset, .. } | Op::DeleteRows { dataset, .. } => *dataset,
        Op::Small(
            Small::CreateDataset { dataset, .. }
            | Small::DropDataset { dataset }
            | Small::Schema { dataset, .. }
            | Small::DeleteIds { dataset, .. },
        ) => *dataset,
        Op::Small(Small::CreateNamespace { .. } | Small::DeleteNamespace { .. }) => 0,
    };
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A write on its way: wait for it to learn its place in the log. Dropping it does not undo the write.
#[derive(Debug)]
#[must_use = "a write is acknowledged only by waiting for it"]
pub struct Pending(oneshot::Receiver<Result<Applied>>);

impl Pending {
    /// Waits for the acknowledgement, from a task.
    ///
    /// # Errors
    /// If the log or the state refuses the write; it has then no effect.
    pub async fn done(mut self) -> Result<Applied> {
        self.acknowledged().await
    }

    /// Waits for the acknowledgement; to be asked again if the wait is dropped, not after it was answered.
    ///
    /// # Errors
    /// As [`Pending::done`].
    pub async fn acknowledged(&mut self) -> Result<Applied> {
        (&mut self.0).await.unwrap_or_else(|_| Err(shut_down()))
    }

    /// Waits for the acknowledgement, from a thread that is not part of an async runtime.
    ///
    /// # Errors
    /// As [`Pending::done`].
    pub fn wait(self) -> Result<Applied> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(shut_down()))
    }
}

fn shut_down() -> Error {
    Error::Stopped("it shut down before the write was acknowledged".into())
}

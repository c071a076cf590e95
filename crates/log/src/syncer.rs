//! Making written bytes durable.

use crate::segment::path_of;
use crate::state::Shared;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Shared {
    /// Syncs everything that was written when it was called, and notes that it is durable.
    ///
    /// Called by one thread only: the writer if every acknowledgement needs a sync, the syncer otherwise.
    pub(crate) fn sync_once(&self) -> longbow_disk::Result<()> {
        let mut state = self.state.lock();
        let target = state.written;
        let bytes = state.unsynced_bytes;
        let files = mem::take(&mut state.unsynced_files);
        let dir = mem::take(&mut state.unsynced_dir);
        state.syncing_since = state.unsynced_since.take();
        drop(state);

        let started = Instant::now();
        for file in &files {
            file.sync_data()?;
        }
        if dir {
            self.disk.sync_dir(&self.options.dir)?;
        }
        self.note_durable(target, bytes, started.elapsed());
        Ok(())
    }

    /// Notes that everything up to `target`, of which `bytes` were not synced before, is durable now.
    pub(crate) fn note_durable(&self, target: u64, bytes: u64, took: Duration) {
        // Before anyone can see that it is durable.
        self.options.observer.synced(took, bytes);
        let mut state = self.state.lock();
        state.durable = target;
        state.unsynced_bytes -= bytes;
        state.syncing_since = None;
        drop(state);
        self.progress.notify_all();
    }

    /// Syncs every segment and their names, for a log that does not by itself.
    pub(crate) fn sync_all_segments(&self) -> longbow_disk::Result<()> {
        let started = Instant::now();
        let state = self.state.lock();
        let (target, bytes) = (state.written, state.unsynced_bytes);
        drop(state);
        let firsts: Vec<u64> = self.segments.lock().iter().map(|s| s.first).collect();
        for first in firsts {
            match self.disk.open(&path_of(&self.options.dir, first)) {
                Ok(file) => file.sync_data()?,
                // Purged meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        self.disk.sync_dir(&self.options.dir)?;
        self.note_durable(target, bytes, started.elapsed());
        Ok(())
    }

    /// The thread of the background mode: syncs without pause while anything is unsynced, until the writer has ended
    /// or the log is poisoned.
    pub(crate) fn sync_in_background(&self) {
        loop {
            let mut state = self.state.lock();
            while state.poison.is_none() && state.durable == state.written && !state.finished {
                self.unsynced.wait(&mut state);
            }
            if state.poison.is_some() || state.durable == state.written {
                return;
            }
            drop(state);
            if let Err(cause) = self.sync_once() {
                return self.poison(Arc::new(cause));
            }
        }
    }
}

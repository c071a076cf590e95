//! Making written bytes durable.

use crate::state::Shared;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

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
        let took = started.elapsed();

        let mut state = self.state.lock();
        state.durable = target;
        state.unsynced_bytes -= bytes;
        state.syncing_since = None;
        drop(state);
        self.progress.notify_all();
        self.options.observer.synced(took, bytes);
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

//! Entries that are written by who hands them in.

use crate::group::{Done, Group};
use crate::log::Log;
use crate::{Ack, Entry, Result, SyncMode};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An entry that has its place in the log, and for which nobody was woken yet. When this is dropped, the thread that does it
/// writes the entry and calls its completion, if the log has nothing else to do and the acknowledgement does not wait for a
/// sync; else it is left to the log's threads.
#[derive(Debug)]
#[must_use = "what is queued is written when this is dropped, or a moment later"]
pub struct Here<'a> {
    log: &'a Log,
    told: Arc<AtomicBool>,
    until_durable: bool,
}

impl Log {
    /// Queues an entry as [`append`](Log::append) does, for a thread that has nothing better to do than a short write: to wake another
    /// takes longer. What orders entries, a lock perhaps, may be let go of before [`Here`] is dropped. Not to be called by a
    /// completion.
    ///
    /// # Errors
    ///
    /// As `append`.
    pub fn append_here(
        &self,
        entry: Entry,
        done: Box<dyn FnOnce(Result<Ack>) + Send>,
    ) -> Result<Here<'_>> {
        let told = Arc::new(AtomicBool::new(false));
        let tell = told.clone();
        let done = move |ack| {
            done(ack);
            tell.store(true, Ordering::Release);
        };
        let until_durable = entry.durable;
        let group = Group::new([entry], Done::Call(Box::new(done)));
        let _: Range<u64> = self.queue_with(group, |_| ())?;
        Ok(Here {
            log: self,
            told,
            until_durable,
        })
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        let shared = &self.log.shared;
        let options = &shared.options;
        let mut state = shared.state.lock();
        let waits = self.until_durable
            || options.sync == SyncMode::EveryAck
            || state.is_behind(options.sync)
            || !options.linger.is_zero();
        let told = || self.told.load(Ordering::Acquire);
        if !waits && !told() && state.is_idle_but_for_one(options.sync) {
            shared.help(state, false, told);
        } else {
            shared.call_for_work(&mut state);
        }
    }
}

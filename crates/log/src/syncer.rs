//! Making a log durable that does not sync by itself.

use crate::segment::path_of;
use crate::state::Shared;

impl Shared {
    /// Syncs every segment and their names.
    pub(crate) fn sync_all_segments(&self) -> longbow_disk::Result<()> {
        let firsts: Vec<u64> = self.segments.lock().iter().map(|s| s.first).collect();
        for first in firsts {
            match self.disk.open(&path_of(&self.options.dir, first)) {
                Ok(file) => file.sync_data()?,
                // Purged meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        self.disk.sync_dir(&self.options.dir)
    }
}

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use longbow_index::BlockFile;

/// A file of blocks in memory, which others can look at, and which can be full.
#[derive(Debug, Clone, Default)]
pub struct MemoryFile {
    pub bytes: Arc<Mutex<Vec<u8>>>,
    /// Bytes beyond which nothing can be written; 0 for no limit.
    pub limit: usize,
    /// What is said to have been read from the disk.
    pub reads: Arc<AtomicU64>,
    /// How many slices were asked for beforehand.
    pub asked: Arc<AtomicU64>,
}

impl BlockFile for MemoryFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.bytes.lock().expect("no writer panics");
        let (from, end) = (offset as usize, offset as usize + bytes.len());
        assert!(from <= all.len(), "a write behind the end");
        assert!(from.is_multiple_of(64) && bytes.len().is_multiple_of(64));
        if self.limit > 0 && end > self.limit {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if all.len() < end {
            all.resize(end, 0);
        }
        all[from..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let all = self.bytes.lock().expect("no writer panics");
        let there = all.get(offset as usize..).unwrap_or_default();
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().expect("no writer panics").len() as u64)
    }

    fn bytes(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, _bytes: &[u8]) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let mut all = self.bytes.lock().expect("no writer panics");
        assert!(len as usize <= all.len(), "cut to more than it had");
        all.truncate(len as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

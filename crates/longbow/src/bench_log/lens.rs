//! The real disk, seen through a lens that notes when the writes and syncs of each thread begin and end.

use std::cell::Cell;
use std::io::IoSlice;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use longbow_disk::{Disk, File, Lock, RealDisk, Result};

thread_local! {
    static LAST: Cell<Option<Calls>> = const { Cell::new(None) };
}

/// When a thread last wrote, and when it last synced since; each with begin and end.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// The write.
    pub write: (Instant, Instant),
    /// The sync. Where the write was durable by itself: the moment of its end, twice.
    pub sync: (Instant, Instant),
}

/// The last write and sync of this thread, if it has written.
pub fn last_calls() -> Option<Calls> {
    LAST.get()
}

/// The disk of this machine behind the lens.
#[derive(Debug, Clone, Copy)]
pub struct Lens;

#[derive(Debug)]
struct LensFile {
    inner: Box<dyn File>,
}

fn lens_file(inner: Box<dyn File>) -> Box<dyn File> {
    Box::new(LensFile { inner })
}

fn note_write(began: Instant) {
    let ended = Instant::now();
    LAST.set(Some(Calls {
        write: (began, ended),
        sync: (ended, ended),
    }));
}

impl File for LensFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        let began = Instant::now();
        let offset = self.inner.append_vectored(parts)?;
        note_write(began);
        Ok(offset)
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let began = Instant::now();
        self.inner.write_at(offset, parts)?;
        note_write(began);
        Ok(())
    }

    fn write_at_synced(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let began = Instant::now();
        self.inner.write_at_synced(offset, parts)?;
        note_write(began);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let began = Instant::now();
        self.inner.sync_data()?;
        if let Some(calls) = LAST.get() {
            LAST.set(Some(Calls {
                sync: (began, Instant::now()),
                ..calls
            }));
        }
        Ok(())
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        self.inner.start_writeback(offset, len);
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn map_ahead(&self, len: u64) -> Option<Bytes> {
        self.inner.map_ahead(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buf)
    }
}

impl Disk for Lens {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        RealDisk.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(lens_file(RealDisk.create(path)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(lens_file(RealDisk.open(path)?))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        RealDisk.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        RealDisk.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        RealDisk.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        RealDisk.sync_dir(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        RealDisk.exists(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        RealDisk.free_space(path)
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        RealDisk.lock(path, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_passed_on_and_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let file = Lens.create(&path).expect("created");
        let began = Instant::now();
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(file.append_vectored(&parts).expect("written"), 0);
        assert_eq!(file.append_vectored(&parts).expect("written"), 7);
        file.write_at(4, &[IoSlice::new(b"TWO")]).expect("written");
        let last = || last_calls().expect("this thread wrote");
        let calls = last();
        assert!(began <= calls.write.0 && calls.write.0 <= calls.write.1);
        assert_eq!(calls.sync, (calls.write.1, calls.write.1));
        file.sync_data().expect("synced");
        assert_eq!(last().write, calls.write);
        assert!(calls.write.1 <= last().sync.0 && last().sync.0 <= last().sync.1);
        file.write_at_synced(0, &[IoSlice::new(b"O")])
            .expect("written");
        assert!(last().write.0 >= calls.write.1);
        file.truncate(11).expect("cut");
        assert_eq!(Lens.read(&path, 100).expect("read"), b"One TWOone ");
    }

    #[test]
    fn each_thread_sees_its_own_calls() {
        let seen = std::thread::spawn(|| last_calls().is_some()).join();
        assert!(!seen.expect("no panic"));
    }
}

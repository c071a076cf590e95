//! The disk of this machine.

use crate::disk::folder_of;
use crate::lock::describe;
use crate::{Disk, Error, File, Lock, Operation, Result};
use bytes::Bytes;
use rustix::fs::FlockOperation;
use std::fs;
use std::io::{self, IoSlice, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most parts one vectored write may carry (Linux: `UIO_MAXIOV`).
const MAX_PARTS: usize = 1024;

/// The longest description of a lock's holder that is read back, in bytes.
const MAX_HOLDER: u64 = 1024;

/// The file system as the operating system shows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl RealDisk {
    /// Has the system drop a file from its memory, so that the next read is one of the disk. The file is synced first: what
    /// is only in memory is not dropped. For measurements; where the system is not Linux, it is only synced.
    pub fn forget(&self, path: &Path) -> Result<()> {
        let file = fs::File::open(path).map_err(|e| Error::new(Operation::Open, path, e))?;
        file.sync_data()
            .map_err(|e| Error::new(Operation::Sync, path, e))?;
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|e| Error::new(Operation::Read, path, e.into()))?;
        Ok(())
    }
}

/// An open file and the offset at which the next append begins.
#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: fs::File,
    end: Mutex<u64>,
}

/// An open file on which `flock` holds an exclusive lock; the system lets go when the file is closed.
#[derive(Debug)]
struct RealLock {
    _file: fs::File,
}

impl Lock for RealLock {}

impl RealFile {
    fn open(operation: Operation, path: &Path, options: &fs::OpenOptions) -> Result<Box<dyn File>> {
        let opened = options.open(path).and_then(|file| {
            let end = Mutex::new(file.metadata()?.len());
            Ok((file, end))
        });
        let (file, end) = opened.map_err(|e| Error::new(operation, path, e))?;
        let path = path.to_path_buf();
        Ok(Box::new(RealFile { path, file, end }))
    }

    /// Writes at `offset`, which is at most the end, and moves the end if that went beyond it.
    fn write_from(
        &self,
        offset: u64,
        parts: &[IoSlice<'_>],
        write: impl FnMut(&[IoSlice<'_>], u64) -> rustix::io::Result<usize>,
    ) -> Result<()> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if offset > *end {
            let beyond = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(self.fail(Operation::Write)(beyond));
        }
        let mut at = offset;
        let written = write_all_vectored(parts, &mut at, write);
        *end = at.max(*end);
        written.map_err(self.fail(Operation::Write))
    }

    fn fail(&self, operation: Operation) -> impl FnOnce(io::Error) -> Error {
        move |e| Error::new(operation, &self.path, e)
    }
}

/// Writes all parts at `*end`, in as many calls of `write` as it takes, moving `*end` past every byte that was taken.
fn write_all_vectored(
    parts: &[IoSlice<'_>],
    end: &mut u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> rustix::io::Result<usize>,
) -> io::Result<()> {
    for chunk in parts.chunks(MAX_PARTS) {
        // Shortened in place after a short write, and therefore a copy.
        let mut copy: Vec<IoSlice<'_>> = chunk.to_vec();
        let mut rest = &mut copy[..];
        // Empty parts at the front would make a write of nothing, which looks like a full disk.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match write(rest, *end) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(written) => {
                    *end += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
    Ok(())
}

impl File for RealFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let start = *end;
        let write = |parts: &[IoSlice<'_>], at| rustix::io::pwritev(&self.file, parts, at);
        write_all_vectored(parts, &mut end, write).map_err(self.fail(Operation::Write))?;
        Ok(start)
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let write = |parts: &[IoSlice<'_>], at| rustix::io::pwritev(&self.file, parts, at);
        self.write_from(offset, parts, write)
    }

    #[cfg(target_os = "linux")]
    fn write_at_synced(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let flags = rustix::io::ReadWriteFlags::DSYNC;
        let write = |parts: &[IoSlice<'_>], at| rustix::io::pwritev2(&self.file, parts, at, flags);
        self.write_from(offset, parts, write)
    }

    #[cfg(target_os = "linux")]
    fn start_writeback(&self, offset: u64, len: u64) {
        use std::os::fd::AsRawFd;
        let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else {
            return;
        };
        let fd = self.file.as_raw_fd();
        // SAFETY: the call takes no pointers, and the file is open for as long as `self`.
        #[allow(unsafe_code)]
        unsafe {
            libc::sync_file_range(fd, offset, len, libc::SYNC_FILE_RANGE_WRITE);
        }
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(self.fail(Operation::Sync))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if len > *end {
            let beyond = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(self.fail(Operation::Truncate)(beyond));
        }
        self.file
            .set_len(len)
            .map_err(self.fail(Operation::Truncate))?;
        *end = len;
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(*self.end.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn map_ahead(&self, len: u64) -> Option<Bytes> {
        let len = usize::try_from(len).ok()?;
        // SAFETY: the bytes of a map must not change under a Rust slice that is read. The contract of `map_ahead` has
        // callers read a slice only once what it covers was written, and the contracts of `write_at` and `truncate`
        // forbid to change bytes of which someone holds a view. Bytes beyond the end are part of the map, but no slice
        // over them is read before they exist.
        #[allow(unsafe_code)]
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(&self.file) };
        map.ok().map(Bytes::from_owner)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self
                .file
                .read_at(&mut buf[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(Operation::Read)(e)),
            }
        }
        Ok(filled)
    }
}

/// Maps a whole file for reading.
fn map_file(path: &Path) -> io::Result<Bytes> {
    let file = fs::File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the bytes of a map must not change under a Rust slice. `Disk::map` is documented for files that are
    // immutable from then on, and `File::write_at` forbids to write over bytes of which someone holds a view. The map is
    // private and read-only, and `Bytes` keeps it alive for as long as any slice of it.
    #[allow(unsafe_code)]
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Bytes::from_owner(map))
}

/// Opens or creates a lock file, takes the lock and leaves a note, or tells who holds it.
fn take_lock(path: &Path, note: &str) -> Result<RealLock> {
    let fail = |e| Error::new(Operation::Lock, path, e);
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(fail)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = Vec::new();
            file.take(MAX_HOLDER)
                .read_to_end(&mut holder)
                .map_err(fail)?;
            return Err(Error::Held {
                path: path.to_path_buf(),
                holder: String::from_utf8_lossy(&holder).trim().to_string(),
            });
        }
        Err(e) => return Err(fail(e.into())),
    }
    let mut before = Vec::new();
    (&file)
        .take(MAX_HOLDER)
        .read_to_end(&mut before)
        .map_err(fail)?;
    if !crate::lock::is_ours(&before) {
        return Err(Error::NoLock {
            path: path.to_path_buf(),
        });
    }
    file.set_len(0).map_err(fail)?;
    file.rewind().map_err(fail)?;
    writeln!(file, "{}", describe(note)).map_err(fail)?;
    Ok(RealLock { _file: file })
}

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let fail = |e| Error::new(Operation::CreateDir, path, e);
        // The folders that will be new, deepest first: the name of each must be synced in the one above it.
        let missing: Vec<&Path> = path
            .ancestors()
            .filter(|p| !p.as_os_str().is_empty())
            .take_while(|p| !p.exists())
            .collect();
        fs::create_dir_all(path).map_err(fail)?;
        for created in missing.iter().rev() {
            self.sync_dir(folder_of(created))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let fail = |e| Error::new(Operation::List, dir, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        RealFile::open(Operation::Create, path, &options)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true);
        RealFile::open(Operation::Open, path, &options)
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        map_file(path).map_err(|e| Error::new(Operation::Map, path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::new(Operation::Rename, from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::new(Operation::Remove, path, e))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        fs::remove_dir_all(path).map_err(|e| Error::new(Operation::RemoveDir, path, e))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        fs::File::open(path)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| Error::new(Operation::SyncDir, path, e))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
            .map_err(|e| Error::new(Operation::Stat, path, e))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let found = rustix::fs::statvfs(path)
            .map_err(|e| Error::new(Operation::FreeSpace, path, e.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        Ok(Box::new(take_lock(path, note)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// Takes at most `most` bytes a call, and is interrupted at every third.
    fn write_in_pieces(parts: &[IoSlice<'_>], most: usize) -> (Vec<u8>, u64) {
        let mut taken = Vec::new();
        let mut end = 100;
        let mut calls = 0;
        let write = |parts: &[IoSlice<'_>], at: u64| {
            calls += 1;
            assert!(parts.len() <= MAX_PARTS && at == 100 + taken.len() as u64);
            if calls % 3 == 0 {
                return Err(Errno::INTR);
            }
            let before = taken.len();
            taken.extend(parts.iter().flat_map(|p| p.iter()).take(most));
            Ok(taken.len() - before)
        };
        write_all_vectored(parts, &mut end, write).unwrap();
        (taken, end)
    }

    #[test]
    fn short_and_interrupted_writes_are_continued() {
        let bytes: Vec<u8> = (0..3000u32).map(|i| (i % 251) as u8).collect();
        for part in [1, 2, 7, 3000] {
            let mut parts: Vec<IoSlice<'_>> = bytes.chunks(part).map(IoSlice::new).collect();
            parts.insert(0, IoSlice::new(&[]));
            parts.push(IoSlice::new(&[]));
            for most in [1, 3, 1000, usize::MAX] {
                let (taken, end) = write_in_pieces(&parts, most);
                assert!(
                    taken == bytes && end == 3100,
                    "parts of {part}, {most} a call"
                );
            }
        }
    }

    #[test]
    fn a_failed_write_tells_how_far_it_came() {
        let mut left = 5;
        let mut end = 0;
        let write = |_: &[IoSlice<'_>], _| {
            left -= 1;
            if left > 0 { Ok(2) } else { Err(Errno::NOSPC) }
        };
        let error = write_all_vectored(&[IoSlice::new(&[0; 100])], &mut end, write).unwrap_err();
        assert_eq!((error.kind(), end), (io::ErrorKind::StorageFull, 8));
        let error = write_all_vectored(&[IoSlice::new(&[0])], &mut end, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}

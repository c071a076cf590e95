//! Files in which indexes keep blocks of their own.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use longbow_disk::{Disk, File, MemoryDisk, read_by_pages, reads, will_need};
use longbow_index::BlockFile;
use parking_lot::{RwLock, RwLockWriteGuard};

/// Longest file, in bytes: so much is mapped at once, most of it before it exists. That costs addresses, not memory.
const LONGEST: u64 = 1 << 36;

/// Makes the files of one dataset's indexes, or of any that is yet to be named. Its clones share the numbers in names.
#[derive(Debug, Clone)]
pub struct BlockFiles {
    disk: Arc<dyn Disk>,
    /// The folder of datasets, or of one.
    dir: PathBuf,
    next: Arc<AtomicU64>,
    /// Held shared while a file is made, and exclusively while files are removed that nobody names.
    making: Arc<RwLock<()>>,
}

impl BlockFiles {
    /// In memory that nobody else sees.
    #[must_use]
    pub fn in_memory() -> Self {
        BlockFiles::new(Arc::new(MemoryDisk::new()), Path::new("").to_path_buf())
    }

    /// In the folders of the datasets in `dir`.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Self {
        BlockFiles {
            disk,
            dir,
            next: Arc::new(AtomicU64::new(1)),
            making: Arc::default(),
        }
    }

    /// Those of one dataset.
    pub(crate) fn of_dataset(&self, number: u64) -> Self {
        BlockFiles {
            dir: self.dir.join(number.to_string()),
            ..self.clone()
        }
    }

    /// Lets the numbers in names begin here.
    pub(crate) fn begin(&self, next: u64) {
        self.next.fetch_max(next, Ordering::Relaxed);
    }

    /// Holds back the making of files: one that is made has no name yet by which it is known to be used.
    pub(crate) fn hold_back(&self) -> RwLockWriteGuard<'_, ()> {
        self.making.write()
    }

    /// A file that is made, and named, when something is first written.
    pub(crate) fn create(&self) -> Blocks {
        Blocks {
            files: self.clone(),
            opened: Arc::default(),
        }
    }

    /// A file that there is.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn open(&self, name: &str) -> longbow_disk::Result<Blocks> {
        let opened = Opened::new(name.to_owned(), self.disk.open(&self.dir.join(name))?);
        Ok(Blocks {
            files: self.clone(),
            opened: Arc::new(OnceLock::from(opened)),
        })
    }
}

/// A file of blocks; clones are the same file.
#[derive(Debug, Clone)]
pub struct Blocks {
    files: BlockFiles,
    opened: Arc<OnceLock<Opened>>,
}

#[derive(Debug)]
struct Opened {
    name: String,
    file: Box<dyn File>,
    map: Option<Bytes>,
}

impl Opened {
    fn new(name: String, file: Box<dyn File>) -> Self {
        let map = file.map_ahead(LONGEST);
        // Neighbouring slots have nothing to do with each other.
        map.iter().for_each(|map| read_by_pages(map));
        Opened { name, file, map }
    }
}

impl Blocks {
    /// Its name in the folder, if something was written.
    pub fn name(&self) -> Option<&str> {
        self.opened.get().map(|opened| opened.name.as_str())
    }

    fn opened(&self) -> io::Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let BlockFiles {
            disk,
            dir,
            next,
            making,
        } = &self.files;
        let _making = making.read();
        // Only now: while a folder is read, nobody knows yet which numbers are taken.
        let number = next.fetch_add(1, Ordering::Relaxed);
        let name = format!("blocks-{number:08}.spfresh");
        disk.create_dir_all(dir).map_err(io::Error::other)?;
        let file = disk.create(&dir.join(&name)).map_err(io::Error::other)?;
        // Whoever writes the first block holds the lock of the file's length.
        Ok(self.opened.get_or_init(|| Opened::new(name, file)))
    }
}

impl BlockFile for Blocks {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset + bytes.len() as u64 > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = &self.opened()?.file;
        file.write_at(offset, &[IoSlice::new(bytes)])
            .map_err(io::Error::other)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        match self.opened.get() {
            Some(opened) => opened.file.read_at(offset, out).map_err(io::Error::other),
            None => Ok(0),
        }
    }

    fn len(&self) -> io::Result<u64> {
        match self.opened.get() {
            Some(opened) => opened.file.len().map_err(io::Error::other),
            None => Ok(0),
        }
    }

    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let map = self.opened.get()?.map.as_ref()?;
        let from = usize::try_from(offset).ok()?;
        map.get(from..from + len)
    }

    fn will_need(&self, bytes: &[u8]) {
        will_need(bytes);
    }

    fn reads(&self) -> u64 {
        reads()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        match self.opened.get() {
            Some(opened) => opened.file.truncate(len).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let Some(opened) = self.opened.get() else {
            return Ok(());
        };
        opened.file.sync_data().map_err(io::Error::other)?;
        let BlockFiles { disk, dir, .. } = &self.files;
        disk.sync_dir(dir).map_err(io::Error::other)
    }
}

/// A file of blocks that is read, and not changed.
#[derive(Debug)]
pub(crate) struct OpenFile(pub Box<dyn File>);

impl BlockFile for OpenFile {
    fn write(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, out).map_err(io::Error::other)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len().map_err(io::Error::other)
    }

    fn bytes(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    fn cut(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

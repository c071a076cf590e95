//! Looking over a data folder: every checksum of every file, all damage and not only the first.

use std::path::{Path, PathBuf};

use longbow_disk::Disk;
use longbow_index::{SpFresh, SpFreshParams};
use longbow_storage::{DatasetManifest, FileRef, IndexRef, Manifest, Segment, Tombstones, crc32c};
use serde::Serialize;

use crate::block_files::OpenFile;
use crate::checkpoint::{MANIFEST, covered, files_of};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::recover::refuse_missing_log;
use crate::schema::DatasetSchema;
use crate::text_file;

/// How much of a file is read at once, in bytes.
const WINDOW: usize = 4 << 20;

/// The kinds of files in a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// The write-ahead log; its entries are counted.
    Log,
    /// The list of a checkpoint's files; its datasets are counted.
    Manifest,
    /// Row segments; their rows are counted.
    Rows,
    /// Sets of dead rows; these are counted.
    Tombstones,
    /// Saved graphs; nothing in them is counted.
    Graphs,
    /// Saved pieces of text indexes; their rows are counted.
    Texts,
}

impl FileKind {
    /// Every kind, in the order of reports.
    pub const ALL: [FileKind; 6] = [
        FileKind::Log,
        FileKind::Manifest,
        FileKind::Rows,
        FileKind::Tombstones,
        FileKind::Graphs,
        FileKind::Texts,
    ];
}

/// What was read of one kind of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Of which kind.
    pub kind: FileKind,
    /// How many files.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Sound entries of the log, datasets, rows, or dead rows.
    pub entries: u64,
}

/// A file that is not as it was written.
#[derive(Debug)]
pub struct FileDamage {
    /// Of which kind it is.
    pub kind: FileKind,
    /// The file, or the folder of the log if all of it is missing.
    pub file: PathBuf,
    /// Where in the file what is broken begins, as far as that can be told.
    pub offset: Option<u64>,
    /// What is wrong: what a start on the folder would say, too.
    pub error: Error,
    /// In the log, the first and the last index that cannot be vouched for.
    pub indexes: Option<(u64, u64)>,
}

/// What looking over a folder found.
#[derive(Debug)]
pub struct Verification {
    /// Number of the checkpoint, 0 if there is none or its manifest is damaged.
    pub checkpoint: u64,
    /// Index up to which the checkpoint holds everything.
    pub covered: u64,
    /// One for each kind, in the order of [`FileKind::ALL`].
    pub tallies: [Tally; 6],
    /// All damage, the log's first.
    pub damages: Vec<FileDamage>,
    /// An unfinished write at the end of the log: no damage, the next start cuts it.
    pub torn: Option<longbow_log::Torn>,
    /// Files of datasets that no manifest names that can be read, and that were therefore not checked. Where the
    /// manifest is sound, the next start removes them: the log has what is in them.
    pub unnamed: Vec<PathBuf>,
    pub(crate) manifest: Option<Manifest>,
}

impl Verification {
    /// Whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.damages.is_empty()
    }
}

/// How far a verification has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to be read in all, by what is known at the moment.
    pub total: u64,
}

impl Folder {
    /// Reads every byte of the folder and checks every checksum. Nothing is changed. `progress` is called often; it may answer
    /// [`Error::Stopped`], which ends this.
    ///
    /// # Errors
    /// If a file is of a newer version, or a folder cannot be listed. A file that cannot be read counts as damaged.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress) -> Result<()>) -> Result<Verification> {
        let mut look = Look {
            disk: self.disk.as_ref(),
            told: Progress { done: 0, total: 0 },
            progress,
            found: Verification {
                checkpoint: 0,
                covered: 0,
                tallies: FileKind::ALL.map(|kind| Tally {
                    kind,
                    files: 0,
                    bytes: 0,
                    entries: 0,
                }),
                damages: Vec::new(),
                torn: None,
                unnamed: Vec::new(),
                manifest: None,
            },
        };
        look.told.total = longbow_log::size_bytes(look.disk, &self.log_dir())?;
        let sound_manifest = look.manifest(&self.path.join(MANIFEST))?;
        let manifest = look.found.manifest.clone().unwrap_or_default();
        look.told.total += manifest.datasets.iter().map(bytes_of).sum::<u64>();
        look.log(self, sound_manifest)?;
        for dataset in &manifest.datasets {
            look.dataset(dataset, &self.dataset_dir(dataset.number))?;
        }
        look.found.unnamed = unnamed_files(look.disk, &self.path.join("datasets"), &manifest)?;
        // What the log's damage is about comes before what only stands in the way of reading it.
        look.found.damages.sort_by_key(|damage| damage.kind as u8);
        Ok(look.found)
    }
}

/// A verification under way.
struct Look<'a> {
    disk: &'a dyn Disk,
    progress: &'a mut dyn FnMut(Progress) -> Result<()>,
    told: Progress,
    found: Verification,
}

impl Look<'_> {
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.told.done += bytes;
        (self.progress)(self.told)
    }

    fn tally(&mut self, kind: FileKind) -> &mut Tally {
        &mut self.found.tallies[kind as usize]
    }

    /// Notes what is wrong with a file, if it is damage.
    fn damaged(&mut self, kind: FileKind, file: &Path, offset: u64, error: Error) -> Result<()> {
        if error.code() == "newer_version" || matches!(error, Error::Stopped(_)) {
            return Err(error);
        }
        let missing = matches!(&error, Error::Disk(error) if error.is_not_found());
        self.found.damages.push(FileDamage {
            kind,
            file: file.to_path_buf(),
            offset: offset_of(&error).or((!missing && offset > 0).then_some(offset)),
            error,
            indexes: None,
        });
        Ok(())
    }

    /// Reads a file and checks it; the check says how many entries the file has.
    fn file(
        &mut self,
        kind: FileKind,
        path: &Path,
        check: impl FnOnce(&dyn Disk) -> Result<u64>,
    ) -> Result<()> {
        self.tally(kind).files += 1;
        let mut bytes = 0;
        if let Err(error) = self.read_through(path, &mut bytes) {
            return self.damaged(kind, path, bytes, error);
        }
        self.tally(kind).bytes += bytes;
        match check(self.disk) {
            Ok(entries) => self.tally(kind).entries += entries,
            Err(error) => self.damaged(kind, path, 0, error)?,
        }
        Ok(())
    }

    /// Reads a file once, in pieces: bytes that the disk does not give are an error here, whereas whoever meets them in
    /// a map of the file is ended by the system.
    fn read_through(&mut self, path: &Path, at: &mut u64) -> Result<()> {
        let file = self.disk.open(path)?;
        let mut window = vec![0; WINDOW];
        loop {
            let read = file.read_at(*at, &mut window)?;
            if read == 0 {
                return Ok(());
            }
            *at += read as u64;
            self.advance(read as u64)?;
        }
    }

    /// Checks the manifest. Answers whether there is one, damaged or not.
    fn manifest(&mut self, path: &Path) -> Result<bool> {
        if !self.disk.exists(path)? {
            return Ok(false);
        }
        self.told.total += self.disk.open(path)?.len()?;
        let mut read = None;
        self.file(FileKind::Manifest, path, |disk| {
            read = Manifest::read(disk, path)?;
            Ok(read.as_ref().map_or(0, |found| found.datasets.len() as u64))
        })?;
        if let Some(manifest) = read {
            self.found.checkpoint = manifest.checkpoint;
            self.found.covered = covered(&manifest);
            self.found.manifest = Some(manifest);
        }
        Ok(true)
    }

    fn log(&mut self, folder: &Folder, has_manifest: bool) -> Result<()> {
        let dir = folder.log_dir();
        let disk = self.disk;
        if let Err(error) = refuse_missing_log(disk, &folder.path, has_manifest) {
            return self.damaged(FileKind::Log, &dir, 0, error);
        }
        // Without a manifest that can be read nobody knows where the log has to begin and to end at least.
        let known = self.found.manifest.is_some() || !has_manifest;
        let after = if known { self.found.covered } else { u64::MAX };
        let mut told = Ok(());
        let survey = longbow_log::verify(disk, &dir, after, &mut |bytes| {
            told = self.advance(bytes);
        })?;
        told?;
        let tally = self.tally(FileKind::Log);
        tally.files = survey.files;
        tally.bytes = survey.bytes;
        tally.entries = survey.entries;
        self.found.torn = survey.torn;
        for damage in survey.damages {
            self.found.damages.push(FileDamage {
                kind: FileKind::Log,
                file: damage.file,
                offset: Some(damage.offset),
                error: Error::Log(damage.error),
                indexes: (damage.from <= damage.through).then_some((damage.from, damage.through)),
            });
        }
        let first = survey.first_index;
        if first > after.saturating_add(1) {
            self.found.damages.push(FileDamage {
                kind: FileKind::Log,
                file: dir,
                offset: None,
                error: Error::Log(longbow_log::Error::Missing { after, first }),
                indexes: Some((after + 1, first - 1)),
            });
        }
        Ok(())
    }

    fn dataset(&mut self, dataset: &DatasetManifest, dir: &Path) -> Result<()> {
        for meta in &dataset.segments {
            let path = dir.join(&meta.file);
            let open = |disk: &dyn Disk| Ok(Segment::open(disk, &path, meta)?.rows());
            self.file(FileKind::Rows, &path, open)?;
        }
        if let Some(file) = &dataset.tombstones {
            let path = dir.join(&file.file);
            self.file(FileKind::Tombstones, &path, |disk| {
                // First the checksum of the manifest: a wrong byte may look like a newer version.
                check_whole(&path, &disk.map(&path)?, file)?;
                Ok(Tombstones::load(disk, &path, file)?.len())
            })?;
        }
        for index in &dataset.indexes {
            let path = dir.join(&index.file);
            let check = |disk: &dyn Disk| check_graph(&disk.map(&path)?, index).map(|()| 0);
            self.file(FileKind::Graphs, &path, check)?;
            if let Some(blocks) = &index.blocks {
                let blocks = dir.join(blocks);
                // Manifests do not tell how long it is.
                let file = self.disk.open(&blocks);
                self.told.total += file.and_then(|file| file.len()).unwrap_or_default();
                let check = |disk: &dyn Disk| check_blocks(disk, dataset, index, (&path, &blocks));
                self.file(FileKind::Graphs, &blocks, check)?;
            }
        }
        for file in dataset.text.iter().flat_map(|text| &text.pieces) {
            let path = dir.join(&file.file);
            self.file(FileKind::Texts, &path, |disk| {
                let bytes = disk.read(&path, u64::MAX)?;
                text_file::check(&bytes, file)?;
                Ok(longbow_text::Piece::decode(bytes)?.len() as u64)
            })?;
        }
        Ok(())
    }
}

/// Whether the bytes of a file are those that the manifest means.
fn check_whole(path: &Path, bytes: &[u8], file: &FileRef) -> Result<()> {
    let got = crc32c(bytes);
    if got == file.crc32c {
        return Ok(());
    }
    Err(Error::Storage(longbow_storage::Error::Checksum {
        path: path.to_path_buf(),
        offset: 0,
        length: bytes.len() as u64,
        expected: file.crc32c,
        got,
    }))
}

/// Whether these are the bytes that the manifest means.
pub(crate) fn check_graph(bytes: &[u8], index: &IndexRef) -> Result<()> {
    if bytes.len() as u64 == index.bytes && crc32c(bytes) == index.crc32c {
        return Ok(());
    }
    let file = index.file.clone();
    Err(Error::BadGraph { file })
}

/// Whether the blocks that an index names are in their file; how many rows they hold is not counted.
fn check_blocks(
    disk: &dyn Disk,
    dataset: &DatasetManifest,
    index: &IndexRef,
    (saved, blocks): (&Path, &Path),
) -> Result<u64> {
    let schema = DatasetSchema::new(&dataset.schema, dataset.schema_version)?;
    let column = schema.vector(&dataset.name, Some(&index.column))?;
    let Ok(bytes) = disk.map(saved) else {
        return Ok(0);
    };
    if check_graph(&bytes, index).is_err() {
        // That was told already, and without it nobody knows what should be in the blocks.
        return Ok(0);
    }
    let file = OpenFile(disk.open(blocks)?);
    match SpFresh::verify(column.space, SpFreshParams::default(), &bytes, &file) {
        // It is no damage, and built anew at the next start.
        Err(longbow_index::Error::Version { known, got }) if got < known => Ok(0),
        checked => Ok(checked.map(|()| 0)?),
    }
}

fn bytes_of(dataset: &DatasetManifest) -> u64 {
    let segments = dataset.segments.iter().map(|segment| segment.bytes);
    let tombstones = dataset.tombstones.iter().map(|dead| dead.bytes);
    let indexes = dataset.indexes.iter().map(|index| index.bytes);
    let pieces = dataset.text.iter().flat_map(|text| &text.pieces);
    let texts = pieces.map(|piece| piece.bytes);
    segments.chain(tombstones).chain(indexes).chain(texts).sum()
}

/// Where in a file the damage is, if the error says so.
fn offset_of(error: &Error) -> Option<u64> {
    use longbow_storage::Error as Storage;
    match error {
        Error::Storage(
            Storage::Checksum { offset, .. }
            | Storage::Damaged { offset, .. }
            | Storage::SegmentBatch { offset, .. },
        ) => Some(*offset),
        Error::Index(longbow_index::Error::Block { at, .. }) => Some(*at),
        Error::Storage(Storage::FileLength { expected, got, .. }) => Some(*expected.min(got)),
        _ => None,
    }
}

/// Files in the folders of datasets that the manifest does not name, in order.
fn unnamed_files(disk: &dyn Disk, root: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>> {
    let mut unnamed = Vec::new();
    if !disk.exists(root)? {
        return Ok(unnamed);
    }
    for number in disk.list(root)? {
        let mut datasets = manifest.datasets.iter();
        let dataset = datasets.find(|dataset| dataset.number.to_string() == number);
        let named = dataset.map(files_of).unwrap_or_default();
        let folder = root.join(&number);
        let mut files = disk.list(&folder)?;
        files.retain(|file| !named.contains(file.as_str()));
        unnamed.extend(files.iter().map(|file| folder.join(file)));
    }
    unnamed.sort();
    Ok(unnamed)
}

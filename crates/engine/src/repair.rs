//! Making a damaged data folder one that a node can be started on, as far as that is possible without what is gone.
//!
//! Two kinds of damage can be dealt with. A graph is built anew from its rows, once the manifest no longer names the
//! damaged file. The log is cut where it breaks; the manifest is told, where it says of a dataset that it holds more,
//! because the indexes from there on are given again, and a replay skips what a dataset is said to hold. Row segments,
//! tombstones and the manifest itself exist once: they come back from a backup or a replica, or not at all.
//!
//! Nothing is destroyed: what goes is kept in the folder `lost`. The manifest changes before the log does, so that a
//! node that is started after half a repair finds the log still damaged, or cut with a manifest that knows.

use std::path::{Path, PathBuf};

use longbow_log::Cut;
use longbow_storage::{IndexRef, Manifest};

use crate::checkpoint::MANIFEST;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::verify::{FileKind, Verification};

/// What has to be done to a damaged folder.
#[derive(Debug)]
pub struct Repair {
    /// What has to go from the log, if it is damaged.
    pub cut: Option<Cut>,
    /// Damaged graphs and text indexes, to be built anew by the node.
    pub graphs: Vec<PathBuf>,
    /// Files of which the damage stays, whatever is done here. If there are any, a repair of the rest is in vain.
    pub beyond: Vec<PathBuf>,
    /// The manifest as it has to be, if it has to change.
    manifest: Option<Manifest>,
}

impl Folder {
    /// What has to be done about the damage that [`Folder::verify`] found. Nothing is changed.
    ///
    /// # Errors
    /// As [`Folder::verify`].
    pub fn plan_repair(&self, found: &Verification) -> Result<Repair> {
        let mut repair = Repair {
            cut: None,
            graphs: Vec::new(),
            beyond: Vec::new(),
            manifest: None,
        };
        for damage in &found.damages {
            use longbow_log::Error as Log;
            match (&damage.kind, &damage.error) {
                (FileKind::Graphs | FileKind::Texts, _) => repair.graphs.push(damage.file.clone()),
                (FileKind::Log, Error::Log(Log::Damaged { .. } | Log::Disk(_))) => {}
                _ => repair.beyond.push(damage.file.clone()),
            }
        }
        repair.cut = Cut::find(self.disk.as_ref(), &self.log_dir(), found.covered)?;
        if let Some(manifest) = &found.manifest {
            let changed = self.manifest_after(&repair, manifest);
            repair.manifest = Some(changed).filter(|changed| changed != manifest);
        }
        Ok(repair)
    }

    /// The manifest without damaged indexes, and holding nothing that the log will number again.
    fn manifest_after(&self, repair: &Repair, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        for dataset in &mut manifest.datasets {
            let dir = self.dataset_dir(dataset.number);
            let sound = |file: &String| !repair.graphs.contains(&dir.join(file));
            let whole = |index: &IndexRef| sound(&index.file) && index.blocks.iter().all(sound);
            dataset.indexes.retain(whole);
            let text = dataset.text.take();
            dataset.text = text.filter(|text| text.pieces.iter().all(|piece| sound(&piece.file)));
        }
        if let Some(cut) = repair.cut.as_ref().filter(|cut| cut.damage.is_some()) {
            let last = cut.next - 1;
            manifest.catalog_index = manifest.catalog_index.min(last);
            for dataset in &mut manifest.datasets {
                dataset.applied = dataset.applied.min(last);
            }
        }
        manifest
    }

    /// Does it, and returns the folder in which all that went is kept. `time` names it; where the name is taken, a
    /// number is added. If this ends early, begin again with [`Folder::verify`].
    ///
    /// # Errors
    /// If the disk refuses. What went until then is in the folder's `lost`.
    pub fn repair(&self, repair: &Repair, time: &str) -> Result<PathBuf> {
        let disk = self.disk.as_ref();
        let lost = self.new_lost_folder(time)?;
        if let Some(manifest) = &repair.manifest {
            let path = self.path.join(MANIFEST);
            let old = disk.read(&path, u64::MAX)?;
            disk.write_atomic(&lost.join(MANIFEST), &old)?;
            manifest.write(disk, &path)?;
        }
        if let Some(cut) = &repair.cut {
            cut.carry_out(disk, &lost.join("log"))?;
        }
        for graph in &repair.graphs {
            self.put_away(graph, &lost)?;
        }
        Ok(lost)
    }

    fn new_lost_folder(&self, time: &str) -> Result<PathBuf> {
        let root = self.path.join("lost");
        let mut lost = root.join(time);
        let mut number = 2;
        while self.disk.exists(&lost)? {
            lost = root.join(format!("{time}-{number}"));
            number += 1;
        }
        self.disk.create_dir_all(&lost)?;
        Ok(lost)
    }

    /// Moves a file of a dataset to the same place in `lost`; one that is missing is no loss.
    fn put_away(&self, file: &Path, lost: &Path) -> Result<()> {
        let disk = self.disk.as_ref();
        if !disk.exists(file)? {
            return Ok(());
        }
        let to = lost.join(file.strip_prefix(&self.path).unwrap_or(file));
        if let (Some(to_dir), Some(from_dir)) = (to.parent(), file.parent()) {
            disk.create_dir_all(to_dir)?;
            disk.rename(file, &to)?;
            disk.sync_dir(to_dir)?;
            disk.sync_dir(from_dir)?;
        }
        Ok(())
    }
}

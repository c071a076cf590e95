//! Cutting a damaged log where it breaks, so that it can be opened again. Nothing is destroyed: what is cut is kept.

use crate::segment::{encode_header, path_of};
use crate::verify::{Damage, Found, Side, Walk, segments};
use crate::{Error, Result, claim};
use longbow_disk::{Disk, File};
use std::io::IoSlice;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

/// How much is copied at once, in bytes.
const WINDOW: usize = 1 << 20;

/// What has to go from a damaged log before it can be opened. A log has no holes: with the first damage goes everything
/// behind it, the sound entries too.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The first damage that matters; `None` if all of it is in segments that the checkpoint covers.
    pub damage: Option<Damage>,
    /// The index that the log goes on with, if `damage` is there.
    pub next: u64,
    /// The indexes that go and that the checkpoint does not hold, as far as they are known to have been there.
    pub lost: Option<RangeInclusive<u64>>,
    /// Segment files that go as a whole.
    pub files: Vec<PathBuf>,
    /// Bytes that go, those of whole files included.
    pub bytes: u64,
    dir: PathBuf,
    /// Segments that the checkpoint covers, oldest first.
    covered: Vec<u64>,
    /// The segment that is broken inside.
    broken: Option<u64>,
    /// Segments behind the damage, in the order in which they go.
    behind: Vec<u64>,
}

impl Cut {
    /// What has to go from the log in `dir`, which nobody may have open, so that it can be opened with `after`: the index
    /// up to which a checkpoint holds everything. `None` if the log is whole. Nothing is changed.
    ///
    /// # Errors
    ///
    /// As [`verify`](fn@crate::verify).
    pub fn find(disk: &dyn Disk, dir: &Path, after: u64) -> Result<Option<Cut>> {
        let firsts = segments(disk, dir)?;
        let look = |firsts: &[u64]| {
            let progress = &mut |_| ();
            let mut walk = Walk::new(disk, dir, after, progress)?;
            walk.all(firsts, u64::MAX, &mut |_| ControlFlow::Continue(()))?;
            Ok::<_, Error>((walk.survey(), walk.found))
        };
        let (all, found) = look(&firsts)?;
        if all.damages.is_empty() {
            return Ok(None);
        }
        // A segment is covered if the next one begins within, or right behind, what the checkpoint holds.
        let following = firsts.iter().skip(1);
        let covered = following.take_while(|first| **first <= after.saturating_add(1));
        let (covered, rest) = firsts.split_at(covered.count());
        let (survey, _) = look(rest)?;
        let mut cut = Cut {
            damage: None,
            next: 0,
            lost: None,
            files: covered.iter().map(|first| path_of(dir, *first)).collect(),
            bytes: found[..covered.len()].iter().map(|s| s.bytes).sum(),
            dir: dir.to_path_buf(),
            covered: covered.to_vec(),
            broken: None,
            behind: Vec::new(),
        };
        if let Some(damage) = survey.damages.first() {
            let through = survey.damages.iter().map(|damage| damage.through).max();
            let through = through.unwrap_or(0).max(survey.last_index);
            let lost = damage.from.max(after.saturating_add(1))..=through;
            cut.lost = Some(lost).filter(|lost| !lost.is_empty());
            cut.take_out(damage, &found);
        }
        Ok(Some(cut))
    }

    /// Notes what goes with the damage.
    fn take_out(&mut self, damage: &Damage, found: &[Found]) {
        self.next = damage.from;
        let mut behind = Vec::new();
        for segment in found.iter().filter(|s| s.first >= damage.segment) {
            match damage.side {
                Side::Inside if segment.first == damage.segment => {
                    self.broken = Some(segment.first);
                    self.bytes += segment.bytes.saturating_sub(damage.offset);
                }
                Side::Behind => {}
                _ => {
                    behind.push((segment.claimed, segment.first));
                    self.files.push(path_of(&self.dir, segment.first));
                    self.bytes += segment.bytes;
                }
            }
        }
        // The one that vouches most goes last: as long as it is there, no start takes the damage for a torn tail and
        // removes what was not yet carried away.
        behind.sort_unstable();
        self.behind = behind.into_iter().map(|(_, first)| first).collect();
        self.damage = Some(damage.clone());
    }

    /// Cuts the log. What is cut is in the folder `lost` afterwards, which must be new and on the same disk: whole
    /// segments are moved there, and of the one that is broken inside all of it is copied first.
    ///
    /// Wherever this ends early, by a failure, a kill or a power loss, every byte is still in `dir` or in `lost`, and the
    /// log is either damaged in the same place, for the next [`Cut::find`], or cut there.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`]. The part of the segment that is broken must be readable.
    pub fn carry_out(&self, disk: &dyn Disk, lost: &Path) -> Result<()> {
        disk.create_dir_all(lost)?;
        if let Some(first) = self.broken {
            self.copy(disk, lost, first)?;
        }
        for first in self.covered.iter().chain(&self.behind) {
            let from = path_of(&self.dir, *first);
            disk.rename(&from, &path_of(lost, *first))?;
            // In this order, so that a power loss may leave it in both places, but not in none.
            disk.sync_dir(lost)?;
            disk.sync_dir(&self.dir)?;
        }
        if let Some(damage) = &self.damage {
            if let Some(first) = self.broken {
                self.trim(disk, first, damage.offset)?;
            }
            // It says that there was more, and goes last: with it no start believes a log that is half repaired.
            self.put_claim_away(disk, lost)?;
        }
        Ok(())
    }

    fn put_claim_away(&self, disk: &dyn Disk, lost: &Path) -> Result<()> {
        let claim = self.dir.join(claim::NAME);
        if !disk.exists(&claim)? {
            return Ok(());
        }
        disk.rename(&claim, &lost.join(claim::NAME))?;
        disk.sync_dir(lost)?;
        Ok(disk.sync_dir(&self.dir)?)
    }

    /// Copies a segment, durably.
    fn copy(&self, disk: &dyn Disk, lost: &Path, first: u64) -> Result<()> {
        let from = disk.open(&path_of(&self.dir, first))?;
        let to = disk.create(&path_of(lost, first))?;
        copy(&*from, &*to)?;
        to.sync_data()?;
        Ok(disk.sync_dir(lost)?)
    }

    /// Cuts a segment at `offset`; one without a sound header is begun anew.
    fn trim(&self, disk: &dyn Disk, first: u64, offset: u64) -> Result<()> {
        let path = path_of(&self.dir, first);
        if offset == 0 {
            let (header, _) = encode_header(first, 0);
            return Ok(disk.write_atomic(&path, &header)?);
        }
        let file = disk.open(&path)?;
        file.truncate(offset)?;
        Ok(file.sync_data()?)
    }
}

/// Appends all of a file to another.
fn copy(from: &dyn File, to: &dyn File) -> Result<()> {
    let mut window = vec![0; WINDOW];
    let mut at = 0;
    loop {
        let read = from.read_at(at, &mut window)?;
        if read == 0 {
            return Ok(());
        }
        to.append_vectored(&[IoSlice::new(&window[..read])])?;
        at += read as u64;
    }
}

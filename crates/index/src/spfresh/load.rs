use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::SLOTS;

use super::block::Block;
use super::directory::Directory;
use super::posting::{Centroid, Posting};
use super::save::{MAGIC, VERSION};
use super::store::{BlockFile, Store};
use super::{SpFresh, SpFreshParams};
use crate::checkpoint::{Reader, checked, same};
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::space::Space;

/// What bytes of a checkpoint say, before any block was read.
struct Saved {
    rows: u64,
    origin: Origin,
    /// The centroid of each posting, and the slots of its blocks.
    postings: Vec<(Vec<f32>, Vec<u32>)>,
}

impl SpFresh {
    /// Whether bytes begin as [`SpFresh::save`] writes them.
    #[must_use]
    pub fn is_saved(input: &[u8]) -> bool {
        input.starts_with(&MAGIC)
    }

    /// Reads what [`SpFresh::save`] wrote, and every block that it names from the file. The checkpoint holds: its blocks
    /// are not written over before [`SpFresh::hold`] was called for another.
    ///
    /// # Errors
    /// If the bytes are not a whole checkpoint of an index of this space and seed, or a block is not in the file as it
    /// was written. Whatever the bytes are, it does not panic, and allocates no more than a few times their length.
    pub fn load(
        space: Space,
        params: SpFreshParams,
        input: &[u8],
        file: Box<dyn BlockFile>,
    ) -> Result<SpFresh> {
        let stride = Self::layout(space, params)?.bytes;
        let saved = Saved::read(space, params, input)?;
        let named = saved.slots()?;
        let end = named.last().map_or(0, |slot| u64::from(*slot) + 1);
        let (need, have) = (end * stride as u64, file.len()?);
        if need > have {
            return Err(Error::Truncated { need, have });
        }
        let store = Store::with(file, stride, &named);
        let index = Self::with(space, params, saved.origin, store)?;
        let mut directory = Directory::default();
        let mut rows = 0;
        for (id, (centroid, slots)) in (0..).zip(&saved.postings) {
            let centroid = Arc::new(Centroid::new(index.encoder(), centroid));
            let mut blocks = Vec::with_capacity(slots.len());
            for (place, slot) in slots.iter().enumerate() {
                let last = place + 1 == slots.len();
                blocks.push(Arc::new(index.read_block(*slot, last)?));
            }
            let centroids = Arc::make_mut(&mut directory.centroids);
            centroids.push(index.encoder(), &index.layout, centroid.member(id));
            let posting = Posting {
                id,
                centroid,
                blocks,
            };
            let members = posting.members(&index.layout);
            rows += members.filter(|member| member.own).count() as u64;
            directory.put(posting);
        }
        same("rows", &saved.rows, &rows)?;
        index.writer.lock().next = saved.postings.len() as u64;
        index.directory.store(Arc::new(directory));
        index.rows.store(rows, Ordering::Release);
        Ok(index)
    }

    /// Checks what [`SpFresh::save`] wrote, and that every block which it names is in the file as it was written.
    ///
    /// # Errors
    /// As [`SpFresh::load`].
    pub fn verify(
        space: Space,
        params: SpFreshParams,
        input: &[u8],
        file: &dyn BlockFile,
    ) -> Result<()> {
        let stride = Self::layout(space, params)?.bytes;
        let mut block = vec![0; stride];
        for slot in Saved::read(space, params, input)?.slots()? {
            let at = u64::from(slot) * stride as u64;
            let read = file.read(at, &mut block)?;
            if read < stride {
                let (need, have) = (at + stride as u64, at + read as u64);
                return Err(Error::Truncated { need, have });
            }
            Block::check(at, &block)?;
        }
        Ok(())
    }

    fn read_block(&self, slot: u32, last: bool) -> Result<Block> {
        let at = self.store.offset(slot);
        let mut copy = Vec::new();
        let bytes = match self.store.file.bytes(at, self.store.stride) {
            Some(bytes) => bytes,
            None => {
                // What is missing is zero, which is no block.
                copy.resize(self.store.stride, 0);
                self.store.file.read(at, &mut copy)?;
                &copy
            }
        };
        Block::check(at, bytes)?;
        let block = Block::load(slot, bytes, &self.store);
        if !last && block.len() < SLOTS {
            return Err(Error::Inconsistent {
                at: at + 4,
                field: "vectors of a block before others",
                got: block.len() as u64,
                limit: SLOTS as u64,
            });
        }
        Ok(block)
    }
}

impl Saved {
    fn read(space: Space, params: SpFreshParams, input: &[u8]) -> Result<Saved> {
        let mut reader = Reader {
            input: checked(input, MAGIC, VERSION)?,
            at: 0,
        };
        let origin = Origin::new(space, params.seed)?;
        let rows = origin.read_head(&mut reader)?;
        origin.read_centre(rows, &mut reader)?;
        let dim = SpFresh::layout(space, params)?.dim;
        let mut postings = Vec::new();
        for _ in 0..reader.u32()? {
            let centroid = reader.floats("centroid", dim)?;
            let blocks = reader.u32()? as usize;
            let (slots, _) = reader.bytes(blocks.saturating_mul(4))?.as_chunks();
            let slots = slots.iter().map(|slot| u32::from_le_bytes(*slot));
            postings.push((centroid, slots.collect()));
        }
        same("length", &(reader.at + 4), &input.len())?;
        Ok(Saved {
            rows,
            origin,
            postings,
        })
    }

    /// All slots that are named, in order, each once.
    fn slots(&self) -> Result<Vec<u32>> {
        let slots = self.postings.iter().flat_map(|(_, slots)| slots);
        let mut slots: Vec<u32> = slots.copied().collect();
        slots.sort_unstable();
        match slots.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(slots),
            Some(pair) => Err(Error::Inconsistent {
                at: 0,
                field: "slot that two blocks are in",
                got: u64::from(pair[0]),
                limit: 0,
            }),
        }
    }
}

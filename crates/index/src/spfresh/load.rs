use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::SLOTS;

use super::block::Block;
use super::directory::Directory;
use super::places::Places;
use super::posting::{Centroid, Posting};
use super::reach::Reach;
use super::save::{MAGIC, VERSION};
use super::shard::{self, Shard};
use super::store::{BlockFile, Store};
use super::{SpFresh, SpFreshParams};
use crate::checkpoint::{Reader, checked, same};
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::space::Space;

/// The centroid of a posting, and the slots of its blocks.
type Posted = (Arc<Centroid>, Vec<u32>);

/// What bytes of a checkpoint say, before any block was read.
struct Saved {
    rows: u64,
    origin: Origin,
    /// The postings of each shard.
    shards: Vec<Vec<Posted>>,
}

/// Postings of a checkpoint that are damaged.
#[derive(Debug)]
pub struct Lost {
    /// How many.
    pub postings: usize,
    /// What is wrong with the first block of these.
    pub first: Error,
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
        match Self::load_sound(space, params, input, file)? {
            (index, None) => Ok(index),
            (_, Some(lost)) => Err(lost.first),
        }
    }

    /// As [`SpFresh::load`], but goes without postings of which a block is damaged: their rows are to be inserted again.
    /// They are those that [`SpFresh::each_row`] does not tell and that should be there.
    ///
    /// # Errors
    /// As [`SpFresh::load`], but for damaged blocks.
    pub fn load_sound(
        space: Space,
        params: SpFreshParams,
        input: &[u8],
        file: Box<dyn BlockFile>,
    ) -> Result<(SpFresh, Option<Lost>)> {
        let places = Self::layout(space, params)?.places;
        let saved = Saved::read(space, params, input)?;
        let named = saved.slots()?;
        let end = named.last().map_or(0, |slot| *slot as usize + 1);
        let (need, have) = (places.end(end), file.len()?);
        if need > have {
            return Err(Error::Truncated { need, have });
        }
        let store = Store::with(file, places, &named);
        let params = SpFreshParams {
            shards: saved.shards.len(),
            ..params
        };
        let mut index = Self::with(space, params, saved.origin, store)?;
        let (mut shards, mut rows, mut lost) = (Vec::new(), 0, None);
        for postings in &saved.shards {
            let (directory, own) = index.read_shard(postings, &mut lost);
            rows += own;
            shards.push(Shard::new(directory, postings.len() as u64));
        }
        if lost.is_none() {
            same("rows", &saved.rows, &rows)?;
        }
        index.shards = shards.into();
        index.rows.store(rows, Ordering::Release);
        Ok((index, lost))
    }

    /// Tells each row that is in it, once, in no order.
    pub fn each_row(&self, tell: &mut dyn FnMut(u64)) {
        for directory in self.directories() {
            for posting in directory.iter() {
                let own = posting.members(&self.layout).filter(|member| member.own);
                own.for_each(|member| tell(member.row));
            }
        }
    }

    /// The postings of a shard with their blocks, and the number of rows that are in it. Those with a damaged block are
    /// empty, and counted as lost.
    fn read_shard(&self, postings: &[Posted], lost: &mut Option<Lost>) -> (Directory, u64) {
        let (mut directory, mut rows) = (Directory::default(), 0);
        for (id, (centroid, slots)) in (0..).zip(postings) {
            // An index without rows may have no origin yet.
            let encoder = self.encoder();
            let centroid = Arc::clone(centroid);
            let blocks = self.read_blocks(slots).unwrap_or_else(|first| {
                lost.get_or_insert(Lost { postings: 0, first }).postings += 1;
                Vec::new()
            });
            let centroids = Arc::make_mut(&mut directory.centroids);
            centroids.push(encoder, &self.layout, centroid.member(id));
            let mut posting = Posting {
                id,
                centroid,
                reach: Reach::default(),
                blocks,
            };
            let members = || posting.members(&self.layout);
            rows += members().filter(|member| member.own).count() as u64;
            posting.reach = Reach::of(encoder, &posting.centroid, members());
            directory.put(posting);
        }
        (directory, rows)
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
        let places = Self::layout(space, params)?.places;
        let (mut first, mut second) = (vec![0; places.first], vec![0; places.second]);
        for slot in Saved::read(space, params, input)?.slots()? {
            read_whole(file, places.first_of(slot), &mut first)?;
            read_whole(file, places.second_of(slot), &mut second)?;
            Block::check(places.first_of(slot), (&first, &second))?;
        }
        Ok(())
    }

    /// The blocks of a posting. If one is damaged, all its slots are free once another checkpoint holds.
    fn read_blocks(&self, slots: &[u32]) -> Result<Vec<Arc<Block>>> {
        let mut blocks = Vec::with_capacity(slots.len());
        for (place, slot) in slots.iter().enumerate() {
            match self.read_block(*slot, place + 1 == slots.len()) {
                Ok(block) => blocks.push(Arc::new(block)),
                Err(error) => {
                    // Those before are released as they are dropped.
                    slots[place..]
                        .iter()
                        .for_each(|slot| self.store.release(*slot));
                    return Err(error);
                }
            }
        }
        Ok(blocks)
    }

    fn read_block(&self, slot: u32, last: bool) -> Result<Block> {
        let Places { first, second } = self.store.places;
        let at = self.store.places.first_of(slot);
        let mut copies;
        let parts = match self.store.bytes(slot) {
            Some(parts) => parts,
            None => {
                // What is missing is zero, which is no block.
                copies = (vec![0; first], vec![0; second]);
                self.store.file.read(at, &mut copies.0)?;
                let at = self.store.places.second_of(slot);
                self.store.file.read(at, &mut copies.1)?;
                (&copies.0[..], &copies.1[..])
            }
        };
        let len = Block::check(at, parts)?;
        if !last && len < SLOTS {
            return Err(Error::Inconsistent {
                at: at + 4,
                field: "vectors of a block before others",
                got: len as u64,
                limit: SLOTS as u64,
            });
        }
        Ok(Block::load(slot, parts, &self.store))
    }
}

/// Reads as many bytes as there is room for.
fn read_whole(file: &dyn BlockFile, at: u64, out: &mut [u8]) -> Result<()> {
    let read = file.read(at, out)?;
    if read == out.len() {
        return Ok(());
    }
    let (need, have) = (at + out.len() as u64, at + read as u64);
    Err(Error::Truncated { need, have })
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
        let count = shards(&mut reader)?;
        let mut shards = Vec::new();
        for _ in 0..count {
            let mut postings = Vec::new();
            for _ in 0..reader.u32()? {
                let code = reader.bytes(dim)?;
                let scale = reader.floats("scale of a centroid", 1)?[0];
                let centroid = Arc::new(Centroid::of(code, scale));
                let blocks = reader.u32()? as usize;
                let (slots, _) = reader.bytes(blocks.saturating_mul(4))?.as_chunks();
                let slots = slots.iter().map(|slot| u32::from_le_bytes(*slot));
                postings.push((centroid, slots.collect()));
            }
            shards.push(postings);
        }
        same("length", &(reader.at + 4), &input.len())?;
        Ok(Saved {
            rows,
            origin,
            shards,
        })
    }

    /// All slots that are named, in order, each once.
    fn slots(&self) -> Result<Vec<u32>> {
        let postings = self.shards.iter().flatten();
        let slots = postings.flat_map(|(_, slots)| slots);
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

/// Reads how many shards there are.
fn shards(reader: &mut Reader<'_>) -> Result<u32> {
    let at = reader.at as u64;
    let got = reader.u32()?;
    if (1..=shard::MOST as u32).contains(&got) {
        return Ok(got);
    }
    Err(Error::Inconsistent {
        at,
        field: "number of shards",
        got: u64::from(got),
        limit: shard::MOST as u64,
    })
}

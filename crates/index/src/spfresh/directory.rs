use std::sync::Arc;

use super::block::Layout;
use super::centroids::Centroids;
use super::posting::Posting;
use super::spread::Spread;

/// Postings of a chunk: what a change copies, besides one pointer for each chunk.
const CHUNK: usize = 64;

/// All postings at one moment. A change makes another directory, which shares what did not change; whoever reads one has
/// a consistent picture for as long as he likes: a vector that moves from one posting to another is in either.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory {
    /// Of all that are in it.
    pub(super) centroids: Arc<Centroids>,
    chunks: Vec<Option<Arc<Chunk>>>,
    len: usize,
    spread: Spread,
    /// Memory of the postings, in bytes.
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Chunk {
    postings: [Option<Arc<Posting>>; CHUNK],
}

impl Directory {
    /// Postings in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: u64) -> Option<&Arc<Posting>> {
        let (chunk, at) = place(id);
        self.chunks.get(chunk)?.as_ref()?.postings[at].as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Posting>> {
        self.from(0)
    }

    /// Those with numbers from `id` on.
    pub(super) fn from(&self, id: u64) -> impl Iterator<Item = &Arc<Posting>> {
        let chunks = self.chunks.iter().skip(place(id).0).flatten();
        let postings = chunks.flat_map(|chunk| chunk.postings.iter().flatten());
        postings.filter(move |posting| posting.id >= id)
    }

    /// Puts a posting in its place.
    pub(super) fn put(&mut self, posting: Posting) {
        let (chunk, at) = place(posting.id);
        if self.chunks.len() <= chunk {
            self.chunks.resize(chunk + 1, None);
        }
        let chunk = self.chunks[chunk].get_or_insert_with(|| {
            Arc::new(Chunk {
                postings: [const { None }; CHUNK],
            })
        });
        self.bytes += posting.memory_bytes();
        self.spread.add(&posting);
        match Arc::make_mut(chunk).postings[at].replace(Arc::new(posting)) {
            Some(before) => {
                self.bytes -= before.memory_bytes();
                self.spread.take(&before);
            }
            None => self.len += 1,
        }
    }

    /// Takes a posting out.
    pub(super) fn take(&mut self, id: u64) -> Option<Arc<Posting>> {
        let (chunk, at) = place(id);
        let entry = self.chunks.get_mut(chunk)?;
        let postings = &mut Arc::make_mut(entry.as_mut()?).postings;
        let taken = postings[at].take()?;
        if postings.iter().all(Option::is_none) {
            *entry = None;
        }
        self.len -= 1;
        self.bytes -= taken.memory_bytes();
        self.spread.take(&taken);
        Some(taken)
    }

    /// How far vectors are from the centroids of their own postings.
    pub(super) fn spread(&self) -> Spread {
        self.spread
    }

    /// Bytes of memory, with all that is in it.
    pub(super) fn memory_bytes(&self, layout: &Layout) -> usize {
        let chunks = self.chunks.iter().flatten().count();
        self.centroids.memory_bytes(layout)
            + 8 * self.chunks.capacity()
            + chunks * size_of::<Chunk>()
            + self.bytes
    }
}

fn place(id: u64) -> (usize, usize) {
    ((id / CHUNK as u64) as usize, (id % CHUNK as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spfresh::reach::Reach;
    use crate::spfresh::tests::centroid;

    fn posting(id: u64) -> Posting {
        Posting {
            id,
            centroid: centroid(),
            reach: Reach::default(),
            blocks: Vec::new(),
        }
    }

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut directory = Directory::default();
        for id in [0, 63, 64, 1_000] {
            directory.put(posting(id));
        }
        let before = directory.clone();
        assert!(directory.take(64).is_some() && directory.take(64).is_none());
        assert!(directory.take(65).is_none());
        directory.put(posting(65));
        directory.put(posting(65));
        let ids = |directory: &Directory, from| {
            let ids = directory.from(from).map(|posting| posting.id);
            ids.collect::<Vec<u64>>()
        };
        assert_eq!((ids(&before, 0), before.len()), (vec![0, 63, 64, 1_000], 4));
        assert_eq!(
            (ids(&directory, 0), directory.len()),
            (vec![0, 63, 65, 1_000], 4)
        );
        assert_eq!(ids(&directory, 64), [65, 1_000]);
        assert!(directory.get(64).is_none() && directory.get(1 << 40).is_none());
    }
}

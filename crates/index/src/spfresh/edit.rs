use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use longbow_kernels::rabitq::SLOTS;

use super::block::{Block, Draft, Layout, Member, Way};
use super::directory::Directory;
use super::posting::{Centroid, Posting};
use super::reach::Reach;
use super::store::Store;
use crate::encode::Encoder;

/// Changes of postings, made by whoever holds the lock of the writer. Nobody sees them before they are all there.
pub(super) struct Edit<'a> {
    pub(super) directory: Directory,
    drafts: HashMap<u64, PostingDraft>,
    encoder: &'a Encoder,
    layout: &'a Layout,
    bits: Vec<u16>,
}

/// A posting that is being changed.
struct PostingDraft {
    centroid: Arc<Centroid>,
    /// Unknown once a vector went: it is reckoned anew at the end.
    reach: Option<Reach>,
    pieces: Vec<Piece>,
}

enum Piece {
    Same(Arc<Block>),
    New(Draft),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Same(block) => block.len(),
            Piece::New(draft) => draft.len(),
        }
    }

    /// A piece that can be changed.
    fn draft(&mut self) -> &mut Draft {
        if let Piece::Same(block) = self {
            *self = Piece::New(block.draft());
        }
        match self {
            Piece::New(draft) => draft,
            Piece::Same(_) => unreachable!("it was replaced"),
        }
    }

    fn members<'b>(&'b self, layout: &'b Layout) -> impl Iterator<Item = Member<'b>> {
        (0..self.len()).map(move |at| self.member(layout, at))
    }

    fn member<'b>(&'b self, layout: &'b Layout, at: usize) -> Member<'b> {
        match self {
            Piece::Same(block) => block.read(layout).member(at),
            Piece::New(draft) => draft.read(layout).member(at),
        }
    }
}

impl PostingDraft {
    fn of(posting: &Posting) -> Self {
        let blocks = posting.blocks.iter().map(Arc::clone);
        PostingDraft {
            centroid: Arc::clone(&posting.centroid),
            reach: Some(posting.reach),
            pieces: blocks.map(Piece::Same).collect(),
        }
    }

    fn reach(&self, encoder: &Encoder, layout: &Layout) -> Reach {
        self.reach.unwrap_or_else(|| {
            let members = |piece| Piece::members(piece, layout);
            Reach::of(
                encoder,
                &self.centroid,
                self.pieces.iter().flat_map(members),
            )
        })
    }

    fn len(&self) -> usize {
        let full = self.pieces.len().saturating_sub(1) * SLOTS;
        full + self.pieces.last().map_or(0, Piece::len)
    }
}

impl<'a> Edit<'a> {
    pub(super) fn new(directory: &Directory, encoder: &'a Encoder, layout: &'a Layout) -> Self {
        Edit {
            directory: directory.clone(),
            drafts: HashMap::new(),
            encoder,
            layout,
            bits: Vec::new(),
        }
    }

    fn draft(&mut self, id: u64) -> Option<&mut PostingDraft> {
        if !self.drafts.contains_key(&id) {
            let draft = PostingDraft::of(self.directory.get(id)?);
            self.drafts.insert(id, draft);
        }
        self.drafts.get_mut(&id)
    }

    /// Adds an empty posting.
    pub(super) fn create(&mut self, id: u64, centroid: Arc<Centroid>) {
        let centroids = Arc::make_mut(&mut self.directory.centroids);
        centroids.push(self.encoder, self.layout, centroid.member(id));
        let draft = PostingDraft {
            centroid,
            reach: Some(Reach::default()),
            pieces: Vec::new(),
        };
        self.drafts.insert(id, draft);
    }

    /// Takes a posting out, as it was before this edit.
    pub(super) fn take(&mut self, id: u64) {
        debug_assert!(!self.drafts.contains_key(&id), "posting {id} was changed");
        self.directory.take(id);
        let centroids = Arc::make_mut(&mut self.directory.centroids);
        centroids.remove(self.encoder, self.layout, id);
    }

    /// Vectors of a posting with the changes so far.
    pub(super) fn len_of(&self, id: u64) -> usize {
        match self.drafts.get(&id) {
            Some(draft) => draft.len(),
            None => self.directory.get(id).map_or(0, |posting| posting.len()),
        }
    }

    /// Adds a vector to a posting that there is.
    pub(super) fn push(&mut self, id: u64, member: Member<'_>) {
        let (encoder, layout) = (self.encoder, self.layout);
        let mut bits = std::mem::take(&mut self.bits);
        bits.resize(layout.dim / 16, 0);
        let draft = self.draft(id).expect("a posting that there is");
        let from = draft.centroid.vector();
        // SAFETY: codes of the centroid and of members have the dimension of the encoder.
        let (add, factor) = unsafe { encoder.way(from, member.vector(), &mut bits) };
        if let Some(reach) = draft.reach.as_mut()
            && member.own
        {
            reach.grow(encoder, from, member.vector());
        }
        if draft.pieces.last().is_none_or(|last| last.len() == SLOTS) {
            draft.pieces.push(Piece::New(Draft::new(layout)));
        }
        let last = draft.pieces.last_mut().expect("one was added");
        let bits_of = &bits;
        let way = Way {
            bits: bits_of,
            add,
            factor,
        };
        last.draft().push(layout, member, way);
        self.bits = bits;
    }

    /// Takes vectors out of a posting, given by their places in ascending order: the last vectors take their places.
    pub(super) fn remove(&mut self, id: u64, places: &[usize]) {
        let (encoder, layout) = (self.encoder, self.layout);
        let mut bits = vec![0; layout.dim / 16];
        let Some(draft) = self.draft(id) else {
            return;
        };
        let from = draft.centroid.vector();
        if !places.is_empty() {
            draft.reach = None;
        }
        for place in places.iter().rev() {
            let end = draft.len() - 1;
            if *place != end {
                let last = draft.pieces.last().expect("it has vectors");
                let member = last.member(layout, end % SLOTS);
                let code = member.code.to_vec();
                let member = Member {
                    code: &code,
                    ..member
                };
                // SAFETY: codes of the centroid and of members have the dimension of the encoder.
                let (add, factor) = unsafe { encoder.way(from, member.vector(), &mut bits) };
                let bits = &bits;
                let way = Way { bits, add, factor };
                let hole = draft.pieces[place / SLOTS].draft();
                hole.put(layout, place % SLOTS, member, way);
            }
            let last = draft.pieces.last_mut().expect("it has vectors");
            if last.len() == 1 {
                draft.pieces.pop();
            } else {
                last.draft().pop();
            }
        }
    }

    /// Writes all changes, and returns the directory that has them.
    ///
    /// # Errors
    /// If the file cannot be written; nothing has changed then.
    pub(super) fn finish(self, store: &Arc<Store>) -> io::Result<Directory> {
        let mut directory = self.directory;
        for (id, draft) in self.drafts {
            let reach = draft.reach(self.encoder, self.layout);
            let mut blocks = Vec::with_capacity(draft.pieces.len());
            for piece in draft.pieces {
                blocks.push(match piece {
                    Piece::Same(block) => block,
                    Piece::New(draft) => Arc::new(draft.write(store)?),
                });
            }
            directory.put(Posting {
                id,
                centroid: draft.centroid,
                reach,
                blocks,
            });
        }
        Ok(directory)
    }
}

use std::sync::Arc;

use longbow_kernels::rabitq::SLOTS;

use super::block::{Block, Layout, Member};
use super::reach::Reach;
use crate::encode::{Encoded, Encoder};
use crate::vector8::Vector8;

/// The centre of a posting, among rotated vectors.
#[derive(Debug)]
pub(super) struct Centroid {
    /// As it is saved.
    bytes: Vec<u8>,
    /// What the ways of a posting begin at, and vectors are compared with.
    code: Vec<u8>,
    scale: f32,
    norm: f32,
    sum: i32,
}

impl Centroid {
    pub(super) fn new(encoder: &Encoder, floats: &[f32]) -> Self {
        let mut encoded = Encoded::default();
        encoder.rotated(floats, &mut encoded);
        let vector = encoded.vector();
        Centroid {
            bytes: floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
            code: encoded.code().to_vec(),
            scale: vector.scale,
            norm: vector.norm,
            sum: vector.sum,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn floats(&self) -> impl Iterator<Item = f32> {
        let (elements, _) = self.bytes.as_chunks();
        elements.iter().map(|x| f32::from_le_bytes(*x))
    }

    /// As the centroid of a posting.
    pub(super) fn member(&self, id: u64) -> Member<'_> {
        Member {
            row: id,
            own: true,
            code: &self.code,
            scale: self.scale,
            norm: self.norm,
            sum: self.sum,
        }
    }

    pub(super) fn vector(&self) -> Vector8 {
        self.member(0).vector()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + 16 + self.bytes.capacity() + self.code.capacity()
    }
}

/// The vectors near a centroid, at one moment.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) id: u64,
    pub(super) centroid: Arc<Centroid>,
    /// Holds all vectors whose own posting it is.
    pub(super) reach: Reach,
    /// All full but the last.
    pub(super) blocks: Vec<Arc<Block>>,
}

impl Posting {
    pub(super) fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * SLOTS;
        full + self.blocks.last().map_or(0, |block| block.len())
    }

    /// Its vectors in order.
    pub(super) fn members<'a>(
        &'a self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = Member<'a>> + 'a {
        self.blocks.iter().flat_map(move |block| {
            let read = block.read(layout);
            (0..block.len()).map(move |at| read.member(at))
        })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.memory_bytes() + 8);
        size_of::<Self>() + 16 + self.centroid.memory_bytes() + blocks.sum::<usize>()
    }
}

use std::sync::Arc;

use longbow_kernels::rabitq::SLOTS;

use super::block::{Block, Layout, Member};
use super::reach::Reach;
use crate::encode::{Encoded, Encoder};
use crate::vector8::Vector8;

/// The centre of a posting, among rotated vectors: what an eight-bit code stands for. The ways of the posting begin there, and
/// vectors are compared with it.
#[derive(Debug)]
pub(super) struct Centroid {
    code: Box<[u8]>,
    scale: f32,
    norm: f32,
    sum: i32,
}

impl Centroid {
    /// The one nearest to where it should be.
    pub(super) fn new(encoder: &Encoder, floats: &[f32]) -> Self {
        let mut encoded = Encoded::default();
        encoder.rotated(floats, &mut encoded);
        Centroid::of(encoded.code(), encoded.vector().scale)
    }

    /// The one of a code.
    pub(super) fn of(code: &[u8], scale: f32) -> Self {
        let Vector8 { norm, sum, .. } = Vector8::new(code, scale);
        Centroid {
            code: code.into(),
            scale,
            norm,
            sum,
        }
    }

    pub(super) fn code(&self) -> (&[u8], f32) {
        (&self.code, self.scale)
    }

    pub(super) fn floats(&self) -> impl Iterator<Item = f32> {
        let elements = self.code.iter();
        elements.map(|x| f32::from(*x as i8) * self.scale)
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
        size_of::<Self>() + 16 + self.code.len()
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

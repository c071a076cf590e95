//! Estimates of nodes by the signs of their codes.

use longbow_kernels::rabitq::{Octets, SLOTS};

use super::{Blocks, OfCode};
use crate::encode::Encoder;
use crate::vector8::Rounded;

/// Part of an estimate's error, 1.7 standard errors, by which it is lowered, so that few are passed over that are near enough. Where the error is not
/// small beside the distances that matter, more is added.
const SLACK: f32 = 0.5;

/// The signs of a node, and what belongs to its code.
#[derive(Clone, Copy)]
pub(in crate::quantized) struct Signs(*const OfCode);

impl Signs {
    #[inline(always)]
    pub(super) fn new(at: *const OfCode) -> Self {
        Signs(at)
    }

    /// Those at an address that [`Signs::at`] told.
    #[inline(always)]
    fn of(signs: *const u8) -> Self {
        Signs(signs.cast::<OfCode>().wrapping_sub(1))
    }

    /// Where they are.
    #[inline(always)]
    pub(in crate::quantized) fn at(self) -> *const u8 {
        self.0.wrapping_add(1).cast()
    }

    /// Estimates the squared distance of a query to the node, by the sum of those of its elements at which the node's are negative; rather too
    /// near than too far, by the more the less the estimate can tell about what is nearer than a limit.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(in crate::quantized) unsafe fn estimate(
        self,
        from: Rounded,
        negative: i32,
        limit: f32,
    ) -> f32 {
        // SAFETY: the caller vouches for the node.
        let to = unsafe { &*self.0 };
        let factor = f32::from_bits(to.sum_or_factor as u32);
        // The elements where the sign is positive less those where it is negative.
        let product = from.scale * from.sum.wrapping_sub(negative.wrapping_mul(2)) as f32;
        let error = 2.0 * factor * from.length;
        let slack = (SLACK + error / limit) * error;
        // Of vectors so long that nothing is told, none is passed over.
        (from.norm + to.norm - 2.0 * factor * product - slack).min(f32::MAX)
    }
}

/// Nodes that are to be estimated together, at most as many as a node has edges. Their memory is asked for while they are gathered.
pub(in crate::quantized) struct Gathered {
    nodes: [u32; SLOTS],
    signs: [*const u8; SLOTS],
    count: usize,
}

impl Gathered {
    #[inline(always)]
    pub(in crate::quantized) fn new() -> Self {
        Gathered {
            nodes: [0; SLOTS],
            signs: [std::ptr::null(); SLOTS],
            count: 0,
        }
    }

    #[inline(always)]
    pub(in crate::quantized) fn len(&self) -> usize {
        self.count
    }

    /// Adds a node.
    ///
    /// # Panics
    /// If there are as many already.
    #[inline(always)]
    pub(in crate::quantized) fn ask(&mut self, blocks: &Blocks, node: u32) {
        self.nodes[self.count] = node;
        self.signs[self.count] = blocks.ask_for_signs(node).at();
        self.count += 1;
    }

    /// The nodes, as they were added, and about how far each is from a query, or from a code; rather too near than too far, if it is asked
    /// which are nearer than a limit.
    ///
    /// # Safety
    /// As [`Blocks::head`] for each, and what they are compared with is made for what the blocks are, whose codes are cut.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn estimates(
        self,
        encoder: &Encoder,
        (octets, from): (&Octets, Rounded),
        limit: f32,
    ) -> impl Iterator<Item = (u32, f32)> {
        let (count, mut sums) = (self.count, [0; SLOTS]);
        let signs = &self.signs[..count];
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            let rabitq = encoder.rabitq;
            rabitq.sums_where_negative(octets, signs, &mut sums[..count]);
        }
        let all = self.nodes.into_iter().zip(self.signs).zip(sums);
        all.take(count).map(move |((node, signs), negative)| {
            // SAFETY: as above.
            let estimate = unsafe { Signs::of(signs).estimate(from, negative, limit) };
            (node, estimate)
        })
    }
}

//! Where in a block is what: see [`super`].

use longbow_kernels::rabitq::{self, SLOTS, sign_bytes, sliced_bytes};

use super::{Head, OfCode};
use crate::chunks::ALIGN;

/// From the begin of the edges.
pub(super) const ADD: usize = 4 * SLOTS;
pub(super) const FACTOR: usize = ADD + 2 * SLOTS;
pub(super) const CODES: usize = FACTOR + 2 * SLOTS;

/// Elements from which on codes are cut where edges have none. Shorter ones are read as fast, and their signs tell less.
const CUT: usize = 192;

/// Where in a block is what, and how long it is. What a node is comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) code: usize,
    pub(super) edges: usize,
    pub(super) stride: usize,
    /// Up to where a distance reads.
    pub(super) read: usize,
    /// How long what lies apart of it is.
    pub(super) near: Option<usize>,
    /// How much of that an estimate reads.
    pub(super) estimated: usize,
}

impl Layout {
    /// `dim` is a multiple of 16.
    pub(crate) fn new(dim: usize, coded: bool) -> Self {
        let (head, of_code) = (size_of::<Head>(), size_of::<OfCode>());
        if coded || dim < CUT {
            let code = head + of_code;
            let (mut edges, mut stride) = (code + dim, code + dim + ADD);
            if coded {
                edges = edges.next_multiple_of(ALIGN);
                stride = edges + CODES + rabitq::code_bytes(dim);
            }
            return Layout {
                code,
                edges,
                stride: stride.next_multiple_of(if coded { ALIGN } else { ALIGN / 2 }),
                read: code + dim,
                near: None,
                estimated: 0,
            };
        }
        let edges = head + sliced_bytes(dim) - sign_bytes(dim);
        let estimated = of_code + sign_bytes(dim);
        Layout {
            code: head,
            edges,
            stride: (edges + ADD).next_multiple_of(ALIGN / 2),
            read: edges,
            near: Some(estimated.next_multiple_of(ALIGN / 2)),
            estimated,
        }
    }

    /// Bytes that a distance reads.
    pub(super) fn compared(&self) -> usize {
        self.read + self.estimated
    }

    /// Bytes of a node.
    pub(crate) fn bytes(&self) -> usize {
        self.stride + self.near.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_as_one_is_aligned() {
        for dim in (16..2_000).step_by(16) {
            for coded in [true, false] {
                let layout = Layout::new(dim, coded);
                assert!(layout.stride.is_multiple_of(align_of::<Head>()), "{dim}");
                assert!(layout.edges.is_multiple_of(align_of::<u32>()), "{dim}");
                let near = layout.near.unwrap_or(layout.stride);
                assert!(near.is_multiple_of(align_of::<OfCode>()), "{dim}");
                assert!(
                    layout.read <= layout.edges && layout.estimated <= near,
                    "{dim}"
                );
            }
        }
        // What `docs/index.md` tells of these dimensions.
        assert_eq!(Layout::new(384, false).bytes(), 544);
        assert_eq!(Layout::new(384, true).bytes(), 2_240);
    }
}

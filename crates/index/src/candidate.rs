/// A node and its distance in one number that orders by distance, then by node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u64);

impl Candidate {
    /// `distance` is not NaN.
    #[inline(always)]
    pub(crate) fn new(distance: f32, node: u32) -> Self {
        // The bits of positive floats are in order. Those of negative ones are in reverse order, and all below.
        let bits = distance.to_bits();
        let ordered = if bits >> 31 == 0 {
            bits | 0x8000_0000
        } else {
            !bits
        };
        Candidate(u64::from(ordered) << 32 | u64::from(node))
    }

    /// The number: the distance in the upper half, in an order that is that of the bits, and the node in the lower.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Candidate(bits)
    }

    #[inline(always)]
    pub(crate) fn node(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 {
            ordered & 0x7FFF_FFFF
        } else {
            !ordered
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn candidates_keep_and_order_what_they_hold(a in any::<f32>(), b in any::<f32>(), n: u32, m: u32) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let (x, y) = (Candidate::new(a, n), Candidate::new(b, m));
            prop_assert_eq!((x.distance().to_bits(), x.node()), (a.to_bits(), n));
            prop_assert_eq!(x.cmp(&y), a.total_cmp(&b).then(n.cmp(&m)));
        }
    }
}

use longbow_kernels::rabitq::{Add, Block, DIM_STEP, GROUP, Lut, Rabitq, SLOTS, code_bytes};

use crate::Dice;

/// A line of memory, for the alignment of codes.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]);

/// The neighbours of a node.
pub struct Neighbours {
    codes: Box<[Line]>,
    pub add: Box<[f32; SLOTS]>,
    pub factor: Box<[u16; SLOTS]>,
    /// Whether the kernels are told only the upper halves of `add`.
    pub short: bool,
}

impl Neighbours {
    /// From the bits of each slot. Estimates are the bare inner products.
    pub fn new(dim: usize, bits: &[Vec<u16>]) -> Self {
        let mut codes = vec![Line([0; 64]); code_bytes(dim) / 64].into_boxed_slice();
        for (slot, words) in bits.iter().enumerate() {
            for group in 0..dim / GROUP {
                let nibble = (words[group / 4] >> (GROUP * (group % 4)) & 15) as u8;
                let at = 16 * group + slot % 16;
                codes[at / 64].0[at % 64] |= nibble << (slot / 16 * 4);
            }
        }
        Neighbours {
            codes,
            add: Box::new([0.0; SLOTS]),
            factor: Box::new([upper(1.0); SLOTS]),
            short: false,
        }
    }

    pub fn estimate(
        &self,
        kernels: &Rabitq,
        lut: &Lut,
        base: f32,
        limit: f32,
    ) -> ([f32; SLOTS], u32) {
        assert_eq!(16 * lut.groups(), 64 * self.codes.len(), "dimensions");
        let uppers = self.add.map(upper);
        let block = Block {
            codes: self.codes.as_ptr().cast(),
            add: if self.short {
                Add::Upper(uppers.as_ptr())
            } else {
                Add::Whole(self.add.as_ptr())
            },
            factor: self.factor.as_ptr(),
        };
        let mut out = [f32::NAN; SLOTS];
        // SAFETY: the block is of the dimensions of the table, and nobody writes to it.
        let below = unsafe {
            {
                let base = longbow_kernels::rabitq::Base {
                    distance: base,
                    slack: 0.0,
                };
                kernels.estimate(lut, block, base, limit, &mut out)
            }
        };
        (out, below)
    }
}

/// The upper half of an `f32`, to the nearest.
pub fn upper(x: f32) -> u16 {
    ((x.to_bits() + 0x7FFF + (x.to_bits() >> 16 & 1)) >> 16) as u16
}

/// The `f32` of which this is the upper half.
pub fn whole(upper: u16) -> f32 {
    f32::from_bits(u32::from(upper) << 16)
}

pub fn filled(kernels: &Rabitq, query: &[f32]) -> Lut {
    let mut lut = Lut::default();
    lut.fill(kernels, query);
    lut
}

pub fn random_bits(dice: &mut Dice, dim: usize) -> Vec<Vec<u16>> {
    let mut words = || (0..dim / DIM_STEP).map(|_| dice.next() as u16).collect();
    (0..SLOTS).map(|_| words()).collect()
}

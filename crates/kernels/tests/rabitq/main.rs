//! The kernels of quantised graphs: every instruction set against the portable one and against `f64`.

mod accuracy;
mod bytes;
mod neighbours;
mod residuals;
mod rotations;
mod sliced;
mod tables;

use longbow_kernels::Isa;
use longbow_kernels::rabitq::Rabitq;

/// Every tail of every register and run there is.
const DIMS: [usize; 17] = [
    16, 32, 48, 64, 80, 96, 112, 128, 384, 784, 1024, 1040, 1536, 4096, 4112, 5008, 16448,
];

/// Small deterministic generator (splitmix64), so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in -1 .. 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn units(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.unit()).collect()
    }

    /// Exactly as many bytes as asked for, so that a sanitizer sees a read behind them.
    fn codes(&mut self, dim: usize) -> Box<[i8]> {
        (0..dim).map(|_| self.next() as i8).collect()
    }
}

fn all_kernels() -> Vec<&'static Rabitq> {
    Isa::ALL.into_iter().filter_map(Rabitq::for_isa).collect()
}

fn portable() -> &'static Rabitq {
    Rabitq::for_isa(Isa::Scalar).expect("portable kernels")
}

#[test]
fn the_widest_kernels_are_chosen() {
    assert_eq!(portable().isa(), Isa::Scalar);
    let widest = all_kernels()[0];
    assert_eq!(Rabitq::get().isa(), widest.isa());
    assert_eq!(
        Rabitq::for_isa(Isa::Avx2).is_some(),
        Isa::Avx2.is_available()
    );
    assert_eq!(
        Rabitq::for_isa(Isa::Neon).is_some(),
        Isa::Neon.is_available()
    );
}

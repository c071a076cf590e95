//! Seeded randomness, by splitmix64 (Steele, Lea and Flood, 2014).

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A generator of numbers: the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// One that begins at `seed`.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The generator of number `nth` among those of a seed; each can be had without the others.
    pub fn nth(seed: u64, nth: u64) -> Dice {
        Dice(scrambled(scrambled(seed) ^ nth.wrapping_mul(STEP)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scrambled(self.0)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number from -1 to below 1.
    pub fn uniform(&mut self) -> f32 {
        signed(self.next())
    }

    /// Whether something of this chance came to pass.
    pub fn chance(&mut self, chance: f32) -> bool {
        (self.uniform() + 1.0) / 2.0 < chance
    }

    /// Two normal numbers of deviation 1 (Box and Muller, 1958).
    pub fn normals(&mut self) -> (f32, f32) {
        // From above 0 to 1, so that there is a logarithm.
        let radius = (1.0 - self.uniform()) / 2.0;
        let (sin, cos) = (std::f32::consts::PI * self.uniform()).sin_cos();
        let radius = (-2.0 * radius.ln()).sqrt();
        (radius * cos, radius * sin)
    }
}

/// A number from -1 to below 1 that tells nothing of its seed.
pub fn number(seed: u64) -> f32 {
    signed(scrambled(seed.wrapping_mul(STEP)))
}

fn signed(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn scrambled(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    fn moments(draw: impl FnMut() -> f32) -> (f64, f64) {
        let draws: Vec<f64> = std::iter::repeat_with(draw)
            .take(DRAWS)
            .map(f64::from)
            .collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (mean, square / DRAWS as f64)
    }

    #[test]
    fn draws_are_distributed_as_they_should_be() {
        let mut dice = Dice::new(1);
        let (mean, variance) = moments(|| dice.uniform());
        assert!(mean.abs() < 0.01 && (variance - 1.0 / 3.0).abs() < 0.01);
        let (mean, variance) = moments(|| dice.normals().0);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02);
        let (mean, variance) = moments(|| dice.normals().1);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02);
        let (mean, _) = moments(|| f32::from(u8::from(dice.chance(0.2))));
        assert!((mean - 0.2).abs() < 0.01);
        assert!((0..1_000).all(|_| dice.below(7) < 7));
    }

    #[test]
    fn generators_are_repeated_and_differ() {
        let first = |mut dice: Dice| dice.next();
        assert_eq!(first(Dice::nth(3, 4)), first(Dice::nth(3, 4)));
        assert_ne!(first(Dice::nth(3, 4)), first(Dice::nth(3, 5)));
        assert_ne!(first(Dice::nth(3, 4)), first(Dice::nth(4, 4)));
    }
}

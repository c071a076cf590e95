/// A number that tells nothing of `x`, the same on every run: a step of splitmix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Numbers from 0 to 1 that look as if drawn.
#[cfg(test)]
pub(crate) fn drawn(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

//! How long random tests go on.

/// How often a test repeats what it does: `short` times, or `TORTURE` times as often if that is set.
pub fn rounds(short: usize) -> usize {
    let factor = std::env::var("TORTURE")
        .ok()
        .and_then(|text| text.parse().ok());
    short * factor.unwrap_or(1)
}

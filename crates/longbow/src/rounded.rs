//! Figures for people.

/// A figure with this many decimal places, which is all that a reader wants.
pub fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10f64.powi(places);
    (value * scale).round() / scale
}

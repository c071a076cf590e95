//! Bytes of stored vectors that each kernel takes a second, in cache and from memory, as one JSON object.
//!
//! ```text
//! kernel_bench [dim]
//! ```

use std::hint::black_box;
use std::time::Instant;

use longbow_kernels::{Isa, Kernels, Scalar};

/// Stays in the second-level cache.
const SMALL: usize = 256 << 10;
/// Goes far beyond every cache.
const LARGE: usize = 256 << 20;

/// Best of several runs, in GB/s.
fn rate(bytes: usize, mut run: impl FnMut()) -> f64 {
    let repeat = (LARGE / bytes).max(1);
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let started = Instant::now();
        (0..repeat).for_each(|_| run());
        best = best.min(started.elapsed().as_secs_f64() / repeat as f64);
    }
    bytes as f64 / best / 1e9
}

/// Speed of reading alone.
fn read(bytes: &[u8]) -> f64 {
    rate(bytes.len(), || {
        let words = black_box(bytes).as_chunks::<8>().0;
        black_box(
            words
                .iter()
                .fold(0u64, |sum, word| sum ^ u64::from_le_bytes(*word)),
        );
    })
}

fn measure(kernels: &Kernels, scalar: Scalar, dim: usize, bytes: &[u8]) -> String {
    let rows = bytes.len() / (dim * scalar.size());
    let bytes = &bytes[..rows * dim * scalar.size()];
    let query = vec![0.5f32; dim];
    let (mut out, mut pairs) = (vec![0.0; rows], vec![(0.0, 0.0); rows]);
    let l2 = rate(bytes.len(), || {
        kernels.l2_squared_rows(scalar, black_box(&query), bytes, &mut out)
    });
    let dot = rate(bytes.len(), || {
        kernels.dot_rows(scalar, black_box(&query), bytes, &mut out)
    });
    let both = rate(bytes.len(), || {
        kernels.dot_and_norm_rows(scalar, black_box(&query), bytes, &mut pairs)
    });
    let rates = format!("\"l2\": {l2:.1}, \"dot\": {dot:.1}, \"dot_and_norm\": {both:.1}");
    if matches!(scalar, Scalar::I8 | Scalar::U8) {
        return rates;
    }
    let finite = rate(bytes.len(), || {
        assert!(kernels.all_finite(scalar, black_box(bytes)))
    });
    format!("{rates}, \"all_finite\": {finite:.1}")
}

fn main() {
    let dim: usize = std::env::args()
        .nth(1)
        .and_then(|dim| dim.parse().ok())
        .unwrap_or(128);
    let bytes = vec![0x11u8; LARGE];
    println!(
        "{{\"dim\": {dim}, \"read\": {{\"cache\": {:.1}, \"memory\": {:.1}}}",
        read(&bytes[..SMALL]),
        read(&bytes)
    );
    for kernels in Isa::ALL.into_iter().filter_map(Kernels::for_isa) {
        for scalar in Scalar::ALL {
            for (place, part) in [("cache", &bytes[..SMALL]), ("memory", &bytes[..])] {
                let rates = measure(kernels, scalar, dim, part);
                println!(", \"{} {scalar} {place}\": {{{rates}}}", kernels.isa());
            }
        }
    }
    println!("}}");
}

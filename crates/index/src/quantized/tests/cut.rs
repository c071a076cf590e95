//! Nodes whose edges have no codes, with codes that are cut and with short ones.

use longbow_kernels::rabitq::Octets;
use longbow_kernels::{Metric, Scalar};

use crate::encode::{Encoded, Encoder, bytes_of};
use crate::error::Result;
use crate::mix::drawn;
use crate::quantized::block::Blocks;
use crate::space::Space;

const NODES: u32 = 200;

fn vector(of: u64, dim: usize) -> Vec<f32> {
    let centred = std::iter::repeat_with(drawn(of)).map(|x| x - 0.5);
    centred.take(dim).collect()
}

fn encoder(dim: usize) -> Encoder {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim,
    };
    Encoder::new(space, 7, None)
}

/// Blocks with nodes, and what the code of each stands for.
fn filled(encoder: &Encoder, dim: usize) -> (Blocks, Vec<(Vec<u8>, f32)>) {
    let (blocks, mut encoded) = (Blocks::new(encoder.dim(), false), Encoded::default());
    let codes = (0..NODES).map(|node| {
        encoder.stored(bytes_of(&vector(u64::from(node), dim)), &mut encoded);
        assert_eq!(blocks.claim(), Some(node));
        // SAFETY: nobody else knows of the node.
        unsafe { blocks.write(node, u64::from(node), encoded.vector()) };
        (encoded.code().to_vec(), encoded.scale())
    });
    let codes = codes.collect();
    (blocks, codes)
}

fn squared(a: &(Vec<u8>, f32), b: &(Vec<u8>, f32)) -> f64 {
    let of =
        |(code, scale): &(Vec<u8>, f32), i: usize| f64::from(*scale) * f64::from(code[i] as i8);
    (0..a.0.len()).map(|i| (of(a, i) - of(b, i)).powi(2)).sum()
}

#[test]
fn codes_come_back_and_distances_are_those_of_codes() -> Result<()> {
    for dim in [3, 16, 112, 192, 208, 384, 784] {
        let encoder = encoder(dim);
        let (blocks, codes) = filled(&encoder, dim);
        let (mut room, mut query) = (Octets::default(), Encoded::default());
        encoder.query(&vector(9_999, dim), &mut query);
        encoder.round_query(&mut query);
        let asked = (query.code().to_vec(), query.scale());
        let is_cut = blocks.cut();
        assert_eq!(is_cut, dim >= 192);
        for node in 0..NODES {
            let near = |got: f32, right: f64| {
                assert!(
                    (f64::from(got) - right).abs() <= 1e-4 * right + 1e-6,
                    "{dim}, {node}: {got}, {right}"
                );
            };
            // SAFETY: all nodes were written.
            unsafe {
                let here = blocks.here(node, &mut room);
                let code = std::slice::from_raw_parts(here.vector.code.cast::<u8>(), encoder.dim());
                assert_eq!(code, codes[node as usize].0);
                let other = (node + 1) % NODES;
                let between = blocks.between(&encoder, here, other);
                near(
                    between,
                    squared(&codes[node as usize], &codes[other as usize]),
                );
                let distance = blocks.distance(&encoder, &query, node);
                // Those that are not cut are compared with more of the query.
                if is_cut {
                    near(distance, squared(&asked, &codes[node as usize]));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn estimates_are_about_right_and_rather_too_near() {
    for dim in [192, 384, 784] {
        let encoder = encoder(dim);
        let (blocks, _) = filled(&encoder, dim);
        let mut query = Encoded::default();
        encoder.query(&vector(9_999, dim), &mut query);
        encoder.round_query(&mut query);
        let (mut too_near, mut off) = (0, 0f32);
        for node in 0..NODES {
            let mut sum = [0];
            // SAFETY: all nodes were written.
            let (estimate, distance) = unsafe {
                let signs = blocks.ask_for_signs(node);
                encoder
                    .rabitq
                    .sums_where_negative(&query.octets, &[signs.at()], &mut sum);
                (
                    signs.estimate(query.rounded, sum[0], f32::INFINITY),
                    blocks.distance(&encoder, &query, node),
                )
            };
            too_near += u32::from(estimate < distance);
            off += (estimate - distance).powi(2) / NODES as f32;
        }
        // One bit an element errs by about 0.75 of both lengths by the root of the dimension, twice, and is lowered by some more.
        let error = 1.5 * query.rounded.norm / (dim as f32).sqrt();
        assert!(off.sqrt() < 1.6 * error, "{dim}: {} of {error}", off.sqrt());
        assert!(
            (NODES * 6 / 10..NODES * 9 / 10).contains(&too_near),
            "{dim}: {too_near} of {NODES}"
        );
    }
}

#[test]
fn a_vector_at_the_centre_is_estimated_at_its_distance() {
    let encoder = encoder(192);
    let (blocks, mut encoded) = (Blocks::new(encoder.dim(), false), Encoded::default());
    encoder.stored(bytes_of(&[0.0; 192]), &mut encoded);
    let node = blocks.claim().expect("room");
    // SAFETY: nobody else knows of the node.
    unsafe { blocks.write(node, 0, encoded.vector()) };
    encoder.query(&vector(1, 192), &mut encoded);
    encoder.round_query(&mut encoded);
    // SAFETY: the node was written.
    let estimate = unsafe { blocks.ask_for_signs(node).estimate(encoded.rounded, 5, 1.0) };
    assert_eq!(estimate, encoded.rounded.norm);
}

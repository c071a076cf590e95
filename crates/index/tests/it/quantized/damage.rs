//! Checkpoints that are not what they should be, with a checksum that says they are.

use std::sync::LazyLock;

use longbow_index::{QuantizedGraph, Result};
use proptest::prelude::*;

use super::checkpoint::{GOLDEN, PARAMS, save};
use super::search;
use crate::common::{Data, golden_data, sealed};

static DATA: LazyLock<Data> = LazyLock::new(|| golden_data().unwrap_or_else(|e| panic!("{e}")));

/// Loads what may be anything, and if it is a graph uses it.
fn try_out(bytes: &[u8]) -> Result<()> {
    let graph = QuantizedGraph::load(DATA.space, PARAMS, bytes)?;
    for query in &DATA.queries[..3] {
        let found = search(&graph, &DATA, query, 10, 20);
        assert!(found.is_sorted() && found.len() <= 10);
    }
    graph.insert(159, DATA.vector(159))?;
    let (bytes, _) = save(&graph)?;
    QuantizedGraph::load(DATA.space, PARAMS, &bytes).map(|_| ())
}

/// Where the nodes of the lowest level begin, and the bytes of each.
const NODES: usize = 36 + 4 * 4 + 8;
const NODE: usize = 148 + 16;

fn node(number: usize) -> usize {
    NODES + number * NODE
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2500, ..ProptestConfig::default() })]
    #[test]
    fn changed_bytes_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        seal in prop::bool::weighted(0.9),
    ) {
        let mut bytes = GOLDEN.to_vec();
        for (at, value) in changes {
            *at.get_mut(&mut bytes) = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(GOLDEN.len()));
        }
        let _ = try_out(&if seal { sealed(bytes) } else { bytes });
    }

    /// Numbers at their limits where a field is, whatever the field.
    #[test]
    fn fields_beyond_their_limits_are_refused_or_harmless(
        fields in prop::collection::vec((any::<prop::sample::Index>(), field()), 1..4),
    ) {
        let mut bytes = GOLDEN.to_vec();
        for (at, value) in fields {
            let at = at.index((GOLDEN.len() - 8) / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let _ = try_out(&sealed(bytes));
    }

    /// Heads of nodes only: rows, twins, edges apart and scales.
    #[test]
    fn wrong_heads_are_refused_or_harmless(
        heads in prop::collection::vec((0usize..160, 0usize..5, field()), 1..40),
    ) {
        let mut bytes = GOLDEN.to_vec();
        for (number, word, value) in heads {
            let at = node(number) + 4 * word;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let _ = try_out(&sealed(bytes));
    }

    /// Any graph at all: every node gets random neighbours, itself among them, and some scales are odd.
    #[test]
    fn any_edges_do_no_harm(
        seed: u64,
        scale in prop_oneof![Just(None), scale().prop_map(Some)],
    ) {
        let mut bytes = GOLDEN.to_vec();
        let mut dice = crate::common::Dice(seed);
        for number in 0..160 {
            for slot in 0..32 {
                let to = dice.below(170);
                let to = if to < 160 { to as u32 } else { u32::MAX };
                let at = node(number) + 20 + 4 * slot;
                bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
            }
            if let Some(scale) = scale && dice.below(3) == 0 {
                bytes[node(number) + 16..][..4].copy_from_slice(&scale.to_le_bytes());
            }
        }
        let _ = try_out(&sealed(bytes));
    }

    #[test]
    fn random_bytes_do_no_harm(tail in prop::collection::vec(any::<u8>(), 0..400), header: bool) {
        let mut bytes = if header { GOLDEN[..NODES - 8].to_vec() } else { Vec::new() };
        bytes.extend(tail);
        let _ = try_out(&sealed(bytes));
    }
}

fn scale() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(-1.0),
        Just(0.0),
        Just(f32::MAX),
        Just(f32::MIN_POSITIVE / 8.0),
    ]
}

fn field() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(u32::MAX),
        Just(u32::MAX - 1),
        Just(1 << 31),
        0u32..400,
        scale().prop_map(f32::to_bits),
    ]
}

/// A ring of twins, in which a search would turn forever.
#[test]
fn rings_of_twins_are_refused() {
    for ring in [vec![7], vec![3, 9], vec![20, 30, 40, 50]] {
        let mut bytes = GOLDEN.to_vec();
        for (place, from) in ring.iter().enumerate() {
            let to = ring[(place + 1) % ring.len()] as u32;
            bytes[node(*from) + 8..][..4].copy_from_slice(&to.to_le_bytes());
        }
        let refused = try_out(&sealed(bytes)).unwrap_err().to_string();
        assert!(refused.contains("twin"), "{refused}");
    }
}

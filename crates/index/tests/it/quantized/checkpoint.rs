//! Saving and loading.

use std::collections::HashSet;

use crc_fast::{CrcAlgorithm, checksum};
use longbow_index::VectorIndex as _;
use longbow_index::{
    Error, Metric, QuantizedGraph, QuantizedParams, Result, Saved, Scalar, SearchStats, Space,
};
use proptest::prelude::*;

use super::{build, kinds, search};
use crate::common::{Data, all, golden_data, sealed};

pub const PARAMS: QuantizedParams = QuantizedParams {
    ef_construction: 50,
    seed: 3,
    edge_codes: true,
};

pub const GOLDEN: &[u8] = include_bytes!("../../fixtures/quantized-v1.bin");

pub fn save(graph: &QuantizedGraph) -> Result<(Vec<u8>, Saved)> {
    let mut bytes = Vec::new();
    let saved = graph.save(&mut bytes)?;
    Ok((bytes, saved))
}

#[test]
fn version_1_is_read_and_written_byte_by_byte() -> Result<()> {
    let data = golden_data()?;
    let graph = QuantizedGraph::load(data.space, PARAMS, GOLDEN)?;
    assert_eq!(graph.len(), 160);
    assert!(graph.is_prepared());
    assert!(data.recall(&graph, 10, 50, &all) >= 0.99);
    assert_eq!(save(&graph)?.0, GOLDEN);
    Ok(())
}

#[test]
fn a_loaded_graph_answers_as_the_saved_one_and_grows() -> Result<()> {
    for (scalar, metric) in kinds() {
        for dim in [12, 100] {
            let space = Space {
                scalar,
                metric,
                dim,
            };
            let mut data = Data::clustered(space, 1400, 10, 5)?;
            let repeated = data.bytes[..100 * space.row_bytes()].to_vec();
            data.bytes.extend(repeated);
            let graph = build(&data)?;
            let (bytes, saved) = save(&graph)?;
            let check = checksum(CrcAlgorithm::Crc32Iscsi, &bytes[..bytes.len() - 4]) as u32;
            let expected = Saved {
                rows: 1500,
                bytes: bytes.len() as u64,
                checksum: check,
            };
            assert_eq!(saved, expected);
            assert!(QuantizedGraph::is_saved(&bytes));
            let loaded = QuantizedGraph::load(space, graph.params(), &bytes)?;
            assert_eq!((loaded.len(), save(&loaded)?.0 == bytes), (1500, true));
            for query in &data.queries {
                let (mut before, mut after) = (SearchStats::default(), SearchStats::default());
                let expected = graph.search(query, 10, 40, &all, &data, &mut before);
                let found = loaded.search(query, 10, 40, &all, &data, &mut after);
                assert_eq!(found, expected, "{scalar} {metric} dim {dim}");
                assert_eq!(before, after, "{scalar} {metric} dim {dim}");
            }
            grow(&loaded, &data)?;
        }
    }
    Ok(())
}

/// Inserts all data once more and looks for the new rows alone.
fn grow(graph: &QuantizedGraph, data: &Data) -> Result<()> {
    let (rows, mut twice) = (data.rows() as u64, data.bytes.clone());
    twice.extend_from_slice(&data.bytes);
    let twice = Data {
        space: data.space,
        bytes: twice,
        queries: data.queries.clone(),
    };
    for row in rows..2 * rows {
        graph.insert(row, twice.vector(row))?;
    }
    assert_eq!(graph.len() as u64, 2 * rows);
    let recall = twice.recall(graph, 10, 64, &|row| row >= rows);
    assert!(recall >= 0.95, "recall {recall} of the new rows");
    Ok(())
}

#[test]
fn an_empty_graph_is_saved_and_loaded() -> Result<()> {
    let data = golden_data()?;
    let (bytes, saved) = save(&QuantizedGraph::new(data.space, PARAMS)?)?;
    // The header, the centre, six levels without nodes, the checksum.
    assert_eq!((saved.rows, bytes.len()), (0, 36 + 16 + 6 * 8 + 4));
    let loaded = QuantizedGraph::load(data.space, PARAMS, &bytes)?;
    assert!(search(&loaded, &data, &data.queries[0], 3, 3).is_empty());
    loaded.insert(4, data.vector(4))?;
    assert_eq!(search(&loaded, &data, &data.queries[0], 3, 3).len(), 1);
    Ok(())
}

#[test]
fn a_checkpoint_of_something_else_is_refused_by_name() -> Result<()> {
    let space = golden_data()?.space;
    let refused = |space, params, bytes: &[u8]| {
        QuantizedGraph::load(space, params, bytes)
            .map(|_| ())
            .unwrap_err()
    };
    let mismatch = |space, params, name| match refused(space, params, GOLDEN) {
        Error::Mismatch { field, .. } => assert_eq!(field, name),
        other => panic!("{other}"),
    };
    let scalar = Scalar::I8;
    mismatch(Space { scalar, ..space }, PARAMS, "element type");
    let metric = Metric::Cosine;
    mismatch(Space { metric, ..space }, PARAMS, "metric");
    mismatch(Space { dim: 5, ..space }, PARAMS, "dimension");
    mismatch(space, QuantizedParams { seed: 5, ..PARAMS }, "seed");
    let changed = |at: usize, value: u8| {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = value;
        bytes
    };
    let error = |bytes: &[u8]| refused(space, PARAMS, bytes);
    assert!(matches!(error(&changed(0, b'X')), Error::Magic { .. }));
    assert!(matches!(
        error(&changed(8, 2)),
        Error::Version { got: 2, .. }
    ));
    assert!(matches!(
        error(&changed(500, !GOLDEN[500])),
        Error::Checksum { .. }
    ));
    assert!(matches!(
        error(&GOLDEN[..11]),
        Error::Truncated { need: 12, have: 11 }
    ));
    // Two bytes that are zero in version 1 are for later.
    let reserved = error(&sealed(changed(14, 1)));
    assert!(matches!(reserved, Error::Mismatch { .. }), "{reserved}");
    let rows = error(&sealed(changed(28, 161)));
    assert!(
        matches!(rows, Error::Mismatch { field: "rows", .. }),
        "{rows}"
    );
    let longer = error(&with_lists(&[&[], &[], &[], &[], &[], &[], &[]]));
    assert!(
        matches!(
            longer,
            Error::Mismatch {
                field: "length",
                ..
            }
        ),
        "{longer}"
    );
    Ok(())
}

/// The golden checkpoint with lists of nodes to be refined behind its levels.
fn with_lists(lists: &[&[u32]]) -> Vec<u8> {
    let mut bytes = GOLDEN[..GOLDEN.len() - 4].to_vec();
    for list in lists {
        bytes.extend((list.len() as u32).to_le_bytes());
        bytes.extend(list.iter().flat_map(|node| node.to_le_bytes()));
    }
    bytes.extend([0; 4]);
    sealed(bytes)
}

#[test]
fn lists_of_nodes_to_be_refined_are_checked() -> Result<()> {
    let space = golden_data()?.space;
    let load = |lists: &[&[u32]]| QuantizedGraph::load(space, PARAMS, &with_lists(lists));
    let graph = load(&[&[3, 149], &[0], &[], &[], &[], &[]])?;
    assert_eq!(graph.hasty(), 3);
    let (bytes, _) = save(&graph)?;
    assert_eq!(QuantizedGraph::load(space, PARAMS, &bytes)?.hasty(), 3);
    while graph.refine(1) {}
    assert_eq!(graph.hasty(), 0);
    let (bytes, _) = save(&graph)?;
    assert_eq!((bytes.len(), load(&[])?.hasty()), (GOLDEN.len(), 0));
    let many = [0; 161];
    for (lists, name) in [
        (&[&[160][..]][..], "node to be refined"),
        (&[&many], "number of nodes to be refined"),
        // One of two rows with the same code.
        (&[&[159]], "node to be refined, which has no edge"),
        (&[&[], &[], &[0]], "number of nodes to be refined"),
    ] {
        match load(lists).map(|_| ()) {
            Err(Error::Inconsistent { field, .. }) => assert_eq!(field, name),
            other => panic!("{other:?}"),
        }
    }
    let cut = load(&[&[1], &[]]).map(|_| ());
    assert!(matches!(cut, Err(Error::Truncated { .. })), "{cut:?}");
    Ok(())
}

proptest! {
    #[test]
    fn any_lists_of_nodes_to_be_refined_do_no_harm(
        lists in prop::collection::vec(prop::collection::vec(0u32..200, 0..4), 0..8),
    ) {
        let lists: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
        let data = golden_data().expect("valid");
        if let Ok(graph) = QuantizedGraph::load(data.space, PARAMS, &with_lists(&lists)) {
            while graph.refine(10) {}
            let found = search(&graph, &data, &data.queries[0], 160, 160);
            let rows: HashSet<u64> = found.iter().map(|neighbor| neighbor.row).collect();
            prop_assert_eq!((found.len(), rows.len()), (160, 160));
        }
    }
}

#[test]
fn no_single_changed_or_missing_byte_goes_unnoticed() -> Result<()> {
    let space = golden_data()?.space;
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1 << (at % 8);
        assert!(QuantizedGraph::load(space, PARAMS, &bytes).is_err(), "{at}");
        let cut = &GOLDEN[..at];
        assert!(QuantizedGraph::load(space, PARAMS, cut).is_err(), "{at}");
    }
    Ok(())
}

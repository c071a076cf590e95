//! What the graph finds of ordinary data, against the exact scan.

use longbow_index::{Metric, QuantizedGraph, QuantizedParams, Result, Scalar, Space};

use super::{build, floats, found_by_itself, kinds, search};
use crate::common::{Data, all};

#[test]
fn finds_95_of_100_for_each_type_metric_and_dimension() -> Result<()> {
    for dim in [1, 2, 3, 7, 16, 96, 127, 384, 1536, 4096] {
        let rows = (400_000 / dim).clamp(300, 2000);
        for (scalar, metric) in kinds() {
            for centres in [1, 20] {
                let space = Space {
                    scalar,
                    metric,
                    dim,
                };
                let data = Data::clustered(space, rows, centres, dim as u64)?;
                let graph = build(&data)?;
                for graph in [without_edge_codes(&graph)?, graph] {
                    let recall = data.recall(&graph, 10, 64, &all);
                    let edge_codes = graph.params().edge_codes;
                    let what = format!("{scalar} {metric} {edge_codes} {dim}, {centres} centres");
                    println!("{what}: {recall:.4}");
                    // Where lengths differ, some of the longest may be missed.
                    let wanted = if metric == Metric::Dot { 0.85 } else { 0.95 };
                    assert!(recall >= wanted, "{what}: recall {recall}");
                }
            }
        }
    }
    Ok(())
}

/// The same graph as one whose edges have no codes, which are not saved.
fn without_edge_codes(graph: &QuantizedGraph) -> Result<QuantizedGraph> {
    let mut bytes = Vec::new();
    graph.save(&mut bytes)?;
    let params = QuantizedParams {
        edge_codes: false,
        ..graph.params()
    };
    QuantizedGraph::load(graph.space(), params, &bytes)
}

#[test]
fn small_graphs_answer_completely() -> Result<()> {
    for (scalar, metric) in kinds() {
        for rows in [0, 1, 2, 17, 40] {
            let space = Space {
                scalar,
                metric,
                dim: 5,
            };
            let data = Data::clustered(space, rows, 3, 21)?;
            let graph = build(&data)?;
            assert_eq!((graph.len(), graph.is_empty()), (rows, rows == 0));
            for query in &data.queries {
                assert_eq!(
                    search(&graph, &data, query, 50, 50),
                    data.exact(query, 50, &all),
                    "{scalar} {metric} {rows} rows"
                );
                assert!(search(&graph, &data, query, 0, 50).is_empty());
            }
        }
    }
    Ok(())
}

#[test]
fn far_more_neighbours_than_ef_are_found_if_asked_for() -> Result<()> {
    for (dim, wanted) in [(8, 2990), (64, 2990)] {
        let data = Data::clustered(floats(dim, Metric::Euclidean), 3000, 10, 2)?;
        let graph = build(&data)?;
        for query in &data.queries {
            let found = search(&graph, &data, query, 3000, 1).len();
            assert!(found >= wanted, "dim {dim}: {found} of 3000");
        }
    }
    Ok(())
}

#[test]
fn every_row_is_found_by_its_own_vector() -> Result<()> {
    for (metric, dim, centres) in [
        (Metric::Euclidean, 24, 1),
        (Metric::Euclidean, 64, 200),
        (Metric::Cosine, 96, 50),
    ] {
        let data = Data::clustered(floats(dim, metric), 8000, centres, 17)?;
        let share = found_by_itself(&build(&data)?, &data, 1)?;
        println!("{metric} dim {dim}, {centres} centres: {share:.5}");
        assert!(
            share >= 0.999,
            "{metric} dim {dim}, {centres} centres: {share}"
        );
    }
    Ok(())
}

/// Of noise in many dimensions some rows are near to none: few edges lead to them, to very few none at all.
#[test]
fn almost_all_rows_of_noise_can_be_reached() -> Result<()> {
    let data = Data::clustered(floats(128, Metric::Cosine), 8000, 1, 17)?;
    let graph = build(&data)?;
    let share = found_by_itself(&graph, &data, 3)?;
    let reached = search(&graph, &data, &data.queries[0], 8000, 8000).len();
    println!("by itself {share:.5}, {reached} of 8000 reached");
    assert!(
        share >= 0.97 && reached >= 7976,
        "by itself {share}, {reached} of 8000 reached"
    );
    Ok(())
}

/// A search of an empty graph, or its checkpoint, does not choose an origin for it.
#[test]
fn an_empty_graph_has_no_origin_until_it_gets_one() -> Result<()> {
    let data = Data::clustered(floats(16, Metric::Euclidean), 500, 1, 3)?;
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    assert!(search(&graph, &data, &data.queries[0], 10, 64).is_empty());
    let mut bytes = Vec::new();
    graph.save(&mut bytes)?;
    let loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
    for graph in [graph, loaded] {
        assert!(!graph.is_prepared());
        graph.prepare(data.bytes.chunks_exact(data.space.row_bytes()));
        assert!(graph.is_prepared());
    }
    Ok(())
}

#[test]
fn a_graph_without_an_origin_of_its_own_finds_centred_data() -> Result<()> {
    let data = Data::clustered(floats(48, Metric::Euclidean), 2000, 1, 3)?;
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    assert!(!graph.is_prepared());
    super::fill(&graph, &data)?;
    assert!(graph.is_prepared(), "the first insert fixes the origin");
    let recall = data.recall(&graph, 10, 64, &all);
    assert!(recall >= 0.95, "recall {recall}");
    Ok(())
}

#[test]
fn wrong_parameters_and_vectors_are_refused() -> Result<()> {
    let space = floats(4, Metric::Euclidean);
    let refused = |space, params| {
        QuantizedGraph::new(space, params)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let params = QuantizedParams::default();
    let zero = QuantizedParams {
        ef_construction: 0,
        ..params
    };
    assert!(refused(space, zero).contains("ef_construction is 0"));
    assert!(refused(Space { dim: 0, ..space }, params).contains("dim is 0"));
    assert!(
        refused(
            Space {
                dim: 65_537,
                ..space
            },
            params
        )
        .contains("dim is 65537")
    );
    let half = Space {
        scalar: Scalar::F16,
        ..space
    };
    let graph = QuantizedGraph::new(half, params)?;
    let short = graph.insert(9, &[0; 7]).unwrap_err().to_string();
    assert!(short.contains("row 9 has 7 bytes, expected 8"), "{short}");
    assert_eq!(graph.len(), 0);
    Ok(())
}

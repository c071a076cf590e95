//! Searches that see part of the rows.

use longbow_index::VectorIndex as _;
use longbow_index::{Metric, Result, SearchStats};

use super::{build, floats, search};
use crate::common::{Data, all};

#[test]
fn hidden_rows_do_not_shorten_the_answer() -> Result<()> {
    for metric in Metric::ALL {
        for dim in [16, 96] {
            let data = Data::clustered(floats(dim, metric), 4000, 40, 5)?;
            let graph = build(&data)?;
            for one_in in [2, 10, 100] {
                let visible = |row: u64| row.is_multiple_of(one_in);
                let recall = data.recall(&graph, 10, 64, &visible);
                println!("{metric} dim {dim}, one in {one_in}: {recall:.4}");
                assert!(
                    recall >= 0.95,
                    "{metric} dim {dim}, one in {one_in}: recall {recall}"
                );
            }
            // Whole clusters are hidden when the visible rows are those nearest to one query.
            let near = data.exact(&data.queries[0], 30, &all);
            let visible = |row: u64| near.iter().any(|n| n.row == row);
            let recall = data.recall(&graph, 10, 64, &visible);
            assert!(
                recall >= 0.95,
                "{metric} dim {dim}, one region: recall {recall}"
            );
        }
    }
    Ok(())
}

#[test]
fn one_row_or_none_may_be_visible() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 2000, 20, 5)?;
    let graph = build(&data)?;
    let stats = &mut SearchStats::default();
    for (turn, query) in data.queries.iter().enumerate() {
        let none = graph.search(query, 10, 64, &|_| false, &data, stats);
        assert!(none.is_empty());
        let only = turn as u64 * 37;
        let found = graph.search(query, 10, 64, &|row| row == only, &data, stats);
        let rows: Vec<u64> = found.iter().map(|n| n.row).collect();
        assert_eq!(rows, [only]);
    }
    Ok(())
}

#[test]
fn any_number_of_neighbours_may_be_asked_for() -> Result<()> {
    let data = Data::clustered(floats(8, Metric::Euclidean), 500, 1, 5)?;
    let graph = build(&data)?;
    let stats = &mut SearchStats::default();
    let even = |row: u64| row.is_multiple_of(2);
    for (k, ef) in [(usize::MAX, 1), (1, usize::MAX)] {
        let found = graph.search(&data.queries[0], k, ef, &even, &data, stats);
        assert_eq!(found, data.exact(&data.queries[0], k.min(500), &even));
    }
    Ok(())
}

#[test]
fn rows_without_a_vector_are_left_out() -> Result<()> {
    let data = Data::clustered(floats(8, Metric::Euclidean), 500, 1, 5)?;
    let graph = build(&data)?;
    let fewer = Data {
        space: data.space,
        bytes: data.bytes[..400 * data.space.row_bytes()].to_vec(),
        queries: Vec::new(),
    };
    for query in &data.queries {
        let found = search(&graph, &fewer, query, 500, 500);
        assert_eq!(found, fewer.exact(query, 500, &all));
    }
    Ok(())
}

#[test]
fn stats_count_what_a_search_did() -> Result<()> {
    let data = Data::clustered(floats(16, Metric::Euclidean), 3000, 10, 2)?;
    let graph = build(&data)?;
    let cost = |ef| {
        let mut stats = SearchStats::default();
        let _ = graph.search(&data.queries[0], 10, ef, &all, &data, &mut stats);
        stats
    };
    let (low, high) = (cost(10), cost(500));
    assert!(
        low.nodes_popped >= 10 && low.distance_computations > low.nodes_popped,
        "{low:?}"
    );
    // In data of so few dimensions less is within reach than there would be nodes of the effort.
    assert!(
        high.nodes_popped > 2 * low.nodes_popped && high.distance_computations <= 6100,
        "{high:?}"
    );
    assert!(high.bytes_touched > low.bytes_touched && low.bytes_touched > 0);
    Ok(())
}

//! Data that is hard on eight-bit codes or on the graph.

use longbow_index::VectorIndex as _;
use longbow_index::{Metric, QuantizedGraph, QuantizedParams, Query, Result, SearchStats};

use super::{build, fill, floats, found_by_itself, kinds, made, query_of, search};
use crate::common::{Data, Dice, all, lengths};

fn normals(dice: &mut Dice, dim: usize) -> Vec<f32> {
    (0..dim).map(|_| dice.normal()).collect()
}

#[test]
fn zero_vectors_are_found_among_others() -> Result<()> {
    for (scalar, metric) in kinds() {
        let space = longbow_index::Space {
            scalar,
            metric,
            dim: 8,
        };
        let mut data = Data::clustered(space, 500, 5, 9)?;
        data.bytes
            .resize(data.bytes.len() + 500 * space.row_bytes(), 0);
        data.queries.push(Query::new(space, &[0.0; 8])?);
        let recall = data.recall(&build(&data)?, 10, 64, &all);
        assert!(recall >= 0.95, "{scalar} {metric}: recall {recall}");
    }
    Ok(())
}

/// All dimensions but four are the same in all vectors.
#[test]
fn constant_dimensions_do_no_harm() -> Result<()> {
    for metric in Metric::ALL {
        let data = made(floats(64, metric), 2000, |dice, _| {
            let mut point = vec![3.0; 64];
            point[30..34].copy_from_slice(&normals(dice, 4));
            point
        })?;
        let recall = data.recall(&build(&data)?, 10, 64, &all);
        assert!(recall >= 0.9, "{metric}: recall {recall}");
    }
    Ok(())
}

#[test]
fn one_dimension_may_outweigh_all_others() -> Result<()> {
    for factor in [10.0, 100.0] {
        let data = made(floats(64, Metric::Euclidean), 2000, |dice, _| {
            let mut point = normals(dice, 64);
            point[5] *= factor;
            point
        })?;
        let recall = data.recall(&build(&data)?, 10, 64, &all);
        println!("factor {factor}: {recall:.4}");
        assert!(recall >= 0.9, "factor {factor}: recall {recall}");
    }
    Ok(())
}

#[test]
fn magnitudes_do_not_matter() -> Result<()> {
    for metric in Metric::ALL {
        for magnitude in [1e-20f32, 1e-18, 1e-10, 1e10, 1e17] {
            let data = made(floats(32, metric), 2000, |dice, _| {
                normals(dice, 32).iter().map(|x| x * magnitude).collect()
            })?;
            let recall = data.recall(&build(&data)?, 10, 64, &all);
            println!("{metric} {magnitude:e}: {recall:.4}");
            assert!(recall >= 0.9, "{metric} {magnitude:e}: recall {recall}");
        }
    }
    Ok(())
}

/// Squared lengths are beyond what `f32` holds: distances are undefined, but each search answers.
#[test]
fn lengths_beyond_all_bounds_are_answered() -> Result<()> {
    for magnitude in [1e19f32, 1e30, 1e37] {
        let data = made(floats(32, Metric::Euclidean), 500, |dice, _| {
            normals(dice, 32).iter().map(|x| x * magnitude).collect()
        })?;
        let graph = build(&data)?;
        for query in &data.queries {
            let found = search(&graph, &data, query, 10, 64);
            assert!(found.is_sorted() && !found.is_empty(), "{magnitude:e}");
        }
    }
    Ok(())
}

/// Numbers that an insert must not be given, but that must not end the process either.
#[test]
fn what_is_no_number_does_no_harm() -> Result<()> {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (metric, share) in [(Metric::Euclidean, 3), (Metric::Cosine, 1)] {
            let data = made(floats(20, metric), 500, |dice, _| normals(dice, 20))?;
            let mut spoilt = Data {
                space: data.space,
                bytes: data.bytes,
                queries: Vec::new(),
            };
            for row in (0..500).step_by(share) {
                let at = row * data.space.row_bytes() + 4 * (row % 20);
                spoilt.bytes[at..at + 4].copy_from_slice(&odd.to_le_bytes());
            }
            let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
            fill(&graph, &spoilt)?;
            for query in &data.queries {
                let found = search(&graph, &spoilt, query, 10, 64);
                assert!(found.is_sorted() && found.len() <= 10);
            }
        }
    }
    Ok(())
}

fn far_off(dim: usize) -> Result<Data> {
    made(floats(dim, Metric::Euclidean), 2000, |dice, _| {
        (0..dim).map(|_| 1000.0 + dice.unit()).collect()
    })
}

#[test]
fn a_good_origin_makes_up_for_data_far_off() -> Result<()> {
    for dim in [32, 128] {
        let data = far_off(dim)?;
        let recall = data.recall(&build(&data)?, 10, 64, &all);
        assert!(recall >= 0.9, "dim {dim}: recall {recall}");
    }
    Ok(())
}

/// Without an origin among them the codes of such data are all alike: what is found is not the nearest, but it is found.
#[test]
fn without_an_origin_data_far_off_is_still_answered() -> Result<()> {
    let data = far_off(64)?;
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    fill(&graph, &data)?;
    println!("recall {:.4}", data.recall(&graph, 10, 64, &all));
    for query in &data.queries {
        assert_eq!(search(&graph, &data, query, 10, 64).len(), 10);
        let found = search(&graph, &data, query, 2000, 2000).len();
        assert!(found >= 1000, "{found} of 2000 can be reached");
    }
    Ok(())
}

/// 50 clusters of 200, one after the other, so that edges between them are made by the first rows of each only.
fn sorted_clusters(metric: Metric, dim: usize, spread: f32) -> Result<Data> {
    let mut dice = Dice(3);
    let centres: Vec<Vec<f32>> = (0..50).map(|_| normals(&mut dice, dim)).collect();
    made(floats(dim, metric), 10_000, move |dice, row| {
        let noise = normals(dice, dim);
        let centre = centres[row / 200].iter().zip(noise);
        centre.map(|(x, noise)| x + spread * noise).collect()
    })
}

fn check_sorted_clusters(spread: f32, wanted: (f64, f64)) -> Result<()> {
    for metric in [Metric::Euclidean, Metric::Cosine] {
        for dim in [64, 128] {
            let data = sorted_clusters(metric, dim, spread)?;
            let graph = build(&data)?;
            let recall = data.recall(&graph, 10, 64, &all);
            let share = found_by_itself(&graph, &data, 3)?;
            println!("{metric} dim {dim} spread {spread}: {recall:.4}, by itself {share:.5}");
            assert!(
                recall >= wanted.0 && share >= wanted.1,
                "{metric} dim {dim} spread {spread}: recall {recall}, by itself {share}"
            );
        }
    }
    Ok(())
}

#[test]
fn clusters_may_come_one_after_the_other() -> Result<()> {
    check_sorted_clusters(0.3, (0.95, 0.95))
}

/// The distance between clusters is 20 times that within: some walks begin in another cluster and stay there.
#[test]
fn tight_clusters_may_come_one_after_the_other() -> Result<()> {
    check_sorted_clusters(0.05, (0.9, 0.9))
}

/// As before, without an origin chosen from all the data.
#[test]
fn sorted_clusters_are_found_from_any_origin() -> Result<()> {
    let data = sorted_clusters(Metric::Euclidean, 64, 0.3)?;
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    fill(&graph, &data)?;
    let recall = data.recall(&graph, 10, 64, &all);
    let visible = |row: u64| row.is_multiple_of(100);
    let thin = data.recall(&graph, 10, 64, &visible);
    assert!(
        recall >= 0.9 && thin >= 0.9,
        "recall {recall}, one in 100 {thin}"
    );
    let stats = &mut SearchStats::default();
    let none = graph.search(&data.queries[0], 10, 64, &|_| false, &data, stats);
    assert!(none.is_empty());
    Ok(())
}

/// With the query's own cluster hidden, a walk must find the way to another by edges alone.
fn check_edges_between_clusters(spread: f32) -> Result<()> {
    for dim in [64, 128] {
        let data = sorted_clusters(Metric::Euclidean, dim, spread)?;
        let graph = build(&data)?;
        let reached = search(&graph, &data, &data.queries[0], 10_000, 64).len();
        let one = |row: u64| row / 200 == 7;
        let recall = data.recall(&graph, 10, 64, &one);
        println!("dim {dim} spread {spread}: {recall:.4}, {reached} of 10000 reached");
        assert!(
            recall >= 0.9 && reached >= 9990,
            "dim {dim} spread {spread}: recall {recall}, {reached} of 10000 reached"
        );
    }
    Ok(())
}

#[test]
fn edges_lead_from_each_cluster_to_all_others() -> Result<()> {
    check_edges_between_clusters(0.3)
}

#[test]
fn edges_lead_from_each_tight_cluster_to_all_others() -> Result<()> {
    check_edges_between_clusters(0.05)
}

/// Rows of each cluster move into the void, the first of each alone, and all in turn.
#[test]
fn the_first_of_a_new_kind_is_found_by_those_that_follow() -> Result<()> {
    const CLUSTERS: usize = 300;
    let mut dice = Dice(3);
    let mut centre = || -> Vec<f32> { (0..128).map(|_| 0.5 * dice.unit()).collect() };
    let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| centre()).collect();
    let rows = 80 * CLUSTERS;
    let data = made(floats(128, Metric::Euclidean), rows, |dice, row| {
        let shift = if row < 50 * CLUSTERS { 0.0 } else { 0.5 };
        let point = centres[row % CLUSTERS].iter();
        point.map(|x| x + shift + 0.05 * dice.normal()).collect()
    })?;
    let graph = build(&data)?;
    let mut lost = 0;
    for row in (50 * CLUSTERS)..(55 * CLUSTERS) {
        let query = query_of(&data, row as u64)?;
        let found = search(&graph, &data, &query, 1, 512);
        lost += usize::from(found[0].row != row as u64);
    }
    println!("{lost} lost");
    assert!(lost <= 2, "{lost} lost");
    Ok(())
}

#[test]
fn inner_products_find_vectors_of_any_length() -> Result<()> {
    for (dim, spread) in [(3, 1.0), (24, 0.0), (24, 0.5), (24, 2.0), (100, 0.5)] {
        for shift in [0.0, 2.0] {
            let data = lengths(dim, spread, shift)?;
            let graph = build(&data)?;
            let recall = data.recall(&graph, 10, 64, &all);
            let filtered = data.recall(&graph, 10, 64, &|row| row % 10 == 3);
            let what = format!("dim {dim} spread {spread} shift {shift}");
            println!("{what}: {recall:.3}, one in ten {filtered:.3}");
            // A vector a hundred times as long as the others is the best answer to many queries, and no edge may lead to it.
            let wanted = if spread < 2.0 { 0.95 } else { 0.9 };
            assert!(recall >= wanted, "{what}: recall {recall}");
            assert!(filtered >= 0.95, "{what}: recall {filtered} of one in ten");
        }
    }
    Ok(())
}

//! What the graph finds, against the exact scan.

use longbow_kernels::Kernels;

use crate::common::{Data, all, encode, kinds, lengths};
use longbow_index::{Hnsw, HnswParams, IsOver, Metric, Query, Result, Scalar, SearchStats, Space};

#[test]
fn finds_95_of_100_on_clusters_for_each_type_and_metric() -> Result<()> {
    for (scalar, metric) in kinds() {
        let data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 32,
            },
            5000,
            50,
            7,
        )?;
        let index = data.build(HnswParams::default())?;
        let recall = data.recall(&index, 10, 64, &all);
        println!("{scalar} {metric}: {recall:.4}");
        assert!(recall >= 0.95, "{scalar} {metric}: recall {recall}");
    }
    Ok(())
}

#[test]
fn finds_what_is_there_in_every_dimension() -> Result<()> {
    for dim in [1, 2, 3, 7, 16, 96, 127, 384, 1536, 4096] {
        let rows = (200_000 / dim).clamp(300, 1000);
        for (scalar, metric) in kinds() {
            let data = Data::clustered(
                Space {
                    scalar,
                    metric,
                    dim,
                },
                rows,
                20,
                dim as u64,
            )?;
            let index = data.build(HnswParams {
                ef_construction: 100,
                ..HnswParams::default()
            })?;
            let recall = data.recall(&index, 10, 100, &all);
            println!("{scalar} {metric} dim {dim}: {recall:.4}");
            assert!(
                recall >= 0.95,
                "{scalar} {metric} dim {dim}: recall {recall}"
            );
        }
    }
    Ok(())
}

/// Squares of such lengths are beyond floats, or zero: directions are what they are.
#[test]
fn cosine_finds_vectors_of_any_length() -> Result<()> {
    for scalar in [Scalar::F32, Scalar::F16] {
        let lengths: &[f32] = match scalar {
            Scalar::F32 => &[1e-32, 1e-22, 1e-12, 1.0, 1e12, 1e22, 1e33],
            _ => &[1e-3, 1.0, 1e3],
        };
        let space = Space {
            scalar,
            metric: Metric::Cosine,
            dim: 24,
        };
        let mut data = Data::clustered(space, 3_000, 30, 8)?;
        for (row, vector) in data.bytes.chunks_exact_mut(space.row_bytes()).enumerate() {
            let mut floats = vec![0.0; space.dim];
            Kernels::get().decode(scalar, vector, &mut floats);
            let length = lengths[row % lengths.len()];
            floats.iter_mut().for_each(|x| *x *= length);
            vector.copy_from_slice(&encode(scalar, &floats));
        }
        let recall = data.recall(&data.build(HnswParams::default())?, 10, 64, &all);
        assert!(recall >= 0.95, "{scalar}: recall {recall}");
    }
    Ok(())
}

#[test]
fn inner_products_find_vectors_of_any_length() -> Result<()> {
    for (dim, spread) in [(3, 1.0), (24, 0.0), (24, 0.5), (24, 2.0), (100, 0.5)] {
        for shift in [0.0, 2.0] {
            let data = lengths(dim, spread, shift)?;
            let index = data.build(HnswParams::default())?;
            let recall = data.recall(&index, 10, 64, &all);
            let filtered = data.recall(&index, 10, 64, &|row| row % 10 == 3);
            assert!(
                recall >= 0.95,
                "dim {dim} spread {spread} shift {shift}: recall {recall}"
            );
            assert!(
                filtered >= 0.95,
                "dim {dim} spread {spread} shift {shift}: recall {filtered} of one in ten"
            );
        }
    }
    Ok(())
}

#[test]
fn hidden_rows_do_not_shorten_the_answer() -> Result<()> {
    for metric in Metric::ALL {
        let data = Data::clustered(
            Space {
                scalar: Scalar::F32,
                metric,
                dim: 16,
            },
            4000,
            40,
            5,
        )?;
        let index = data.build(HnswParams::default())?;
        for one_in in [2, 10, 100] {
            let visible = |row: u64| row.is_multiple_of(one_in);
            let recall = data.recall(&index, 10, 64, &visible);
            assert!(recall >= 0.95, "{metric}, one in {one_in}: recall {recall}");
        }
        // Whole clusters are hidden when the visible rows are those nearest to one query.
        let near = data.exact(&data.queries[0], 30, &all);
        let visible = |row: u64| near.iter().any(|n| n.row == row);
        let recall = data.recall(&index, 10, 64, &visible);
        assert!(recall >= 0.95, "{metric}, one region: recall {recall}");
        let none = index.search(
            &data.queries[0],
            10,
            64,
            &|_| false,
            &mut SearchStats::default(),
        );
        assert!(none.is_empty());
    }
    Ok(())
}

#[test]
fn zero_vectors_are_found_among_others() -> Result<()> {
    for (scalar, metric) in kinds() {
        let mut data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 8,
            },
            500,
            5,
            9,
        )?;
        data.bytes
            .resize(data.bytes.len() + 500 * data.space.row_bytes(), 0);
        data.queries.push(Query::new(data.space, &[0.0; 8])?);
        let index = data.build(HnswParams::default())?;
        let recall = data.recall(&index, 10, 64, &all);
        assert!(recall >= 0.95, "{scalar} {metric}: recall {recall}");
    }
    Ok(())
}

#[test]
fn ten_thousand_equal_vectors_stay_reachable() -> Result<()> {
    for (scalar, metric) in kinds() {
        let mut data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 8,
            },
            300,
            5,
            13,
        )?;
        let same = data.vector(17).to_vec();
        for _ in 0..10_000 {
            data.bytes.extend_from_slice(&same);
        }
        data.bytes
            .extend_from_slice(&Data::clustered(data.space, 300, 5, 14)?.bytes);
        let mut floats = vec![0.0; 8];
        longbow_kernels::Kernels::get().decode(scalar, &same, &mut floats);
        data.queries.push(Query::new(data.space, &floats)?);
        let index = data.build(HnswParams::default())?;
        let stats = &mut SearchStats::default();
        for query in &data.queries {
            assert_eq!(
                index.search(query, 10, 10, &all, stats).len(),
                10,
                "{scalar} {metric}"
            );
        }
        let recall = data.recall(&index, 10, 64, &all);
        assert!(recall >= 0.95, "{scalar} {metric}: recall {recall}");
        let thin = data.recall(&index, 10, 64, &|row| row % 100 == 1);
        assert!(thin >= 0.95, "{scalar} {metric}, one in 100: recall {thin}");
        let many = index.search(&data.queries[50], 9000, 9000, &all, stats);
        assert_eq!(many.len(), 9000, "{scalar} {metric}");
    }
    Ok(())
}

#[test]
fn small_indexes_answer_completely() -> Result<()> {
    for (scalar, metric) in kinds() {
        for rows in [0, 1, 2, 17, 40] {
            let data = Data::clustered(
                Space {
                    scalar,
                    metric,
                    dim: 5,
                },
                rows,
                3,
                21,
            )?;
            let index = data.build(HnswParams::default())?;
            assert_eq!((index.len(), index.is_empty()), (rows, rows == 0));
            for query in &data.queries {
                let found = index.search(query, 50, 50, &all, &mut SearchStats::default());
                assert_eq!(
                    found,
                    data.exact(query, 50, &all),
                    "{scalar} {metric} {rows} rows"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn far_more_neighbours_than_ef_are_found_if_asked_for() -> Result<()> {
    let data = Data::clustered(
        Space {
            scalar: Scalar::F32,
            metric: Metric::Euclidean,
            dim: 8,
        },
        3000,
        10,
        2,
    )?;
    let index = data.build(HnswParams::default())?;
    for query in &data.queries {
        let found = index.search(query, 2900, 1, &all, &mut SearchStats::default());
        assert_eq!(found.len(), 2900);
    }
    assert!(
        index
            .search(&data.queries[0], 0, 10, &all, &mut SearchStats::default())
            .is_empty()
    );
    Ok(())
}

#[test]
fn wrong_parameters_and_vectors_are_refused() -> Result<()> {
    let space = Space {
        scalar: Scalar::F16,
        metric: Metric::Dot,
        dim: 4,
    };
    let refused = |params| {
        Hnsw::new(space, params)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let params = HnswParams::default();
    assert!(refused(HnswParams { m: 1, ..params }).contains("m is 1, expected 2 to 256"));
    assert!(
        refused(HnswParams {
            ef_construction: 0,
            ..params
        })
        .contains("ef_construction is 0")
    );
    let flat = Space { dim: 0, ..space };
    assert!(
        Hnsw::new(flat, params)
            .map(|_| ())
            .unwrap_err()
            .to_string()
            .contains("dim is 0")
    );
    let index = Hnsw::new(space, params)?;
    let short = index.insert(9, &[0; 7]).unwrap_err().to_string();
    assert!(short.contains("row 9 has 7 bytes, expected 8"), "{short}");
    assert_eq!(index.len(), 0);
    Ok(())
}

#[test]
fn stats_count_what_a_search_did() -> Result<()> {
    let data = Data::clustered(
        Space {
            scalar: Scalar::F32,
            metric: Metric::Euclidean,
            dim: 8,
        },
        3000,
        10,
        2,
    )?;
    let index = data.build(HnswParams::default())?;
    let cost = |ef| {
        let mut stats = SearchStats::default();
        let _ = index.search(&data.queries[0], 10, ef, &all, &mut stats);
        stats
    };
    let (low, high) = (cost(10), cost(500));
    assert!(
        low.nodes_popped >= 10 && low.distance_computations > low.nodes_popped,
        "{low:?}"
    );
    // In data of so few dimensions less is within reach than there would be nodes of the effort.
    assert!(
        high.nodes_popped > 2 * low.nodes_popped && high.distance_computations <= 3100,
        "{high:?}"
    );
    Ok(())
}

#[test]
fn a_walk_that_is_told_to_end_gives_what_it_has() -> Result<()> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 16,
    };
    let data = Data::clustered(space, 5000, 5, 3)?;
    let index = data.build(HnswParams::default())?;
    let passes = |row: u64| row.is_multiple_of(4);
    let search = |is_over: Option<IsOver<'_>>| {
        let mut stats = SearchStats::default();
        let query = &data.queries[0];
        let found = index.search_until(query, (100, 2_000), (&passes, is_over), &mut stats);
        (found, stats.nodes_popped)
    };
    let (whole, popped) = search(None);
    assert_eq!(whole.len(), 100);
    assert_eq!(search(Some(&|| false)), (whole, popped));
    let (cut, few) = search(Some(&|| true));
    assert!(0 < few && few < popped / 4, "{few} of {popped}");
    assert!(!cut.is_empty() && cut.is_sorted() && cut.iter().all(|one| passes(one.row)));
    Ok(())
}

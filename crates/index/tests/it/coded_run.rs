//! Rows that wait, by their codes: the answer is that of the exact scan, bit for bit, whatever the data, and few are compared.

use longbow_index::{
    CodedRun, Frame, Metric, Neighbor, Query, Result, Scalar, SearchStats, Space, TopK,
    VectorSource, flat,
};

use crate::common::{Data, Dice, encode, kinds, lengths};

/// What is asked of a run in [`check`].
struct Asked<'a> {
    k: usize,
    /// Rows below it come to the answer before the run is scanned.
    from: u64,
    wanted: &'a dyn Fn(u64) -> bool,
}

/// Checks all queries against the exact scan, and tells the vectors that were compared for each.
fn check(data: &Data, asked: &Asked<'_>) -> Result<f64> {
    let vectors: Vec<(u64, &[u8])> = (0..data.rows() as u64)
        .map(|row| (row, data.vector(row)))
        .collect();
    let together = CodedRun::new(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    let clustered = CodedRun::clustered(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    let in_haste = CodedRun::clustered_in_haste(&clustered.frame(), &vectors, &|| ());
    check_run(data, &clustered, asked)?;
    check_run(data, &in_haste, asked)?;
    check_run(data, &together, asked)
}

fn check_run(data: &Data, run: &CodedRun, asked: &Asked<'_>) -> Result<f64> {
    let rows = data.rows();
    assert_eq!((run.rows(), run.len()), (0..rows as u64, rows));
    let Asked { k, from, wanted } = *asked;
    let mut compared = 0;
    for query in &data.queries {
        let mut top = TopK::new(k);
        let before = &data.bytes[..from as usize * data.space.row_bytes()];
        let stats = &mut SearchStats::default();
        flat::scan(
            query,
            0,
            before,
            wanted,
            &mut top,
            &mut SearchStats::default(),
        );
        run.scan(
            &run.frame().aim(query),
            run.clusters(),
            (from, wanted),
            data,
            &mut top,
            stats,
        );
        let (found, exact) = (top.into_sorted(), data.exact(query, k, wanted));
        assert_eq!(
            told(&found),
            told(&exact),
            "{:?} k {k} from {from}",
            data.space
        );
        compared += stats.distance_computations;
    }
    Ok(compared as f64 / data.queries.len() as f64)
}

/// Distances alone where they are equal: of those the smaller row comes first, which is no matter here.
fn told(neighbors: &[Neighbor]) -> Vec<u32> {
    let distances = neighbors.iter().map(|neighbor| neighbor.distance);
    distances.map(f32::to_bits).collect()
}

fn space(scalar: Scalar, metric: Metric, dim: usize) -> Space {
    Space {
        scalar,
        metric,
        dim,
    }
}

#[test]
fn every_kind_of_vector_is_found_as_by_the_exact_scan() -> Result<()> {
    for (scalar, metric) in kinds() {
        for dim in [1, 2, 3, 7, 16, 96, 127, 384, 1536, 4096] {
            let rows = 200_000 / (dim + 200);
            let data = Data::clustered(space(scalar, metric, dim), rows, 20, dim as u64)?;
            let from = rows as u64 / 3;
            let odd = |row: u64| row % 2 == 1;
            for (k, from) in [
                (1, from),
                (10, from),
                (10, 0),
                (rows + 5, 0),
                (10, rows as u64),
            ] {
                check(
                    &data,
                    &Asked {
                        k,
                        from,
                        wanted: &|_| true,
                    },
                )?;
                check(
                    &data,
                    &Asked {
                        k,
                        from,
                        wanted: &odd,
                    },
                )?;
            }
            check(
                &data,
                &Asked {
                    k: 10,
                    from: 0,
                    wanted: &|row| row == 30,
                },
            )?;
        }
    }
    Ok(())
}

#[test]
fn few_vectors_are_compared_once_some_are_known() -> Result<()> {
    for (dim, most) in [(128, 0.12), (384, 0.06), (784, 0.05)] {
        let data = Data::spread(
            space(Scalar::F32, Metric::Euclidean, dim),
            (8_000, 40),
            1.0,
            3,
        )?;
        let compared = check(
            &data,
            &Asked {
                k: 10,
                from: 4_000,
                wanted: &|_| true,
            },
        )?;
        assert!(compared < most * 4_000.0, "{dim} dimensions: {compared}");
    }
    Ok(())
}

#[test]
fn products_of_vectors_of_all_lengths_are_found() -> Result<()> {
    for (dim, spread, shift) in [(40, 0.0, 0.0), (128, 0.5, 0.0), (128, 1.5, 2.0)] {
        let data = lengths(dim, spread, shift)?;
        for from in [0, 1_500] {
            check(
                &data,
                &Asked {
                    k: 10,
                    from,
                    wanted: &|_| true,
                },
            )?;
        }
    }
    Ok(())
}

/// Rows that lie close together far from all others, some of them known already: what their common way is rounded by is more than
/// they differ.
#[test]
fn the_nearest_of_many_that_are_almost_equal_are_found() -> Result<()> {
    let mut dice = Dice(11);
    for (dim, apart) in [(784, 0.005), (1536, 0.005), (3072, 0.005)] {
        let space = space(Scalar::F32, Metric::Euclidean, dim);
        for step in 0..40u8 {
            let length = 2f32.powf(f32::from(step) / 40.0);
            let mut way = |length: f32| -> Vec<f32> {
                let way: Vec<f32> = (0..dim).map(|_| dice.normal()).collect();
                let norm = way.iter().map(|x| x * x).sum::<f32>().sqrt();
                way.iter().map(|x| x * length / norm).collect()
            };
            let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect();
            let query = way(length);
            let mut vectors: Vec<Vec<f32>> = Vec::new();
            for (rows, share) in [(20, 1.0), (60, 0.9)] {
                let length = length * apart * share;
                vectors.extend((0..rows).map(|_| sum(&query, &way(length))));
            }
            vectors.extend((0..300).map(|_| way(length)));
            let bytes = vectors.iter().flat_map(|x| encode(Scalar::F32, x));
            let data = Data {
                space,
                bytes: bytes.collect(),
                queries: vec![Query::new(space, &query)?],
            };
            let asked = Asked {
                k: 10,
                from: 20,
                wanted: &|_| true,
            };
            check(&data, &asked)?;
        }
    }
    Ok(())
}

/// Vectors as they should not be: nothing is estimated that cannot be, and nothing is missed.
#[test]
fn zeros_equals_and_extremes_are_found() -> Result<()> {
    let mut dice = Dice(5);
    for metric in Metric::ALL {
        let space = space(Scalar::F32, metric, 100);
        for scale in [0.0, 1e-38, 1e-30, 1e-15, 1.0, 1e15, 1e18, 1e30, 3e38] {
            // Such have no cosine as far as can be reckoned.
            if metric == Metric::Cosine && scale > 1e37 {
                continue;
            }
            let mut point = || -> Vec<f32> {
                let by = if dice.below(4) == 0 { 1.0 } else { scale };
                (0..100).map(|_| by * dice.unit()).collect()
            };
            let vectors: Vec<Vec<f32>> = (0..400).map(|_| point()).collect();
            let mut data = Data {
                space,
                bytes: vectors
                    .iter()
                    .flat_map(|x| encode(Scalar::F32, x))
                    .collect(),
                queries: Vec::new(),
            };
            let again = data.bytes[..60 * space.row_bytes()].repeat(2);
            data.bytes.extend(again);
            for query in vectors
                .iter()
                .step_by(9)
                .cloned()
                .chain((0..20).map(|_| point()))
            {
                data.queries.push(Query::new(space, &query)?);
            }
            for from in [0, 200] {
                check(
                    &data,
                    &Asked {
                        k: 10,
                        from,
                        wanted: &|_| true,
                    },
                )?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_row_that_is_gone_is_left_out() -> Result<()> {
    /// Without the even rows.
    struct Odd<'a>(&'a Data);
    impl VectorSource for Odd<'_> {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            (row % 2 == 1).then(|| self.0.vector(row))
        }
    }
    let data = Data::clustered(space(Scalar::F32, Metric::Cosine, 64), 500, 5, 1)?;
    let vectors: Vec<(u64, &[u8])> = (0..500).map(|row| (row, data.vector(row))).collect();
    let run = CodedRun::new(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    for query in &data.queries {
        let (mut top, stats) = (TopK::new(10), &mut SearchStats::default());
        run.scan(
            &run.frame().aim(query),
            1,
            (0, &|_| true),
            &Odd(&data),
            &mut top,
            stats,
        );
        assert_eq!(
            top.into_sorted(),
            data.exact(query, 10, &|row| row % 2 == 1)
        );
    }
    Ok(())
}

#[test]
fn codes_are_a_fraction_of_the_vectors() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 784), 1_000, 5, 1)?;
    let vectors: Vec<(u64, &[u8])> = (0..1_000).map(|row| (row, data.vector(row))).collect();
    let run = CodedRun::new(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    assert!(
        run.memory_bytes() * 20 < data.bytes.len(),
        "{}",
        run.memory_bytes()
    );
    assert!(
        !run.is_empty()
            && CodedRun::new(&Frame::around(data.space, 7, &[])?, &[], &|| ()).is_empty()
    );
    Ok(())
}

/// A run in clusters, with samples of its rows, and of others, to measure it by.
fn measured(data: &Data, passes: impl Fn(u64) -> bool + Copy) -> Result<CodedRun> {
    let rows = |wanted: bool| {
        let rows = (0..data.rows() as u64).filter(move |row| passes(*row) == wanted);
        rows.map(|row| (row, data.vector(row))).collect::<Vec<_>>()
    };
    let (passing, others) = (rows(true), rows(false));
    let mut run = CodedRun::clustered(&Frame::around(data.space, 7, &passing)?, &passing, &|| ());
    let kinds = [passing, others].map(|rows| {
        let step = rows.len() / 60;
        rows.into_iter().step_by(step).collect()
    });
    run.measure(&kinds, 100, data, &|| ())?;
    Ok(run)
}

#[test]
fn the_nearest_clusters_have_as_many_of_the_nearest_as_was_measured() -> Result<()> {
    for metric in Metric::ALL {
        let data = Data::spread(space(Scalar::F32, metric, 128), (12_000, 60), 1.0, 5)?;
        let passes = |row: u64| row.is_multiple_of(3);
        let run = measured(&data, passes)?;
        let (mut clusters, mut cost) = (0, 0.0);
        for recall in [0.5, 0.8, 0.95, 0.99] {
            let more = run.clusters_for(10, recall);
            assert!(
                more >= clusters && run.cost(10, more) >= cost,
                "{recall}: {more}"
            );
            (clusters, cost) = (more, run.cost(10, more));
            let (mut hits, mut rows) = (0, 0);
            for query in &data.queries {
                let stats = &mut SearchStats::default();
                let (near, scanned) = run.nearest(query, (10, clusters), &|_| true, &data, stats);
                let exact = data.exact(query, 10, &passes);
                hits += exact.iter().filter(|of| near.contains(&of.row)).count();
                rows += scanned;
                assert!(near.len() >= 10 && near.iter().all(|row| passes(*row)));
                let unique: std::collections::HashSet<_> = near.iter().collect();
                assert_eq!(unique.len(), near.len());
            }
            let count = data.queries.len();
            let found = hits as f32 / (10 * count) as f32;
            assert!(found >= recall - 0.06, "{metric:?}: {found} of {recall}");
            assert!(
                recall > 0.8 || rows < count * run.len(),
                "clusters were left out"
            );
        }
        // The effort of as many as are asked for, and more; and of more than was measured.
        let clusters_at = |k, ef| run.clusters_for(k, CodedRun::recall_at(k, ef));
        assert_eq!(clusters_at(10, 10), run.clusters_for(10, 0.95));
        assert!(clusters_at(10, 100) >= clusters_at(10, 10));
        assert!(clusters_at(10, 10) >= clusters_at(1, 1));
        assert_eq!(clusters_at(101, 1_000), run.clusters());
    }
    Ok(())
}

#[test]
fn a_row_is_in_the_cluster_that_its_own_vector_finds_first() -> Result<()> {
    // Rows so near each other that codes cannot tell centroids apart, and others.
    let metrics = [Metric::Euclidean, Metric::Cosine];
    let of = metrics.map(|metric| [1e-3, 0.5].map(|spread| (metric, spread)));
    for (metric, spread) in of.into_iter().flatten() {
        let space = space(Scalar::F32, metric, 64);
        let data = Data::spread(space, (2_000, 1), spread, 9)?;
        let vectors: Vec<(u64, &[u8])> = (0..2_000).map(|row| (row, data.vector(row))).collect();
        let frame = Frame::around(space, 7, &vectors)?;
        let run = CodedRun::clustered_in_haste(&frame, &vectors, &|| ());
        for (row, vector) in &vectors {
            let floats: Vec<f32> = vector
                .chunks_exact(4)
                .map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
                .collect();
            let (query, stats) = (Query::new(space, &floats)?, &mut SearchStats::default());
            let mut top = TopK::new(1);
            run.scan(
                &frame.aim(&query),
                1,
                (0, &|_| true),
                &data,
                &mut top,
                stats,
            );
            let found = top.into_sorted();
            assert_eq!(found[0].row, *row, "{metric:?}, spread {spread}");
        }
    }
    Ok(())
}

#[test]
fn what_the_nearest_clusters_lack_is_taken_from_the_others() -> Result<()> {
    let data = Data::spread(
        space(Scalar::F32, Metric::Euclidean, 64),
        (4_000, 40),
        0.5,
        9,
    )?;
    let vectors: Vec<(u64, &[u8])> = (0..4_000).map(|row| (row, data.vector(row))).collect();
    let run = CodedRun::clustered(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    assert!(run.clusters() > 20);
    // That was not measured.
    assert_eq!(run.clusters_for(10, 0.1), run.clusters());
    let rare = |row: u64| row % 500 == 3;
    for query in &data.queries {
        for (k, wanted, expected) in [
            (8, &rare as &dyn Fn(u64) -> bool, 8),
            (20, &rare, 8),
            (3_990, &|_| true, 3_990),
            (5_000, &|_| true, 4_000),
            (10, &|_| false, 0),
        ] {
            let stats = &mut SearchStats::default();
            let (near, _) = run.nearest(query, (k, 1), wanted, &data, stats);
            assert!(near.len() >= expected, "{} of {expected}", near.len());
            assert!(near.iter().all(|row| wanted(*row)));
        }
    }
    Ok(())
}

#[test]
fn rows_that_are_alike_are_among_the_nearest_though_their_codes_are_off_together() -> Result<()> {
    let space = space(Scalar::F32, Metric::Euclidean, 128);
    let data = Data::spread(space, (9_000, 150), 0.01, 3)?;
    let elsewhere = Data::spread(space, (1, 150), 0.01, 4)?;
    let vectors: Vec<(u64, &[u8])> = (0..9_000).map(|row| (row, data.vector(row))).collect();
    let frame = Frame::around(space, 7, &vectors)?;
    let run = CodedRun::clustered(&frame, &vectors, &|| ());
    let (few, mut hits, stats) = (run.clusters() / 2, 0, &mut SearchStats::default());
    for query in &elsewhere.queries {
        let mut top = TopK::new(10);
        run.scan(
            &frame.aim(query),
            few,
            (0, &|_| true),
            &data,
            &mut top,
            stats,
        );
        let (near, _) = run.nearest(query, (10, few), &|_| true, &data, stats);
        let compared = top.into_sorted();
        hits += compared.iter().filter(|of| near.contains(&of.row)).count();
    }
    assert!(hits >= 490, "{hits} of 500");
    Ok(())
}

#[test]
fn vectors_that_cannot_be_parted_are_one_cluster() -> Result<()> {
    let data = Data::equal(2_000)?;
    let vectors: Vec<(u64, &[u8])> = (0..2_000).map(|row| (row, data.vector(row))).collect();
    let mut run = CodedRun::clustered(&Frame::around(data.space, 7, &vectors)?, &vectors, &|| ());
    run.measure(&[vectors[..10].to_vec(), Vec::new()], 10, &data, &|| ())?;
    assert_eq!(run.clusters_for(11, 0.1), run.clusters());
    let empty = CodedRun::clustered(&Frame::around(data.space, 7, &[])?, &[], &|| ());
    for query in &data.queries {
        let stats = &mut SearchStats::default();
        let (near, _) = run.nearest(query, (10, 1), &|_| true, &data, stats);
        assert!(near.len() >= 10);
        let none = empty.nearest(query, (10, 1), &|_| true, &data, stats);
        assert!(none.0.is_empty());
    }
    Ok(())
}

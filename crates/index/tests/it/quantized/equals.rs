//! Vectors that codes cannot tell apart.

use longbow_index::{Metric, Result};

use super::{build, floats, kinds, made, query_of, search};
use crate::common::{Data, all};

/// 300 vectors, 10,000 times one of them, and 300 others.
fn ten_thousand_equal(space: longbow_index::Space) -> Result<Data> {
    let mut data = Data::clustered(space, 300, 5, 13)?;
    let same = data.vector(17).to_vec();
    for _ in 0..10_000 {
        data.bytes.extend_from_slice(&same);
    }
    let others = Data::clustered(space, 300, 5, 14)?;
    data.bytes.extend_from_slice(&others.bytes);
    data.queries.push(query_of(&data, 17)?);
    Ok(data)
}

#[test]
fn ten_thousand_equal_vectors_stay_reachable() -> Result<()> {
    for (scalar, metric) in kinds() {
        let space = longbow_index::Space {
            scalar,
            metric,
            dim: 8,
        };
        let data = ten_thousand_equal(space)?;
        let graph = build(&data)?;
        for query in &data.queries {
            let found = search(&graph, &data, query, 10, 10).len();
            assert_eq!(found, 10, "{scalar} {metric}");
        }
        let recall = data.recall(&graph, 10, 64, &all);
        assert!(recall >= 0.95, "{scalar} {metric}: recall {recall}");
        let thin = data.recall(&graph, 10, 64, &|row| row % 100 == 1);
        assert!(thin >= 0.95, "{scalar} {metric}, one in 100: recall {thin}");
    }
    Ok(())
}

#[test]
fn as_many_equal_vectors_are_found_as_were_asked_for() -> Result<()> {
    for metric in [Metric::Euclidean, Metric::Cosine] {
        let data = ten_thousand_equal(floats(24, metric))?;
        let graph = build(&data)?;
        for k in [100, 1000, 9000] {
            let found = search(&graph, &data, &data.queries[50], k, 64);
            assert_eq!(found.len(), k, "{metric}");
            let own = data.queries[50].distance(data.vector(17));
            assert!(found.iter().all(|n| n.distance == own), "{metric}, k {k}");
        }
    }
    Ok(())
}

/// Vectors that differ by less than their scales do share a code; the exact distances must tell them apart.
#[test]
fn the_nearest_of_those_that_share_a_code_is_found() -> Result<()> {
    for dim in [16, 128, 768] {
        let mut data = Data::clustered(floats(dim, Metric::Euclidean), 1000, 5, 31)?;
        let start = data.queries.len();
        for group in 0..10 {
            let first = data.rows() as u64;
            let near = made(data.space, 200, |dice, _| {
                let own = data.vector(group * 90).as_chunks::<4>().0;
                let own = own.iter().map(|x| f32::from_le_bytes(*x));
                own.map(|x| x * (1.0 + 2e-7 * dice.normal())).collect()
            })?;
            data.bytes.extend_from_slice(&near.bytes);
            for row in (first..first + 200).step_by(20) {
                data.queries.push(query_of(&data, row)?);
            }
        }
        data.queries.drain(..start);
        let graph = build(&data)?;
        for k in [1, 10] {
            let recall = data.recall(&graph, k, 64, &all);
            println!("dim {dim}, k {k}: {recall:.4}");
            assert!(recall >= 0.95, "dim {dim}, k {k}: recall {recall}");
        }
    }
    Ok(())
}

/// Vectors that differ by less than a step of the code, and by more than their scales do.
#[test]
fn the_nearest_within_a_step_of_the_code_is_found() -> Result<()> {
    for dim in [32, 256] {
        for noise in [1e-3, 1e-4, 1e-5] {
            let base = Data::clustered(floats(dim, Metric::Euclidean), 100, 1, 31)?;
            let data = made(base.space, 5000, |dice, row| {
                let own = base.vector(row as u64 % 100).as_chunks::<4>().0;
                let own = own.iter().map(|x| f32::from_le_bytes(*x));
                own.map(|x| x + noise * dice.normal()).collect()
            })?;
            let recall = data.recall(&build(&data)?, 10, 64, &all);
            println!("dim {dim}, noise {noise:e}: {recall:.4}");
            assert!(recall >= 0.9, "dim {dim}, noise {noise:e}: recall {recall}");
        }
    }
    Ok(())
}

/// Beyond what a search looks at of one code, it answers with some of the equals, each with its exact distance.
#[test]
fn of_very_many_that_share_a_code_some_are_found() -> Result<()> {
    let mut data = Data::clustered(floats(32, Metric::Euclidean), 1000, 5, 31)?;
    let near = made(data.space, 5000, |dice, _| {
        let own = data.vector(500).as_chunks::<4>().0;
        let own = own.iter().map(|x| f32::from_le_bytes(*x));
        own.map(|x| x * (1.0 + 2e-7 * dice.normal())).collect()
    })?;
    data.bytes.extend_from_slice(&near.bytes);
    data.queries = near.queries;
    let graph = build(&data)?;
    println!("recall {:.4}", data.recall(&graph, 10, 64, &all));
    for query in &data.queries {
        let found = search(&graph, &data, query, 10, 64);
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|n| n.distance < 1e-6), "none but equals");
    }
    Ok(())
}

/// Vectors that differ by less than a step of the code, more of them than a search visits.
#[test]
fn of_very_many_within_a_step_of_the_code_some_are_found() -> Result<()> {
    for (dim, noise) in [(32, 1e-3), (256, 1e-3), (256, 1e-4)] {
        let base = Data::clustered(floats(dim, Metric::Euclidean), 5, 1, 31)?;
        let data = made(base.space, 5000, |dice, row| {
            let own = base.vector(row as u64 % 5).as_chunks::<4>().0;
            let own = own.iter().map(|x| f32::from_le_bytes(*x));
            own.map(|x| x + noise * dice.normal()).collect()
        })?;
        let graph = build(&data)?;
        for ef in [64, 400, 1500] {
            let recall = data.recall(&graph, 10, ef, &all);
            println!("dim {dim}, noise {noise:e}, ef {ef}: {recall:.4}");
            assert!(
                recall >= if ef == 1500 { 0.7 } else { 0.1 },
                "dim {dim}, noise {noise:e}, ef {ef}: {recall}"
            );
        }
    }
    Ok(())
}

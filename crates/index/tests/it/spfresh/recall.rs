use std::sync::atomic::{AtomicUsize, Ordering};

use longbow_index::{Error, Metric, Result, Scalar, SpFresh, SpFreshParams, Space};

use super::file::MemoryFile;
use super::{build, recall, search};
use crate::common::Data;

fn space(scalar: Scalar, metric: Metric, dim: usize) -> Space {
    Space {
        scalar,
        metric,
        dim,
    }
}

#[test]
fn what_is_near_is_found_whatever_the_vectors_are() -> Result<()> {
    for (scalar, metric, dim) in [
        (Scalar::F32, Metric::Euclidean, 96),
        (Scalar::F16, Metric::Cosine, 40),
        (Scalar::I8, Metric::Euclidean, 17),
        (Scalar::U8, Metric::Cosine, 8),
        (Scalar::F32, Metric::Dot, 64),
    ] {
        let data = Data::clustered(space(scalar, metric, dim), 6_000, 40, 3)?;
        let index = build(&data, SpFreshParams::default(), 0..6_000)?;
        let what = format!("{scalar:?} {metric:?} {dim}: {index:?}");
        assert!(index.postings() > 30, "{what}");
        let found = recall(&index, &data, (10, 16), &|_| true);
        assert!(found > 0.95, "{what}: {found}");
        let third = recall(&index, &data, (10, 16), &|row| row % 3 == 0);
        assert!(third > 0.9, "{what}: {third} of a third");
        // All of them, which is exact.
        let all = recall(&index, &data, (10, usize::MAX), &|_| true);
        assert!(all > 0.999, "{what}: {all} in all postings");
        let all = recall(&index, &data, (10, 10_000), &|_| true);
        assert!(all > 0.99, "{what}: {all} by the codes of all postings");
    }
    Ok(())
}

#[test]
fn few_that_are_visible_are_all_found() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 32), 4_000, 20, 5)?;
    let index = build(&data, SpFreshParams::default(), 0..4_000)?;
    for one_in in [500, 1_999, 4_001] {
        let visible = |row: u64| row % one_in == 1;
        for query in &data.queries {
            let found = search(&index, &data, query, (10, 1), &visible);
            assert_eq!(found, data.exact(query, 10, &visible), "one in {one_in}");
        }
    }
    let query = &data.queries[0];
    assert!(search(&index, &data, query, (0, 8), &|_| true).is_empty());
    assert!(search(&index, &data, query, (10, 8), &|_| false).is_empty());
    Ok(())
}

/// Enough strays pass around the query to find `k`, but what is nearest of all that pass lies in postings behind those.
#[test]
fn what_passes_behind_the_nearest_postings_is_found() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 32), 6_000, 40, 9)?;
    let index = build(&data, SpFreshParams::default(), 0..6_000)?;
    let (mut told, mut untold, mut all) = (0, 0, 0);
    for query in &data.queries {
        let mut order: Vec<u64> = (0..6_000).collect();
        let distance = |row: &u64| query.distance(data.vector(*row));
        order.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        let mut passes = vec![false; 6_000];
        let strays = order[..1_000].iter().rev().step_by(40);
        let far = order[1_000..].iter().step_by(2);
        strays
            .chain(far)
            .for_each(|row| passes[*row as usize] = true);
        let passing = passes.iter().filter(|passes| **passes).count();
        let visible = |row: u64| passes[row as usize];
        let exact = data.exact(query, 40, &visible);
        let hits = |share| {
            let (rows, stats) = ((share, (&visible as _, None)), &mut Default::default());
            let found = index.search_filtered(query, (40, 10), rows, &data, stats);
            assert_eq!(found.len(), 40);
            found.iter().filter(|one| exact.contains(one)).count()
        };
        told += hits(Some(passing as f64 / 6_000.0));
        untold += hits(None);
        all += exact.len();
    }
    assert!(10 * told > 9 * all, "{told} of {all}");
    assert!(
        10 * untold < 8 * all,
        "nothing is behind: {untold} of {all}"
    );
    Ok(())
}

/// A search that is cut as it looks farther has what it had found before.
#[test]
fn what_was_found_stays_found_when_the_time_is_over() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 32), 6_000, 40, 9)?;
    let index = build(&data, SpFreshParams::default(), 0..6_000)?;
    let visible = |row: u64| row.is_multiple_of(40);
    let search = |over: usize| {
        let asked = AtomicUsize::new(0);
        let is_over = || asked.fetch_add(1, Ordering::Relaxed) >= over;
        let until = Some(&is_over as longbow_index::IsOver<'_>);
        // Ten times as many pass elsewhere, as far as it knows.
        let (rows, stats) = (
            (Some(0.25), (&visible as _, until)),
            &mut Default::default(),
        );
        let found = index.search_filtered(&data.queries[0], (8, 8), rows, &data, stats);
        (found, asked.into_inner())
    };
    let (whole, asked) = search(usize::MAX);
    assert!(whole.len() == 8 && asked > 20, "it looked farther: {asked}");
    for over in 8..asked {
        let (found, _) = search(over);
        let mut rows: Vec<u64> = found.iter().map(|one| one.row).collect();
        rows.dedup();
        assert_eq!(rows.len(), 8, "over after {over} postings: {found:?}");
    }
    Ok(())
}

#[test]
fn equal_vectors_are_all_there() -> Result<()> {
    let data = Data::equal(3_000)?;
    let index = build(&data, SpFreshParams::default(), 0..3_000)?;
    let (most, all) = index.lengths();
    assert!(most <= index.params().split, "{most} in one posting");
    assert_eq!((index.len(), all), (3_000, 3_000));
    let found = search(&index, &data, &data.queries[0], (3_000, 1), &|_| true);
    assert_eq!(found.len(), 3_000);
    Ok(())
}

#[test]
fn vectors_too_long_to_be_reckoned_with_are_found() -> Result<()> {
    let mut data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 16), 600, 5, 5)?;
    for row in [3, 300, 599] {
        let size = data.space.row_bytes();
        data.bytes[row * size..][..size]
            .copy_from_slice(&[3e30f32; 16].map(f32::to_le_bytes).concat());
    }
    let index = build(&data, SpFreshParams::default(), 0..600)?;
    assert!(index.postings() < 20, "{index:?}");
    for query in &data.queries {
        let found = search(&index, &data, query, (600, 4), &|_| true);
        assert_eq!(found, data.exact(query, 600, &|_| true));
    }
    let far = longbow_index::Query::new(data.space, &[1e30; 16])?;
    assert_eq!(search(&index, &data, &far, (10, 1), &|_| true).len(), 10);
    Ok(())
}

#[test]
fn a_search_that_is_over_ends_with_what_it_has() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 32), 4_000, 20, 5)?;
    let index = build(&data, SpFreshParams::default(), 0..4_000)?;
    let mut stats = longbow_index::SearchStats::default();
    let few = |row: u64| row == 17;
    let over = || true;
    let rows: (&(dyn Fn(u64) -> bool + Sync), _) = (&few, Some(&over as longbow_index::IsOver<'_>));
    let found = index.search(&data.queries[0], (10, 8), rows, &data, &mut stats);
    assert!(found.len() <= 1);
    assert_eq!(stats.nodes_popped, 1, "it ends after a posting");
    Ok(())
}

#[test]
fn an_index_without_rows_answers_with_nothing() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 8), 10, 1, 5)?;
    let index = build(&data, SpFreshParams::default(), 0..0)?;
    assert!(
        index.is_empty() && search(&index, &data, &data.queries[0], (3, 3), &|_| true).is_empty()
    );
    Ok(())
}

#[test]
fn wrong_parameters_are_refused() {
    let refused = |space, params| {
        let index = SpFresh::new(space, params, Box::new(MemoryFile::default()));
        index.map(|_| ()).unwrap_err().to_string()
    };
    let good = space(Scalar::F32, Metric::Euclidean, 8);
    let params = SpFreshParams::default();
    let text = refused(good, SpFreshParams { split: 8, ..params });
    assert!(text.contains("split is 8, expected 32 to 4096"), "{text}");
    let text = refused(
        good,
        SpFreshParams {
            merge: 99,
            ..params
        },
    );
    assert!(text.contains("merge is 99, expected 1 to 64"), "{text}");
    let index = SpFresh::new(good, params, Box::new(MemoryFile::default())).expect("good");
    let short = index.insert(1, &[0; 31]).unwrap_err();
    assert!(matches!(
        short,
        Error::VectorBytes {
            row: 1,
            expected: 32,
            got: 31
        }
    ));
}

#[test]
fn a_row_that_cannot_be_written_is_not_in_the_index() -> Result<()> {
    let data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 16), 3_000, 10, 5)?;
    let file = MemoryFile {
        limit: 100_000,
        ..MemoryFile::default()
    };
    let index = SpFresh::new(data.space, SpFreshParams::default(), Box::new(file))?;
    let rows = 0..data.rows() as u64;
    let written = rows.take_while(|row| index.insert(*row, data.vector(*row)).is_ok());
    let written = written.count() as u64;
    assert!((100..3_000).contains(&written), "{written}");
    // The last one may have been written before a split that failed.
    assert!([written, written + 1].contains(&(index.len() as u64)));
    let found = search(&index, &data, &data.queries[0], (3_000, 1), &|row| {
        row < written
    });
    assert_eq!(found.len() as u64, written);
    Ok(())
}

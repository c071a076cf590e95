use std::sync::Arc;

use super::*;
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::effort::Effort;
use crate::graph::tests::{dataset, put, vector};
use crate::helpers::Helpers;
use crate::indexer::insert_rows;
use crate::search::Rows;
use crate::time_limits::TimeLimits;

const ROWS: u64 = 6_000;

fn index(dataset: &Dataset) -> Arc<ColumnIndex> {
    Arc::clone(&dataset.indexes()[0])
}

/// A dataset whose index rests when all its rows are in it.
fn indexed() -> Result<Dataset> {
    let dataset = dataset(ROWS)?;
    let (view, index) = (dataset.view(), index(&dataset));
    while let Some((first, end, _running)) = index.claim(view.next_row) {
        insert_rows(&index.graph(), &view, &view.schema.vectors[0], first, end)?;
        index.finish(first, end);
    }
    Ok(dataset)
}

/// Searches by the index, or without.
fn find(dataset: &Dataset, exact: bool) -> Result<Vec<Found>> {
    let reached = index(dataset).reached();
    let view = dataset.view();
    let searcher = Searcher {
        view: &view,
        column: &view.schema.vectors[0],
        index: Some(reached),
        rows: Rows {
            without: vec![5_999, 17],
            ..Rows::default()
        },
        k: 10,
        effort: Effort::Fixed(40),
        target: None,
        exact,
        max_distance: None,
        limits: TimeLimits::default(),
        reply: &[],
    };
    let queries: Vec<_> = (0..40).map(|at| vector((1 << 30) + at)).collect();
    searcher.find_all(&queries, &Helpers::new())
}

/// The way of searches after the rows with such ids were replaced, which find nearly what a scan does; and of how many nodes of the graph a
/// search looked at the edges, at most.
fn check(dataset: &Dataset, replaced: std::ops::Range<u64>) -> Result<(Strategy, u64)> {
    put(dataset, 3, replaced)?;
    let (all, exact) = (find(dataset, false)?, find(dataset, true)?);
    let strategy = all[0].strategy;
    let mut known = 0;
    for (found, exact) in all.iter().zip(&exact) {
        assert_eq!((found.neighbors.len(), found.ef), (10, Some(40)));
        assert_eq!(found.strategy, strategy);
        let distances =
            |of: &Found| -> Vec<f32> { of.neighbors.iter().map(|of| of.distance).collect() };
        let told = distances(found);
        known += distances(exact)
            .iter()
            .filter(|of| told.contains(of))
            .count();
    }
    assert!(known >= 396, "{known} of 400");
    let popped = all.iter().map(|found| found.stats.nodes_popped).max();
    Ok((strategy, popped.unwrap_or(0)))
}

#[test]
fn few_that_live_are_compared_and_many_are_walked_to() -> Result<()> {
    // A walk holds the dead, too, where they are few.
    let (strategy, popped) = check(&indexed()?, 0..1_000)?;
    assert_eq!(strategy, Strategy::GraphAndTail);
    assert!(popped > 30, "{popped}");
    let (strategy, popped) = check(&indexed()?, 0..3_500)?;
    assert_eq!(strategy, Strategy::GraphAndTail);
    assert!((30..500).contains(&popped), "{popped}");
    assert_eq!(check(&indexed()?, 0..5_500)?, (Strategy::Codes, 0));
    assert_eq!(check(&indexed()?, 10..5_999)?, (Strategy::Codes, 0));
    assert_eq!(check(&indexed()?, 0..6_000)?, (Strategy::Codes, 0));
    Ok(())
}

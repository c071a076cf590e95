use super::*;
use crate::dataset::Dataset;
use crate::effort::Effort;
use crate::filter::{Matching, RowSet};
use crate::graph::tests::{indexed, put, vector};
use crate::helpers::Helpers;
use crate::id::Id;
use crate::rows::Rows;
use crate::time_limits::TimeLimits;

const ROWS: u64 = 6_000;

/// Searches by the index with an effort, or without.
fn find(dataset: &Dataset, effort: Option<usize>, queries: &[Vec<f32>]) -> Result<Vec<Found>> {
    find_those(dataset, effort, queries, None)
}

/// The same of the rows that pass a filter.
fn find_those(
    dataset: &Dataset,
    effort: Option<usize>,
    queries: &[Vec<f32>],
    matching: Option<Matching>,
) -> Result<Vec<Found>> {
    let reached = dataset.indexes()[0].reached();
    let view = dataset.view();
    let searcher = Searcher {
        view: &view,
        column: &view.schema.vectors[0],
        index: Some(reached),
        rows: Rows::new(matching, vec![5_999, 17], &view),
        k: 10,
        effort: Effort::Fixed(effort.unwrap_or(10)),
        target: None,
        exact: effort.is_none(),
        max_distance: None,
        may_widen: false,
        limits: TimeLimits::default(),
        reply: &[],
    };
    searcher.find_all(queries, &Helpers::new())
}

/// So many vectors of no row, of the first of 40 clusters.
fn queries(count: usize, clusters: u64) -> Vec<Vec<f32>> {
    let seeds = (0..).map(|at| (1 << 30) + at);
    let seeds = seeds.filter(|seed| seed * 7 % 40 < clusters);
    seeds.take(count).map(vector).collect()
}

/// How many of the nearest that a scan finds, of all queries together, are among what was found.
fn known(found: &[Found], exact: &[Found]) -> usize {
    let distances = |of: &Found| -> Vec<u32> {
        let distances = of.neighbors.iter().map(|of| of.distance.to_bits());
        distances.collect()
    };
    let both = found.iter().zip(exact);
    both.map(|(found, exact)| {
        let told = distances(found);
        let exact = distances(exact);
        exact.iter().filter(|of| told.contains(of)).count()
    })
    .sum()
}

/// The way of searches after the rows with such ids were replaced, which find nearly what a scan does; and of how many nodes of the graph a
/// search looked at the edges, at most.
fn check(dataset: &Dataset, replaced: std::ops::Range<u64>) -> Result<(Strategy, u64)> {
    put(dataset, 3, replaced)?;
    let queries = queries(40, 40);
    let (all, exact) = (
        find(dataset, Some(40), &queries)?,
        find(dataset, None, &queries)?,
    );
    let strategy = all[0].strategy;
    for found in &all {
        assert_eq!((found.neighbors.len(), found.ef), (10, Some(40)));
        assert_eq!(found.strategy, strategy);
    }
    let known = known(&all, &exact);
    assert!(known >= 396, "{known} of 400");
    let popped = all.iter().map(|found| found.stats.nodes_popped).max();
    Ok((strategy, popped.unwrap_or(0)))
}

#[test]
fn few_that_live_are_compared_and_many_are_walked_to() -> Result<()> {
    // A walk holds the dead, too, where they are few.
    let (strategy, popped) = check(&indexed(ROWS)?, 0..1_000)?;
    assert_eq!(strategy, Strategy::GraphAndTail);
    assert!(popped > 30, "{popped}");
    let (strategy, popped) = check(&indexed(ROWS)?, 0..3_500)?;
    assert_eq!(strategy, Strategy::GraphAndTail);
    assert!((30..500).contains(&popped), "{popped}");
    assert_eq!(check(&indexed(ROWS)?, 0..5_500)?, (Strategy::Codes, 0));
    assert_eq!(check(&indexed(ROWS)?, 10..5_999)?, (Strategy::Codes, 0));
    assert_eq!(check(&indexed(ROWS)?, 0..6_000)?, (Strategy::Codes, 0));
    Ok(())
}

/// Around the queries all are dead: walks leave those that live elsewhere, of which there are enough that walks are the better way.
#[test]
fn what_a_walk_leaves_is_compared() -> Result<()> {
    let dataset = indexed(ROWS)?;
    let dead = (0..ROWS).filter(|id| id * 7 % 40 < 28);
    let dead: Vec<Id> = dead.map(|id| Id::Int(id as i64)).collect();
    dataset.apply_delete_ids(3, &dead)?;
    // Some wait, so that no answer is short.
    put(&dataset, 4, ROWS..ROWS + 120)?;
    let queries = queries(400, 28);
    let (all, exact) = (
        find(&dataset, Some(10), &queries)?,
        find(&dataset, None, &queries)?,
    );
    let walked = |of: &&Found| of.strategy == Strategy::Codes && of.stats.nodes_popped > 0;
    let left = all.iter().filter(walked).count();
    assert!(left >= 5, "{left} walks left some");
    let known = known(&all, &exact);
    assert!(known >= 3_800, "{known} of 4,000");
    Ok(())
}

/// Rows that pass a filter and have died are no reason to walk to the few that live: these are compared.
#[test]
fn what_passes_is_reckoned_without_the_dead() -> Result<()> {
    let dataset = indexed(ROWS)?;
    let mut third = RowSet::default();
    let bits: Vec<bool> = (0..ROWS).map(|row| row % 3 == 0).collect();
    third.insert_bits(0, &bits.into());
    let third = Matching::from(third);
    let queries = queries(40, 40);
    let find = |effort| find_those(&dataset, effort, &queries, Some(third.clone()));
    assert_eq!(find(Some(10))?[0].strategy, Strategy::GraphFiltered);

    let dead = (0..ROWS).filter(|id| id % 3 == 0 && id % 60 != 0);
    let dead: Vec<Id> = dead.map(|id| Id::Int(id as i64)).collect();
    dataset.apply_delete_ids(3, &dead)?;
    let (all, exact) = (find(Some(10))?, find(None)?);
    assert_eq!(all[0].strategy, Strategy::ExactFiltered);
    assert!(all.iter().all(|found| found.rows_scanned == 100));
    assert_eq!(known(&all, &exact), 400);
    Ok(())
}

use std::sync::Arc;

use longbow_index::Neighbor;

use super::*;
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::effort::Effort;
use crate::filter::{Matching, RowSet};
use crate::graph::tests::{dataset, put, vector};
use crate::helpers::Helpers;
use crate::id::Id;
use crate::indexer::insert_rows;
use crate::rows::Rows;
use crate::search::{Found, Searcher};
use crate::strategy::Strategy;
use crate::time_limits::TimeLimits;

fn index(dataset: &Dataset) -> Arc<ColumnIndex> {
    Arc::clone(&dataset.indexes()[0])
}

fn step(dataset: &Dataset) -> Result<bool> {
    let (index, view) = (index(dataset), dataset.view());
    index.coded.step(
        &view,
        &view.schema.vectors[0],
        index.watermark(),
        Maker::StandsBack,
    )
}

/// Takes rows into the graph, of so many jobs.
fn take(dataset: &Dataset, jobs: usize) -> Result<()> {
    let (index, view) = (index(dataset), dataset.view());
    for _ in 0..jobs {
        let (first, end, _running) = index.claim(view.next_row).expect("rows wait");
        insert_rows(&index.graph(), &view, &view.schema.vectors[0], first, end)?;
        index.finish(first, end);
    }
    Ok(())
}

/// The runs, which leave out no row.
fn runs(dataset: &Dataset) -> Vec<(u64, u64)> {
    let runs = index(dataset).coded.runs();
    let runs: Vec<_> = runs
        .iter()
        .flat_map(|runs| runs.iter())
        .map(|run| (run.first, run.end))
        .collect();
    assert!(runs.windows(2).all(|two| two[0].1 == two[1].0), "{runs:?}");
    runs
}

fn find(dataset: &Dataset, exact: bool, matching: Option<Matching>) -> Result<Vec<Found>> {
    let reached = index(dataset).reached();
    find_in(&dataset.view(), (!exact).then_some(reached), matching)
}

fn find_in(view: &View, index: Option<Reached>, matching: Option<Matching>) -> Result<Vec<Found>> {
    let exact = index.is_none();
    let searcher = Searcher {
        view,
        column: &view.schema.vectors[0],
        index,
        rows: Rows::new(matching, vec![3_007], view),
        k: 10,
        effort: Effort::Fixed(50),
        target: None,
        exact,
        max_distance: None,
        may_widen: false,
        limits: TimeLimits::default(),
        reply: &[],
    };
    let queries: Vec<_> = (0..30).map(|at| vector((1 << 30) + at)).collect();
    searcher.find_all(&queries, &Helpers::new())
}

/// Checks that searches find those of a scan's rows that wait, and tells how many rows they scanned for each query.
fn check(dataset: &Dataset, matching: Option<RowSet>) -> Result<u64> {
    let (recall, scanned) = recall(dataset, matching)?;
    assert_eq!(recall, 1.0);
    Ok(scanned)
}

/// Of a scan's rows that wait, the part that searches find; and how many rows these scanned, on average.
fn recall(dataset: &Dataset, matching: Option<RowSet>) -> Result<(f64, u64)> {
    let matching = matching.map(Matching::from);
    let found = find(dataset, false, matching.clone())?;
    let exact = find(dataset, true, matching.clone())?;
    let expected: &[Strategy] = match matching {
        // Where a walk leaves the others to a scan, too.
        Some(_) => &[Strategy::GraphFiltered, Strategy::GraphThenExact],
        None => &[Strategy::GraphAndTail],
    };
    let waiting = index(dataset).watermark();
    let (mut waited, mut known) = (0, 0);
    for (found, exact) in found.iter().zip(&exact) {
        assert!(expected.contains(&found.strategy), "{:?}", found.strategy);
        let told: Vec<_> = found.neighbors.iter().map(bits).collect();
        let of_scan = exact.neighbors.iter().filter(|of| of.row >= waiting);
        let of_scan: Vec<_> = of_scan.map(bits).collect();
        waited += of_scan.len();
        known += of_scan.iter().filter(|of| told.contains(of)).count();
        assert_eq!(told.len(), 10);
    }
    assert!(waited > 100, "{waited}");
    let scanned: u64 = found.iter().map(|found| found.rows_scanned).sum();
    Ok((known as f64 / waited as f64, scanned / found.len() as u64))
}

fn bits(neighbor: &Neighbor) -> (u64, u32) {
    (neighbor.row, neighbor.distance.to_bits())
}

#[test]
fn waiting_rows_are_found_by_their_codes_as_by_a_scan() -> Result<()> {
    let dataset = dataset(6_000)?;
    take(&dataset, 32)?;
    assert!(step(&dataset)?, "all at once");
    assert_eq!(runs(&dataset), [(2_048, 6_000)]);
    // Dead since: those with codes, those of the graph, and one that is not.
    put(&dataset, 3, 6_000..6_100)?;
    dataset.apply_delete_ids(4, &[40, 3_000, 5_999, 6_007].map(Id::Int))?;
    assert_eq!(check(&dataset, None)?, 4_052);
    let mut most = RowSet::default();
    most.insert_rows((0..6_100).filter(|row| row % 20 != 0));
    check(&dataset, Some(most))?;
    take(&dataset, 12)?;
    assert_eq!(check(&dataset, None)?, 3_284);
    Ok(())
}

#[test]
fn rows_have_codes_by_the_time_they_are_seen_while_there_are_searches() -> Result<()> {
    let dataset = dataset(2_048)?;
    take(&dataset, 32)?;
    put(&dataset, 3, 2_048..3_000)?;
    assert_eq!(runs(&dataset), [], "nobody searches");
    index(&dataset).searched.note();
    put(&dataset, 4, 3_000..3_010)?;
    assert_eq!(runs(&dataset), [], "so few are left to others");
    let before = dataset.view();
    put(&dataset, 5, 3_010..6_000)?;
    assert_eq!(runs(&dataset), [(2_048, 6_000)]);
    let (known, scanned) = recall(&dataset, None)?;
    assert!(known >= 0.9 && scanned < 3_000, "{known}, {scanned}");
    // Who sees codes of rows that his view does not show yet finds none of these.
    let found = find_in(&before, Some(index(&dataset).reached()), None)?;
    let rows = found
        .iter()
        .flat_map(|found| found.neighbors.iter().map(|of| of.row));
    assert!(rows.clone().count() == 300 && rows.max() < Some(3_010));
    // Some replace others that have codes.
    put(&dataset, 6, 4_000..8_000)?;
    assert_eq!(runs(&dataset), [(2_048, 10_000)], "no longer than these");
    let (known, _) = recall(&dataset, None)?;
    assert!(known >= 0.9, "{known}");
    put(&dataset, 7, 10_000..12_200)?;
    assert_eq!(runs(&dataset), [(2_048, 10_000), (10_000, 12_200)]);
    Ok(())
}

#[test]
fn a_writer_leaves_rows_to_others_who_are_at_many_before_them() -> Result<()> {
    let dataset = dataset(2_048)?;
    take(&dataset, 32)?;
    put(&dataset, 3, 2_048..6_000)?;
    index(&dataset).searched.note();
    put(&dataset, 4, 6_000..10_000)?;
    assert_eq!(runs(&dataset), []);
    assert!(step(&dataset)?);
    put(&dataset, 5, 10_000..12_000)?;
    assert_eq!(runs(&dataset), [(2_048, 10_000), (10_000, 12_000)]);
    Ok(())
}

#[test]
fn of_waiting_rows_in_clusters_a_part_is_read() -> Result<()> {
    let dataset = dataset(6_000)?;
    take(&dataset, 32)?;
    assert!(step(&dataset)? && step(&dataset)? && !step(&dataset)?);
    assert_eq!(runs(&dataset), [(2_048, 6_000)]);
    // Too few to be coded, and some that are dead.
    put(&dataset, 3, 6_000..6_100)?;
    dataset.apply_delete_ids(4, &[40, 3_000, 5_999, 6_007].map(Id::Int))?;
    assert!(!step(&dataset)?, "too few");
    let (found, scanned) = recall(&dataset, None)?;
    assert!(
        found >= 0.97 && (200..2_000).contains(&scanned),
        "{found} {scanned}"
    );
    // Who filters may want any.
    let mut most = RowSet::default();
    most.insert_rows((0..6_100).filter(|row| row % 20 != 0));
    check(&dataset, Some(most))?;
    // Rows of all clusters come into the graph.
    take(&dataset, 12)?;
    let (found, fewer) = recall(&dataset, None)?;
    assert!(found >= 0.97 && fewer < scanned, "{found} {fewer}");
    Ok(())
}

#[test]
fn rows_are_put_into_clusters_once() -> Result<()> {
    let dataset = dataset(2_000)?;
    take(&dataset, 4)?;
    let (index, view) = (index(&dataset), dataset.view());
    let column = &view.schema.vectors[0];
    let mut steps = 0;
    while index.coded.step(&view, column, 256, Maker::InHaste)? {
        steps += 1;
    }
    assert_eq!((steps, runs(&dataset)), (2, vec![(256, 2_000)]));
    Ok(())
}

#[test]
fn who_has_an_older_view_does_not_make_codes_of_rows_that_it_does_not_show() -> Result<()> {
    let dataset = dataset(4_000)?;
    let (index, older) = (index(&dataset), dataset.view());
    put(&dataset, 3, 4_000..6_000)?;
    assert!(step(&dataset)?);
    let before = runs(&dataset);
    assert_eq!(before, [(0, 6_000)]);
    let column = &older.schema.vectors[0];
    assert!(!index.coded.step(&older, column, 0, Maker::InHaste)?);
    assert_eq!(runs(&dataset), before);
    assert!(step(&dataset)?, "now in clusters");
    let codes = index.coded.runs().expect("a run");
    assert_eq!(codes[0].codes.len(), 6_000);
    Ok(())
}

#[test]
fn a_maker_in_haste_does_not_wait_and_the_slower_is_left() -> Result<()> {
    let dataset = dataset(6_000)?;
    let (index, view) = (index(&dataset), dataset.view());
    let column = &view.schema.vectors[0];
    let held = index.coded.making.lock();
    assert!(!index.coded.step(&view, column, 0, Maker::StandsBack)?);
    assert!(index.coded.step(&view, column, 0, Maker::InHaste)?);
    drop(held);
    let of = runs(&dataset);
    assert_eq!(of, [(0, 6_000)]);
    // One that began before, and has fewer rows.
    let slower = code(&view, column, (0, 5_000), (None, Kind::Plain, SAMPLE))?;
    index.coded.put(slower, 0);
    assert_eq!(runs(&dataset), of);
    Ok(())
}

#[test]
fn runs_are_few_and_go_when_their_rows_are_indexed() -> Result<()> {
    let dataset = dataset(1_500)?;
    take(&dataset, 4)?;
    let mut rows = 1_500;
    let mut most = 0;
    for index in 3..30 {
        step(&dataset)?;
        most = most.max(runs(&dataset).len());
        put(&dataset, index, rows..rows + 1_500)?;
        rows += 1_500;
    }
    while step(&dataset)? {}
    let told = runs(&dataset);
    assert!(most <= 14 && told.len() <= 8, "{most}, {told:?}");
    assert_eq!((told[0].0, told[told.len() - 1].1), (256, rows));
    assert!(index(&dataset).coded.memory_bytes() > 41_000 * 96 / 8);
    // As if all were in the graph.
    let of = index(&dataset);
    let mut jobs = Vec::new();
    while let Some((first, end, _)) = of.claim(rows) {
        jobs.push((first, end));
    }
    jobs.into_iter()
        .for_each(|(first, end)| of.finish(first, end));
    assert_eq!((runs(&dataset), of.coded.memory_bytes()), (Vec::new(), 0));
    Ok(())
}

#[test]
fn a_run_of_dead_rows_does_not_hold_up_those_behind_it() -> Result<()> {
    let dataset = dataset(11_000)?;
    take(&dataset, 4)?;
    dataset.apply_delete_ids(3, &(256..8_900).map(Id::Int).collect::<Vec<_>>())?;
    while step(&dataset)? {}
    assert_eq!(runs(&dataset), [(256, 8_448), (8_448, 11_000)]);
    Ok(())
}

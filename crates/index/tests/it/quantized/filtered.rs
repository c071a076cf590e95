//! Searches of the rows that pass a filter.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use longbow_index::{Entries, Error, Filtered, Progress};
use proptest::prelude::*;

use super::*;

/// What is known of rows that have no codes of their own.
pub fn entries(rows: &[u64], passing: Option<u64>) -> Entries<'_> {
    Entries {
        rows,
        passing,
        coded: None,
    }
}

/// A search with a handful of entries; if it is `known` how many rows pass, one that may go through the others.
fn filtered(
    graph: &QuantizedGraph,
    data: &Data,
    query: &Query,
    (k, ef): (usize, usize),
    (passes, known): (&(dyn Fn(u64) -> bool + Sync), bool),
) -> (Vec<Neighbor>, SearchStats) {
    let passing: Vec<u64> = (0..data.rows() as u64).filter(|row| passes(*row)).collect();
    let (count, step) = (passing.len() as u64, (passing.len() / 16).max(1));
    let entries: Vec<u64> = passing.into_iter().step_by(step).collect();
    let asked = Filtered {
        k,
        ef,
        passes,
        entries: Entries {
            rows: &entries,
            // Where few pass, a walk would leave them to a scan.
            passing: Some(count).filter(|count| known && count * 4 >= data.rows() as u64),
            coded: None,
        },
        is_over: None,
    };
    let mut stats = SearchStats::default();
    let found = graph.search_filtered(query, asked, data, &mut stats);
    // Several at a time find the same.
    let queries = [query.clone(), query.clone()];
    let mut each = [SearchStats::default(); 2];
    let all = graph.search_filtered_each(&queries, asked, data, &mut each);
    assert_eq!(all, [found.clone(), found.clone()]);
    assert_eq!(each, [stats; 2]);
    (found, stats)
}

/// The exact nearest of some rows, and those of them that are not in the graph.
fn scanned(
    graph: &QuantizedGraph,
    data: &Data,
    (query, k): (&Query, usize),
    rows: impl Iterator<Item = u64>,
) -> (Vec<Neighbor>, Vec<u64>) {
    let (mut missing, mut stats) = (Vec::new(), SearchStats::default());
    let found = graph.scan_rows(query, k, rows, data, (&mut missing, &mut stats));
    (found, missing)
}

/// Recall and comparisons a query of filtered searches, all of whose rows pass.
fn recall(
    graph: &QuantizedGraph,
    data: &Data,
    ef: usize,
    (passes, known): (impl Fn(&Query, u64) -> bool + Sync, bool),
) -> (f64, u64) {
    let (mut hits, mut wanted, mut compared) = (0, 0, 0);
    for query in &data.queries {
        let passes = |row: u64| passes(query, row);
        let exact = data.exact(query, 10, &passes);
        let (found, stats) = filtered(graph, data, query, (10, ef), (&passes, known));
        assert!(found.is_sorted() && found.len() <= 10, "{found:?}");
        assert!(found.iter().all(|one| passes(one.row)), "{found:?}");
        let last = exact.last().map_or(f32::INFINITY, |one| one.distance);
        hits += found.iter().filter(|one| one.distance <= last).count();
        wanted += exact.len();
        compared += stats.distance_computations;
    }
    (
        hits as f64 / wanted as f64,
        compared / data.queries.len() as u64,
    )
}

#[test]
fn a_filter_costs_neither_recall_nor_many_comparisons() -> Result<()> {
    for (metric, dim, edge_codes) in [
        (Metric::Euclidean, 96, true),
        (Metric::Cosine, 96, true),
        (Metric::Euclidean, 96, false),
        // Codes that are cut.
        (Metric::Euclidean, 192, false),
        (Metric::Cosine, 384, false),
    ] {
        let data = Data::clustered(floats(dim, metric), 8000, 40, 5)?;
        let params = QuantizedParams {
            edge_codes,
            ..QuantizedParams::default()
        };
        let graph = prepared(&data, params)?;
        fill(&graph, &data)?;
        for share in [1, 5, 20, 50, 90, 100] {
            let passes = |_: &Query, row: u64| {
                row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (share << 32) / 100
            };
            for known in [false, true] {
                let (recall, compared) = recall(&graph, &data, 48, (passes, known));
                let case = format!("{metric} {dim} {edge_codes} {share} % {known}");
                println!("{case}: recall {recall:.4}, {compared} compared");
                assert!(recall >= 0.95, "{case}: {recall}");
                // By signs it is known which are worth it.
                let is_cut = !edge_codes && dim >= 192;
                let most = if is_cut && share >= 5 { 400 } else { 1600 };
                assert!(compared <= most, "{case}: {compared}");
            }
        }
    }
    Ok(())
}

#[test]
fn little_that_lies_elsewhere_is_left_to_a_scan() -> Result<()> {
    let data = Data::clustered(floats(96, Metric::Euclidean), 8000, 40, 5)?;
    let graph = build(&data)?;
    let query = &data.queries[0];
    // The farthest of all.
    let far = data
        .exact(query, data.rows(), &all)
        .split_off(data.rows() - 600);
    let far: Vec<u64> = far.into_iter().map(|one| one.row).collect();
    let passes = |row: u64| far.contains(&row);
    let search = |passing| {
        let asked = Filtered {
            k: 10,
            ef: 50,
            passes: &passes,
            entries: entries(&far[..100], passing),
            is_over: None,
        };
        let stats = &mut SearchStats::default();
        graph.search_filtered(query, asked, &data, stats)
    };
    assert_eq!(search(Some(far.len() as u64)), []);
    assert_eq!(search(None).len(), 10);
    let (found, missing) = scanned(&graph, &data, (query, 10), far.iter().copied());
    assert_eq!(
        (found, missing),
        (data.exact(query, 10, &passes), Vec::new())
    );
    Ok(())
}

#[test]
fn a_filter_that_opposes_the_query_is_followed_from_its_own_rows() -> Result<()> {
    let (rows, centres) = (10_000, 25);
    let data = made(floats(96, Metric::Euclidean), rows, |dice, row| {
        let mut place = Dice(row as u64 % centres + 1);
        (0..96)
            .map(|_| 2.0 * place.normal() + 0.5 * dice.normal())
            .collect()
    })?;
    let graph = build(&data)?;
    let own = |query: &Query| data.exact(query, 1, &all)[0].row % centres;
    let opposed = |query: &Query, row: u64| (row + 7) % centres == own(query);
    // 400 rows pass, none of which is near.
    let clusters: Vec<u64> = data.queries.iter().map(own).collect();
    let cluster = |query: &Query| {
        let at = data.queries.iter().position(|q| std::ptr::eq(q, query));
        clusters[at.expect("one of them")]
    };
    let passes = |query: &Query, row: u64| (row + 7) % centres == cluster(query);
    assert!((0..100).all(|row| passes(&data.queries[0], row) == opposed(&data.queries[0], row)));
    let (recall, compared) = recall(&graph, &data, 32, (passes, false));
    println!("recall {recall:.4}, {compared} compared");
    assert!(recall >= 0.95, "recall {recall}");
    assert!(compared <= 1000, "{compared} compared, of {rows}");
    Ok(())
}

#[test]
fn a_walk_through_all_is_given_up_where_what_passes_is_elsewhere() -> Result<()> {
    let data = Data::clustered(floats(96, Metric::Euclidean), 8000, 40, 5)?;
    let graph = build(&data)?;
    let mut compared = 0;
    for query in &data.queries[..20] {
        // The farther half.
        let far = data.exact(query, data.rows(), &all).split_off(4000);
        let mut is_far = vec![false; data.rows()];
        far.iter().for_each(|one| is_far[one.row as usize] = true);
        let passes = |row: u64| is_far[row as usize];
        let (found, stats) = filtered(&graph, &data, query, (10, 16), (&passes, true));
        let (along, _) = filtered(&graph, &data, query, (10, 16), (&passes, false));
        assert_eq!(along.len(), 10);
        assert!(
            found.is_empty() || found == along,
            "left to a scan, or as if it had not been tried: {found:?}"
        );
        compared += stats.distance_computations;
    }
    // All of the nearer half would have to be gone through.
    assert!(compared <= 20 * 1_000, "{compared}");
    Ok(())
}

#[test]
fn rows_are_scanned_exactly_by_their_codes() -> Result<()> {
    for (scalar, metric) in kinds() {
        for (dim, rows, off) in [(3, 300, 0.0), (100, 2000, 0.0), (33, 500, 3.0)] {
            let space = Space {
                scalar,
                metric,
                dim,
            };
            let data = made(space, rows, |dice, row| {
                // Some are equal, and some are zero.
                let mut own = Dice(row as u64 % 250);
                let scale =
                    f32::from(u8::from(row % 17 != 0)) * if row % 2 == 0 { 1.0 } else { 0.1 };
                (0..dim)
                    .map(|_| scale * (off + own.normal() + 0.02 * dice.unit()))
                    .collect()
            })?;
            let graph = build(&data)?;
            for query in &data.queries {
                for (k, step) in [(1, 1), (10, 3), (40, 7), (1000, 2), (0, 5)] {
                    let passes = |row: u64| row.is_multiple_of(step);
                    let passing = || (0..rows as u64 + 20).filter(|row| passes(*row));
                    let (found, missing) = scanned(&graph, &data, (query, k), passing());
                    assert_eq!(
                        found,
                        data.exact(query, k, &passes),
                        "{scalar} {metric} {dim} {k}"
                    );
                    let beyond: Vec<u64> = passing().filter(|row| *row >= rows as u64).collect();
                    assert_eq!(missing, beyond);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn an_empty_graph_answers_with_nothing() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 10, 1, 5)?;
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    let (found, _) = filtered(&graph, &data, &data.queries[0], (3, 10), (&all, true));
    assert!(found.is_empty() && !graph.is_prepared());
    let (found, missing) = scanned(&graph, &data, (&data.queries[0], 3), [5, 2].into_iter());
    assert!(found.is_empty() && missing == [5, 2]);
    Ok(())
}

/// A wide search finds what is expected, along the rows that pass and through all; returns how often it leaves that to a scan.
fn assert_both_ways(
    graph: &QuantizedGraph,
    data: &Data,
    query: &Query,
    (passes, rows): (&(dyn Fn(u64) -> bool + Sync), &[u64]),
    expected: &[Neighbor],
) -> usize {
    let mut left = 0;
    for passing in [None, Some(graph.len() as u64 / 2)] {
        let asked = Filtered {
            k: 10,
            ef: 2_000,
            passes,
            entries: entries(rows, passing),
            is_over: None,
        };
        let found = graph.search_filtered(query, asked, data, &mut SearchStats::default());
        // Where others are nearer, what passes is left to a scan if it is known how little it is.
        let is_left = found.is_empty() && passing.is_some();
        assert!(found == expected || is_left, "{passing:?}: {found:?}");
        left += usize::from(is_left);
    }
    left
}

#[test]
fn rows_leave_and_others_come_while_filtered_searches_run() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 6_000, 30, 7)?;
    let graph = prepared(&data, QuantizedParams::default())?;
    (0..2_000).try_for_each(|row| graph.insert(row, data.vector(row)))?;
    let first = Mutex::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::SeqCst) {
                let first = *first.lock().expect("not poisoned");
                match graph.retire(&|row| row < first) {
                    Err(Error::Busy) => std::thread::yield_now(),
                    other => drop(other?),
                }
                graph.remove(50);
            }
            Ok(())
        });
        let reader = scope.spawn(|| {
            let mut dice = Dice(2);
            let (mut left, mut asked) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                // In this order, as the rows must not leave that are alive then.
                let _visit = graph.enter();
                let first = *first.lock().expect("not poisoned");
                let query = &data.queries[dice.below(50) as usize];
                // All inserts before this one have ended.
                let alive = first..first + 2_000;
                let passes = |row: u64| row % 4 == 1 && alive.contains(&row);
                let passing = || alive.clone().filter(|row| passes(*row));
                let expected = data.exact(query, 10, &passes);
                let entries: Vec<u64> = passing().step_by(31).collect();
                left += assert_both_ways(&graph, &data, query, (&passes, &entries), &expected);
                asked += 1;
                let (found, missing) = scanned(&graph, &data, (query, 10), passing());
                assert_eq!(missing, [], "of {alive:?}");
                assert_eq!(found, expected);
                // Those that are gone may or may not be there, as what they were.
                let gone = first.saturating_sub(300)..first;
                let (found, missing) = scanned(&graph, &data, (query, 5), gone.clone());
                let there = |row: u64| gone.contains(&row) && !missing.contains(&row);
                assert_eq!(found, data.exact(query, 5, &there));
            }
            assert!(left * 2 <= asked, "{left} of {asked} were left to a scan");
        });
        for row in 2_000..6_000u64 {
            graph.insert(row, data.vector(row)).expect("there is room");
            *first.lock().expect("not poisoned") = row - 1_999;
        }
        done.store(true, Ordering::SeqCst);
        reader.join().expect("the reader has seen what it must");
        remover.join().expect("the remover has ended")
    })?;
    for _ in 0..2 {
        while graph.remove(50) != Progress::Ended {}
        graph.retire(&|row| row < 4_000)?;
    }
    while graph.remove(50) != Progress::Ended {}
    let (_, missing) = scanned(&graph, &data, (&data.queries[0], 1), 0..6_000);
    assert_eq!(missing, (0..4_000).collect::<Vec<u64>>());
    Ok(())
}

/// Which rows pass.
#[derive(Debug, Clone, Copy)]
enum Rule {
    OneIn(u64, u64),
    Range(u64, u64),
    Near(u64, usize),
}

fn rules() -> impl Strategy<Value = Rule> {
    prop_oneof![
        (1u64..60, 0u64..60).prop_map(|(by, rest)| Rule::OneIn(by, rest % by)),
        (0u64..700, 0u64..200).prop_map(|(from, rows)| Rule::Range(from, from + rows)),
        (0u64..50, 0usize..40).prop_map(|(query, rows)| Rule::Near(query, rows)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// A wide search finds just what passes, wherever that is, and however many rows are equal.
    #[test]
    fn a_wide_search_finds_what_passes(
        rule in rules(),
        (rows, kinds, seed) in (1usize..700, 1u64..400, any::<u64>()),
        (k, narrow) in (1usize..30, 1usize..30),
        (edge_codes, known) in any::<(bool, bool)>(),
    ) {
        let space = floats(6, Metric::Euclidean);
        let data = made(space, rows, |dice, _| {
            let mut own = Dice(seed ^ dice.below(kinds));
            (0..6).map(|_| own.normal()).collect()
        })?;
        let graph = prepared(&data, QuantizedParams { edge_codes, ..QuantizedParams::default() })?;
        fill(&graph, &data)?;
        let near: Vec<u64> = match rule {
            Rule::Near(query, rows) => {
                data.exact(&data.queries[query as usize], rows, &all).iter().map(|one| one.row).collect()
            }
            _ => Vec::new(),
        };
        let passes = |row: u64| match rule {
            Rule::OneIn(by, rest) => row % by == rest,
            Rule::Range(from, to) => (from..to).contains(&row),
            Rule::Near(..) => near.contains(&row),
        };
        for query in &data.queries[..5] {
            let expected = data.exact(query, k, &passes);
            let (found, _) = filtered(&graph, &data, query, (k, 1 << 20), (&passes, known));
            // Where it is known how many pass, a walk that costs more than their scan leaves them to it.
            prop_assert!(found == expected || known && found.is_empty(), "{found:?}, not {expected:?}");
            let (found, _) = filtered(&graph, &data, query, (k, narrow), (&passes, known));
            prop_assert!(found.is_sorted() && found.len() <= expected.len());
            let mut rows: Vec<u64> = found.iter().map(|one| one.row).collect();
            rows.sort_unstable();
            rows.dedup();
            prop_assert_eq!(rows.len(), found.len(), "each once");
            prop_assert!(rows.iter().all(|row| passes(*row)));
            let passing = (0..data.rows() as u64).filter(|row| passes(*row));
            prop_assert_eq!(scanned(&graph, &data, (query, k), passing), (expected, Vec::new()));
        }
    }
}

//! Rows leave a graph that lives on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use longbow_index::{Entries, Filtered, Progress};
use proptest::prelude::*;

use super::*;
use longbow_index::Error;

/// Removes the rows for which `dead` holds, and returns how many nodes left.
fn remove(graph: &QuantizedGraph, dead: &dyn Fn(u64) -> bool) -> Result<usize> {
    let count = graph.retire(dead)?;
    while graph.remove(50) != Progress::Ended {}
    Ok(count)
}

/// Which rows live; each round some die and others come.
struct Population {
    lives: Vec<bool>,
}

impl Population {
    fn new(data: &Data, graph: &QuantizedGraph, first: u64) -> Result<Self> {
        let lives = (0..data.rows() as u64).map(|row| row < first).collect();
        (0..first).try_for_each(|row| graph.insert(row, data.vector(row)))?;
        Ok(Population { lives })
    }

    fn replace(
        &mut self,
        data: &Data,
        graph: &QuantizedGraph,
        dying: &[u64],
        coming: &[u64],
    ) -> Result<()> {
        dying
            .iter()
            .for_each(|row| self.lives[*row as usize] = false);
        remove(graph, &|row| !self.lives[row as usize])?;
        for row in coming {
            self.lives[*row as usize] = true;
            graph.insert(*row, data.vector(*row))?;
        }
        Ok(())
    }

    fn rows(&self, alive: bool) -> Vec<u64> {
        let rows = (0..self.lives.len() as u64).filter(|row| self.lives[*row as usize] == alive);
        rows.collect()
    }

    fn recall(&self, data: &Data, graph: &QuantizedGraph, ef: usize) -> f64 {
        data.recall(graph, 10, ef, &|row| self.lives[row as usize])
    }
}

/// Draws `count` of `rows`.
fn drawn(rows: &[u64], count: usize, dice: &mut Dice) -> Vec<u64> {
    let mut rows = rows.to_vec();
    for at in 0..count {
        let other = at + dice.below((rows.len() - at) as u64) as usize;
        rows.swap(at, other);
    }
    rows.truncate(count);
    rows
}

#[test]
fn recall_and_memory_hold_while_rows_come_and_go() -> Result<()> {
    for (metric, dim, edge_codes) in [
        (Metric::Euclidean, 48, true),
        (Metric::Cosine, 96, true),
        (Metric::Euclidean, 64, false),
    ] {
        let data = Data::clustered(floats(dim, metric), 8_000, 40, 5)?;
        let params = QuantizedParams {
            edge_codes,
            ..QuantizedParams::default()
        };
        let graph = prepared(&data, params)?;
        let mut population = Population::new(&data, &graph, 4_000)?;
        let before = population.recall(&data, &graph, 20);
        let bytes = graph.memory_bytes();
        let mut dice = Dice(1);
        for _ in 0..20 {
            let dying = drawn(&population.rows(true), 400, &mut dice);
            let coming = drawn(&population.rows(false), 400, &mut dice);
            population.replace(&data, &graph, &dying, &coming)?;
        }
        let after = population.recall(&data, &graph, 20);
        let grown = graph.memory_bytes() as f64 / bytes as f64;
        println!("{metric}: recall {before:.4} -> {after:.4}, memory x {grown:.3}");
        assert!(after >= before - 0.01, "{metric}: {before} -> {after}");
        // Rows are twice as far apart by now, so that twice as many pages tell their nodes.
        assert!(grown < 1.03, "{metric}: {grown}");
        assert_eq!(graph.len(), 4_000);
    }
    Ok(())
}

/// Rows come cluster by cluster, so whole clusters die at once.
#[test]
fn a_window_that_slides_over_clusters_keeps_its_recall() -> Result<()> {
    let mut data = Data::clustered(floats(48, Metric::Euclidean), 8_000, 40, 5)?;
    let mut rows: Vec<Vec<u8>> = data.bytes.chunks(48 * 4).map(<[u8]>::to_vec).collect();
    // About sorted by cluster: clusters differ in their first coordinates.
    let first = |row: &[u8]| f32::from_le_bytes([row[0], row[1], row[2], row[3]]);
    rows.sort_by(|a, b| first(a).total_cmp(&first(b)));
    data.bytes = rows.concat();
    let graph = prepared(&data, QuantizedParams::default())?;
    let mut population = Population::new(&data, &graph, 2_000)?;
    let before = population.recall(&data, &graph, 20);
    let bytes = graph.memory_bytes();
    for start in (0..16_000u64).step_by(200) {
        let dying: Vec<u64> = (start..start + 200).map(|row| row % 8_000).collect();
        let coming: Vec<u64> = (start + 2_000..start + 2_200)
            .map(|row| row % 8_000)
            .collect();
        population.replace(&data, &graph, &dying, &coming)?;
    }
    let after = population.recall(&data, &graph, 20);
    let alive = population.rows(true);
    let found = |row: &&u64| -> bool {
        let query = query_of(&data, **row).unwrap_or_else(|e| panic!("{e}"));
        search(&graph, &data, &query, 1, 64)
            .first()
            .is_some_and(|first| first.row == **row)
    };
    let share = alive.iter().filter(found).count() as f64 / alive.len() as f64;
    let grown = graph.memory_bytes() as f64 / bytes as f64;
    println!("recall {before:.4} -> {after:.4}, by itself {share:.4}, memory x {grown:.3}");
    assert!(
        after >= before - 0.01 && share >= 0.998 && grown < 1.1,
        "{after} {share} {grown}"
    );
    Ok(())
}

#[test]
fn a_graph_that_lost_all_rows_begins_again() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 1_000, 10, 3)?;
    let graph = build(&data)?;
    assert_eq!(remove(&graph, &|_| true)?, 1_000);
    assert!(graph.is_empty());
    assert_eq!(search(&graph, &data, &data.queries[0], 10, 50), []);
    fill(&graph, &data)?;
    assert!(data.recall(&graph, 10, 64, &all) >= 0.99);
    Ok(())
}

/// While all rows are about to leave, new ones still come in.
#[test]
fn rows_that_come_while_all_others_leave_are_found() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 2_000, 10, 3)?;
    let graph = prepared(&data, QuantizedParams::default())?;
    let mut population = Population::new(&data, &graph, 1_000)?;
    population.lives[..1_000].fill(false);
    let visit = graph.enter();
    graph.retire(&|row| row < 1_000)?;
    for row in 1_000..2_000 {
        graph.insert(row, data.vector(row))?;
        population.lives[row as usize] = true;
    }
    assert_eq!(graph.remove(50), Progress::Waiting);
    drop(visit);
    while graph.remove(50) != Progress::Ended {}
    assert_eq!(graph.len(), 1_000);
    assert!(population.recall(&data, &graph, 64) >= 0.99);
    Ok(())
}

#[test]
fn whoever_came_before_sees_the_rows_until_he_leaves() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 1_000, 10, 3)?;
    let graph = build(&data)?;
    let query = query_of(&data, 7)?;
    let finds = || search(&graph, &data, &query, 1, 64)[0].row == 7;
    let visit = graph.enter();
    assert_eq!(graph.retire(&|row| row == 7)?, 1);
    let another = graph.retire(&|row| row == 8);
    assert!(matches!(another, Err(Error::Busy)), "one at a time");
    for _ in 0..10 {
        assert_eq!(graph.remove(50), Progress::Waiting);
    }
    assert!(finds() && graph.len() == 1_000);
    drop(visit);
    while graph.remove(50) != Progress::Ended {}
    assert!(!finds() && graph.len() == 999);
    assert_eq!(remove(&graph, &|row| row == 8)?, 1);
    Ok(())
}

#[test]
fn equal_rows_leave_and_the_others_stay() -> Result<()> {
    let data = Data::equal(3_000)?;
    let graph = build(&data)?;
    let mut dice = Dice(4);
    let mut lives = vec![true; 3_000];
    for round in 0..10u64 {
        for (row, lives) in (0..).zip(&mut lives) {
            *lives &= dice.below(3) > 0 || row == round;
        }
        remove(&graph, &|row| !lives[row as usize])?;
        let found = search(&graph, &data, &data.queries[0], 3_000, 64);
        let rows: Vec<u64> = found
            .iter()
            .map(|n| n.row)
            .filter(|row| lives[*row as usize])
            .collect();
        let expected: Vec<u64> = (0..3_000).filter(|row| lives[*row as usize]).collect();
        assert_eq!(rows, expected, "round {round}");
        // But for the first, which stays as long as others hang behind it, none is left.
        assert!(graph.len() <= expected.len() + 1);
    }
    Ok(())
}

#[test]
fn a_checkpoint_has_only_what_is_left() -> Result<()> {
    let data = Data::clustered(floats(48, Metric::Cosine), 3_000, 30, 5)?;
    let graph = build(&data)?;
    remove(&graph, &|row| row % 3 == 0)?;
    // Half-way through another removal.
    let visit = graph.enter();
    graph.retire(&|row| row % 3 == 1 && row < 300)?;
    let mut bytes = Vec::new();
    let saved = graph.save(&mut bytes)?;
    drop(visit);
    assert_eq!(saved.rows, 2_000);
    let loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
    assert_eq!(loaded.len(), 2_000);
    let lives = |row: u64| row % 3 == 2 || row % 3 == 1 && row >= 300;
    assert!(data.recall(&loaded, 10, 64, &lives) >= 0.99);
    assert_eq!(remove(&loaded, &|row| !lives(row))?, 100);
    assert!(data.recall(&loaded, 10, 64, &lives) >= 0.99);
    Ok(())
}

/// Chains of equal rows were led past those that leave by then, which are still there.
#[test]
fn a_checkpoint_between_the_steps_of_a_removal_can_be_read() -> Result<()> {
    let data = Data::equal(300)?;
    let lives = |row: u64| row.is_multiple_of(3) || row == 299;
    for steps in 0..4 {
        let graph = build(&data)?;
        let visit = graph.enter();
        graph.retire(&|row| !lives(row))?;
        if steps > 0 {
            drop(visit);
        }
        for _ in 0..steps {
            graph.remove(1);
        }
        let mut bytes = Vec::new();
        graph.save(&mut bytes)?;
        let loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
        let query = &data.queries[0];
        let found = loaded.search(query, 300, 64, &lives, &data, &mut SearchStats::default());
        assert_eq!(found.len(), (0..300).filter(|row| lives(*row)).count());
    }
    Ok(())
}

/// While all rows leave, walks begin nowhere; the nodes are still there to be saved.
#[test]
fn a_checkpoint_while_all_rows_leave_can_be_read() -> Result<()> {
    let data = Data::clustered(floats(16, Metric::Euclidean), 301, 3, 5)?;
    let graph = prepared(&data, QuantizedParams::default())?;
    (0..300).try_for_each(|row| graph.insert(row, data.vector(row)))?;
    graph.retire(&|_| true)?;
    loop {
        let mut bytes = Vec::new();
        graph.save(&mut bytes)?;
        let loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
        let query = &data.queries[0];
        let mut stats = SearchStats::default();
        let found = loaded.search(query, 10, 64, &|_| false, &data, &mut stats);
        assert!(found.is_empty());
        loaded.insert(300, data.vector(300))?;
        let found = loaded.search(query, 10, 64, &|row| row == 300, &data, &mut stats);
        assert_eq!(found.len(), 1, "what comes later is reached");
        if graph.remove(7) == Progress::Ended {
            return Ok(());
        }
    }
}

#[test]
fn rows_leave_while_others_come_and_searches_run() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 6_000, 30, 7)?;
    let graph = prepared(&data, QuantizedParams::default())?;
    (0..2_000).try_for_each(|row| graph.insert(row, data.vector(row)))?;
    let alive = Mutex::new((0, 2_000));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::SeqCst) {
                let (first, _) = *alive.lock().expect("not poisoned");
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
            while !done.load(Ordering::SeqCst) {
                // In this order, as the rows must not leave that are alive then.
                let _visit = graph.enter();
                let (first, end) = *alive.lock().expect("not poisoned");
                let row = first + dice.below(end - first);
                let query = query_of(&data, row).unwrap_or_else(|e| panic!("{e}"));
                let visible = |row: u64| row >= first;
                let found = graph.search(
                    &query,
                    10,
                    400,
                    &visible,
                    &data,
                    &mut SearchStats::default(),
                );
                assert!(
                    found.len() == 10 && found.iter().any(|n| n.row == row),
                    "{row}: {found:?}"
                );
            }
        });
        for row in 2_000..6_000u64 {
            graph
                .insert(row, data.vector(row))
                .unwrap_or_else(|e| panic!("{e}"));
            let mut alive = alive.lock().expect("not poisoned");
            *alive = (row - 1_999, row + 1);
        }
        done.store(true, Ordering::SeqCst);
        reader.join().expect("the reader has seen what it must");
        remover.join().expect("the remover has ended")
    })?;
    let lives = |row: u64| row >= 4_000;
    remove(&graph, &|row| !lives(row))?;
    remove(&graph, &|row| !lives(row))?;
    assert_eq!(graph.len(), 2_000);
    assert!(data.recall(&graph, 10, 64, &lives) >= 0.98);
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    /// Vectors of these numbers come.
    Come(Vec<u8>),
    /// Of the living rows, those whose number has this remainder by this divisor die.
    Die(u64, u64),
    Reload,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let come = prop::collection::vec(0u8..40, 1..60).prop_map(Step::Come);
    let die = (1u64..6, 0u64..6).prop_map(|(by, rest)| Step::Die(by, rest % by));
    let step = prop_oneof![4 => come, 4 => die, 1 => Just(Step::Reload)];
    prop::collection::vec(step, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// However rows come and go, a wide search finds just those that live, many of which are equal.
    #[test]
    fn a_wide_search_finds_what_lives(steps in steps()) {
        let space = floats(3, Metric::Euclidean);
        let mut dice = Dice(9);
        let points: Vec<Vec<f32>> = (0..40).map(|_| (0..3).map(|_| dice.normal()).collect()).collect();
        let mut data = Data { space, bytes: Vec::new(), queries: Vec::new() };
        let mut graph = QuantizedGraph::new(space, QuantizedParams::default())?;
        graph.prepare(std::iter::once(&[0; 12][..]));
        let mut lives: Vec<bool> = Vec::new();
        for step in steps {
            match step {
                Step::Come(numbers) => for number in numbers {
                    data.bytes.extend(encode(Scalar::F32, &points[usize::from(number)]));
                    graph.insert(lives.len() as u64, data.vector(lives.len() as u64))?;
                    lives.push(true);
                },
                Step::Die(by, rest) => {
                    lives.iter_mut().skip(rest as usize).step_by(by as usize).for_each(|lives| *lives = false);
                    remove(&graph, &|row| !lives[row as usize])?;
                }
                Step::Reload => {
                    let mut bytes = Vec::new();
                    graph.save(&mut bytes)?;
                    graph = QuantizedGraph::load(space, graph.params(), &bytes)?;
                    graph.prepare(std::iter::once(&[0; 12][..]));
                }
            }
            let query = Query::new(space, &[0.1, 0.2, 0.3])?;
            let visible = |row: u64| lives[row as usize];
            let expected = data.exact(&query, lives.len(), &visible);
            let found = graph.search(&query, lives.len(), lives.len(), &visible, &data, &mut SearchStats::default());
            prop_assert_eq!(&found, &expected);
            let entries: Vec<u64> = (0..lives.len() as u64).filter(|row| visible(*row)).take(3).collect();
            let asked = Filtered { k: lives.len(), ef: lives.len(), passes: &visible, entries: Entries { rows: &entries, passing: None, coded: None }, is_over: None };
            let found = graph.search_filtered(&query, asked, &data, &mut SearchStats::default());
            prop_assert_eq!(&found, &expected);
            let (mut missing, mut stats) = (Vec::new(), SearchStats::default());
            let rows = (0..lives.len() as u64).filter(|row| visible(*row));
            let found = graph.scan_rows(&query, lives.len(), rows, &data, (&mut missing, &mut stats));
            let expected_rows = expected.len();
            prop_assert_eq!(found, expected);
            prop_assert!(missing.is_empty(), "{:?}", missing);
            // A dead row is there as long as living ones need its node.
            let dead = || (0..lives.len() as u64).filter(|row| !visible(*row));
            let kept = graph.scan_rows(&query, lives.len(), dead(), &data, (&mut missing, &mut stats));
            prop_assert_eq!(kept.len() + missing.len(), dead().count());
            prop_assert!(kept.iter().all(|one| !missing.contains(&one.row)));
            prop_assert!(kept.len() <= graph.len() - expected_rows, "{:?}", kept);
        }
    }
}

//! Inserts from several threads, and searches beside them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longbow_index::{Error, Metric, QuantizedGraph, QuantizedParams, Result};

use super::{build, floats, found_by_itself, prepared, query_of, search};
use crate::common::{Data, Dice, all};

const WRITERS: usize = 4;
const READERS: usize = 2;

/// Inserts all rows from four threads, each its share, and calls `beside` from two more until they are done, with
/// their number and which rows' inserts have begun and ended.
fn build_beside(
    data: &Data,
    beside: impl Fn(&QuantizedGraph, usize, &[AtomicBool], &[AtomicBool]) + Sync,
) -> Result<QuantizedGraph> {
    let graph = prepared(data, QuantizedParams::default())?;
    let flags =
        || -> Vec<AtomicBool> { (0..data.rows()).map(|_| AtomicBool::new(false)).collect() };
    let (begun, ended) = (flags(), flags());
    let running = AtomicUsize::new(WRITERS);
    std::thread::scope(|scope| {
        let (graph, begun, ended, running, beside) = (&graph, &begun, &ended, &running, &beside);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let rows = (writer..data.rows()).step_by(WRITERS);
                    let done = rows.map(|row| {
                        begun[row].store(true, Ordering::SeqCst);
                        graph.insert(row as u64, data.vector(row as u64))?;
                        ended[row].store(true, Ordering::SeqCst);
                        Ok(())
                    });
                    let done = done.collect::<Result<()>>();
                    running.fetch_sub(1, Ordering::SeqCst);
                    done
                })
            })
            .collect();
        for reader in 0..READERS {
            scope.spawn(move || {
                while running.load(Ordering::SeqCst) > 0 {
                    beside(graph, reader, begun, ended);
                }
            });
        }
        writers.into_iter().try_for_each(|writer| {
            writer
                .join()
                .unwrap_or_else(|e| std::panic::resume_unwind(e))
        })
    })?;
    Ok(graph)
}

#[test]
fn searches_beside_inserts_see_whole_rows_only() -> Result<()> {
    for metric in Metric::ALL {
        let data = Data::clustered(floats(48, metric), 8000, 30, 19)?;
        let turns = AtomicUsize::new(0);
        let graph = build_beside(&data, |graph, _, begun, _| {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            let query = &data.queries[turn % data.queries.len()];
            let before = graph.len();
            let found = search(graph, &data, query, 10, 50);
            assert!(found.is_sorted(), "nearest first");
            assert!(
                found.len() >= before.min(10),
                "{} found when {before} were in",
                found.len()
            );
            for neighbor in found {
                let begun = begun[neighbor.row as usize].load(Ordering::SeqCst);
                assert!(begun, "row {} was inserted", neighbor.row);
            }
        })?;
        assert!(turns.load(Ordering::SeqCst) > 0);
        let (parallel, serial) = (
            data.recall(&graph, 10, 64, &all),
            data.recall(&build(&data)?, 10, 64, &all),
        );
        let share = found_by_itself(&graph, &data, 1)?;
        println!("{metric}: {parallel:.4} in parallel, {serial:.4} in series, {share:.5}");
        assert!(
            parallel >= serial - 0.01 && parallel >= 0.95 && share >= 0.997,
            "{metric}: {parallel} in parallel, {serial} in series, by itself {share}"
        );
    }
    Ok(())
}

#[test]
fn rows_inserted_before_a_search_are_found_by_it() -> Result<()> {
    let data = Data::clustered(floats(32, Metric::Euclidean), 8000, 100, 29)?;
    let (tries, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
    build_beside(&data, |graph, reader, _, ended| {
        let mut dice = Dice((tries.load(Ordering::SeqCst) * READERS + reader) as u64);
        let row = dice.below(data.rows() as u64);
        if !ended[row as usize].load(Ordering::SeqCst) {
            return;
        }
        let query = query_of(&data, row).unwrap_or_else(|e| panic!("{e}"));
        let found = search(graph, &data, &query, 10, 400);
        tries.fetch_add(1, Ordering::SeqCst);
        misses.fetch_add(
            usize::from(!found.iter().any(|n| n.row == row)),
            Ordering::SeqCst,
        );
    })?;
    let (tries, misses) = (tries.into_inner(), misses.into_inner());
    println!("{misses} of {tries} missed");
    assert!(tries >= 100 && misses * 100 <= tries, "{misses} of {tries}");
    Ok(())
}

#[test]
fn equal_vectors_from_many_threads_are_all_found() -> Result<()> {
    let data = Data::equal(5000)?;
    let graph = build_beside(&data, |_, _, _, _| std::thread::yield_now())?;
    assert_eq!(
        search(&graph, &data, &data.queries[0], 5000, 64).len(),
        5000
    );
    Ok(())
}

/// A checkpoint is either refused because an insert runs, or holds whole rows only.
#[test]
fn a_checkpoint_beside_inserts_is_refused_or_whole() -> Result<()> {
    let data = Data::clustered(floats(8, Metric::Euclidean), 3000, 30, 19)?;
    let whole = AtomicUsize::new(0);
    let attempt = |graph: &QuantizedGraph| {
        let mut bytes = Vec::new();
        match graph.save(&mut bytes) {
            Err(Error::Busy) => {}
            Err(other) => panic!("{other}"),
            Ok(saved) => {
                let loaded = QuantizedGraph::load(data.space, graph.params(), &bytes);
                let loaded = loaded.unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(loaded.len() as u64, saved.rows);
                whole.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let graph = build_beside(&data, |graph, _, _, _| attempt(graph))?;
    println!("{} whole", whole.load(Ordering::SeqCst));
    attempt(&graph);
    assert!(whole.into_inner() > 0);
    assert_eq!(graph.save(&mut std::io::sink())?.rows, 3000);
    Ok(())
}

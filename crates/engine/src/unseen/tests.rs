use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use longbow_index::{QuantizedGraph, Query};
use longbow_storage::Batch;

use super::*;
use crate::error::Result;
use crate::graph::Wanted;
use crate::graph::tests::{batch, indexed, put, vector};

const ROWS: u64 = 12_800;
/// With less than an eighth as many.
const MORE: u64 = ROWS + 1_500;

/// A dataset whose index rests, and is searched.
fn searched() -> Result<Dataset> {
    let dataset = indexed(ROWS)?;
    index(&dataset).searched.note();
    Ok(dataset)
}

fn index(dataset: &Dataset) -> Arc<ColumnIndex> {
    Arc::clone(&dataset.indexes()[0])
}

fn with_codes<T>(dataset: &Dataset, get: impl Fn(&QuantizedGraph) -> T) -> T {
    match &*index(dataset).graph() {
        Graph::Quantized(codes) => get(codes),
        other => panic!("{:?}", other.kind()),
    }
}

/// How many of some rows a search of the graph alone finds by their vectors.
fn found(dataset: &Dataset, rows: std::ops::Range<u64>) -> Result<usize> {
    let (view, graph) = (dataset.view(), index(dataset).graph());
    let column = &view.schema.vectors[0];
    let mut found = 0;
    for row in rows {
        let query = [Query::new(column.space, &vector(row))?];
        let visible = |row| view.is_visible(row);
        let wanted = Wanted::visible(&visible);
        let answers = graph.search(
            &query,
            (1, 50),
            wanted,
            (&view, column),
            &mut [Default::default()],
        )?;
        found += usize::from(answers[0].first().is_some_and(|of| of.row == row));
    }
    Ok(found)
}

#[test]
fn rows_are_in_an_index_when_they_are_seen() -> Result<()> {
    let dataset = searched()?;
    put(&dataset, 3, ROWS..MORE)?;
    assert_eq!(index(&dataset).watermark(), MORE);
    assert!(index(&dataset).coded.runs().is_none());
    let hasty = with_codes(&dataset, QuantizedGraph::hasty) as u64;
    assert!(hasty >= MORE - ROWS, "{hasty}");
    let at_once = found(&dataset, ROWS..MORE)?;
    assert!(at_once >= 1_480, "{at_once} of 1,500");
    // There are no more of which something is left undone than an eighth of the others.
    put(&dataset, 4, MORE..MORE + 1_400)?;
    assert_eq!(index(&dataset).watermark(), MORE);
    let runs = index(&dataset).coded.runs().expect("codes");
    assert_eq!((runs[0].first, runs[0].end), (MORE, MORE + 1_400));
    while with_codes(&dataset, |codes| codes.refine(100)) {}
    assert_eq!(with_codes(&dataset, QuantizedGraph::hasty), 0);
    assert!(found(&dataset, ROWS..MORE)? >= at_once.max(1_495));
    Ok(())
}

#[test]
fn rows_that_wait_are_taken_along_unless_others_are_at_them() -> Result<()> {
    let dataset = searched()?;
    put(&dataset, 3, ROWS..ROWS + 10)?;
    let index = index(&dataset);
    assert_eq!(index.watermark(), ROWS, "so few are left to others");
    put(&dataset, 4, ROWS + 10..MORE)?;
    assert_eq!(index.watermark(), MORE);
    assert!(found(&dataset, ROWS..MORE)? >= 1_480);
    while with_codes(&dataset, |codes| codes.refine(100)) {}
    put(&dataset, 5, MORE..MORE + 10)?;
    let (first, end, running) = index.claim(MORE + 5).expect("rows wait");
    put(&dataset, 6, MORE + 10..MORE + 1_500)?;
    assert_eq!(index.watermark(), MORE);
    let runs = index.coded.runs().expect("codes");
    assert_eq!((runs[0].first, runs[0].end), (MORE, MORE + 1_500));
    index.give_back(first, end);
    drop(running);
    assert!(index.has_gaps(&index.hold_still()));
    Ok(())
}

#[test]
fn more_than_an_eighth_of_what_is_there_gets_codes() -> Result<()> {
    let dataset = searched()?;
    put(&dataset, 3, ROWS..ROWS + ROWS / 8 + 1)?;
    assert_eq!(index(&dataset).watermark(), ROWS);
    assert!(index(&dataset).coded.runs().is_some());
    Ok(())
}

#[test]
fn a_graph_with_many_dead_rows_gets_no_more_before_they_leave() -> Result<()> {
    let dataset = searched()?;
    let mut end = ROWS;
    for sequence in 3.. {
        // The same rows get other vectors again and again.
        put(&dataset, sequence, 0..1_500)?;
        end += 1_500;
        while with_codes(&dataset, |codes| codes.refine(100)) {}
        if index(&dataset).watermark() < end {
            break;
        }
    }
    assert_eq!(index(&dataset).watermark(), ROWS + 5 * 1_500);
    assert!(index(&dataset).coded.runs().is_some());
    Ok(())
}

#[test]
fn what_is_refused_comes_into_no_index() -> Result<()> {
    let dataset = searched()?;
    let rows = batch(ROWS..MORE)?;
    let ids = Int64Array::from_iter((ROWS..MORE).map(|id| (id != ROWS + 9).then_some(id as i64)));
    let columns = [
        ("id", Arc::new(ids) as ArrayRef),
        ("v", Arc::clone(rows.column(1))),
    ];
    let refused = Batch::from_record_batch(&RecordBatch::try_from_iter(columns)?)?;
    assert!(dataset.apply_put(3, Arc::new(refused)).is_err());
    assert_eq!(index(&dataset).watermark(), ROWS);
    assert_eq!(with_codes(&dataset, QuantizedGraph::len) as u64, ROWS);
    // The numbers are given to others.
    put(&dataset, 4, ROWS..MORE)?;
    assert_eq!(index(&dataset).watermark(), MORE);
    assert!(found(&dataset, ROWS..MORE)? >= 1_480);
    Ok(())
}

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use longbow_index::{TopK, flat};
use longbow_storage::Batch;

use super::*;
use crate::dataset::Dataset;
use crate::indexer::insert_rows;
use crate::options::Options;
use crate::schema::DatasetSchema;
use crate::vectors::Vectors;

const DIM: usize = 96;

/// A vector around one of forty centres.
pub(crate) fn vector(seed: u64) -> Vec<f32> {
    let number = |seed: u64| {
        let mixed = (seed ^ seed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ mixed >> 32).wrapping_mul(0x94D0_49BB_1331_11EB) >> 40) as f32 / 8_388_608.0
    };
    let centre = seed * 7 % 40;
    let element = |at| number(centre << 30 | at) + 0.5 * number((seed + 1) << 10 | at);
    (0..DIM as u64).map(element).collect()
}

pub(crate) fn dataset(rows: u64) -> Result<Dataset> {
    let batch = batch(0..rows)?;
    let schema = DatasetSchema::new(&batch.schema(), 1)?;
    let dataset = Dataset::new(1, "d", schema, 1, &Options::new("").graphs)?;
    put(&dataset, 2, 0..rows)?;
    Ok(dataset)
}

/// The same, whose index rests when all rows are in it.
pub(crate) fn indexed(rows: u64) -> Result<Dataset> {
    let dataset = dataset(rows)?;
    let (view, index) = (dataset.view(), Arc::clone(&dataset.indexes()[0]));
    while let Some((first, end, _running)) = index.claim(view.next_row) {
        insert_rows(&index.graph(), &view, &view.schema.vectors[0], first, end)?;
        index.finish(first, end);
    }
    Ok(dataset)
}

/// Puts rows with these ids, as the log's entry of this index.
pub(crate) fn put(dataset: &Dataset, index: u64, ids: Range<u64>) -> Result<()> {
    let batch = Batch::from_record_batch(&batch(ids)?)?;
    dataset.apply_put(index, Arc::new(batch)).map(drop)
}

pub(crate) fn batch(ids: Range<u64>) -> Result<RecordBatch> {
    let numbers: Float32Array = ids.clone().flat_map(vector).collect();
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::try_new(item, DIM as i32, Arc::new(numbers), None)?;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.map(|id| id as i64)));
    Ok(RecordBatch::try_from_iter([
        ("id", ids),
        ("v", Arc::new(vectors) as _),
    ])?)
}

#[test]
fn codes_find_what_a_filter_lets_through() -> Result<()> {
    let rows = 8_000;
    let view = dataset(rows)?.view();
    let column = &view.schema.vectors[0];
    let graph = Graph::new(column, IndexKind::Hnsw, &Options::new("").graphs)?;
    assert_eq!(graph.quantization(), Quantization::Rabitq);
    insert_rows(&graph, &view, column, 0, rows)?;
    assert_eq!(graph.len() as u64, rows);
    for one_in in [1, 2, 10] {
        let visible = |row: u64| row * 31 % 100 < 100 / one_in;
        let mut hits = 0;
        for at in 0..50 {
            let query = Query::new(column.space, &vector((1 << 30) + at))?;
            let mut stats = SearchStats::default();
            let mut top = TopK::new(10);
            for part in view.parts(0) {
                let vectors = Vectors::of(part.batch, column)?.expect("a vector column");
                flat::scan(&query, 0, vectors.bytes(), &visible, &mut top, &mut stats);
            }
            let exact = top.into_sorted();
            let query = [query];
            let stats = &mut [stats];
            let wanted = Wanted::visible(&visible);
            let found = graph.search(&query, (10, 50), wanted, (&view, column), stats)?;
            let [found] = &found[..] else {
                panic!("one answer a query: {found:?}");
            };
            assert_eq!(found.len(), 10);
            // The same bits: what was found stands in the scan as it is.
            hits += found.iter().filter(|one| exact.contains(one)).count();
        }
        assert!(hits >= 485, "one in {one_in}: {hits} of 500");
    }
    Ok(())
}

#[test]
fn a_search_before_the_first_row_does_not_choose_the_origin() -> Result<()> {
    let view = dataset(10)?.view();
    let column = &view.schema.vectors[0];
    let graph = Graph::new(column, IndexKind::Hnsw, &Options::new("").graphs)?;
    let query = [Query::new(column.space, &vector(1))?];
    let mut stats = [SearchStats::default()];
    let all = Wanted::visible(&|_| true);
    let found = graph.search(&query, (1, 1), all, (&view, column), &mut stats)?;
    let mut saved = Vec::new();
    graph.save(&mut saved)?;
    assert!(found == [[]] && saved.is_empty() && !graph.is_prepared());
    insert_rows(&graph, &view, column, 0, 10)?;
    assert!(graph.is_prepared() && graph.len() == 10);
    Ok(())
}

//! Datasets of an integer id and a vector of two elements: enough where it is not the rows that matter.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch};
use longbow_engine::Engine;

/// Puts rows with these ids, in one batch, and waits for the acknowledgement.
pub fn put(engine: &Engine, dataset: &str, ids: Range<i64>) {
    put_with(engine, dataset, ids, |id| [id as f32, (id % 7) as f32]);
}

/// The same, with other vectors.
pub fn put_with(engine: &Engine, dataset: &str, ids: Range<i64>, vector: impl Fn(i64) -> [f32; 2]) {
    let vectors = ids.clone().map(|id| Some(vector(id).map(Some)));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let ids = Int64Array::from(ids.collect::<Vec<_>>());
    let columns = [
        ("id", Arc::new(ids) as _),
        ("vector", Arc::new(vectors) as _),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut session = engine.put(dataset, &batch.schema()).expect("a good schema");
    let pending = session.record_batch(&batch).expect("good rows");
    pending.wait().expect("acknowledged");
}

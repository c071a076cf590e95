use std::cell::Cell;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use longbow_index::VectorSource;
use longbow_storage::Batch;

use crate::originals::Originals;

/// Vectors that are remembered: more than most searches are asked for.
const KEPT: usize = 32;

/// Stored vectors, of which the last that were read are remembered.
///
/// A search by a graph of codes asks for each vector that it compares up to three times, unless it has a copy: while it walks, when it has ended, and to compare it.
/// To find out where a row lies takes as long as some of its cache lines.
///
/// Good for one search, or some that are under way together on a thread. Where each row is read once it only costs.
pub(crate) struct Remembered<'a> {
    originals: &'a Originals<'a>,
    /// The schema of the last batch, and where the column stands in it.
    position: Cell<Option<(&'a SchemaRef, usize)>>,
    /// By the rest of a row's number, the last such row and its vector; nothing at first.
    kept: [Cell<(u64, &'a [u8])>; KEPT],
}

impl<'a> Remembered<'a> {
    pub fn new(originals: &'a Originals<'a>) -> Self {
        Remembered {
            originals,
            position: Cell::new(None),
            kept: std::array::from_fn(|_| Cell::new((0, &[][..]))),
        }
    }

    fn position(&self, batch: &'a Batch) -> Option<usize> {
        let schema = batch.view().schema_ref();
        if let Some((last, position)) = self.position.get()
            && Arc::ptr_eq(schema, last)
        {
            return Some(position);
        }
        let position = self.originals.position(batch)?;
        self.position.set(Some((schema, position)));
        Some(position)
    }
}

impl VectorSource for Remembered<'_> {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let kept = &self.kept[row as usize % KEPT];
        let (last, vector) = kept.get();
        // A vector has at least one element.
        if last == row && !vector.is_empty() {
            return Some(vector);
        }
        let (batch, at) = self.originals.locate(row)?;
        let vector = self.originals.read(batch, self.position(batch)?, at)?;
        kept.set((row, vector));
        Some(vector)
    }

    fn will_need(&self, row: u64) {
        self.originals.will_need(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::graph::tests::{dataset, put, vector};

    const ROWS: u64 = 200;

    #[test]
    fn each_row_has_its_own_vector_however_often_it_is_asked_for() -> Result<()> {
        let dataset = dataset(ROWS)?;
        // In a batch of its own.
        put(&dataset, 3, ROWS..2 * ROWS)?;
        let view = dataset.view();
        let originals = Originals::new(&view, &view.schema.vectors[0]);
        let remembered = Remembered::new(&originals);
        // Some share a place, and each comes again later.
        let rows = (0..2 * ROWS)
            .chain((0..2 * ROWS).step_by(KEPT / 2))
            .flat_map(|row| [row, row]);
        for row in rows.chain([0, ROWS, 0]) {
            let expected: Vec<u8> = vector(row).iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(remembered.vector(row), Some(&expected[..]), "row {row}");
        }
        for none in [2 * ROWS, u64::MAX] {
            assert_eq!(remembered.vector(none), None, "row {none}");
        }
        originals.check()
    }
}

//! Some rows of all.

use crate::error::Result;
use crate::schema::VectorColumn;
use crate::vectors::Vectors;
use crate::view::View;

/// Up to `most` living rows with their vectors, in even steps over the view.
pub(crate) fn sample(view: &View, column: &VectorColumn, most: u64) -> Result<Vec<(u64, Vec<u8>)>> {
    let step = view.live.div_ceil(most).max(1);
    let (mut sample, mut seen) = (Vec::new(), 0);
    for part in view.parts(0) {
        let Some(vectors) = Vectors::of(part.batch, column)? else {
            continue;
        };
        for run in &part.runs {
            for offset in 0..run.len {
                let row = run.first_row + offset as u64;
                if let Some(vector) = vectors.row(run.start + offset)
                    && view.is_visible(row)
                {
                    if seen % step == 0 {
                        sample.push((row, vector.to_vec()));
                    }
                    seen += 1;
                }
            }
        }
    }
    Ok(sample)
}

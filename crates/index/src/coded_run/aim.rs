//! Queries that are turned for the codes of runs.

use std::f32::consts::PI;
use std::fmt;
use std::sync::Arc;

use longbow_kernels::rabitq::Lut;

use super::{CodedRun, Frame};
use crate::encode::{Encoded, Encoder};
use crate::space::Query;

/// By how much of itself a factor is rounded, at most.
const FACTOR_STEP: f32 = 1.0 / 256.0;

/// A query as the codes of runs of one frame are compared with it.
pub struct Aim<'a> {
    encoder: Arc<Encoder>,
    pub(super) query: &'a Query,
    pub(super) encoded: Encoded,
    pub(super) lut: Lut,
    /// What rounding the table puts into a product, at most.
    pub(super) rounding: f32,
    /// What rounding a row's factor puts into one, for each unit of the distance.
    pub(super) rounded: f32,
}

impl Frame {
    /// Turns a query.
    ///
    /// # Panics
    /// If it was prepared for another space.
    #[must_use]
    pub fn aim<'a>(&self, query: &'a Query) -> Aim<'a> {
        let encoder = &self.0;
        assert_eq!(query.space(), encoder.space(), "the space of the query");
        let (mut encoded, mut lut) = (Encoded::default(), Lut::default());
        encoder.query(query.floats(), &mut encoded);
        encoder.lut(&encoded, &mut lut);
        let rounding = lut.scale() * (lut.groups() as f32 / 12.0).sqrt();
        // Of a way of length 1, its product with its signs is this: the mean of elements that are as good as normal.
        let rounded = FACTOR_STEP * (encoder.dim() as f32 * 2.0 / PI).sqrt();
        Aim {
            encoder: Arc::clone(encoder),
            query,
            encoded,
            lut,
            rounding,
            rounded,
        }
    }
}

impl Aim<'_> {
    /// Whether it is for the codes of a run.
    #[must_use]
    pub fn is_of(&self, run: &CodedRun) -> bool {
        Arc::ptr_eq(&self.encoder, &run.encoder)
    }
}

impl fmt::Debug for Aim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aim").finish_non_exhaustive()
    }
}

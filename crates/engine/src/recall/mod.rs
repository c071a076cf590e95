//! How much of the truth searches of an index find: measured while it serves, and set by a target.
//!
//! [`Samples`] takes some of the queries that are answered, with their answers. The background thread finds the exact
//! neighbours on the same view: the share that was answered goes into the [`Gauge`]. It also walks the graph for the
//! query with efforts from small to large: a measured query. These make the [`Curve`], by which a search with a
//! target chooses its effort. Before there is traffic, queries made from the rows stand in.
//!
//! The effort is chosen for each query. Its first walk is cheap, and how it went (vectors compared, distances found) tells,
//! with how far from the middle of the rows it lies, how hard the query is: the curve is that of the measured queries most alike. So a query far from all rows
//! gets more than an ordinary one. The idea of judging by a first search's course is that of learned adaptive early
//! termination (Li et al., SIGMOD 2020) and DARTH (Chatzakis et al., 2025), with neighbours in place of trained trees.

mod curve;
mod gauge;
mod made;
mod measure;
mod middle;
mod pace;
mod samples;
mod thread;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

pub(crate) use curve::{Curve, Judged, Moment};
use gauge::Gauge;
pub(crate) use measure::Look;
pub(crate) use pace::Pace;
pub(crate) use samples::Samples;
pub(crate) use thread::{calibrate, measure_samples, run};

/// Rows in a graph from which on it has a curve. Fewer are scanned as fast as walked.
pub(crate) const LEAST_ROWS: u64 = 1_000;

/// What is known of the recall of an index.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    curve: ArcSwapOption<Curve>,
    gauge: Mutex<Gauge>,
    /// Held by whoever measures: what is learned of samples must not be lost to a calibration that runs.
    measuring: Mutex<()>,
    pub samples: Samples,
}

impl Recall {
    /// The curve, once the index was calibrated.
    pub fn curve(&self) -> Option<Arc<Curve>> {
        self.curve.load_full()
    }

    /// The mean recall of the last samples; `None` before the first.
    pub fn gauge(&self) -> Option<f64> {
        self.gauge.lock().mean()
    }
}

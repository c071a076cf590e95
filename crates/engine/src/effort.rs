//! How far a search of a graph goes.

use std::sync::Arc;

use longbow_index::{Neighbor, Query};

use crate::answer::Answered;
use crate::column_index::Reached;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::recall::{Curve, Judged, LEAST_ROWS, Look};
use crate::reply::QueryInfo;
use crate::schema::VectorColumn;
use crate::search::{Found, MAX_EF, Searcher};
use crate::search_request::SearchRequest;
use crate::strategy::Strategy;
use crate::view::View;

/// How many times the usual effort is made for a target by a graph that was not calibrated yet.
const CAUTION: usize = 8;
/// Bytes of vectors up to which all rows are scanned instead: of a scan it is known what it reaches.
const SCANNED: u64 = 16 << 20;
const NOT_CALIBRATED: &str = "the index is not calibrated yet, or has become another since: eight times the usual effort was made, and what it reaches is not known";
const NOT_ENDED: &str = "the budget ran out: what was reached is not known";
const FILTERED: &str = "efforts are measured without a filter: at least the usual one was made, and what it reaches behind this filter is not known";

/// How far a search of a graph goes.
#[derive(Debug, Clone)]
pub(crate) enum Effort {
    /// As far as somebody said.
    Fixed(usize),
    /// As far as this recall needs by this curve.
    Target(f32, Arc<Curve>),
}

/// What a search does for its recall.
#[derive(Debug)]
pub(crate) struct Plan {
    pub effort: Effort,
    /// Whether all rows are scanned.
    pub exact: bool,
    /// The recall that is asked for, if one is.
    pub target: Option<f32>,
    /// Why it is not known what the effort reaches.
    unknown: Option<&'static str>,
}

impl Plan {
    /// The plan of a search: `exact` goes before `ef` and `nprobe`, these before the request's target, that before the column's, and that
    /// before the usual effort. `known` tells the rows in the graph, those that a scan reads, and its curve.
    pub fn of(
        request: &SearchRequest,
        column: &VectorColumn,
        usual: usize,
        known: impl FnOnce() -> (u64, u64, Option<Arc<Curve>>),
    ) -> Self {
        let target = request.recall_target.or(column.recall_target);
        let mut plan = Plan {
            effort: Effort::Fixed(request.effort().unwrap_or(usual)),
            exact: request.exact,
            target: None,
            unknown: None,
        };
        let (false, None, Some(target)) = (request.exact, request.effort(), target) else {
            return plan;
        };
        plan.target = Some(target);
        let (rows, scanned, curve) = known();
        let bytes = scanned.saturating_mul(column.space.row_bytes() as u64);
        if target >= 1.0 || rows < LEAST_ROWS || curve.is_none() && bytes <= SCANNED {
            plan.exact = true;
        } else if let (Some(curve), true) = (&curve, request.filter.is_some()) {
            plan.unknown = Some(FILTERED);
            match curve.start(target, request.k, false) {
                Some(start) => plan.effort = Effort::Fixed(start.ef.max(usual)),
                None => plan.exact = true,
            }
        } else if let Some(curve) = curve {
            plan.effort = Effort::Target(target, curve);
        } else {
            let cautious = CAUTION.saturating_mul(usual.max(request.k));
            plan.effort = Effort::Fixed(cautious.min(MAX_EF));
            plan.unknown = Some(NOT_CALIBRATED);
        }
        plan
    }

    /// Says what was aimed at, what was done for it, and what is expected of that.
    pub fn tell(&self, answers: &[Answered], info: &mut QueryInfo) {
        let found: Vec<&Found> = answers.iter().map(|answer| &answer.found).collect();
        let efforts: Vec<usize> = found.iter().filter_map(|one| one.ef).collect();
        let sum: usize = efforts.iter().sum();
        info.ef = (sum + efforts.len() / 2).checked_div(efforts.len());
        info.recall_target = self.target;
        if self.target.is_none() {
            return;
        }
        let expected = |one: &&Found| match one.strategy {
            _ if one.is_partial => None,
            // Nothing is nearer than the nearest of all.
            Strategy::Exact | Strategy::ExactFiltered | Strategy::GraphThenExact => Some(1.0),
            _ => one.expected,
        };
        let all: Option<Vec<f32>> = found.iter().map(expected).collect();
        info.recall_expected = all.map(|all| all.iter().sum::<f32>() / all.len().max(1) as f32);
        let beyond = |one: &&&Found| one.ef.is_none() && one.strategy == Strategy::GraphThenExact;
        info.recall_note = match found.iter().filter(beyond).count() {
            _ if found.iter().any(|one| one.is_partial) => Some(NOT_ENDED.into()),
            _ if let Some(unknown) = self.unknown => {
                // What was scanned is known.
                info.recall_expected.is_none().then(|| unknown.into())
            }
            0 => None,
            beyond => Some(format!(
                "no effort that was measured reaches the target for {beyond} of {} queries, or none was measured that is like them: all rows were scanned for them",
                found.len()
            )),
        };
    }
}

impl Searcher<'_> {
    /// Offers answers of walks through the graph to have their recall measured.
    pub fn offer(
        &self,
        dataset: &Dataset,
        view: &Arc<View>,
        vectors: &[Vec<f32>],
        answers: &[Answered],
    ) {
        let cut = answers.iter().any(|answer| answer.found.is_partial);
        let whole = self.rows.are_all() && self.max_distance.is_none() && !cut;
        let (true, true, Some(reached)) = (whole, self.is_by_graph(), &self.index) else {
            return;
        };
        // One of another kind may be in its place by now.
        let index = dataset.index(&self.column.name);
        if let Some(index) = index.filter(|index| index.kind() == reached.graph.kind()) {
            let samples = &index.recall.samples;
            samples.offer(vectors, answers, (self.k, view, reached));
        }
    }

    /// Walks the graph for all queries as far as each needs: a first walk for all, and a wider one for those whose first
    /// one went like those of queries that need it. A query that no walk suffices for is left without an answer and
    /// without an effort.
    pub fn walk_to(
        &self,
        target: f32,
        curve: &Curve,
        (index, queries): (&Reached, &[Query]),
        all: &mut [Found],
    ) -> Result<Vec<Vec<Neighbor>>> {
        let Some(start) = curve.start(target, self.k, true) else {
            return Ok(vec![Vec::new(); queries.len()]);
        };
        let mut answers = self.walk_by(start.ef, index, queries, all)?;
        let metric = self.column.space.metric;
        let mut again: Vec<(usize, usize)> = Vec::new();
        for (at, (found, answer)) in all.iter_mut().zip(&mut answers).enumerate() {
            let away = curve.middle().away(queries[at].floats());
            let compared = found.stats.distance_computations;
            let look = Look::new(metric, away, compared, answer);
            match curve.judge(start, target, look) {
                Judged::Enough(expected) => found.expected = Some(expected),
                Judged::More(ef, expected) => {
                    found.expected = Some(expected);
                    again.push((ef.min(MAX_EF), at));
                }
                Judged::Scan => {
                    found.ef = None;
                    answer.clear();
                }
            }
        }
        again.sort_unstable();
        for alike in again.chunk_by(|a, b| a.0 == b.0) {
            self.limits.check()?;
            let more = self.walk_again(alike, (index, queries), all)?;
            for ((_, at), answer) in alike.iter().zip(more) {
                answers[*at] = answer;
            }
        }
        Ok(answers)
    }

    /// Walks for some of the queries again, which are told by one effort and their places. Nothing is found where the budget is spent.
    pub fn walk_again(
        &self,
        alike: &[(usize, usize)],
        (index, queries): (&Reached, &[Query]),
        all: &mut [Found],
    ) -> Result<Vec<Vec<Neighbor>>> {
        let at = || alike.iter().map(|(_, at)| *at);
        let Some((ef, _)) = alike.first() else {
            return Ok(Vec::new());
        };
        if self.limits.are_spent() {
            at().for_each(|at| all[at].is_partial = true);
            return Ok(Vec::new());
        }
        let again: Vec<Query> = at().map(|at| queries[at].clone()).collect();
        let mut found: Vec<Found> = at().map(|_| self.blank()).collect();
        let answers = self.walk_by(*ef, index, &again, &mut found)?;
        for (at, found) in at().zip(found) {
            all[at].stats += found.stats;
            all[at].ef = found.ef;
            all[at].is_partial |= found.is_partial;
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::schema::DatasetSchema;

    /// The effort for a target of 0.9 by an index of so many rows of 64 dimensions that is not calibrated; `None` for a scan.
    fn uncalibrated((rows, waiting): (u64, u64), k: usize) -> Option<(usize, bool)> {
        let item = Field::new("item", DataType::Float32, true);
        let vectors = DataType::FixedSizeList(Arc::new(item), 64);
        let fields = vec![
            Field::new("id", DataType::Int64, true),
            Field::new("vector", vectors, true),
        ];
        let schema = DatasetSchema::new(&Arc::new(Schema::new(fields)), 0).expect("a good schema");
        let column = schema.vector("d", None).expect("a vector column");
        let request = SearchRequest {
            recall_target: Some(0.9),
            ..SearchRequest::nearest(vec![0.0; 64], k)
        };
        let plan = Plan::of(&request, column, 50, || {
            (rows, rows.saturating_add(waiting), None)
        });
        let Effort::Fixed(ef) = plan.effort else {
            panic!("there is no curve");
        };
        (!plan.exact).then_some((ef, plan.unknown == Some(NOT_CALIBRATED)))
    }

    #[test]
    fn who_is_not_calibrated_scans_what_is_small_and_else_makes_eight_times_the_effort() {
        let most = SCANNED / (64 * size_of::<f32>() as u64);
        assert_eq!(uncalibrated((most, 0), 10), None);
        assert_eq!(uncalibrated((most + 1, 0), 10), Some((8 * 50, true)));
        assert_eq!(uncalibrated((most, 1), 10), Some((8 * 50, true)));
        assert_eq!(uncalibrated((most + 1, 0), 100), Some((8 * 100, true)));
        assert_eq!(uncalibrated((u64::MAX, 1), 10), Some((8 * 50, true)));
    }
}

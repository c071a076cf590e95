//! Why a search went as it did, in figures, for who asks.

use serde::Serialize;

use crate::answer::{Answered, Asked};
use crate::search::Searcher;
use crate::strategy::Strategy;

/// Why a search went as it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explain {
    /// What was done, step by step, and why.
    pub steps: Vec<String>,
    /// Of the filter, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterExplained>,
    /// Rows of the dataset at the moment of the search.
    pub rows: u64,
    /// Of these, rows that the graph of the searched column does not hold yet.
    pub rows_not_in_graph: u64,
    /// Bytes of codes, edges and vectors that walks and scans of the graph read.
    pub bytes_read: u64,
}

/// What a filter let pass, and what finding that out took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilterExplained {
    /// The share of rows that pass, by which the way was chosen: dead rows that are remembered count.
    pub selectivity_estimated: f64,
    /// The share of living rows that pass.
    pub selectivity: f64,
    /// Living rows that pass.
    pub rows_passing: u64,
    /// Rows for which it was evaluated; the others were remembered, or ruled out by the order of a column.
    pub rows_evaluated: u64,
    /// Microseconds for that.
    pub filter_us: u64,
}

/// What evaluating a filter took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FilterWork {
    pub rows_evaluated: u64,
    pub micros: u64,
    /// Whether the budget ran out before it was evaluated for all rows.
    pub was_cut: bool,
}

/// Explains the answers to some queries.
pub(crate) fn explain(asked: &Asked<'_>, answers: &[Answered]) -> Explain {
    let work = asked.filter_work;
    let at = &asked.main;
    let mut steps = Vec::new();
    if work.was_cut {
        steps.push("filter: the budget ran out while it was evaluated".to_owned());
    }
    let matching = at.rows.matching.as_ref().filter(|_| !work.was_cut);
    let filter = matching.map(|matching| {
        let living = matching.iter_from(0).filter(|row| at.view.is_visible(*row));
        let passing = living.count() as u64;
        let share = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        steps.push(format!(
            "filter: {passing} of {} rows pass; evaluated for {}, the others were remembered or ruled out by their order",
            at.view.live, work.rows_evaluated
        ));
        FilterExplained {
            selectivity_estimated: share(matching.len(), at.view.next_row),
            selectivity: share(passing, at.view.live),
            rows_passing: passing,
            rows_evaluated: work.rows_evaluated,
            filter_us: work.micros,
        }
    });
    if !asked.by_words
        && let Some(answer) = answers.first()
    {
        steps.push(format!(
            "vector '{}': {}",
            at.column.name,
            why(at, answer.found.strategy)
        ));
    }
    for (other, one) in &asked.beside {
        let way = why(other, other.blank().strategy);
        steps.push(format!(
            "vector '{}', weight {}: {way}",
            one.column, one.weight
        ));
    }
    if let Some(words) = &asked.words {
        let weight = if asked.by_words { 1.0 } else { words.weight };
        steps.push(format!(
            "words, weight {weight}: BM25 over their postings, and rows not indexed yet"
        ));
    }
    if asked.strategy().is_some_and(|name| name != "text") {
        steps.push(format!("fusion: {}", asked.fusion.name()));
    }
    let not_in_graph = at.index.as_ref().map_or(at.view.next_row, |index| {
        at.view.next_row.saturating_sub(index.watermark)
    });
    Explain {
        steps,
        filter,
        rows: at.view.live,
        rows_not_in_graph: not_in_graph,
        bytes_read: answers
            .iter()
            .map(|answer| answer.found.stats.bytes_touched)
            .sum(),
    }
}

/// How many clusters of codes are read, and of how many.
fn clusters(at: &Searcher<'_>) -> (usize, usize) {
    let coded = at.coded();
    coded.map_or((0, 0), |coded| {
        (coded.clusters, coded.made.codes.clusters())
    })
}

/// Why a search took its way.
fn why(at: &Searcher<'_>, strategy: Strategy) -> String {
    match strategy {
        Strategy::Exact if at.exact => "all rows are compared, as asked or for the recall target".into(),
        Strategy::Exact if at.index.is_some() => "all rows are compared: there are so few that a walk would compare most of them".into(),
        Strategy::Exact => "all rows are compared: the column has no index".into(),
        Strategy::ExactFiltered if at.exact => "the rows that pass are compared, as asked".into(),
        Strategy::ExactFiltered => {
            "the rows that pass are compared, which is reckoned less work than a walk, or is the only way".into()
        }
        Strategy::ClustersFiltered => {
            let (read, all) = clusters(at);
            format!("the filter is asked for often, so the rows that pass have codes in {all} clusters, of which the {read} nearest are compared")
        }
        Strategy::Graph => "the graph is walked, and holds all rows".into(),
        Strategy::GraphAndTail => "the graph is walked, and rows that it does not hold yet are compared".into(),
        Strategy::Codes if at.are_small() => {
            "there are so few rows that a walk would compare most of them: they are compared by their codes, and rows that the graph does not hold yet".into()
        }
        Strategy::Codes => {
            "among the dead rows of the graph a walk takes longer than to compare those that live by their codes, or leaves some: they are compared, and rows that it does not hold yet".into()
        }
        Strategy::GraphFiltered => {
            "the graph is walked along the rows that pass, which is reckoned less work than to compare them all".into()
        }
        Strategy::GraphThenExact => {
            "the graph was walked and gave fewer rows than there are, so all were compared".into()
        }
        Strategy::GraphThenClusters => {
            let (read, all) = clusters(at);
            format!("the graph was walked, and what passes lies elsewhere than around the query: of the {all} clusters in which the rows that pass have codes, the {read} nearest were compared")
        }
    }
}

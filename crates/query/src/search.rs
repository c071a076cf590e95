//! Searches, as clients write them.

use std::time::Duration;

use longbow_engine::{
    Beside, Cursor, Examples, Fusion, Grouping, Id, SearchRequest, Shape, TextQuery,
};
use serde::Deserialize;
use serde_json::Value;

use crate::filter::Conditions;
use crate::json;
use crate::number::{count, not_negative};
use crate::refusal::{Refusal, Result, invalid, unimplemented};
use crate::vector::Vector;

/// The keys of a search object.
pub(crate) const SEARCH_KEYS: &[&str] = &[
    "dataset",
    "vector",
    "vectors",
    "ids",
    "negative_ids",
    "beside",
    "column",
    "k",
    "offset",
    "cursor",
    "group_by",
    "group_size",
    "mmr",
    "filters",
    "where",
    "text_query",
    "text_columns",
    "alpha",
    "fusion",
    "ef",
    "nprobe",
    "recall_target",
    "exact",
    "max_distance",
    "columns",
    "include_vectors",
    "vector_format",
    "graph_alpha",
    "local_only",
    "consistency",
    "explain",
    "score_parts",
    "timeout_ms",
    "budget_ms",
];

/// A search as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchObject {
    dataset: String,
    vector: Option<Vector>,
    vectors: Option<Vec<Vector>>,
    ids: Option<Vec<Id>>,
    negative_ids: Option<Vec<Id>>,
    beside: Option<Vec<BesideObject>>,
    column: Option<String>,
    k: Option<i64>,
    offset: Option<i64>,
    cursor: Option<String>,
    group_by: Option<String>,
    group_size: Option<i64>,
    mmr: Option<f32>,
    #[serde(default, deserialize_with = "crate::once::values")]
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
    text_query: Option<String>,
    text_columns: Option<Vec<String>>,
    alpha: Option<f32>,
    fusion: Option<String>,
    ef: Option<i64>,
    nprobe: Option<i64>,
    recall_target: Option<f32>,
    exact: Option<bool>,
    max_distance: Option<f32>,
    columns: Option<Vec<String>>,
    include_vectors: Option<bool>,
    vector_format: Option<String>,
    graph_alpha: Option<f32>,
    local_only: Option<bool>,
    consistency: Option<String>,
    explain: Option<bool>,
    score_parts: Option<bool>,
    timeout_ms: Option<i64>,
    budget_ms: Option<i64>,
}

/// A search of another vector column, for the same answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BesideObject {
    column: String,
    vector: Vector,
    weight: Option<f32>,
}

/// Neighbours given where a request does not say how many.
const DEFAULT_K: i64 = 10;

impl SearchObject {
    /// Reads a search object that is the whole body.
    ///
    /// # Errors
    /// As [`crate::Ticket::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        json::read(bytes, "search", SEARCH_KEYS)
    }

    /// The search with these queries, which came beside it; the reply tells them apart by their number if `many`.
    #[must_use]
    pub fn with_queries(mut self, vectors: Vec<Vec<f32>>, many: bool) -> Self {
        let mut vectors = vectors.into_iter().map(Vector);
        if many {
            self.vectors = Some(vectors.collect());
        } else {
            self.vector = vectors.next();
        }
        self
    }

    /// The dataset and the engine's request.
    ///
    /// # Errors
    /// As [`crate::Ticket::parse`].
    pub fn into_request(mut self) -> Result<(String, SearchRequest)> {
        self.refuse_what_is_missing()?;
        self.check_sources()?;
        let shape = self.shape()?;
        let text = self.text()?;
        if let (Some(fusion), None, None) = (&self.fusion, &text, &self.beside) {
            let text = format!(
                "fusion is {fusion}, and there is one search alone; give text_query or beside, too"
            );
            return Err(invalid("bad_value", &text));
        }
        let examples = self.examples()?;
        let fusion = self
            .fusion
            .as_deref()
            .map(Fusion::parse)
            .transpose()?
            .unwrap_or_default();
        let beside = self.beside.unwrap_or_default().into_iter();
        // Who sends a list of queries gets their numbers, also for a list of one.
        let first_query = self.vectors.is_some().then_some(0);
        let vectors = self
            .vectors
            .or(self.vector.map(|vector| vec![vector]))
            .unwrap_or_default();
        let vectors = vectors.into_iter().map(|vector| vector.0).collect();
        let k = self.k.unwrap_or(DEFAULT_K);
        let max = longbow_engine::MAX_K;
        let k = usize::try_from(k).ok().filter(|k| (1..=max).contains(k));
        let k = k.ok_or_else(|| longbow_engine::Error::BadK {
            got: self.k.unwrap_or(0),
            max,
        })?;
        let time = |name, ms: Option<i64>| {
            let ms = ms.map(|ms| not_negative(name, ms)).transpose()?;
            Ok::<_, Refusal>(ms.map(Duration::from_millis))
        };
        let timeout = time("timeout_ms", self.timeout_ms)?;
        let budget = time("budget_ms", self.budget_ms)?;
        let request = SearchRequest {
            ef: self.ef.map(SearchRequest::read_ef).transpose()?,
            nprobe: self.nprobe.map(SearchRequest::read_nprobe).transpose()?,
            recall_target: self.recall_target,
            exact: self.exact.unwrap_or(false),
            max_distance: self.max_distance,
            filter: Conditions::shared(self.filters, self.predicate)?,
            examples,
            text,
            explain: self.explain.unwrap_or(false),
            score_parts: self.score_parts.unwrap_or(false),
            alpha: self.alpha,
            beside: beside.map(BesideObject::into_beside).collect(),
            fusion,
            shape,
            column: self.column,
            columns: self.columns.unwrap_or_default(),
            include_vectors: self.include_vectors.unwrap_or(false),
            timeout,
            budget,
            first_query,
            vectors,
            ..SearchRequest::nearest(Vec::new(), k)
        };
        request.check()?;
        Ok((self.dataset, request))
    }

    /// One thing is searched for, or words alone.
    fn check_sources(&self) -> Result<()> {
        let sources = [
            self.vector.is_some(),
            self.vectors.is_some(),
            self.ids.is_some(),
        ];
        if sources.iter().filter(|given| **given).count() > 1 {
            let text = "the search has several of 'vector', 'vectors' and 'ids'; send one of them";
            return Err(invalid("bad_value", text));
        }
        Ok(())
    }

    /// The words to search for.
    fn text(&mut self) -> Result<Option<TextQuery>> {
        let columns = self.text_columns.take();
        match self.text_query.take().filter(|text| !text.is_empty()) {
            Some(text) => Ok(Some(TextQuery { text, columns })),
            None if columns.is_some() => {
                let text =
                    "the search has 'text_columns' and no 'text_query'; say what to look for";
                Err(invalid("bad_value", text))
            }
            None => Ok(None),
        }
    }

    /// The rows that are given as examples.
    fn examples(&mut self) -> Result<Option<Examples>> {
        match (self.ids.take(), self.negative_ids.take()) {
            (None, Some(_)) => {
                let text = "the search has 'negative_ids' and no 'ids'; give the ids of rows to be like, too";
                Err(invalid("bad_value", text))
            }
            (None, None) => Ok(None),
            (Some(like), unlike) => Ok(Some(Examples {
                like,
                unlike: unlike.unwrap_or_default(),
            })),
        }
    }

    /// What is asked for beside the nearest.
    fn shape(&mut self) -> Result<Shape> {
        let page = match self.cursor.take() {
            None => None,
            Some(text) if text.is_empty() => Some(None),
            Some(text) => Some(Some(Cursor::parse(&text)?)),
        };
        let size = self
            .group_size
            .map(|size| count("group_size", size))
            .transpose()?;
        let group = match (self.group_by.take(), size) {
            (None, Some(_)) => {
                let text =
                    "the search has 'group_size' and no 'group_by'; name the column of the groups";
                return Err(invalid("bad_value", text));
            }
            (column, size) => column.map(|column| Grouping {
                column,
                size: size.unwrap_or(1),
            }),
        };
        Ok(Shape {
            offset: count("offset", self.offset.unwrap_or(0))?,
            page,
            group,
            diversity: self.mmr,
        })
    }

    fn refuse_what_is_missing(&self) -> Result<()> {
        let missing = [
            (
                self.vector_format.is_some(),
                "a choice of vector format ('vector_format')",
            ),
            (
                self.graph_alpha.is_some_and(|alpha| alpha != 0.0),
                "graph ranking ('graph_alpha')",
            ),
        ];
        if let Some((_, what)) = missing.iter().find(|(asked, _)| *asked) {
            return Err(unimplemented(what));
        }
        // One node holds everything, so every level of consistency and both scopes give the same answer.
        let _ = self.local_only;
        match self.consistency.as_deref() {
            None | Some("strong" | "bounded" | "session" | "eventual") => Ok(()),
            Some(other) => {
                let text = format!(
                    "consistency is '{other}'; expected strong, bounded, session or eventual"
                );
                Err(invalid("bad_value", &text))
            }
        }
    }
}

impl BesideObject {
    fn into_beside(self) -> Beside {
        Beside {
            column: self.column,
            vector: self.vector.0,
            weight: self.weight.unwrap_or(1.0),
        }
    }
}

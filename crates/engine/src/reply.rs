//! A search from request to Arrow table.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::FieldRef;
use serde::Serialize;

use crate::answer::{Answered, Asked, Words, alpha_of};
use crate::coded_tail;
use crate::column_index::AllReached;
use crate::cursor::Cursor;
use crate::dataset::Dataset;
use crate::effort::Plan;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::examples;
use crate::explain::{Explain, FilterWork, explain};
use crate::filter::Matching;
use crate::id::Id;
use crate::moment::Moment;
use crate::rows::Rows;
use crate::schema::VectorColumn;
use crate::score_parts::SCORE_PARTS;
use crate::search::Searcher;
use crate::search_request::SearchRequest;
use crate::slow;
use crate::table::table;
use crate::text::{TextQuery, TextReached};
use crate::time_limits::TimeLimits;
use crate::view::View;

/// Metadata key of the schema of every reply: a [`QueryInfo`] as JSON.
pub const QUERY_KEY: &str = "longbow.query";

/// Columns that a reply adds; stored columns of these names cannot be asked for in a search.
const OWN_COLUMNS: [&str; 3] = ["query_index", "score", "distance"];

/// What a reply says about how it came to be.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueryInfo {
    /// Rows returned.
    pub returned: usize,
    /// Rows asked for: `k` times the number of queries.
    pub asked: usize,
    /// How the rows were found.
    pub strategy: &'static str,
    /// The effort of the walks through the graph, averaged over the queries; if none was walked for, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ef: Option<usize>,
    /// The recall target that the effort was chosen for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_target: Option<f32>,
    /// The mean recall that was measured with such efforts for such queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_expected: Option<f32>,
    /// What else is to be known of the recall target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_note: Option<String>,
    /// Rows that were compared one after the other, by their vectors or first by codes.
    pub rows_scanned: u64,
    /// Distances computed, in the graph and in scans.
    pub distance_computations: u64,
    /// Nodes of the graph whose neighbours were looked at.
    pub nodes_popped: u64,
    /// From the request's arrival at the engine to the table, in microseconds.
    pub elapsed_us: u64,
    /// Of that, checking the request and evaluating its filter.
    pub plan_us: u64,
    /// Of that, finding the neighbours.
    pub index_us: u64,
    /// For a page: what the request for the next one gives as its cursor. None after the last row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Why the search went as it did, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// Why there are fewer rows than asked for, of the first query that came short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_because: Option<String>,
    /// Why nearer rows than these may have been missed, if the search ended before it had looked everywhere: its budget
    /// ran out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_because: Option<String>,
}

/// The reply to a search.
#[derive(Debug)]
pub struct SearchReply {
    /// The neighbours, query by query, best first; its schema's metadata holds [`QueryInfo`], unless it is to be bare.
    pub batch: RecordBatch,
    /// The same as a struct.
    pub info: QueryInfo,
}

impl SearchReply {
    /// The ids of the rows, in order.
    ///
    /// # Errors
    /// If the id column is not of a type that ids have.
    pub fn ids(&self) -> Result<Vec<Id>> {
        let column = self.batch.column_by_name("id").ok_or(Error::NoIdColumn)?;
        (0..column.len()).map(|at| Id::of(column, at)).collect()
    }

    /// The scores of the rows, in order; higher is better.
    pub fn scores(&self) -> &[f32] {
        let column = self.batch.column_by_name("score");
        column
            .and_then(|scores| scores.as_primitive_opt::<Float32Type>())
            .map_or(&[], |scores| scores.values())
    }
}

/// One moment of a dataset.
struct At<'a> {
    dataset: &'a Dataset,
    view: &'a View,
    /// Taken before the view.
    reached: &'a AllReached,
    limits: TimeLimits,
    /// Bytes that may be remembered of filters.
    filter_room: usize,
    /// The columns of the reply.
    reply: &'a [FieldRef],
}

impl At<'_> {
    /// The rows that pass the filter of a request, if it has one, and what finding them took.
    fn matching(&self, request: &SearchRequest) -> Result<(Option<Matching>, FilterWork)> {
        let Some(filter) = &request.filter else {
            return Ok((None, FilterWork::default()));
        };
        let begun = Instant::now();
        let (dataset, limits) = (self.dataset, (self.limits.of_whole(), self.filter_room));
        let filters = &dataset.filters;
        let rows = filters.rows(&**filter, &dataset.name, self.view, limits);
        // The search ends then, with nothing.
        let was_cut = matches!(rows, Err(Error::Timeout(_))) && self.limits.check().is_ok();
        let (rows, evaluated) = if was_cut {
            (Matching::default(), 0)
        } else {
            rows?
        };
        let work = FilterWork {
            rows_evaluated: evaluated,
            micros: micros(begun.elapsed()),
            was_cut,
        };
        Ok((Some(rows), work))
    }
}

impl Engine {
    /// Searches a dataset. The answer holds every write that was acknowledged before the call.
    ///
    /// # Errors
    /// If the dataset, a column or a filter is wrong, or the time limit passes.
    pub fn search(&self, dataset: &str, request: &SearchRequest) -> Result<SearchReply> {
        self.search_at(&Moment::of(self.dataset(dataset)?), request)
    }

    /// Searches a dataset, and hands over a reply for every `most` queries as soon as it is there, in order, until told to
    /// break off. All are of one moment: they hold every write that was acknowledged before the call. The time limit is
    /// for all of them, and what `each` takes counts.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub fn search_in_pieces(
        &self,
        dataset: &str,
        request: &SearchRequest,
        most: usize,
        each: impl FnMut(SearchReply) -> ControlFlow<()>,
    ) -> Result<()> {
        let moment = Moment::of(self.dataset(dataset)?);
        self.search_at_in_pieces(&moment, request, most, each)
    }

    /// As [`Engine::search_in_pieces`], of a moment.
    pub(crate) fn search_at_in_pieces(
        &self,
        moment: &Moment,
        request: &SearchRequest,
        most: usize,
        mut each: impl FnMut(SearchReply) -> ControlFlow<()>,
    ) -> Result<()> {
        let (dataset, view) = (&*moment.dataset, &moment.view);
        let mut started = Instant::now();
        request.check()?;
        let column = view
            .schema
            .vector(&dataset.name, request.column.as_deref())?;
        let page = request.page(&dataset.name)?;
        let fields = reply_columns(dataset, view, request, &column.name)?;
        let at = At {
            dataset,
            view,
            reached: &moment.reached,
            limits: TimeLimits::of(request, started),
            filter_room: self.shared().filter_room(),
            reply: &fields,
        };
        let example = request.examples.as_ref();
        let example = example.map(|examples| examples.resolve(dataset, view, column));
        let (example, without) = example.transpose()?.unzip();
        let example = example.map(|vector| [vector]);
        let all: &[Vec<f32>] = example.as_ref().map_or(&request.vectors, |one| one);
        let text = moment.text.clone();
        let (plan, mut asked) =
            self.asked(&at, request, column, without.unwrap_or_default(), text)?;
        // A wrong one is refused before the first is answered.
        asked.main.check_vectors(all)?;
        let several = request.vectors.len() > 1;
        let mut first_query = request.first_query.or(several.then_some(0));
        let mut planned = started.elapsed();
        // Words without a vector are one query, too.
        let pieces = all.chunks(most.max(1)).chain(all.is_empty().then_some(all));
        for vectors in pieces {
            self.shared().note_search();
            let answers = asked.answer(vectors, &self.shared().helpers)?;
            if self.options().recall_share > 0.0 && asked.is_plain() {
                asked.main.offer(dataset, view, vectors, &answers);
            }
            let mut info = summary(&answers, request);
            plan.tell(&answers, &mut info);
            info.strategy = asked.strategy().unwrap_or(info.strategy);
            info.cursor = next_page(page, request, &answers);
            let took = started.elapsed();
            let is_slow = slow::is_slow(took, self.options().slow_query);
            let why = (request.explain || is_slow).then(|| explain(&asked, &answers));
            info.plan_us = micros(planned);
            info.index_us = micros(took.saturating_sub(planned));
            if let (true, Some(why)) = (is_slow, &why) {
                slow::report(&dataset.name, took, &info, why);
            }
            info.explain = why.filter(|_| request.explain);
            let parts = request.score_parts.then(|| asked.part_names());
            let beside = (first_query, parts, request.is_bare);
            let reply = table(view, &answers, &fields, beside, info, started)?;
            if each(reply).is_break() {
                break;
            }
            first_query =
                first_query.map(|first| first.saturating_add_unsigned(answers.len() as u32));
            (started, planned) = (Instant::now(), Duration::ZERO);
        }
        Ok(())
    }

    /// The searches that a request asks for.
    fn asked<'a>(
        &self,
        at: &At<'a>,
        request: &'a SearchRequest,
        column: &'a VectorColumn,
        without: Vec<u64>,
        text: TextReached,
    ) -> Result<(Plan, Asked<'a>)> {
        let (dataset, view) = (at.dataset, at.view);
        if let Some(group) = &request.shape.group {
            view.schema.column(&dataset.name, &group.column)?;
        }
        let (matching, filter_work) = at.matching(request)?;
        let rows = Rows::new(matching, without, view);
        let has_vector = !request.vectors.is_empty() || request.examples.is_some();
        let mut beside = Vec::with_capacity(request.beside.len());
        for one in &request.beside {
            let column = view.schema.vector(&dataset.name, Some(&one.column))?;
            let (_, mut other) = self.searcher(at, request, column, &rows);
            if has_vector {
                // It is of the first column, by whose distance what is found here is left out at last.
                other.max_distance = None;
            }
            other.check_vectors(std::slice::from_ref(&one.vector))?;
            beside.push((other.with_codes(), one));
        }
        let reached = at.reached.get(&column.name);
        reached.map_or(Ok(()), |reached| request.check_kind(reached.graph.kind()))?;
        let (plan, main) = self.searcher(at, request, column, &rows);
        let alpha = request.alpha.unwrap_or(self.options().hybrid_alpha);
        let words = request.text.as_ref().filter(|_| !has_vector || alpha < 1.0);
        let by_words = words.is_some() && (!has_vector || alpha == 0.0) && beside.is_empty();
        let alpha_of = |query: &TextQuery| match alpha < 0.0 {
            true => alpha_of(&query.text),
            false => alpha,
        };
        let words = words.map(|query| Words {
            dataset,
            reached: text,
            query,
            weight: 2.0 * (1.0 - alpha_of(query)),
        });
        let mut main = if by_words { main } else { main.with_codes() };
        main.may_widen = request.effort().is_none() && words.is_none() && beside.is_empty();
        let asked = Asked {
            main,
            k: request.k,
            shape: &request.shape,
            fusion: request.fusion,
            beside,
            words,
            by_words,
            filter_work,
            score_parts: request.score_parts,
        };
        Ok((plan, asked))
    }

    /// A search of a column, and its plan.
    fn searcher<'a>(
        &self,
        at: &At<'a>,
        request: &SearchRequest,
        column: &'a VectorColumn,
        rows: &Rows,
    ) -> (Plan, Searcher<'a>) {
        let plan = self.plan(at.dataset, request, column, at.reached);
        let searched = at.reached.find(&column.name).filter(|_| !plan.exact);
        if let Some((index, reached)) = searched.filter(|(_, of)| of.graph.has_coded_tail()) {
            let misses = coded_tail::is_missed(reached, at.view, column);
            self.shared().coder.note_search(index, misses);
        }
        let searcher = Searcher {
            view: at.view,
            column,
            index: at.reached.get(&column.name).cloned(),
            rows: rows.clone(),
            k: request.k,
            effort: plan.effort.clone(),
            target: plan.target,
            exact: plan.exact,
            max_distance: request.max_distance,
            may_widen: false,
            limits: at.limits,
            reply: at.reply,
        };
        (plan, searcher)
    }

    /// How far searches of a column go for a request.
    fn plan(
        &self,
        dataset: &Dataset,
        request: &SearchRequest,
        column: &VectorColumn,
        reached: &AllReached,
    ) -> Plan {
        Plan::of(request, column, self.options().ef_search, || {
            let Some(reached) = reached.get(&column.name) else {
                return (0, 0, None);
            };
            // One of another kind may be in its place by now.
            let index = dataset.index(&column.name);
            let index = index.filter(|index| index.kind() == reached.graph.kind());
            let live = dataset.view().live;
            let curve = index.and_then(|index| index.curve(live));
            (reached.graph.len() as u64, live, curve)
        })
    }

    /// The vector of the row with an id, as float32.
    ///
    /// # Errors
    /// If the dataset, the id or the column is unknown, or the row has no vector.
    pub fn vector_of(&self, dataset: &str, id: &Id, column: Option<&str>) -> Result<Vec<f32>> {
        let dataset = self.dataset(dataset)?;
        let view = dataset.view();
        let column = view.schema.vector(&dataset.name, column)?;
        examples::vector(id, &dataset, &view, column).map(|(_, vector)| vector)
    }
}

/// The columns to gather beside score and distance: the id, those asked for, and the vector if wanted.
fn reply_columns(
    dataset: &Dataset,
    view: &View,
    request: &SearchRequest,
    vector: &str,
) -> Result<Vec<FieldRef>> {
    let schema = &view.schema;
    let mut fields = vec![Arc::clone(&schema.replied[schema.id])];
    let vector = request.include_vectors.then_some(vector);
    for name in request.columns.iter().map(String::as_str).chain(vector) {
        let at = schema.column(&dataset.name, name)?;
        let is_own = name == SCORE_PARTS && request.score_parts;
        if OWN_COLUMNS.contains(&name) || is_own {
            let expected = "a column that is not named as one of the reply's own (query_index, score, distance, score_parts)";
            return Err(Error::BadValue {
                field: "columns",
                got: name.to_owned(),
                expected,
            });
        }
        if !fields.iter().any(|field| field.name() == name) {
            fields.push(Arc::clone(&schema.replied[at]));
        }
    }
    Ok(fields)
}

fn summary(answers: &[Answered], request: &SearchRequest) -> QueryInfo {
    let found = || answers.iter().map(|answer| &answer.found);
    let cut = found().filter(|one| one.is_partial).count();
    let budget = request.budget.unwrap_or_default();
    let partial_because = || {
        let queries = answers.len();
        format!(
            "the budget of {} ms ran out before {cut} of {queries} queries had ended",
            budget.as_millis()
        )
    };
    QueryInfo {
        partial_because: (cut > 0).then(partial_because),
        returned: answers.iter().map(|answer| answer.hits.len()).sum(),
        asked: request.k * answers.len(),
        strategy: found().next().map_or("none", |one| one.strategy.name()),
        rows_scanned: found().map(|one| one.rows_scanned).sum(),
        distance_computations: found().map(|one| one.stats.distance_computations).sum(),
        nodes_popped: found().map(|one| one.stats.nodes_popped).sum(),
        short_because: found().find_map(|one| one.short_because.clone()),
        ..QueryInfo::default()
    }
}

/// The cursor of the page behind this one, if a page is asked for that has rows, and others may follow it.
fn next_page(
    page: Option<(u32, Option<Cursor>)>,
    request: &SearchRequest,
    answers: &[Answered],
) -> Option<String> {
    let (print, before) = page.filter(|_| !request.shape.is_last_page(request.k))?;
    let [answer] = answers else { return None };
    let next = Cursor::after(print, before, &answer.hits);
    next.map(|cursor| cursor.to_string())
}

pub(crate) fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

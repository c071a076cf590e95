//! The graph of one vector column, and how far it has come.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use longbow_index::Visit;
use longbow_storage::IndexRef;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::coded_tail::{Coded, CodedTail};
use crate::coder::Searched;
use crate::error::Result;
use crate::graph::Graph;
use crate::graph_options::GraphOptions;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::recall::{Curve, Moment, Recall};
use crate::schema::VectorColumn;
use crate::sweep::UnderWay;
use crate::view::View;

/// Rows that one indexing job takes: long enough that claiming costs nothing, short enough that the watermark
/// follows closely, and rows that come meanwhile soon get their codes.
pub const JOB_ROWS: u64 = 64;
/// Rows from which the origin of codes is taken, at least.
const ORIGIN_ROWS: u64 = 256;

/// How long a writer waits for jobs under way.
const MOMENT: Duration = Duration::from_millis(50);

/// A graph with its watermark. Every row below the watermark that was alive when its turn came is in the graph;
/// rows from the watermark on may be in it or not, so readers scan them.
#[derive(Debug)]
pub struct ColumnIndex {
    /// Name of the vector column.
    pub column: String,
    graph: ArcSwap<Graph>,
    watermark: AtomicU64,
    progress: Mutex<Progress>,
    /// Whether the graph is still to be read from a checkpoint.
    loading: AtomicBool,
    /// The file that it is to be read from.
    unread: Mutex<Option<IndexRef>>,
    /// Rung when the watermark has moved, or the graph was read.
    moved: Condvar,
    /// Held shared by each running job and exclusively by whoever needs the graph to stand still.
    pause: RwLock<()>,
    /// Rows of the dataset that had died when dead rows last began to leave the graph.
    pub(crate) died: AtomicU64,
    /// Since when rows are held back until dead ones have left, if they are.
    pub(crate) held_back: Mutex<Option<Instant>>,
    /// Held by who builds its graph anew, where next to nothing of it lives; whether that has failed.
    pub(crate) renewing: Mutex<bool>,
    /// Graphs that others took the place of, and that searches may still use.
    old_graphs: Mutex<Vec<Weak<Graph>>>,
    /// What is under way of an index that is swept.
    pub(crate) sweep: Mutex<UnderWay>,
    /// Codes of rows from the watermark on.
    pub(crate) coded: CodedTail,
    /// Whether searches would wait for them.
    pub(crate) searched: Searched,
    /// What is known of the recall of its searches.
    pub(crate) recall: Recall,
    /// Whether its kind follows its size.
    auto: bool,
    /// The index of another kind that is built to take its place. Once it has, it stays here: whoever still has this index
    /// then finds that one.
    successor: ArcSwapOption<ColumnIndex>,
    /// Whether another index is in its place.
    replaced: AtomicBool,
}

/// A graph and its watermark at one moment. A view that is taken after it sees each row below the watermark in the
/// graph, or dead: what was dead when its turn came is in no graph, and dead in every later view.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The graph.
    pub graph: Arc<Graph>,
    /// Rows below it need no scan.
    pub watermark: u64,
    /// Rows of the dataset that had died when dead rows last began to leave the graph.
    pub died: u64,
    /// Codes of rows from the watermark on.
    pub(crate) coded: Option<Arc<Vec<Coded>>>,
    /// Keeps in the graph what a view shows that is taken after this.
    _visit: Option<Visit>,
}

impl Reached {
    /// The same for somebody who may keep it for long: rows that die may leave the graph meanwhile.
    pub(crate) fn without_visit(&self) -> Self {
        Reached {
            graph: Arc::clone(&self.graph),
            watermark: self.watermark,
            died: self.died,
            coded: self.coded.clone(),
            _visit: None,
        }
    }
}

/// How far the indexes of a dataset are, by column. They are few.
#[derive(Debug)]
pub(crate) struct AllReached(Vec<(Arc<ColumnIndex>, Reached)>);

impl AllReached {
    /// Of all that have one, for a reader who takes a view after it.
    pub fn of(indexes: &[Arc<ColumnIndex>]) -> Self {
        let built = indexes
            .iter()
            .filter(|index| index.kind() != IndexKind::Flat);
        let reached = built.map(|index| (Arc::clone(index), index.reached()));
        AllReached(reached.collect())
    }

    /// Of one column; none if it has no index.
    pub fn get(&self, column: &str) -> Option<&Reached> {
        self.find(column).map(|(_, reached)| reached)
    }

    /// The index of a column, and how far it is.
    pub fn find(&self, column: &str) -> Option<&(Arc<ColumnIndex>, Reached)> {
        self.0.iter().find(|(index, _)| index.column == column)
    }
}

#[derive(Debug, Default)]
struct Progress {
    /// Rows below it were given to a job.
    claimed: u64,
    /// Jobs that ended before one with lower rows: first row -> row after the last.
    ended: BTreeMap<u64, u64>,
    /// Rows of jobs that failed, to be tried again.
    returned: Vec<(u64, u64)>,
}

impl ColumnIndex {
    /// An empty graph of a kind, for a column whose rows from `watermark` on are to be indexed.
    ///
    /// # Errors
    /// If the parameters are out of their ranges.
    pub(crate) fn new(
        column: &VectorColumn,
        kind: IndexKind,
        options: &GraphOptions,
        watermark: u64,
    ) -> Result<Self> {
        let graph = Graph::new(column, kind, options)?;
        Ok(ColumnIndex {
            column: column.name.clone(),
            graph: ArcSwap::from_pointee(graph),
            watermark: AtomicU64::new(watermark),
            progress: Mutex::new(Progress {
                claimed: watermark,
                ended: BTreeMap::new(),
                returned: Vec::new(),
            }),
            loading: AtomicBool::new(false),
            unread: Mutex::new(None),
            moved: Condvar::new(),
            pause: RwLock::new(()),
            died: AtomicU64::new(0),
            held_back: Mutex::new(None),
            renewing: Mutex::new(false),
            old_graphs: Mutex::new(Vec::new()),
            sweep: Mutex::default(),
            coded: CodedTail::default(),
            searched: Searched::default(),
            recall: Recall::default(),
            auto: IndexPolicy::of(column, options.kind) == IndexPolicy::Auto,
            successor: ArcSwapOption::empty(),
            replaced: AtomicBool::new(false),
        })
    }

    /// The same in place of which comes a graph of a checkpoint. Until then nothing is inserted.
    pub(crate) fn loading(self, saved: IndexRef) -> Self {
        ColumnIndex {
            loading: AtomicBool::new(true),
            unread: Mutex::new(Some(saved)),
            ..self
        }
    }

    /// Whether its graph is still to be read from a checkpoint.
    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// Takes the graph of a checkpoint, which holds all rows below `watermark`.
    pub(crate) fn loaded(&self, graph: Graph, watermark: u64) {
        let mut progress = self.progress.lock();
        debug_assert!(self.loading.load(Ordering::Relaxed), "before any insert");
        progress.claimed = watermark;
        self.graph.store(Arc::new(graph));
        self.watermark.store(watermark, Ordering::Release);
    }

    /// Lets inserts begin.
    pub(crate) fn end_loading(&self) {
        *self.unread.lock() = None;
        let _progress = self.progress.lock();
        self.loading.store(false, Ordering::Release);
        self.moved.notify_all();
    }

    /// The file of a graph that is still to be read: it stands for the index in a checkpoint that is made meanwhile.
    pub(crate) fn unread(&self) -> Option<IndexRef> {
        self.unread.lock().clone()
    }

    /// Rows of a dataset that are to come into the graph, at most: those that are inserted, and those that are read.
    pub(crate) fn missing(&self, next_row: u64, live: u64) -> u64 {
        match self.unread() {
            Some(saved) => next_row.saturating_sub(saved.rows_end) + live.min(saved.rows_end),
            // An index that is begun anew has rows before it that are long dead.
            None => next_row.saturating_sub(self.watermark()).min(live),
        }
    }

    /// How many rows of a view it lacks, of those that live. To count them takes the longer, the more wait.
    pub(crate) fn missing_living(&self, view: &View) -> u64 {
        let most = self.missing(view.next_row, view.live);
        match self.unread() {
            Some(_) => most,
            None => most.min(view.live - view.living_below(self.watermark())),
        }
    }

    /// The graph. Load the watermark first: rows below it are then in the graph that this returns.
    pub fn graph(&self) -> Arc<Graph> {
        self.graph.load_full()
    }

    /// Rows below it need no scan.
    pub fn watermark(&self) -> u64 {
        self.watermark.load(Ordering::Acquire)
    }

    /// Its kind.
    pub fn kind(&self) -> IndexKind {
        self.graph.load().kind()
    }

    /// Whether its kind follows its size.
    pub fn is_auto(&self) -> bool {
        self.auto
    }

    /// The kind of the index that is built to take its place, if one is.
    pub fn moving_to(&self) -> Option<IndexKind> {
        Some(self.successor()?.kind())
    }

    /// The index that is built to take its place, or has.
    pub(crate) fn successor(&self) -> Option<Arc<ColumnIndex>> {
        self.successor.load_full()
    }

    /// Its graph, that of the index that is to take its place, and those before it that searches still use.
    pub(crate) fn graphs(&self) -> impl Iterator<Item = Arc<Graph>> + use<> {
        let successor = self.successor().map(|successor| successor.graph());
        let mut old = self.old_graphs.lock();
        old.retain(|graph| graph.strong_count() > 0);
        let used: Vec<_> = old.iter().filter_map(Weak::upgrade).collect();
        std::iter::once(self.graph()).chain(successor).chain(used)
    }

    /// Whether a file is one of its own, or of the index that is to take its place.
    pub(crate) fn holds(&self, file: &str) -> bool {
        self.graphs().any(|graph| graph.blocks() == Some(file))
    }

    /// Lets an index be built to take its place, or none any more.
    pub(crate) fn set_successor(&self, successor: Option<Arc<ColumnIndex>>) {
        self.successor.store(successor);
    }

    /// Says that its successor is in its place.
    pub(crate) fn set_replaced(&self) {
        let _progress = self.progress.lock();
        self.replaced.store(true, Ordering::Release);
        self.moved.notify_all();
    }

    /// Whether another index is in its place.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }

    /// Waits until another index is in its place, or the deadline.
    pub fn wait_until_replaced(&self, deadline: Instant) {
        let mut progress = self.progress.lock();
        while !self.is_replaced() && !self.moved.wait_until(&mut progress, deadline).timed_out() {}
    }

    /// Rows below `end` that are to be indexed and are not yet.
    pub fn waiting(&self, end: u64) -> u64 {
        if self.kind() == IndexKind::Flat {
            return 0;
        }
        let rows = end.saturating_sub(self.watermark());
        let loading = self.loading.load(Ordering::Acquire);
        if !loading && self.is_too_early(rows) {
            0
        } else {
            rows
        }
    }

    /// Whether a graph waits for more than these rows to begin: the origin of its codes, taken from one row, would be
    /// that row for ever. So few are scanned as fast as a graph is walked.
    fn is_too_early(&self, rows: u64) -> bool {
        rows < ORIGIN_ROWS && !self.graph.load().is_prepared()
    }

    /// The mean recall of the last searches whose exact answer was found too; `None` before there are any.
    pub fn recall(&self) -> Option<f64> {
        self.recall.gauge()
    }

    /// Whether efforts for a recall are known for the index as it is, while so many rows of the dataset live.
    pub fn is_calibrated(&self, live: u64) -> bool {
        self.curve(live).is_some()
    }

    /// What is known of efforts, unless the index has become another since.
    pub(crate) fn curve(&self, live: u64) -> Option<Arc<Curve>> {
        let now = self.moment(live);
        self.recall.curve().filter(|curve| curve.is_of(now))
    }

    /// What it holds while so many rows of the dataset live.
    pub(crate) fn moment(&self, live: u64) -> Moment {
        Moment {
            rows: self.graph().len() as u64,
            live,
            written: self.watermark(),
        }
    }

    /// The graph and its watermark, for a reader who takes a view after them.
    pub fn reached(&self) -> Reached {
        // In this order: codes begin at the watermark or below it, if that is loaded after them; and rows below the watermark
        // are in a graph that is loaded after it.
        let coded = self.coded.runs();
        let watermark = self.watermark();
        let graph = self.graph();
        let visit = graph.enter();
        Reached {
            graph,
            watermark,
            died: self.died.load(Ordering::Relaxed),
            coded,
            _visit: visit,
        }
    }

    /// Rows below it are in the index, or being taken.
    pub(crate) fn claimed(&self) -> u64 {
        self.progress.lock().claimed
    }

    /// Takes the next rows to index, of those below `end`. The guard keeps the graph from being saved or replaced
    /// while the job runs.
    pub fn claim(&self, end: u64) -> Option<(u64, u64, RwLockReadGuard<'_, ()>)> {
        let running = self.run()?;
        if self.kind() == IndexKind::Flat {
            return None;
        }
        let mut progress = self.progress.lock();
        if let Some((first, last)) = progress.returned.pop() {
            return Some((first, last, running));
        }
        let first = progress.claimed;
        if first >= end || self.is_too_early(end - first) {
            return None;
        }
        let last = end.min(first + JOB_ROWS);
        progress.claimed = last;
        Some((first, last, running))
    }

    /// Takes all rows to index, of those below `end`, some of which nobody sees yet; none if these are more than so many, or others are
    /// being taken or the graph stands still, and not only for a moment. [`ColumnIndex::finish`] or [`ColumnIndex::give_back`] is told of
    /// them when they are seen.
    pub(crate) fn claim_unseen(
        &self,
        end: u64,
        most: u64,
    ) -> Option<(u64, RwLockReadGuard<'_, ()>)> {
        let deadline = Instant::now() + MOMENT;
        let running = match self.is_loading() {
            true => None,
            false => self.pause.try_read_until(deadline),
        }?;
        let mut progress = self.progress.lock();
        loop {
            let first = progress.claimed;
            if first >= end || end - first > most {
                return None;
            }
            if self.watermark() == first {
                progress.claimed = end;
                return Some((first, running));
            }
            if self.moved.wait_until(&mut progress, deadline).timed_out() {
                return None;
            }
        }
    }

    /// Whether rows were not taken that come before others which were, while no job runs.
    pub(crate) fn has_gaps(&self, _still: &RwLockWriteGuard<'_, ()>) -> bool {
        self.progress.lock().claimed != self.watermark()
    }

    /// Gives the last rows of a claim back, which could not be taken: they are claimed again.
    pub(crate) fn give_back(&self, first: u64, last: u64) {
        self.progress.lock().returned.push((first, last));
    }

    /// Says that the rows `first..last` of a claim are in the graph.
    pub fn finish(&self, first: u64, last: u64) {
        let mut progress = self.progress.lock();
        progress.ended.insert(first, last);
        let mut mark = self.watermark.load(Ordering::Relaxed);
        while let Some(end) = progress.ended.remove(&mark) {
            mark = end;
        }
        self.watermark.store(mark, Ordering::Release);
        self.coded.forget(mark);
        self.moved.notify_all();
    }

    /// Waits until no row below `end` is to be indexed any more, here or at all, and says whether that came before the
    /// deadline.
    pub fn wait(&self, end: u64, deadline: Instant) -> bool {
        let mut progress = self.progress.lock();
        let is_over = || self.is_replaced() || self.waiting(end) == 0;
        while !is_over() {
            if self.moved.wait_until(&mut progress, deadline).timed_out() {
                return is_over();
            }
        }
        true
    }

    /// Begins a job, unless the graph is to stand still, or is not there yet.
    pub(crate) fn run(&self) -> Option<RwLockReadGuard<'_, ()>> {
        if self.loading.load(Ordering::Acquire) {
            return None;
        }
        self.pause.try_read()
    }

    /// Waits for running jobs to end and holds back new ones.
    pub fn hold_still(&self) -> RwLockWriteGuard<'_, ()> {
        self.pause.write()
    }

    /// As [`ColumnIndex::hold_still`], if the jobs that run end within a time.
    pub(crate) fn try_hold_still(&self, within: Duration) -> Option<RwLockWriteGuard<'_, ()>> {
        match within.is_zero() {
            true => self.pause.try_write(),
            false => self.pause.try_write_for(within),
        }
    }

    /// Replaces the graph by one that holds the same living rows; the caller holds the index still.
    pub fn replace(&self, graph: Graph, _still: &RwLockWriteGuard<'_, ()>) {
        let old = self.graph.swap(Arc::new(graph));
        self.old_graphs.lock().push(Arc::downgrade(&old));
    }
}

#[cfg(test)]
mod tests;

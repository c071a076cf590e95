//! A dataset on this node: its writer's state, the view its readers take, and its indexes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use longbow_storage::{Batch, IdMap, Key, Segment};
use parking_lot::Mutex;
use roaring::RoaringTreemap;

use crate::coded_tail::LEAST_BYTES;
use crate::column_index::{AllReached, ColumnIndex};
use crate::dead::DeadRows;
use crate::error::Result;
use crate::filter::FilterCache;
use crate::graph_options::GraphOptions;
use crate::id::Id;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::schema::{DatasetSchema, VectorColumn};
use crate::tail::{Tail, TailBatch};
use crate::text_index::TextIndex;
use crate::unseen::{self, Unseen};
use crate::view::View;

/// How often somebody who waits for an index that is yet to be begun looks whether there is still to be one.
const DUE_LOOK: Duration = Duration::from_millis(100);

/// A dataset. Writes reach it in the order of the log, from one thread at a time; readers take a [`View`] at any time.
#[derive(Debug)]
pub struct Dataset {
    /// Its number: names its folder and its log entries, and is never used again.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What is being written: the schema as of the last entry handed to the log. Held while an entry is handed
    /// over, so that entries of one dataset agree on the schema they were checked against.
    pub intake: Mutex<Intake>,
    /// The state machine: applied entries only.
    state: Mutex<State>,
    view: ArcSwap<View>,
    indexes: ArcSwap<Vec<Arc<ColumnIndex>>>,
    params: GraphOptions,
    /// Which rows passed the filters of late.
    pub(crate) filters: FilterCache,
    text: TextIndex,
    /// Whether what is applied is kept from readers.
    replaying: AtomicBool,
}

/// The front of the write path.
#[derive(Debug)]
pub struct Intake {
    /// The schema that the next batch is checked against.
    pub schema: Arc<DatasetSchema>,
    /// Set when the entry that drops the dataset was handed to the log.
    pub dropped: bool,
}

#[derive(Debug)]
struct State {
    ids: IdMap,
    view: View,
}

impl Dataset {
    /// A dataset without rows, as of log entry `index`.
    ///
    /// # Errors
    /// If the id column's type is none that ids can have.
    pub fn new(
        number: u64,
        name: &str,
        schema: Arc<DatasetSchema>,
        index: u64,
        params: &GraphOptions,
    ) -> Result<Self> {
        let view = View {
            index,
            next_row: 0,
            live: 0,
            schema: Arc::clone(&schema),
            segments: Arc::default(),
            tail: Tail::default(),
            dead: DeadRows::default(),
        };
        let ids = IdMap::new(schema.arrow.field(schema.id).data_type())?;
        let params = params.of_dataset(number);
        let indexes = new_indexes(&schema, &[], &params, 0)?;
        Ok(Self::from_parts(number, name, view, ids, indexes, params))
    }

    /// A dataset as a checkpoint left it.
    pub(crate) fn from_parts(
        number: u64,
        name: &str,
        view: View,
        ids: IdMap,
        indexes: Vec<Arc<ColumnIndex>>,
        params: GraphOptions,
    ) -> Self {
        Dataset {
            number,
            name: name.to_owned(),
            intake: Mutex::new(Intake {
                schema: Arc::clone(&view.schema),
                dropped: false,
            }),
            view: ArcSwap::from_pointee(view.clone()),
            state: Mutex::new(State { ids, view }),
            indexes: ArcSwap::from_pointee(indexes),
            params,
            filters: FilterCache::default(),
            text: TextIndex::default(),
            replaying: AtomicBool::new(false),
        }
    }

    /// The same with another text index.
    pub(crate) fn with_text(self, text: TextIndex) -> Self {
        Dataset { text, ..self }
    }

    /// The text index.
    pub(crate) fn text(&self) -> &TextIndex {
        &self.text
    }

    /// From now on nothing that is applied is shown to readers, of which there are none while the log is replayed:
    /// views that nobody takes would cost more than the rows.
    pub(crate) fn begin_replay(&self) {
        self.replaying.store(true, Ordering::Relaxed);
    }

    /// Index of the last applied entry, and the schema as of it, whether shown to readers or not.
    pub(crate) fn applied(&self) -> (u64, Arc<DatasetSchema>) {
        let view = &self.state.lock().view;
        (view.index, Arc::clone(&view.schema))
    }

    /// Lets readers see what was replayed, and lets writes in behind it: they are checked against the schema as it is
    /// now.
    pub(crate) fn open_intake(&self) {
        let view = self.state.lock().view.clone();
        self.intake.lock().schema = Arc::clone(&view.schema);
        self.view.store(Arc::new(view));
        self.replaying.store(false, Ordering::Relaxed);
    }

    /// What a reader sees now.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The indexes, one a vector column.
    pub fn indexes(&self) -> Arc<Vec<Arc<ColumnIndex>>> {
        self.indexes.load_full()
    }

    /// How far the indexes are, by column, for a reader who takes a view after it. Columns without one are not there.
    pub(crate) fn reached(&self) -> AllReached {
        AllReached::of(&self.indexes.load())
    }

    /// The index of a column.
    pub(crate) fn index(&self, column: &str) -> Option<Arc<ColumnIndex>> {
        let indexes = self.indexes.load();
        indexes.iter().find(|index| index.column == column).cloned()
    }

    /// Rows that an index still has to take: all of them where there is to be one, and none was begun yet.
    pub fn waiting(&self, index: &ColumnIndex) -> u64 {
        let view = self.view.load();
        match self.is_due(index, &view) {
            true => view.live,
            false => index.waiting(view.next_row),
        }
    }

    /// Whether a column has no index and is to get one.
    fn is_due(&self, index: &ColumnIndex, view: &View) -> bool {
        let enough = view.live >= self.params.choice.least_rows;
        enough && index.is_auto() && index.kind() == IndexKind::Flat
    }

    /// Rows that some index still has to take.
    pub fn unindexed(&self) -> u64 {
        let indexes = self.indexes.load();
        let waiting = indexes.iter().map(|index| self.waiting(index));
        let graphs = waiting.max().unwrap_or(0);
        graphs.max(self.text.waiting(&self.view.load()))
    }

    /// Waits until every index has taken the rows that are there now, and says whether that came before the timeout.
    pub fn wait_for_index(&self, timeout: Duration) -> bool {
        let (view, deadline) = (self.view.load(), Instant::now() + timeout);
        loop {
            let indexes = self.indexes.load_full();
            for index in indexes.iter() {
                while self.is_due(index, &self.view.load()) && !index.is_replaced() {
                    let now = Instant::now();
                    if now >= deadline {
                        return false;
                    }
                    // Rows may die meanwhile so that it is due no more, and nobody tells.
                    index.wait_until_replaced(deadline.min(now + DUE_LOOK));
                }
                if !index.wait(view.next_row, deadline) {
                    return false;
                }
            }
            if Arc::ptr_eq(&indexes, &self.indexes.load_full()) {
                return self.text.wait(&view, deadline);
            }
        }
    }

    /// Puts an index in the place of another of the same column. Searches that began with the other go on with it.
    pub(crate) fn replace_index(&self, old: &Arc<ColumnIndex>, new: &Arc<ColumnIndex>) {
        // Nobody else changes them meanwhile.
        let _state = self.state.lock();
        let mut indexes = self.indexes.load().as_ref().clone();
        for index in &mut indexes {
            if Arc::ptr_eq(index, old) {
                *index = Arc::clone(new);
            }
        }
        self.indexes.store(Arc::new(indexes));
        old.set_replaced();
    }

    /// How its indexes are built.
    pub(crate) fn graph_options(&self) -> &GraphOptions {
        &self.params
    }

    /// The row that holds `id` now.
    pub fn find(&self, id: &Id) -> Option<u64> {
        self.state.lock().ids.get(&key(id))
    }

    /// Memory of the id map, the liveness of rows and what filters let pass, in bytes.
    pub fn bookkeeping_bytes(&self) -> u64 {
        let state = self.state.lock();
        let filters = self.filters.memory_bytes() as u64;
        state.ids.memory_bytes() + state.view.dead.memory_bytes() + filters
    }

    /// Takes the rows of a batch; each replaces the row of the same id, also one of the same batch before it.
    ///
    /// # Errors
    /// If an id is null; nothing is changed then.
    pub(crate) fn apply_put(&self, index: u64, batch: Arc<Batch>) -> Result<u64> {
        let indexes = self.indexes();
        let are_many = batch.bytes() >= LEAST_BYTES as u64;
        let is_searched = |index: &Arc<ColumnIndex>| index.searched.is_of_late();
        if !are_many || !indexes.iter().any(is_searched) {
            return self.take_batch(index, batch);
        }
        // What would be refused has no place in an index.
        let id = self.view().schema.id;
        {
            let state = self.state.lock();
            state.ids.check_column(&batch, id)?;
            debug_assert_eq!(state.view.next_row, self.view().next_row, "all is shown");
        }
        let unseen = self.prepare_unseen(&batch, &indexes);
        let applied = self.take_batch(index, batch);
        assert!(
            applied.is_ok(),
            "a batch was checked and is refused: {applied:?}"
        );
        unseen.into_iter().for_each(Unseen::are_seen);
        applied
    }

    /// Has rows that come next put into indexes, or their codes made, before anybody sees them: compared by their vectors they would be
    /// at thirty times the price, by searches that contend for memory with whoever makes their codes meanwhile. Without the lock of
    /// the state, for which others would wait; only who applies, who is here, gives row numbers.
    fn prepare_unseen<'a>(
        &self,
        batch: &Arc<Batch>,
        indexes: &'a [Arc<ColumnIndex>],
    ) -> Vec<Unseen<'a>> {
        let mut view = View::clone(&self.view());
        let (first_row, rows) = (view.next_row, batch.rows() as u64);
        view.next_row += rows;
        let batch = Arc::clone(batch);
        view.tail.push(TailBatch { first_row, batch });
        // Of this moment still, in which the rows that they replace live.
        unseen::prepare(self, &view, rows, indexes)
    }

    fn take_batch(&self, index: u64, batch: Arc<Batch>) -> Result<u64> {
        let mut state = self.state.lock();
        let State { ids, view } = &mut *state;
        let first_row = view.next_row;
        let mut replaced = 0;
        ids.insert_column(&batch, view.schema.id, first_row, &mut |previous| {
            view.dead.mark(previous, index);
            replaced += 1;
        })?;
        let rows = batch.rows() as u64;
        view.next_row += rows;
        view.live = view.live + rows - replaced;
        view.tail.push(TailBatch { first_row, batch });
        self.publish(view, index);
        Ok(rows)
    }

    /// Removes rows by id: all, or none if one is unknown.
    ///
    /// # Errors
    /// If an id is unknown; nothing is changed then.
    pub(crate) fn apply_delete_ids(&self, index: u64, deleted: &[Id]) -> Result<u64> {
        let mut state = self.state.lock();
        let State { ids, view } = &mut *state;
        if let Some(unknown) = deleted.iter().find(|id| ids.get(&key(id)).is_none()) {
            self.publish(view, index);
            return Err(unknown.unknown_in(&self.name, &view.schema.arrow));
        }
        let mut gone = 0;
        for id in deleted {
            if let Some(row) = ids.remove(&key(id)) {
                view.dead.mark(row, index);
                gone += 1;
            }
        }
        view.live -= gone;
        self.publish(view, index);
        Ok(gone)
    }

    /// Removes rows by number, except those that died before.
    ///
    /// # Errors
    /// If the id of a row cannot be read from its batch.
    pub(crate) fn apply_delete_rows(&self, index: u64, rows: &RoaringTreemap) -> Result<u64> {
        let mut state = self.state.lock();
        let State { ids, view } = &mut *state;
        let mut doomed = Vec::new();
        for row in rows {
            if row >= view.next_row || view.dead.is_dead(row, index) {
                continue;
            }
            if let Some((batch, at)) = view.locate(row) {
                doomed.push((row, id_at(batch, view.schema.id, at)?));
            }
        }
        for (row, id) in &doomed {
            ids.remove(&key(id));
            view.dead.mark(*row, index);
        }
        view.live -= doomed.len() as u64;
        self.publish(view, index);
        Ok(doomed.len() as u64)
    }

    /// Takes a grown schema. Rows so far have null in the new columns.
    ///
    /// # Errors
    /// If an index for a new column cannot be made; nothing is changed then.
    pub(crate) fn apply_schema(&self, index: u64, schema: Arc<DatasetSchema>) -> Result<()> {
        let mut state = self.state.lock();
        let known = self.indexes.load_full();
        let indexes = new_indexes(&schema, &known, &self.params, state.view.next_row)?;
        self.indexes.store(Arc::new(indexes));
        state.view.schema = schema;
        self.publish(&mut state.view, index);
        Ok(())
    }

    /// Replaces the first `sealed_to` rows of the tail by a segment that holds them.
    pub(crate) fn swap_tail(&self, segments: Vec<Arc<Segment>>, sealed_to: u64) {
        let mut state = self.state.lock();
        let view = &mut state.view;
        view.tail = view.tail.without_before(sealed_to);
        Arc::make_mut(&mut view.segments).extend(segments);
        view.dead.settle(view.index);
        self.view.store(Arc::new(view.clone()));
    }

    /// Replaces adjacent segments by others that hold the same living rows. False, with nothing changed, if the
    /// old ones are no longer there.
    pub(crate) fn swap_segments(&self, old: &[Arc<Segment>], new: Vec<Arc<Segment>>) -> bool {
        let mut state = self.state.lock();
        let segments = Arc::make_mut(&mut state.view.segments);
        let Some(at) = segments
            .iter()
            .position(|segment| Arc::ptr_eq(segment, &old[0]))
        else {
            return false;
        };
        let matches = segments[at..]
            .iter()
            .zip(old)
            .all(|(a, b)| Arc::ptr_eq(a, b));
        if !matches || segments.len() - at < old.len() {
            return false;
        }
        segments.splice(at..at + old.len(), new);
        let view = &mut state.view;
        view.dead.settle(view.index);
        self.view.store(Arc::new(view.clone()));
        true
    }

    fn publish(&self, view: &mut View, index: u64) {
        debug_assert!(
            index > view.index,
            "entries are applied in the order of the log, each once"
        );
        view.index = index;
        if !self.replaying.load(Ordering::Relaxed) {
            self.view.store(Arc::new(view.clone()));
        }
    }
}

/// An index for each vector column, keeping those that exist. A new column of a dataset with rows starts at
/// `from`: the rows before it are null there.
fn new_indexes(
    schema: &DatasetSchema,
    known: &[Arc<ColumnIndex>],
    params: &GraphOptions,
    from: u64,
) -> Result<Vec<Arc<ColumnIndex>>> {
    let index_of =
        |column: &VectorColumn| match known.iter().find(|index| index.column == column.name) {
            Some(index) => Ok(Arc::clone(index)),
            None => {
                let kind = IndexPolicy::of(column, params.kind).first();
                Ok(Arc::new(ColumnIndex::new(column, kind, params, from)?))
            }
        };
    schema.vectors.iter().map(index_of).collect()
}

/// The id of the row at position `at` of a batch.
pub(crate) fn id_at(batch: &Batch, column: usize, at: usize) -> Result<Id> {
    Ok(match longbow_storage::key_at(batch, column, at)? {
        Key::Int(value) => Id::Int(value),
        Key::UInt(value) => Id::Large(value),
        Key::Str(value) => Id::Text(value.to_owned()),
    })
}

fn key(id: &Id) -> Key<'_> {
    match id {
        Id::Int(value) => Key::Int(*value),
        Id::Large(value) => Key::UInt(*value),
        Id::Text(value) => Key::Str(value),
    }
}

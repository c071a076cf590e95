//! The text index of a dataset: pieces, and how far they reach.
//!
//! A piece is made once of the rows that came since the last, and never changed; small neighbours are merged, and a piece
//! with many dead rows is written anew without them. Readers hold what they found by reference counts. A checkpoint writes
//! the pieces that are not in a file yet and names all, so what is found after a crash is the index as of the manifest:
//! rows after it are indexed again, whatever their numbers stand for then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use longbow_storage::{FileRef, TextRef};
use longbow_text::{Alive, Builder, Column, Piece};
use parking_lot::{Condvar, Mutex};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::text_column::{TextColumn, Texts};
use crate::view::View;

/// Most rows of a new piece.
const JOB_ROWS: u64 = 16_384;
/// Fewer rows wait for others for a while: to read their texts takes a search as long as to ask one more piece.
const FEWEST: u64 = 64;
/// For how long, while none comes.
const PATIENCE: Duration = Duration::from_millis(100);

/// A piece, its file, and what lives in it.
#[derive(Debug)]
pub(crate) struct Held {
    pub piece: Piece,
    /// Written and synced; its name is durable with the next checkpoint.
    pub file: Mutex<Option<FileRef>>,
    /// As of so many dead rows of the dataset.
    alive: Mutex<Option<(u64, Arc<Alive>)>>,
}

impl Held {
    pub fn new(piece: Piece, file: Option<FileRef>) -> Arc<Self> {
        Arc::new(Held {
            piece,
            file: Mutex::new(file),
            alive: Mutex::default(),
        })
    }

    /// What of it lives in a view. That it counts anew only if a row died since the last time.
    pub fn alive(&self, view: &View) -> Arc<Alive> {
        let died = died(view);
        if let Some((as_of, alive)) = &*self.alive.lock()
            && *as_of == died
        {
            return Arc::clone(alive);
        }
        let alive = Arc::new(Alive::of(
            &self.piece,
            |first, rows| view.dead.may_hold(first, rows),
            |row| !view.is_visible(row),
        ));
        let mut kept = self.alive.lock();
        if kept.as_ref().is_none_or(|(as_of, _)| *as_of < died) {
            *kept = Some((died, Arc::clone(&alive)));
        }
        alive
    }
}

/// Rows that have died. Two views of a dataset with as many have the same ones.
pub(crate) fn died(view: &View) -> u64 {
    view.next_row.saturating_sub(view.live)
}

/// The pieces of one moment. A view that is taken after it sees each row below the watermark in them, dead, or without
/// text.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// In order of rows.
    pub list: Vec<Arc<Held>>,
    /// Rows from here on are in none.
    pub watermark: u64,
}

/// The text index of a dataset.
#[derive(Debug, Default)]
pub(crate) struct TextIndex {
    /// The columns of the node's configuration.
    pub chosen: Arc<[String]>,
    pieces: ArcSwap<Pieces>,
    /// Held while the pieces are exchanged.
    change: Mutex<()>,
    /// Rung when the watermark has moved, or the pieces were read.
    moved: Condvar,
    /// Held by who makes a piece: up to which row rows waited, and since when.
    making: Mutex<Option<(u64, Instant)>>,
    /// Held by who merges: how many rows had died when pieces were last looked over for dead ones.
    pub(crate) merging: Mutex<u64>,
    /// Whether the pieces of a checkpoint are still to be read.
    loading: AtomicBool,
    unread: Mutex<Option<TextRef>>,
}

impl TextIndex {
    /// An empty index over all columns that the configuration chooses, or what a checkpoint left, to be read yet.
    pub fn new(chosen: Arc<[String]>, saved: Option<TextRef>) -> Self {
        TextIndex {
            chosen,
            loading: AtomicBool::new(saved.is_some()),
            unread: Mutex::new(saved),
            ..Self::default()
        }
    }

    /// The text columns of a schema.
    pub fn columns(&self, view: &View) -> Vec<TextColumn> {
        TextColumn::all(&view.schema, &self.chosen)
    }

    /// The pieces now, for a reader who takes a view after them.
    pub fn pieces(&self) -> Arc<Pieces> {
        self.pieces.load_full()
    }

    /// What is still to be read of a checkpoint: it stands for the index in one that is made meanwhile.
    pub fn unread(&self) -> Option<TextRef> {
        self.unread.lock().clone()
    }

    /// Takes the pieces of a checkpoint, or none if they could not be read, and lets indexing begin.
    pub fn loaded(&self, pieces: Pieces) {
        let _change = self.change.lock();
        self.pieces.store(Arc::new(pieces));
        *self.unread.lock() = None;
        self.loading.store(false, Ordering::Release);
        self.moved.notify_all();
    }

    /// Rows of a view that are to be indexed and are not yet.
    pub fn waiting(&self, view: &View) -> u64 {
        let rows = view.next_row.saturating_sub(self.pieces.load().watermark);
        let loading = self.loading.load(Ordering::Acquire);
        if rows == 0 || !loading && rows < FEWEST || self.columns(view).is_empty() {
            return 0;
        }
        rows
    }

    /// Waits until no row of a view is to be indexed any more, and says whether that came before the deadline.
    pub fn wait(&self, view: &View, deadline: Instant) -> bool {
        let mut change = self.change.lock();
        while self.waiting(view) > 0 {
            if self.moved.wait_until(&mut change, deadline).timed_out() {
                return self.waiting(view) == 0;
            }
        }
        true
    }

    /// Whether a piece lies in a file of this name.
    pub fn holds(&self, name: &str) -> bool {
        let is_it = |held: &Arc<Held>| {
            let file = held.file.lock();
            file.as_ref().is_some_and(|file| file.file == name)
        };
        self.pieces.load().list.iter().any(is_it)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        let pieces = self.pieces.load();
        let bytes = pieces.list.iter().map(|held| held.piece.bytes());
        bytes.sum::<usize>() as u64
    }

    /// Bytes that so many more rows will take, by those that are there.
    pub fn bytes_of(&self, rows: u64) -> u64 {
        let pieces = self.pieces.load();
        let known: usize = pieces.list.iter().map(|held| held.piece.len()).sum();
        let mean = self.bytes().checked_div(known as u64).unwrap_or(0);
        rows.saturating_mul(mean)
    }

    /// Rows that are in no piece.
    pub fn missing(&self, view: &View) -> u64 {
        view.next_row.saturating_sub(self.pieces.load().watermark)
    }

    /// Makes a piece of rows that wait; false if there is nothing to do now.
    ///
    /// # Errors
    /// If the rows cannot be indexed. They are scanned then.
    pub fn advance(&self, dataset: &Dataset) -> Result<bool> {
        if self.loading.load(Ordering::Acquire) {
            return Ok(false);
        }
        let Some(mut making) = self.making.try_lock() else {
            return Ok(false);
        };
        let view = dataset.view();
        let first = self.pieces.load().watermark;
        let rows = view.next_row.saturating_sub(first);
        let columns = self.columns(&view);
        if rows == 0 || rows < FEWEST && !columns.is_empty() && is_early(&mut making, view.next_row)
        {
            return Ok(false);
        }
        // Without a column there is no text; one that comes later is null in these rows.
        if columns.is_empty() {
            self.append(None, view.next_row);
            return Ok(true);
        }
        let end = view.next_row.min(first + JOB_ROWS);
        self.append(build(&view, &columns, first..end)?, end);
        Ok(true)
    }

    fn append(&self, piece: Option<Piece>, watermark: u64) {
        let _change = self.change.lock();
        let mut list = self.pieces.load().list.clone();
        list.extend(piece.map(|piece| Held::new(piece, None)));
        self.pieces.store(Arc::new(Pieces { list, watermark }));
        self.moved.notify_all();
    }

    /// Puts one piece, or none, in the place of neighbours; they are only ever replaced here.
    pub fn replace(&self, old: &[Arc<Held>], new: Option<Piece>) {
        let _change = self.change.lock();
        let pieces = self.pieces.load();
        let is_first = |held: &Arc<Held>| Arc::ptr_eq(held, &old[0]);
        let Some(at) = pieces.list.iter().position(is_first) else {
            return;
        };
        let mut list = pieces.list.clone();
        list.splice(at..at + old.len(), new.map(|piece| Held::new(piece, None)));
        let watermark = pieces.watermark;
        self.pieces.store(Arc::new(Pieces { list, watermark }));
    }
}

/// Whether few rows have not waited long enough for others.
fn is_early(waited: &mut Option<(u64, Instant)>, next_row: u64) -> bool {
    match waited {
        Some((end, since)) if *end == next_row => since.elapsed() < PATIENCE,
        _ => {
            *waited = Some((next_row, Instant::now()));
            true
        }
    }
}

/// A piece of the living ones of some rows.
fn build(view: &View, columns: &[TextColumn], rows: std::ops::Range<u64>) -> Result<Option<Piece>> {
    let numbers: Vec<Column> = columns.iter().map(|column| column.column).collect();
    let mut builder = Builder::new(&numbers)?;
    each_text(view, columns, rows, &mut |row, texts| {
        Ok(builder.add(row, texts)?)
    })?;
    Ok(builder.finish()?)
}

/// Takes a row and its texts by column.
pub(crate) type TakeRow<'a> = dyn FnMut(u64, &[Option<&str>]) -> Result<()> + 'a;

/// Hands on the living ones of some rows with their texts.
///
/// # Errors
/// What `take` fails with.
pub(crate) fn each_text(
    view: &View,
    columns: &[TextColumn],
    rows: std::ops::Range<u64>,
    take: &mut TakeRow<'_>,
) -> Result<()> {
    for part in view.parts(rows.start) {
        let texts = Texts::of(part.batch, columns);
        let mut values = Vec::with_capacity(columns.len());
        for run in &part.runs {
            for offset in 0..run.len {
                let row = run.first_row + offset as u64;
                if row >= rows.end {
                    return Ok(());
                }
                if view.is_visible(row) {
                    values.clear();
                    values.extend(texts.iter().map(|texts| texts.get(run.start + offset)));
                    take(row, &values)?;
                }
            }
        }
    }
    Ok(())
}

//! The text index in a checkpoint, and out of one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_storage::{FileRef, TextRef, crc32c};
use longbow_text::Piece;

use crate::checkpoint::write_file;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::seal::folder;
use crate::shared::Shared;
use crate::text_index::{Held, Pieces};
use crate::view::View;

/// Writes the pieces that are in no file yet. Every row that they hold is in a view taken after; its columns are still to
/// be named.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn save(shared: &Shared, dataset: &Dataset) -> Result<TextRef> {
    let text = dataset.text();
    if let Some(saved) = text.unread() {
        return Ok(saved);
    }
    let pieces = text.pieces();
    let mut files = Vec::with_capacity(pieces.list.len());
    for held in &pieces.list {
        let mut file = held.file.lock();
        if file.is_none() {
            let bytes = held.piece.encode()?;
            let path = shared.new_file(dataset.number, "text", "text");
            *file = Some(FileRef {
                file: write_file(shared, &path, &bytes)?,
                bytes: bytes.len() as u64,
                crc32c: crc32c(&bytes),
            });
        }
        files.extend(file.clone());
    }
    Ok(TextRef {
        columns: Vec::new(),
        pieces: files,
        rows_end: pieces.watermark,
    })
}

/// What the manifest says of a text index, under the schema that it says too; `None` without text columns.
pub(crate) fn named(saved: TextRef, dataset: &Dataset, view: &View) -> Option<TextRef> {
    let columns = dataset.text().columns(view);
    let columns: Vec<_> = columns.iter().map(|column| column.saved()).collect();
    (!columns.is_empty()).then_some(TextRef { columns, ..saved })
}

/// Reads what the last checkpoint saved, if that is still to be done.
pub(crate) fn load(shared: &Shared, dataset: &Dataset) {
    let text = dataset.text();
    let Some(saved) = text.unread() else {
        return;
    };
    let list = saved.pieces.iter().map(|file| read(shared, dataset, file));
    let list = list.collect::<Result<Vec<_>>>();
    match list.and_then(in_order) {
        Ok(list) => text.loaded(Pieces {
            list,
            watermark: saved.rows_end,
        }),
        Err(error) => {
            // Nothing is lost: the rows are read until the index is built anew.
            tracing::warn!(dataset = dataset.name, %error, "text index is built anew");
            shared.rebuilt_texts.fetch_add(1, Ordering::Relaxed);
            text.loaded(Pieces::default());
            shared.unsaved.mended();
        }
    }
}

fn read(shared: &Shared, dataset: &Dataset, file: &FileRef) -> Result<Arc<Held>> {
    let path = folder(shared, dataset.number).join(&file.file);
    let bytes = shared.disk.read(&path, file.bytes)?;
    check(&bytes, file)?;
    let piece = Piece::decode(bytes)?;
    Ok(Held::new(piece, Some(file.clone())))
}

/// Whether these are the bytes that the manifest means.
pub(crate) fn check(bytes: &[u8], file: &FileRef) -> Result<()> {
    if bytes.len() as u64 == file.bytes && crc32c(bytes) == file.crc32c {
        return Ok(());
    }
    let file = file.file.clone();
    Err(Error::BadTextFile { file })
}

fn in_order(list: Vec<Arc<Held>>) -> Result<Vec<Arc<Held>>> {
    let ends = |pair: &[Arc<Held>]| pair[0].piece.rows().1 < pair[1].piece.rows().0;
    if list.windows(2).all(ends) {
        return Ok(list);
    }
    Err(longbow_text::Error::Damaged("pieces out of order").into())
}

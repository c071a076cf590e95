//! [`IdMap`]: which row holds an id now.

use std::hash::BuildHasher;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use hashbrown::DefaultHashBuilder;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::id_table::{IntTable, TextTable, grouped};
use crate::int_ids::IntIds;

/// Longest string that can be an id, in bytes.
pub const MAX_ID_BYTES: usize = 65_536;

/// An id as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// An integer.
    Int(i64),
    /// An integer that may be beyond `i64`.
    UInt(u64),
    /// A string.
    Str(&'a str),
}

/// The ids of one dataset, each with the number of the row that holds it.
///
/// Integers that count up with their rows take next to nothing, as long as they do so for 64 rows or more. Others take
/// 16 bytes and a control byte each, strings their bytes and 20 more, over a load of 7/16 to 7/8.
/// The table is cut into 64 parts by the hash, which double at different times, so that growing stalls a write for
/// one part at most. Hashes are seeded anew for each map, so that ids cannot be chosen to collide.
#[derive(Debug)]
pub struct IdMap {
    table: Table,
    hasher: DefaultHashBuilder,
}

/// What ids are like, as far as their map's memory depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// Integers that count up with their rows.
    Counted,
    /// Any other integers.
    Integers,
    /// Strings of so many bytes.
    Text(u64),
}

#[derive(Debug)]
enum Table {
    /// Keys are the two's complement bits.
    Signed(IntIds),
    Unsigned(IntIds),
    Text(TextTable),
}

impl IdMap {
    /// An empty map for ids of a column type.
    ///
    /// # Errors
    /// If the type is neither an integer nor a string.
    pub fn new(data_type: &DataType) -> Result<Self> {
        let table = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Table::Text(TextTable::new())
            }
            integer if integer.is_signed_integer() => Table::Signed(IntIds::new()),
            integer if integer.is_unsigned_integer() => Table::Unsigned(IntIds::new()),
            _ => return Err(wrong_type(data_type)),
        };
        Ok(IdMap {
            table,
            hasher: DefaultHashBuilder::default(),
        })
    }

    /// The row that holds an id. A key of another kind than the map's (a string among integers, a negative
    /// number among unsigned ones) is held by none.
    pub fn get(&self, key: &Key<'_>) -> Option<u64> {
        match (&self.table, self.plain(key)?) {
            (Table::Text(table), Plain::Text(text)) => table.get(self.hash_text(text), text),
            (Table::Signed(table) | Table::Unsigned(table), Plain::Bits(bits)) => {
                table.get(&self.hasher, bits)
            }
            _ => None,
        }
    }

    /// Sets the row of an id; the row that held it before.
    ///
    /// # Errors
    /// If the key is of another kind than the map's, or longer than [`MAX_ID_BYTES`].
    pub fn insert(&mut self, key: &Key<'_>, row: u64) -> Result<Option<u64>> {
        let plain = self.plain(key);
        let hasher = &self.hasher;
        match (&mut self.table, plain) {
            (Table::Text(table), Some(Plain::Text(text))) => {
                check_length(0, text.len())?;
                let hash = hasher.hash_one(text.as_bytes());
                Ok(table.insert(hasher, hash, text, row))
            }
            (Table::Signed(table) | Table::Unsigned(table), Some(Plain::Bits(bits))) => {
                Ok(table.insert(hasher, bits, row))
            }
            _ => Err(Error::IdKind {
                key: format!("{key:?}"),
                kind: self.kind(),
            }),
        }
    }

    /// Takes an id out; the row that held it.
    pub fn remove(&mut self, key: &Key<'_>) -> Option<u64> {
        let plain = self.plain(key)?;
        let hasher = &self.hasher;
        match (&mut self.table, plain) {
            (Table::Text(table), Plain::Text(text)) => {
                table.remove(hasher.hash_one(text.as_bytes()), text)
            }
            (Table::Signed(table) | Table::Unsigned(table), Plain::Bits(bits)) => {
                table.remove(hasher, bits)
            }
            _ => None,
        }
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Signed(table) | Table::Unsigned(table) => table.len(),
            Table::Text(table) => table.len(),
        }
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let held = match &self.table {
            Table::Signed(table) | Table::Unsigned(table) => table.memory_bytes(),
            Table::Text(table) => table.memory_bytes(),
        };
        (held + size_of::<Self>()) as u64
    }

    /// What [`IdMap::memory_bytes`] will be with so many ids.
    pub fn estimated_bytes(kind: IdKind, ids: u64) -> u64 {
        match kind {
            IdKind::Counted => 0,
            IdKind::Integers => IntTable::estimated(ids),
            IdKind::Text(bytes) => TextTable::estimated(ids, bytes),
        }
    }

    /// Inserts the ids of a batch whose first row has the number `first_row` and the others follow. `replaced` is
    /// told each row that held an id before, in any order; if an id is there twice the last row holds it.
    ///
    /// # Errors
    /// If an id is null or longer than [`MAX_ID_BYTES`], or if the column is of another kind than the map; nothing
    /// is inserted then.
    pub fn insert_column(
        &mut self,
        batch: &Batch,
        column: usize,
        first_row: u64,
        replaced: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let run = (first_row, 0, batch.rows());
        self.insert_runs(batch, column, [run], &mut |_| true, replaced)
    }

    /// Whether [`IdMap::insert_column`] would take the ids of a batch.
    ///
    /// # Errors
    /// Those that it has.
    pub fn check_column(&self, batch: &Batch, column: usize) -> Result<()> {
        self.checked(batch, column).map(drop)
    }

    fn checked(&self, batch: &Batch, column: usize) -> Result<ArrayRef> {
        let ids = batch.column(column)?;
        if ids.null_count() > 0 {
            let row = (0..ids.len()).find(|row| ids.is_null(*row)).unwrap_or(0);
            return Err(Error::NullId { row });
        }
        check_id_lengths(&ids)?;
        let data_type = ids.data_type();
        let is_of_kind = match &self.table {
            Table::Signed(_) => data_type.is_signed_integer(),
            Table::Unsigned(_) => data_type.is_unsigned_integer(),
            Table::Text(_) => data_type.is_string(),
        };
        match is_of_kind {
            true => Ok(ids),
            false => Err(wrong_type(data_type)),
        }
    }

    /// Inserts ids of a batch by runs, as [`crate::Segment::row_ranges`] gives them: first row number, its
    /// position in the batch, number of rows. Only rows that `keep` agrees to are inserted.
    ///
    /// # Errors
    /// As [`IdMap::insert_column`].
    ///
    /// # Panics
    /// If a run is not in the batch.
    pub fn insert_runs(
        &mut self,
        batch: &Batch,
        column: usize,
        runs: impl IntoIterator<Item = (u64, usize, usize)>,
        keep: &mut dyn FnMut(u64) -> bool,
        replaced: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let ids = self.checked(batch, column)?;
        let rows = runs
            .into_iter()
            .flat_map(|(first, start, len)| (start..start + len).zip(first..))
            .filter(|(_, row)| keep(*row));
        let hasher = &self.hasher;
        match &mut self.table {
            Table::Text(table) => {
                let hash = |text: &str| hasher.hash_one(text.as_bytes());
                let insert = |hash, text: &str, row| {
                    table.insert(hasher, hash, text, row).map(&mut *replaced);
                };
                texts(&ids, rows, hash, insert)
            }
            Table::Signed(table) | Table::Unsigned(table) => {
                integers(&ids, rows, hasher, table, replaced)
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self.table {
            Table::Signed(_) => "signed integers",
            Table::Unsigned(_) => "unsigned integers",
            Table::Text(_) => "strings",
        }
    }

    fn hash_text(&self, text: &str) -> u64 {
        self.hasher.hash_one(text.as_bytes())
    }

    /// The key as the map's table has it; none if the table cannot hold it.
    fn plain<'a>(&self, key: &Key<'a>) -> Option<Plain<'a>> {
        match (&self.table, *key) {
            (Table::Text(_), Key::Str(text)) => Some(Plain::Text(text)),
            (Table::Signed(_), Key::Int(value)) => Some(Plain::Bits(value as u64)),
            (Table::Signed(_), Key::UInt(value)) => i64::try_from(value)
                .ok()
                .map(|value| Plain::Bits(value as u64)),
            (Table::Unsigned(_), Key::Int(value)) => u64::try_from(value).ok().map(Plain::Bits),
            (Table::Unsigned(_), Key::UInt(value)) => Some(Plain::Bits(value)),
            _ => None,
        }
    }
}

/// A key as a table has it.
enum Plain<'a> {
    Bits(u64),
    Text(&'a str),
}

/// The id at position `at` of a batch.
///
/// # Errors
/// If it is null, if there is no such row or column, or if the column holds no ids.
pub fn key_at(batch: &Batch, column: usize, at: usize) -> Result<Key<'_>> {
    let have = batch.view().num_columns();
    if column >= have {
        return Err(Error::NoColumn {
            asked: column,
            have,
        });
    }
    let rows = batch.rows();
    if at >= rows {
        return Err(Error::RowRange {
            start: at,
            end: at.saturating_add(1),
            rows,
        });
    }
    let ids = batch.view().column(column);
    if ids.is_null(at) {
        return Err(Error::NullId { row: at });
    }
    Ok(match ids.data_type() {
        DataType::Int8 => Key::Int(ids.as_primitive::<Int8Type>().value(at).into()),
        DataType::Int16 => Key::Int(ids.as_primitive::<Int16Type>().value(at).into()),
        DataType::Int32 => Key::Int(ids.as_primitive::<Int32Type>().value(at).into()),
        DataType::Int64 => Key::Int(ids.as_primitive::<Int64Type>().value(at)),
        DataType::UInt8 => Key::UInt(ids.as_primitive::<UInt8Type>().value(at).into()),
        DataType::UInt16 => Key::UInt(ids.as_primitive::<UInt16Type>().value(at).into()),
        DataType::UInt32 => Key::UInt(ids.as_primitive::<UInt32Type>().value(at).into()),
        DataType::UInt64 => Key::UInt(ids.as_primitive::<UInt64Type>().value(at)),
        DataType::Utf8 => Key::Str(ids.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => Key::Str(ids.as_string::<i64>().value(at)),
        DataType::Utf8View => Key::Str(ids.as_string_view().value(at)),
        other => return Err(wrong_type(other)),
    })
}

/// Inserts integers with their rows.
fn integers(
    ids: &ArrayRef,
    rows: impl Iterator<Item = (usize, u64)>,
    hasher: &impl BuildHasher,
    table: &mut IntIds,
    replaced: &mut dyn FnMut(u64),
) -> Result<()> {
    macro_rules! of {
        ($kind:ty, $wide:ty) => {{
            let values = ids.as_primitive::<$kind>().values();
            let items = rows.map(|(at, row)| (<$wide>::from(values[at]) as u64, row));
            table.insert_all(hasher, items, replaced);
        }};
    }
    match ids.data_type() {
        DataType::Int8 => of!(Int8Type, i64),
        DataType::Int16 => of!(Int16Type, i64),
        DataType::Int32 => of!(Int32Type, i64),
        DataType::Int64 => of!(Int64Type, i64),
        DataType::UInt8 => of!(UInt8Type, u64),
        DataType::UInt16 => of!(UInt16Type, u64),
        DataType::UInt32 => of!(UInt32Type, u64),
        DataType::UInt64 => of!(UInt64Type, u64),
        other => return Err(wrong_type(other)),
    }
    Ok(())
}

/// Calls `insert` with the hash, the string and the row of each string, [`grouped`].
fn texts<'a>(
    ids: &'a ArrayRef,
    rows: impl Iterator<Item = (usize, u64)>,
    hash: impl Fn(&'a str) -> u64,
    insert: impl FnMut(u64, &'a str, u64),
) -> Result<()> {
    match ids.data_type() {
        DataType::Utf8 => {
            let values = ids.as_string::<i32>();
            grouped(rows.map(|(at, row)| (values.value(at), row)), hash, insert);
        }
        DataType::LargeUtf8 => {
            let values = ids.as_string::<i64>();
            grouped(rows.map(|(at, row)| (values.value(at), row)), hash, insert);
        }
        DataType::Utf8View => {
            let values = ids.as_string_view();
            grouped(rows.map(|(at, row)| (values.value(at), row)), hash, insert);
        }
        other => return Err(wrong_type(other)),
    }
    Ok(())
}

/// Refuses a column of ids with a string that no map takes, so that it can be known before the column is logged.
///
/// # Errors
/// If an id is longer than [`MAX_ID_BYTES`].
pub fn check_id_lengths(ids: &ArrayRef) -> Result<()> {
    let mut lengths: Box<dyn Iterator<Item = usize>> = match ids.data_type() {
        DataType::Utf8 => Box::new(ids.as_string::<i32>().offsets().lengths()),
        DataType::LargeUtf8 => Box::new(ids.as_string::<i64>().offsets().lengths()),
        DataType::Utf8View => Box::new(ids.as_string_view().lengths().map(|len| len as usize)),
        _ => return Ok(()),
    };
    let too_long = |(_, len): &(usize, usize)| *len > MAX_ID_BYTES;
    match lengths.by_ref().enumerate().find(too_long) {
        Some((row, len)) => check_length(row, len),
        None => Ok(()),
    }
}

fn check_length(row: usize, got: usize) -> Result<()> {
    if got > MAX_ID_BYTES {
        let limit = MAX_ID_BYTES;
        return Err(Error::IdTooLong { row, got, limit });
    }
    Ok(())
}

fn wrong_type(data_type: &DataType) -> Error {
    Error::IdType {
        data_type: Box::new(data_type.clone()),
    }
}

//! Checks that a message's nodes and buffers are what its schema asks for, before Arrow reads any of them.
//!
//! Arrow's own decoder trusts counts and ranges (it panics on some wrong ones), so nothing reaches it that this
//! module has not walked. The walk is O(columns), it never touches the values.

use std::ops::Range;

use arrow_data::{BufferSpec, layout};
use arrow_schema::{DataType, Field, Schema};

use crate::error::{Error, Result};
use crate::message::{Parts, Span};

/// Most elements that any (child) array of a batch may have. Far above what fits into memory; keeps products
/// of lengths and widths within 64 bits.
const MAX_ELEMENTS: i64 = 1 << 40;

/// What is known about one top-level column without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnLayout {
    /// Null rows.
    pub nulls: usize,
    /// Null elements of the child, for a list of fixed size.
    pub child_nulls: usize,
    /// Bytes of the values in the body, for fixed-width columns and fixed-size lists of them.
    pub values: Option<Range<usize>>,
}

/// The outcome of a walk over a message.
#[derive(Debug)]
pub(crate) struct Layout {
    pub columns: Vec<ColumnLayout>,
    /// Every buffer's address has the alignment of its type.
    pub aligned: bool,
    /// Every buffer's offset in the body has the alignment of its type, so that an aligned copy of the body
    /// would be [`Layout::aligned`].
    pub offsets_aligned: bool,
}

/// Refuses schemas with types that storage does not keep: dictionaries, unions, run-ends, list views, negative
/// widths, and decimals of more digits than their type holds.
///
/// # Errors
/// [`Error::UnsupportedType`] naming the top-level column.
pub fn check_schema(schema: &Schema) -> Result<()> {
    for field in schema.fields() {
        if !supported(field.data_type()) {
            return Err(Error::UnsupportedType {
                column: field.name().clone(),
                data_type: Box::new(field.data_type().clone()),
            });
        }
    }
    Ok(())
}

fn supported(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..)
        | DataType::Union(..)
        | DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => false,
        DataType::Decimal32(digits, _) => (1..=9).contains(digits),
        DataType::Decimal64(digits, _) => (1..=18).contains(digits),
        DataType::Decimal128(digits, _) => (1..=38).contains(digits),
        DataType::Decimal256(digits, _) => (1..=76).contains(digits),
        DataType::FixedSizeBinary(width) => *width >= 0,
        DataType::FixedSizeList(child, len) => *len >= 0 && supported(child.data_type()),
        DataType::List(child) | DataType::LargeList(child) => supported(child.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                fields.len() == 2 && !entries.is_nullable() && supported(entries.data_type())
            }
            _ => false,
        },
        DataType::Struct(fields) => fields.iter().all(|field| supported(field.data_type())),
        _ => true,
    }
}

/// Whether values of a type are of fixed width or bytes, without children.
pub(crate) fn is_plain(data_type: &DataType) -> bool {
    !data_type.is_nested() && !matches!(data_type, DataType::Null) && supported(data_type)
}

/// Whether two types are the same but for what only a schema holds: names, nullability and metadata of nested
/// fields.
pub(crate) fn same_layout(a: &DataType, b: &DataType) -> bool {
    let same = |a: &Field, b: &Field| same_layout(a.data_type(), b.data_type());
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => same(a, b),
        (DataType::LargeList(a), DataType::LargeList(b)) => same(a, b),
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => n == m && same(a, b),
        (DataType::Map(a, sorted), DataType::Map(b, also)) => sorted == also && same(a, b),
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.name() == b.name() && same(a, b))
        }
        _ => a == b,
    }
}

/// Walks `parts` along `schema`, whose types have been checked; `base` is the address of the body's first byte.
pub(crate) fn walk(schema: &Schema, parts: &Parts, base: usize) -> Result<Layout> {
    let mut walk = Walk {
        parts,
        base,
        node: 0,
        buffer: 0,
        variadic: 0,
        aligned: true,
        offsets_aligned: true,
    };
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let shape = walk.field(field.name(), field, Some(parts.rows as i64))?;
        columns.push(ColumnLayout {
            nulls: shape.nulls,
            child_nulls: shape.child_nulls,
            values: shape.values,
        });
    }
    walk.finish()?;
    Ok(Layout {
        columns,
        aligned: walk.aligned,
        offsets_aligned: walk.offsets_aligned,
    })
}

struct Walk<'a> {
    parts: &'a Parts,
    base: usize,
    node: usize,
    buffer: usize,
    variadic: usize,
    aligned: bool,
    offsets_aligned: bool,
}

/// One array of the walk.
struct Shape {
    len: i64,
    nulls: usize,
    child_nulls: usize,
    values: Option<Range<usize>>,
}

impl Walk<'_> {
    fn field(&mut self, column: &str, field: &Field, rows: Option<i64>) -> Result<Shape> {
        let mut shape = self.next_node(column, rows)?;
        let data_type = field.data_type();
        let layout = layout(data_type);
        if layout.can_contain_null_mask {
            let bitmap = self.next_buffer()?;
            if shape.nulls > 0 {
                require(column, bitmap, bits(shape.len))?;
            }
        }
        let offsets = has_offsets(data_type);
        for spec in &layout.buffers {
            let span = self.next_buffer()?;
            match spec {
                BufferSpec::FixedWidth {
                    byte_width,
                    alignment,
                } => {
                    let count = match offsets {
                        // Writers may leave out the single offset of an empty array.
                        true if shape.len == 0 && span.length == 0 => 0,
                        true => shape.len as u64 + 1,
                        false => shape.len as u64,
                    };
                    let needed = width(column, count, *byte_width)?;
                    require(column, span, needed)?;
                    if *byte_width > 0 && !span.length.is_multiple_of(*byte_width) {
                        return Err(Error::BufferWidth {
                            column: column.into(),
                            width: *byte_width,
                            got: span.length,
                        });
                    }
                    self.align(span, *alignment);
                    if !offsets {
                        shape.values = Some(span.offset..span.offset + needed as usize);
                    }
                }
                BufferSpec::BitMap => require(column, span, bits(shape.len))?,
                BufferSpec::VariableWidth | BufferSpec::AlwaysNull => {}
            }
        }
        if layout.variadic {
            shape.values = None;
            for _ in 0..self.next_variadic()? {
                self.next_buffer()?;
            }
        }
        self.children(column, data_type, shape)
    }

    fn children(&mut self, column: &str, data_type: &DataType, mut shape: Shape) -> Result<Shape> {
        match data_type {
            DataType::List(child) | DataType::LargeList(child) | DataType::Map(child, _) => {
                self.field(column, child, None)?;
            }
            DataType::FixedSizeList(child, size) => {
                let len = shape.len.checked_mul(i64::from(*size));
                let len = len.filter(|len| *len <= MAX_ELEMENTS);
                let len = len.ok_or_else(|| too_many(column, shape.len))?;
                let child_shape = self.field(column, child, Some(len))?;
                shape.child_nulls = child_shape.nulls;
                if child.data_type().is_primitive() {
                    shape.values = child_shape.values;
                }
            }
            DataType::Struct(fields) => {
                for field in fields {
                    self.field(column, field, Some(shape.len))?;
                }
            }
            _ => {}
        }
        Ok(shape)
    }

    fn next_node(&mut self, column: &str, rows: Option<i64>) -> Result<Shape> {
        let Some(&(len, nulls)) = self.parts.nodes.get(self.node) else {
            return Err(self.count("field nodes", self.node + 1, self.parts.nodes.len()));
        };
        self.node += 1;
        if let Some(rows) = rows
            && rows != len
        {
            return Err(Error::Node {
                column: column.into(),
                what: "rows",
                expected: rows as u64,
                got: len,
            });
        }
        if !(0..=MAX_ELEMENTS).contains(&len) {
            return Err(too_many(column, len));
        }
        if !(0..=len).contains(&nulls) {
            return Err(Error::Node {
                column: column.into(),
                what: "nulls",
                expected: len as u64,
                got: nulls,
            });
        }
        Ok(Shape {
            len,
            nulls: nulls as usize,
            child_nulls: 0,
            values: None,
        })
    }

    fn next_buffer(&mut self) -> Result<Span> {
        let Some(&span) = self.parts.spans.get(self.buffer) else {
            return Err(self.count("buffers", self.buffer + 1, self.parts.spans.len()));
        };
        self.buffer += 1;
        Ok(span)
    }

    fn next_variadic(&mut self) -> Result<i64> {
        let Some(&count) = self.parts.variadic.get(self.variadic) else {
            return Err(self.count(
                "variadic buffer counts",
                self.variadic + 1,
                self.parts.variadic.len(),
            ));
        };
        self.variadic += 1;
        if !(0..=self.parts.spans.len() as i64).contains(&count) {
            return Err(Error::Count {
                what: "buffers",
                expected: usize::try_from(count).unwrap_or(0),
                got: self.parts.spans.len(),
            });
        }
        Ok(count)
    }

    fn align(&mut self, span: Span, alignment: usize) {
        self.offsets_aligned &= span.offset.is_multiple_of(alignment);
        self.aligned &= self
            .base
            .wrapping_add(span.offset)
            .is_multiple_of(alignment);
    }

    fn finish(&self) -> Result<()> {
        let parts = self.parts;
        for (what, expected, got) in [
            ("field nodes", self.node, parts.nodes.len()),
            ("buffers", self.buffer, parts.spans.len()),
            (
                "variadic buffer counts",
                self.variadic,
                parts.variadic.len(),
            ),
        ] {
            if expected != got {
                return Err(self.count(what, expected, got));
            }
        }
        Ok(())
    }

    fn count(&self, what: &'static str, expected: usize, got: usize) -> Error {
        Error::Count {
            what,
            expected,
            got,
        }
    }
}

fn has_offsets(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::Map(..)
    )
}

fn bits(len: i64) -> u64 {
    (len as u64).div_ceil(8)
}

fn width(column: &str, count: u64, byte_width: usize) -> Result<u64> {
    count
        .checked_mul(byte_width as u64)
        .ok_or_else(|| too_many(column, count as i64))
}

fn require(column: &str, span: Span, needed: u64) -> Result<()> {
    if (span.length as u64) < needed {
        return Err(Error::BufferTooShort {
            column: column.into(),
            expected: needed,
            got: span.length as u64,
        });
    }
    Ok(())
}

fn too_many(column: &str, got: i64) -> Error {
    Error::Node {
        column: column.into(),
        what: "elements",
        expected: MAX_ELEMENTS as u64,
        got,
    }
}

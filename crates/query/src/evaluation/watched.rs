//! Parts of an expression whose values are looked at as they come: the bytes of texts and lists that are made, and the
//! length of patterns that differ from row to row, each of which is compiled.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, LambdaExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::{is_made, weight};
use crate::allowance::{self, TooMuch};

/// Bytes of a pattern that is not the same for all rows: a kilobyte may take a millisecond to compile.
const MOST_PATTERN_BYTES: u64 = 4_000;
/// Characters of a part that an error shows.
const SHOWN: usize = 80;

/// The expression with all that is to be looked at wrapped.
///
/// # Errors
/// If the expression is not of the schema's columns.
pub(super) fn watched(
    expression: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let wrap = |part: Arc<dyn PhysicalExpr>| {
        let makes = is_made(&part, schema)?;
        let part = match has_pattern(&part) {
            true => with_pattern(part)?,
            false => part,
        };
        // Whoever takes a lambda must find it as it is; what it makes is counted within.
        let what = match makes && !part.is::<LambdaExpr>() {
            true => Watched::wrap(part, What::Bytes),
            false => part,
        };
        Ok(Transformed::yes(what))
    };
    expression.transform_up(wrap).data()
}

/// Whether a part takes a pattern of each row.
pub(super) fn has_pattern(part: &Arc<dyn PhysicalExpr>) -> bool {
    let takes_one = match part.downcast_ref::<BinaryExpr>() {
        Some(binary) => is_match(binary),
        None => {
            let function = part.downcast_ref::<ScalarFunctionExpr>();
            part.is::<LikeExpr>()
                || function.is_some_and(|function| function.name().starts_with("regexp_"))
        }
    };
    let pattern = part.children().get(1).copied();
    takes_one && pattern.is_some_and(|pattern| !pattern.is::<Literal>())
}

/// Whether an operator takes a regular expression.
pub(super) fn is_match(binary: &BinaryExpr) -> bool {
    matches!(
        binary.op(),
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    )
}

/// The part with its pattern, which is its second, wrapped.
fn with_pattern(part: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let mut children: Vec<_> = part.children().into_iter().cloned().collect();
    if let Some(pattern) = children.get_mut(1) {
        *pattern = Watched::wrap(Arc::clone(pattern), What::Pattern);
    }
    part.with_new_children(children)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    /// What it takes is taken from what the evaluation may make.
    Bytes,
    /// None may be too long.
    Pattern,
}

#[derive(Debug, Eq)]
struct Watched {
    part: Arc<dyn PhysicalExpr>,
    what: What,
}

impl Watched {
    fn wrap(part: Arc<dyn PhysicalExpr>, what: What) -> Arc<dyn PhysicalExpr> {
        Arc::new(Watched { part, what })
    }

    fn counted(&self, rows: &RecordBatch) -> Result<ColumnarValue> {
        let before = allowance::left();
        let made = self.part.evaluate(rows)?;
        // Its own parts are still counted: they were there while it was made.
        let (bytes, most) = (weight::of_value(&made), allowance::left());
        if bytes > most {
            let error = TooMuch {
                what: self.part.to_string().chars().take(SHOWN).collect(),
                bytes,
                rows: rows.num_rows(),
                most,
            };
            return Err(error.into());
        }
        allowance::leave(before.saturating_sub(bytes));
        Ok(made)
    }

    fn short(&self, rows: &RecordBatch) -> Result<ColumnarValue> {
        let patterns = self.part.evaluate(rows)?;
        let longest = match &patterns {
            ColumnarValue::Array(patterns) => weight::of_longest(patterns),
            // All rows have the same.
            ColumnarValue::Scalar(_) => 0,
        };
        if longest > MOST_PATTERN_BYTES {
            return exec_err!(
                "a pattern of a row has {longest} bytes, and may have {MOST_PATTERN_BYTES} if it is not the same for all"
            );
        }
        Ok(patterns)
    }
}

/// By hand: what is derived would move the part.
impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.part.as_ref() == other.part.as_ref() && self.what == other.what
    }
}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.part.hash(state);
        self.what.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.part.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.part.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.part.return_field(schema)
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ColumnarValue> {
        match self.what {
            What::Bytes => self.counted(rows),
            What::Pattern => self.short(rows),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.part]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(match children.pop() {
            Some(part) => Watched::wrap(part, self.what),
            None => self,
        })
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt_sql(f)
    }
}

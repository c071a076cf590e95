//! The evaluation of a condition over rows, as many at a time as take little memory and little time.
//!
//! Comparisons of columns are evaluated over many rows at once. What makes texts and lists is evaluated over few, by the
//! bytes that go in; and if of these more is made than may be, over fewer, down to a single row. So memory depends neither
//! on how many rows there are nor on how they came.

mod watched;
mod weight;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::allowance::{TooMuch, within};

/// Rows that are compared at once: between them somebody looks at the clock.
const ROWS: usize = 65_536;
/// Rows of which texts and lists are made at once.
const FEW_ROWS: usize = 4_096;
/// Rows at once, if each has a pattern of its own: all that are compiled are held.
const PATTERN_ROWS: usize = 16;
/// Bytes of texts and lists that go in at once where they are made or take long, if there is more than one row.
const FEW_BYTES: u64 = 4 << 20;
/// Bytes that may be held of a single row beside what goes in.
const ROW_BYTES: u64 = 1 << 20;
/// Bytes that may be held of several rows beside what goes in.
const MOST_BYTES: u64 = 16 << 20;
/// As often what goes in may be held again.
const COPIES: u64 = 4;

/// An expression that is true or false of a row.
#[derive(Debug)]
pub(crate) struct Evaluation {
    expression: Arc<dyn PhysicalExpr>,
    /// Whether it makes texts or lists, or reads them by functions and patterns, so that their bytes matter.
    by_bytes: bool,
    /// Rows that are evaluated at once if they are small.
    most: usize,
    /// Bytes of the constants that texts and lists are made of.
    constants: u64,
    /// Rows that were not too many the last time.
    rows: AtomicUsize,
}

impl Evaluation {
    /// The evaluation of an expression over rows of the schema.
    ///
    /// # Errors
    /// If the expression is not of these columns.
    pub fn new(expression: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let (mut makes_any, mut reads_any, mut has_pattern) = (false, false, false);
        let mut constants = 0_u64;
        expression.apply(|part| {
            let makes = is_made(part, schema)?;
            makes_any |= makes;
            reads_any |= reads(part, schema)?;
            has_pattern |= watched::has_pattern(part);
            if makes {
                let constant = |part: &Arc<dyn PhysicalExpr>| {
                    part.downcast_ref::<Literal>().map(weight::of_literal)
                };
                let sum = part.children().into_iter().filter_map(constant);
                constants = sum.fold(constants, u64::saturating_add);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let most = match (has_pattern, makes_any) {
            (true, _) => PATTERN_ROWS,
            (_, true) => FEW_ROWS,
            _ => ROWS,
        };
        Ok(Evaluation {
            expression: match makes_any || has_pattern {
                true => watched::watched(expression, schema)?,
                false => expression,
            },
            by_bytes: makes_any || reads_any,
            constants,
            most,
            rows: AtomicUsize::new(most),
        })
    }

    /// Whether each of the first of the rows passes; of at least one.
    ///
    /// # Errors
    /// If a row makes it fail, or makes too much by itself.
    pub fn mask(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        if !self.by_bytes {
            return self.evaluate(&rows.slice(0, rows.num_rows().min(self.most)));
        }
        let mut count = rows.num_rows().min(self.rows.load(Ordering::Relaxed));
        loop {
            let few = rows.slice(0, count);
            let given = self.given(&few);
            if given > FEW_BYTES && count > 1 {
                count /= 2;
                continue;
            }
            let held = MOST_BYTES.min(ROW_BYTES.saturating_mul(count as u64));
            let most = held.saturating_add(given.saturating_mul(COPIES));
            match within(most, || self.evaluate(&few)) {
                Err(error) if count > 1 && TooMuch::of(&error).is_some() => count /= 2,
                done => {
                    // Rows beside each other are alike; a few large ones do not make it slow for good.
                    let next = self.most.min(count.saturating_mul(2));
                    self.rows.store(next, Ordering::Relaxed);
                    return done;
                }
            }
        }
    }

    /// Bytes of texts and lists that go in.
    fn given(&self, rows: &RecordBatch) -> u64 {
        let constants = self.constants.saturating_mul(rows.num_rows() as u64);
        let columns = rows
            .columns()
            .iter()
            .filter(|column| is_long(column.data_type()));
        columns.map(weight::of).fold(constants, u64::saturating_add)
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        let mask = self
            .expression
            .evaluate(rows)?
            .into_array(rows.num_rows())?;
        let mask = mask.as_any().downcast_ref::<BooleanArray>().cloned();
        mask.ok_or_else(|| {
            datafusion::common::exec_datafusion_err!("a condition that is neither true nor false")
        })
    }
}

/// Whether values of the type may be of any length.
fn is_long(data_type: &DataType) -> bool {
    !(data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null))
}

/// Whether a part makes texts or lists that were not there before.
fn is_made(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<bool> {
    let is_there = part.children().is_empty() || part.is::<Column>() || part.is::<Literal>();
    Ok(!is_there && is_long(&part.data_type(schema)?))
}

/// Whether a part reads texts or lists through, by a pattern or a function.
fn reads(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<bool> {
    if let Some(binary) = part.downcast_ref::<BinaryExpr>() {
        return Ok(watched::is_match(binary));
    }
    if !part.is::<ScalarFunctionExpr>() {
        return Ok(false);
    }
    for argument in part.children() {
        if is_long(&argument.data_type(schema)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use longbow_engine::{Filter, FilterError};

    use super::*;
    use crate::filter::Conditions;

    const WORD: &str = "apple";

    /// Rows with an id and a word, or a text of so many bytes.
    fn rows(rows: i64, bytes: Option<usize>) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let text = bytes.map_or(WORD.to_owned(), |bytes| "é".repeat(bytes / 2));
        let words = StringArray::from_iter_values((0..rows).map(|_| text.as_str()));
        let columns = [("id", ids), ("word", Arc::new(words) as ArrayRef)];
        RecordBatch::try_from_iter(columns).expect("a batch")
    }

    /// The mask of the first rows.
    fn first(
        predicate: &str,
        rows: &RecordBatch,
    ) -> std::result::Result<BooleanArray, Box<dyn FilterError>> {
        let conditions = Conditions::read(None, Some(predicate.to_owned()));
        let conditions = conditions.expect("good").expect("some");
        let bound = conditions.bind("d", &rows.schema())?;
        let columns = rows.project(bound.columns()).expect("columns");
        let before = crate::allowance::left();
        let mask = bound.mask(&columns);
        assert_eq!(crate::allowance::left(), before, "{predicate}");
        mask
    }

    fn check(predicate: &str, rows: &RecordBatch, expected: usize) {
        let mask = first(predicate, rows).unwrap_or_else(|error| panic!("{predicate}: {error}"));
        assert_eq!(mask.len(), expected, "{predicate}");
        assert_eq!(mask.true_count(), mask.len(), "{predicate}");
    }

    #[test]
    fn as_many_rows_are_evaluated_at_once_as_take_little_memory() {
        let rows = rows(100_000, None);
        for (predicate, expected) in [
            // What is there already is compared, many rows at a time.
            ("id >= 0 AND word LIKE 'a%' AND id % 7 < 9", ROWS),
            ("word IN ('apple', 'pear') AND id * 2 + 1 > 0", ROWS),
            ("character_length(word) = 5", ROWS),
            ("word ~ '^[a-z]+$'", ROWS),
            // Each row has a pattern of its own.
            ("word ~ word AND word LIKE word", PATTERN_ROWS),
            ("regexp_like(word, substr(word, 2))", PATTERN_ROWS),
            // What is made, few.
            ("upper(word) = 'APPLE'", FEW_ROWS),
            ("word || word = 'appleapple'", FEW_ROWS),
            ("CAST(id AS TEXT) <> word", FEW_ROWS),
            (
                "CASE WHEN id < 0 THEN 'x' ELSE word END = 'apple'",
                FEW_ROWS,
            ),
            ("cardinality(make_array(id, id + 1)) = 2", FEW_ROWS),
            // 500,000 bytes of a row; those of 32 rows are 16 MB.
            ("length(repeat(word, 100000)) = 500000", 32),
            ("length(repeat(repeat(word, 1000), 100)) = 500000", 32),
            ("length(lpad(word, 120000, 'x')) = 120000", 32),
            ("cardinality(array_repeat(id, 50000)) = 50000", 32),
            // Twice 150,000 and both as one, or one after the other.
            (
                "length(repeat(word, 30000) || repeat(word, 30000)) = 300000",
                16,
            ),
            (
                "length(repeat(word, 100000)) = length(repeat(word, 100000))",
                32,
            ),
        ] {
            check(predicate, &rows, expected);
        }
    }

    #[test]
    fn long_texts_are_evaluated_by_their_bytes() {
        let long = rows(1_000, Some(100_000));
        check("upper(word) <> 'x'", &long, 31);
        check("word ~ '.'", &long, 31);
        check("word LIKE '%é' AND id >= 0", &long, 1_000);
        // A constant that each row is joined to is as long for each.
        let joined = format!("word || '{}' <> ''", "x".repeat(100_000));
        check(&joined, &rows(1_000, None), 31);
        // One row that is longer than all that may go in at once.
        let huge = rows(2, Some(10_000_000));
        check(
            "length(replace(upper(word), 'É', 'ee')) = 10000000",
            &huge,
            1,
        );
    }

    #[test]
    fn a_long_pattern_of_a_row_is_refused() {
        let rows = rows(10, None);
        check("word ~ repeat('a?', 1000 + id)", &rows, 10);
        check("word ~ repeat('a?', 5000) OR word LIKE word", &rows, 10);
        for predicate in [
            "word ~ repeat('.?', 3000 + id)",
            "word !~* repeat('.?', 3000 + id)",
            "word LIKE repeat(word, 1000)",
            "regexp_like(word, repeat(word, 1000))",
        ] {
            let refused = first(predicate, &rows).expect_err(predicate);
            assert_eq!(refused.code(), "predicate_failed", "{refused}");
            assert!(refused.to_string().contains("may have 4000"), "{refused}");
        }
    }

    #[test]
    fn too_much_of_a_single_row_is_refused() {
        let rows = rows(10, None);
        let joined = ["repeat(word, 10000)"; 12].join(" || ");
        let parts = ["repeat(word, 10000)"; 25].join(", ");
        for predicate in [
            "length(repeat(word, 300000)) > 1",
            "length(repeat(repeat(word, 1000), 300)) > 1",
            "length(repeat(word, 100000) || repeat(word, 100000)) > 1",
            "length(concat(repeat(word, 100000), repeat(word, 100000))) > 1",
            "cardinality(array_repeat(id, 200000)) > 1",
            &format!("length({joined}) > 1"),
            &format!("cardinality(make_array({parts})) > 1"),
        ] {
            let refused = first(predicate, &rows).expect_err(predicate);
            assert_eq!(refused.code(), "predicate_failed", "{refused}");
            assert!(
                refused.to_string().contains("of 1 rows, and may make"),
                "{refused}"
            );
        }
    }
}

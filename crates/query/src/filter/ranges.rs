//! What a condition says of the values of columns.
//!
//! Of a row that passes: never too little, and sometimes nothing. What is looked at are comparisons of a column with constants
//! of its type, lists of these, and patterns that begin with letters, joined by AND and OR.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal};
use longbow_engine::{ColumnRanges, ValueRange};

/// Ranges of a column that are of use: each is looked for by itself, so that with more of them to compare all is less work.
const MOST_RANGES: usize = 64;

/// From a value to a value, both included, where there is one.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    least: Option<ScalarValue>,
    greatest: Option<ScalarValue>,
}

/// By column, spans in one of which the value of a row that passes is.
type Spans = BTreeMap<usize, Vec<Span>>;

/// What an expression over these columns says of their values; what tells of most rows that they don't pass comes first.
pub(super) fn ranges(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Vec<ColumnRanges> {
    let mut all: Vec<(usize, Vec<Span>)> = spans(expression, schema).into_iter().collect();
    let ends = |spans: &[Span]| spans.iter().map(Span::openness).max();
    all.sort_by_key(|(_, spans)| ends(spans));
    let columns = all.into_iter().map(|(column, spans)| {
        let ranges = spans.into_iter().map(Span::into_range);
        let ranges = ranges.collect::<Option<Vec<_>>>()?;
        Some(ColumnRanges { column, ranges })
    });
    columns.flatten().collect()
}

impl Span {
    fn new(least: Option<ScalarValue>, greatest: Option<ScalarValue>) -> Self {
        Span { least, greatest }
    }

    /// 0 for a single value, 1 for values between two, 2 for an end that is open.
    fn openness(&self) -> u8 {
        match (&self.least, &self.greatest) {
            (Some(least), Some(greatest)) => u8::from(least != greatest),
            _ => 2,
        }
    }

    fn into_range(self) -> Option<ValueRange> {
        let array = |value: Option<ScalarValue>| match value {
            None => Some(None),
            Some(value) => value.to_array_of_size(1).ok().map(Some),
        };
        Some(ValueRange {
            least: array(self.least)?,
            greatest: array(self.greatest)?,
        })
    }

    /// What is in both.
    fn and(&self, other: &Span) -> Span {
        let least = match (&self.least, &other.least) {
            (Some(one), Some(two)) => Some(if one < two { two } else { one }),
            (one, two) => one.as_ref().or(two.as_ref()),
        };
        let greatest = match (&self.greatest, &other.greatest) {
            (Some(one), Some(two)) => Some(if one > two { two } else { one }),
            (one, two) => one.as_ref().or(two.as_ref()),
        };
        Span::new(least.cloned(), greatest.cloned())
    }
}

fn spans(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Spans {
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => both(spans(left, schema), spans(right, schema)),
            Operator::Or => either(spans(left, schema), spans(right, schema)),
            op => {
                let turned = || compared(right, op.swap()?, left, schema);
                compared(left, *op, right, schema)
                    .or_else(turned)
                    .unwrap_or_default()
            }
        };
    }
    let found = listed(expression, schema).or_else(|| begun(expression, schema));
    found.unwrap_or_default()
}

/// Of rows that pass both.
fn both(mut one: Spans, two: Spans) -> Spans {
    for (column, spans) in two {
        let Some(others) = one.get_mut(&column) else {
            one.insert(column, spans);
            continue;
        };
        // Otherwise, those of the one are right, too.
        if others.len() * spans.len() <= MOST_RANGES {
            let pairs = others
                .iter()
                .flat_map(|one| spans.iter().map(|two| one.and(two)));
            *others = pairs.collect();
        }
    }
    one
}

/// Of rows that pass one of the two.
fn either(one: Spans, mut two: Spans) -> Spans {
    let joined = one.into_iter().filter_map(|(column, mut spans)| {
        spans.extend(two.remove(&column)?);
        (spans.len() <= MOST_RANGES).then_some((column, spans))
    });
    joined.collect()
}

/// A column that is compared with a constant.
fn compared(
    column: &Arc<dyn PhysicalExpr>,
    op: Operator,
    constant: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Option<Spans> {
    let (column, data_type) = ordered(column, schema)?;
    let (least, greatest) = of_type(constant, data_type)?;
    let span = match op {
        Operator::Eq => Span::new(Some(least), Some(greatest)),
        Operator::Lt | Operator::LtEq => Span::new(None, Some(greatest)),
        Operator::Gt | Operator::GtEq => Span::new(Some(least), None),
        _ => return None,
    };
    Some(Spans::from([(column, vec![span])]))
}

/// A column whose value is one of a list.
fn listed(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Spans> {
    let list = expression.downcast_ref::<InListExpr>()?;
    let may_be = !list.negated() && (1..=MOST_RANGES).contains(&list.list().len());
    let (column, data_type) = ordered(list.expr(), schema)?;
    let spans = list.list().iter().map(|constant| {
        let (least, greatest) = of_type(constant, data_type)?;
        Some(Span::new(Some(least), Some(greatest)))
    });
    let spans = spans.collect::<Option<Vec<_>>>()?;
    may_be.then(|| Spans::from([(column, spans)]))
}

/// A text that begins with what a pattern begins with.
fn begun(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Spans> {
    let like = expression.downcast_ref::<LikeExpr>()?;
    if like.negated() || like.case_insensitive() {
        return None;
    }
    let (column, data_type) = ordered(like.expr(), schema)?;
    let (pattern, _) = of_type(like.pattern(), data_type)?;
    let pattern = pattern.try_as_str()??;
    let begin = pattern.split(['%', '_', '\\']).next()?;
    let text = |text: &str| ScalarValue::from(text).cast_to(data_type).ok();
    if begin.is_empty() {
        return None;
    }
    let greatest = match after(begin) {
        Some(next) => Some(text(&next)?),
        None => None,
    };
    let span = Span::new(Some(text(begin)?), greatest);
    Some(Spans::from([(column, vec![span])]))
}

/// The least text that is greater than all that begin so; `None` if there is none.
fn after(begin: &str) -> Option<String> {
    let mut chars: Vec<char> = begin.chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// A column with the type of its values, if these have an order that is the same here and in storage.
fn ordered<'a>(
    expression: &Arc<dyn PhysicalExpr>,
    schema: &'a Schema,
) -> Option<(usize, &'a DataType)> {
    let column = expression.downcast_ref::<Column>()?.index();
    let data_type = schema.fields().get(column)?.data_type();
    let is_text = matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    let is_time = data_type.is_temporal() && !matches!(data_type, DataType::Interval(_));
    let is_ordered = data_type.is_numeric() || is_time || is_text;
    is_ordered.then_some((column, data_type))
}

/// The least and the greatest value that a comparison with a constant may take for equal to it.
fn of_type(
    constant: &Arc<dyn PhysicalExpr>,
    data_type: &DataType,
) -> Option<(ScalarValue, ScalarValue)> {
    let value = constant.downcast_ref::<Literal>()?.value();
    if value.is_null() || value.data_type() != *data_type {
        return None;
    }
    let float = match value {
        ScalarValue::Float16(_) => return None,
        ScalarValue::Float32(Some(float)) => f64::from(*float),
        ScalarValue::Float64(Some(float)) => *float,
        _ => return Some((value.clone(), value.clone())),
    };
    // In a total order the zeros are two, and there are many that are no number; a comparison may see it otherwise.
    let zero = |zero: f64| ScalarValue::from(zero).cast_to(data_type).ok();
    match float {
        0.0 => Some((zero(-0.0)?, zero(0.0)?)),
        float if float.is_nan() => None,
        _ => Some((value.clone(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{Field, TimeUnit};

    use super::*;
    use crate::filter::Conditions;
    use longbow_engine::Filter;

    fn schema() -> Arc<Schema> {
        let time = DataType::Timestamp(TimeUnit::Second, None);
        let fields = [
            ("n", DataType::Int64),
            ("x", DataType::Float64),
            ("s", DataType::Utf8),
            ("t", time),
            ("b", DataType::Boolean),
        ];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
        Arc::new(Schema::new(fields.to_vec()))
    }

    fn said(ranges: &[ColumnRanges], columns: &[usize]) -> String {
        let end = |end: &Option<arrow_array::ArrayRef>| match end {
            Some(value) => arrow_cast::display::array_value_to_string(value, 0).expect("a text"),
            None => String::new(),
        };
        let schema = schema();
        let column = |ranges: &ColumnRanges| {
            let each = ranges.ranges.iter();
            let each = each.map(|range| format!("{}..{}", end(&range.least), end(&range.greatest)));
            let name = schema.field(columns[ranges.column]).name();
            format!("{name} {}", each.collect::<Vec<_>>().join(" "))
        };
        ranges.iter().map(column).collect::<Vec<_>>().join("; ")
    }

    fn check(predicate: &str, expected: &str) {
        let conditions = Conditions::read(None, Some(predicate.to_owned()));
        let conditions = conditions.expect("good").expect("some");
        let bound = conditions.bind("d", &schema()).expect(predicate);
        assert_eq!(
            said(bound.ranges(), bound.columns()),
            expected,
            "{predicate}"
        );
    }

    #[test]
    fn comparisons_say_between_which_values_a_column_is() {
        check("n = 3", "n 3..3");
        check("3 < n", "n 3..");
        check("n BETWEEN 3 AND 5", "n 3..5");
        check("n IN (1, 5)", "n 1..1 5..5");
        check("n >= 3 AND s = 'a' AND n < 9", "s a..a; n 3..9");
        check("n = 3 OR n > 7", "n 3..3 7..");
        check("(n = 3 AND s = 'a') OR (n = 5 AND x > 1)", "n 3..3 5..5");
        check("x > 0.5 AND b", "x 0.5..");
        check("x = 0", "x -0.0..0.0");
        check("n > 4 AND s LIKE 'ab%'", "s ab..ac; n 4..");
        check("s LIKE 'a\u{d7ff}_'", "s a\u{d7ff}..a\u{e000}");
        check(
            "t >= '2024-01-01T00:00:00' AND t < '2024-02-01T00:00:00'",
            "t 2024-01-01T00:00:00..2024-02-01T00:00:00",
        );
    }

    #[test]
    fn of_what_may_pass_with_any_value_nothing_is_said() {
        for predicate in [
            "n <> 3",
            "n NOT IN (1, 2)",
            "n IS NULL OR n = 3",
            "n = 3 OR s = 'a'",
            "NOT (n = 3)",
            "n % 2 = 1",
            "n = x",
            "b",
            "x > 'NaN'::double",
            "s LIKE '%a'",
            "s NOT LIKE 'a%'",
            "s ILIKE 'a%'",
            "upper(s) = 'A'",
        ] {
            check(predicate, "");
        }
    }

    #[test]
    fn a_long_list_says_nothing() {
        let list: Vec<String> = (0..=MOST_RANGES).map(|n| (2 * n).to_string()).collect();
        check(&format!("n IN ({})", list.join(", ")), "");
    }
}

use crate::refusal::{Result, invalid};

/// How a filter compares a column with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
    /// One of a list.
    In,
    /// None of a list.
    NotIn,
    /// A text holds a text, or a list holds an element.
    Contains,
    /// SQL's pattern: `%` for any characters, `_` for one.
    Like,
    IsNull,
    NotNull,
}

/// Each with the names that clients write.
const NAMES: [(Operator, &[&str]); 12] = [
    (Operator::Eq, &["=", "==", "eq"]),
    (Operator::Ne, &["!=", "<>", "ne", "neq"]),
    (Operator::Gt, &[">", "gt"]),
    (Operator::Ge, &[">=", "ge", "gte"]),
    (Operator::Lt, &["<", "lt"]),
    (Operator::Le, &["<=", "le", "lte"]),
    (Operator::In, &["in"]),
    (Operator::NotIn, &["not_in"]),
    (Operator::Contains, &["contains"]),
    (Operator::Like, &["like"]),
    (Operator::IsNull, &["is_null"]),
    (Operator::NotNull, &["not_null"]),
];

impl Operator {
    /// Reads an operator as clients write it, in any case.
    pub fn parse(text: &str) -> Result<Self> {
        let name = text.trim().to_ascii_lowercase();
        let known = NAMES
            .iter()
            .find(|(_, names)| names.contains(&name.as_str()));
        known.map(|(operator, _)| *operator).ok_or_else(|| {
            let all: Vec<&str> = NAMES.iter().map(|(_, names)| names[0]).collect();
            let text = format!(
                "the filter operator '{text}' is unknown; known are {}",
                all.join(", ")
            );
            invalid("unknown_operator", &text)
        })
    }

    /// Its first name.
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(operator, _)| *operator == self);
        named.map_or("", |(_, names)| names[0])
    }
}

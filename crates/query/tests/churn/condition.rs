//! Conditions on rows: as JSON filters, as a predicate of SQL, and as plain code that says what they mean.

use serde_json::{Value, json};

use crate::random::Random;
use crate::rows::{KINDS, RANKS, Row, WORDS, kind, word};

/// A condition.
#[derive(Debug, Clone)]
pub enum Condition {
    /// `rank`, or `id`, compared with a number.
    Number(&'static str, &'static str, i64),
    /// `rank` one of a list.
    RankIn(Vec<i64>, bool),
    Price(&'static str, f64),
    Kind(bool, u64),
    KindIn(Vec<u64>, bool),
    /// `word` begins so.
    WordBegins(u64),
    /// `word` ends so.
    WordEnds(u64),
    Null(&'static str, bool),
    Flag(bool),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

use Condition::{And, Flag, Kind, KindIn, Not, Null, Number, Or, Price, RankIn};
use Condition::{WordBegins, WordEnds};

const OPERATORS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

impl Condition {
    /// A random condition: half of them let pass about a share of the rows that is spread from 0.01 % to 99 %, the others
    /// are of any shape.
    pub fn random(random: &mut Random) -> Condition {
        let share = match random.once_in(2) {
            true => 10f64.powf(-4.0 * random.share()),
            false => 0.01 + 0.98 * random.share(),
        };
        let selective = Condition::of_share(random, share.min(0.99));
        match random.below(6) {
            0..3 => selective,
            3 => And(vec![selective, Condition::any(random, 2)]),
            4 => Or(vec![selective, Condition::any(random, 2)]),
            _ => Condition::any(random, 3),
        }
    }

    /// A condition that about this share of the rows passes.
    pub fn of_share(random: &mut Random, share: f64) -> Condition {
        let width = (share * RANKS as f64).max(1.0) as i64;
        match random.below(4) {
            0 => Number("rank", "<", width),
            1 => Number("rank", ">=", RANKS - width),
            2 => Not(Box::new(Number("rank", ">=", width))),
            _ => {
                let begin = random.below((RANKS - width).max(1) as u64) as i64;
                let range = [("rank", ">=", begin), ("rank", "<", begin + width)];
                And(range
                    .map(|(name, op, value)| Number(name, op, value))
                    .to_vec())
            }
        }
    }

    fn any(random: &mut Random, depth: usize) -> Condition {
        if depth > 0 && random.once_in(2) {
            let count = 1 + random.below(3);
            let mut parts = Vec::new();
            for _ in 0..count {
                parts.push(Condition::any(random, depth - 1));
            }
            return match random.below(3) {
                0 => And(parts),
                1 => Or(parts),
                _ => Not(Box::new(And(parts))),
            };
        }
        let operator = OPERATORS[random.below(6) as usize];
        match random.below(9) {
            0 => Number("rank", operator, random.below(RANKS as u64) as i64),
            1 => Number("id", operator, random.below(20_000) as i64),
            2 => Price(operator, random.below(1_024) as f64 / 2.0),
            3 => Kind(random.once_in(2), random.below(KINDS)),
            4 => {
                let list = (0..random.below(6)).map(|_| random.below(KINDS));
                KindIn(list.collect(), random.once_in(2))
            }
            5 => {
                let list = (0..random.below(50)).map(|_| random.below(RANKS as u64) as i64);
                RankIn(list.collect(), random.once_in(2))
            }
            6 if random.once_in(2) => WordBegins(random.below(WORDS)),
            6 => WordEnds(random.below(WORDS)),
            7 => Null(
                ["price", "word", "flag"][random.below(3) as usize],
                random.once_in(2),
            ),
            _ => Flag(random.once_in(2)),
        }
    }

    /// Whether a row passes; nothing if that is not known, because a value is not.
    pub fn holds(&self, row: &Row) -> Option<bool> {
        match self {
            Number("rank", operator, value) => Some(compare(operator, &row.rank, value)),
            Number(_, operator, value) => Some(compare(operator, &row.id, value)),
            RankIn(list, within) => Some(list.contains(&row.rank) == *within),
            Price(operator, value) => row.price.map(|price| compare(operator, &price, value)),
            Kind(is, value) => Some((row.kind == *value) == *is),
            KindIn(list, within) => Some(list.contains(&row.kind) == *within),
            WordBegins(value) => row.word.map(|word| word / 10 == value / 10),
            WordEnds(value) => row.word.map(|word| word % 10 == value % 10),
            Null(name, is) => {
                let null = match *name {
                    "price" => row.price.is_none(),
                    "word" => row.word.is_none(),
                    _ => row.flag.is_none(),
                };
                Some(null == *is)
            }
            Flag(value) => row.flag.map(|flag| flag == *value),
            And(parts) => all(parts.iter().map(|part| part.holds(row)), true),
            Or(parts) => all(parts.iter().map(|part| part.holds(row)), false),
            Not(part) => part.holds(row).map(|holds| !holds),
        }
    }

    /// As a filter of a request.
    pub fn to_json(&self) -> Value {
        let one = |field: &str, operator: &str, value: Value| json!({"field": field, "operator": operator, "value": value});
        let list = |within: bool| if within { "in" } else { "not_in" };
        let group = |logic: &str, parts: &[Condition]| {
            let parts: Vec<Value> = parts.iter().map(Condition::to_json).collect();
            json!({"logic": logic, "filters": parts})
        };
        match self {
            Number(name, operator, value) => one(name, operator, json!(value)),
            RankIn(values, within) => one("rank", list(*within), json!(values)),
            Price(operator, value) => one("price", operator, json!(value)),
            Kind(is, value) => one("kind", if *is { "==" } else { "<>" }, json!(kind(*value))),
            KindIn(values, within) => {
                let values: Vec<String> = values.iter().map(|value| kind(*value)).collect();
                one("kind", list(*within), json!(values))
            }
            WordBegins(value) => one("word", "like", json!(begins(*value))),
            WordEnds(value) => one("word", "like", json!(ends(*value))),
            Null(name, is) => one(name, if *is { "is_null" } else { "not_null" }, Value::Null),
            Flag(value) => one("flag", "=", json!(value)),
            And(parts) => group("AND", parts),
            Or(parts) => group("OR", parts),
            Not(part) => group("NOT", std::slice::from_ref(part)),
        }
    }

    /// As a predicate of SQL.
    pub fn to_sql(&self) -> String {
        let join = |parts: &[Condition], word: &str| {
            let parts: Vec<String> = parts.iter().map(Condition::to_sql).collect();
            format!("({})", parts.join(word))
        };
        let list = |name: &str, values: Vec<String>, within: bool| match (values.is_empty(), within)
        {
            // Lists of SQL are not empty.
            (true, true) => "1 = 2".to_owned(),
            (true, false) => "1 = 1".to_owned(),
            (false, within) => {
                let not = if within { "" } else { "NOT " };
                format!("{name} {not}IN ({})", values.join(", "))
            }
        };
        match self {
            Number(name, operator, value) => format!("{name} {operator} {value}"),
            RankIn(values, within) => {
                list("rank", values.iter().map(i64::to_string).collect(), *within)
            }
            Price(operator, value) => format!("price {operator} {value:?}"),
            Kind(is, value) => format!("kind {} '{}'", if *is { "=" } else { "<>" }, kind(*value)),
            KindIn(values, within) => {
                let values = values.iter().map(|value| format!("'{}'", kind(*value)));
                list("kind", values.collect(), *within)
            }
            WordBegins(value) => format!("word LIKE '{}'", begins(*value)),
            WordEnds(value) => format!("word LIKE '{}'", ends(*value)),
            Null(name, is) => format!("{name} IS {}NULL", if *is { "" } else { "NOT " }),
            Flag(value) => format!("flag = {value}"),
            And(parts) => join(parts, " AND "),
            Or(parts) => join(parts, " OR "),
            Not(part) => format!("NOT ({})", part.to_sql()),
        }
    }
}

fn begins(value: u64) -> String {
    format!("{}%", &word(value)[..2])
}

fn ends(value: u64) -> String {
    format!("%{}", &word(value)[2..])
}

fn compare<T: PartialOrd>(operator: &str, one: &T, other: &T) -> bool {
    match operator {
        "=" => one == other,
        "!=" => one != other,
        "<" => one < other,
        "<=" => one <= other,
        ">" => one > other,
        _ => one >= other,
    }
}

/// Kleene's conjunction, of which `neutral` is the neutral value; his disjunction if that is false.
fn all(parts: impl Iterator<Item = Option<bool>>, neutral: bool) -> Option<bool> {
    let mut known = true;
    for part in parts {
        match part {
            Some(part) if part != neutral => return Some(!neutral),
            Some(_) => {}
            None => known = false,
        }
    }
    known.then_some(neutral)
}

//! Expressions of SQL whose types fit, so that they are evaluated and not just refused; what they are given is odd.

use crate::grammar::TEXTS;
use crate::mutate::any_number;
use crate::random::Random;

/// A whole number: small, or as large as an argument may be.
fn int(random: &mut Random) -> String {
    match random.below(6) {
        0 => (*random.pick(&[
            "100000",
            "10000000",
            "1000000000",
            "2147483647",
            "-2147483648",
            "9223372036854775807",
        ]))
        .to_owned(),
        1 => "id".to_owned(),
        _ => (random.below(12) as i64 - 1).to_string(),
    }
}

/// A number.
pub fn number(random: &mut Random, depth: u64) -> String {
    if depth == 0 {
        return match random.once_in(3) {
            true => any_number(random),
            false => (*random.pick(&["id", "n", "x", "\"Big Name\"", "a['b']"])).to_owned(),
        };
    }
    let mut one = || number(random, depth - 1);
    let (one, other) = (one(), one());
    match random.below(14) {
        0..6 => format!("{one} {} {other}", random.pick(&["+", "-", "*", "/", "%"])),
        6 => format!(
            "{}({one})",
            random.pick(&[
                "abs",
                "sqrt",
                "ln",
                "exp",
                "round",
                "factorial",
                "-",
                "trunc"
            ])
        ),
        7 => format!("power({one}, {other})"),
        8 => format!(
            "{}({})",
            random.pick(&["length", "octet_length", "ascii"]),
            text(random, depth - 1)
        ),
        9 => format!("date_part('day', {})", time(random, depth - 1)),
        10 => format!("cardinality({})", list(random, depth - 1)),
        11 => format!("coalesce({one}, {other})"),
        12 => format!(
            "CASE WHEN {} THEN {one} ELSE {other} END",
            condition(random, depth - 1)
        ),
        _ => format!(
            "CAST({one} AS {})",
            random.pick(&["INT", "SMALLINT", "DECIMAL(38, 10)", "DOUBLE", "BIGINT"])
        ),
    }
}

/// A text.
pub fn text(random: &mut Random, depth: u64) -> String {
    if depth == 0 {
        return match random.once_in(2) {
            true => (*random.pick(&TEXTS)).to_owned(),
            false => "word".to_owned(),
        };
    }
    let mut one = || text(random, depth - 1);
    let (one, other, third) = (one(), one(), one());
    match random.below(15) {
        0 | 1 => format!("repeat({one}, {})", int(random)),
        2 | 3 => format!(
            "{}({one}, {}, {other})",
            random.pick(&["lpad", "rpad"]),
            int(random)
        ),
        4 | 5 => format!("replace({one}, {other}, {third})"),
        6 => format!("regexp_replace({one}, {other}, {third}, 'g')"),
        7 => format!("concat({one}, {other}, {third})"),
        8 => format!("concat_ws({one}, {other}, {third})"),
        9 => format!("{one} || {other}"),
        10 => format!("substr({one}, {}, {})", int(random), int(random)),
        11 => format!(
            "{}({one})",
            random.pick(&["upper", "lower", "reverse", "md5", "initcap", "trim"])
        ),
        12 => format!("array_to_string({}, {one})", list(random, depth - 1)),
        13 => format!("CAST({} AS TEXT)", number(random, depth - 1)),
        _ => format!("split_part({one}, {other}, {})", int(random)),
    }
}

/// A time.
fn time(random: &mut Random, depth: u64) -> String {
    if depth == 0 {
        return "at".to_owned();
    }
    let one = time(random, depth - 1);
    match random.below(5) {
        0 => format!(
            "date_trunc('{}', {one})",
            random.pick(&["day", "century", "microsecond", "x"])
        ),
        1 => format!("{one} + interval '{} days'", int(random)),
        2 => format!("to_timestamp({})", number(random, depth - 1)),
        3 => format!("date_bin(interval '{} seconds', {one})", int(random)),
        _ => "now()".to_owned(),
    }
}

/// A list of numbers.
fn list(random: &mut Random, depth: u64) -> String {
    if depth == 0 {
        return (*random.pick(&["list", "[1, 2, 3]", "[]"])).to_owned();
    }
    let one = list(random, depth - 1);
    match random.below(9) {
        0 | 1 => format!(
            "{}({}, {})",
            random.pick(&["range", "generate_series"]),
            int(random),
            int(random)
        ),
        2 => format!("range({}, {}, {})", int(random), int(random), int(random)),
        3 => format!("array_repeat({}, {})", number(random, 0), int(random)),
        4 => format!("array_resize({one}, {}, 7)", int(random)),
        5 => format!("array_append({one}, {})", int(random)),
        6 => format!("array_concat({one}, {})", list(random, depth - 1)),
        7 => format!("array_slice({one}, {}, {})", int(random), int(random)),
        _ => format!(
            "{}({one})",
            random.pick(&["array_sort", "array_reverse", "array_distinct"])
        ),
    }
}

/// A condition.
pub fn condition(random: &mut Random, depth: u64) -> String {
    let deeper = depth.saturating_sub(1);
    match random.below(13) {
        0 if depth > 0 => format!(
            "({}) AND {}",
            condition(random, deeper),
            condition(random, deeper)
        ),
        1 if depth > 0 => format!(
            "({}) OR {}",
            condition(random, deeper),
            condition(random, deeper)
        ),
        2 if depth > 0 => format!("NOT ({})", condition(random, deeper)),
        3 | 4 => format!(
            "{} {} {}",
            number(random, deeper),
            random.pick(&["=", "<", ">=", "<>"]),
            number(random, deeper)
        ),
        5 | 6 => format!(
            "{} {} {}",
            text(random, deeper),
            random.pick(&["=", "<", "LIKE", "NOT ILIKE", "~", "!~*"]),
            text(random, deeper)
        ),
        7 => format!("{} > {}", time(random, deeper), time(random, deeper)),
        8 => format!("array_has({}, {})", list(random, deeper), int(random)),
        9 => format!(
            "{} IN ({}, {})",
            number(random, deeper),
            int(random),
            any_number(random)
        ),
        10 => format!("{} IS NULL", text(random, deeper)),
        11 => format!(
            "{} BETWEEN {} AND {}",
            number(random, deeper),
            int(random),
            int(random)
        ),
        _ => "good".to_owned(),
    }
}

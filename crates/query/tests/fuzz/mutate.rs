//! Good requests made wrong: bytes changed, pieces moved, numbers made huge, brackets nested, lists made long.

use crate::random::Random;

/// Longest request that is made.
const LONGEST: usize = 2 << 20;

const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1e308",
    "-1e400",
    "1e-400",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "0.1",
    "1e9",
    "100000000",
    "1e999999999",
    "00",
];

const PIECES: [&str; 36] = [
    "null", "true", "NaN", "''", "'", "\"", "\\", "\\u0000", "\\ud800", "\u{0}", "\u{feff}", "ä",
    "\u{202e}", "😀", "e\u{301}", "İ", "ß", "--", "/*", "*/", ";", "$1", "?", "::", "[]", "{}",
    "()", "%", "_", "~", "*", " OR ", " AND ", " NOT ", " IN ", " LIKE ",
];

/// What can be nested: what opens a level, and what closes it.
const NESTS: [(&str, &str); 12] = [
    ("(", ")"),
    ("[", "]"),
    ("{\"filters\":[", "]}"),
    ("{\"logic\":\"NOT\",\"filters\":[", "]}"),
    ("{\"a\":", "}"),
    ("NOT ", ""),
    ("- ", ""),
    ("CASE WHEN ", " THEN 1 END"),
    ("(SELECT ", ")"),
    ("abs(", ")"),
    ("+", ""),
    ("\"(", ")\""),
];

/// A request made of a good one, and pieces of others.
pub fn mutate(random: &mut Random, good: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let steps = 1 + random.below(*random.clone().pick(&[1, 2, 8]));
    for _ in 0..steps {
        step(random, &mut bytes, others);
        bytes.truncate(LONGEST);
    }
    bytes
}

fn step(random: &mut Random, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    let (begin, end) = range(random, bytes.len());
    match random.below(10) {
        0 if !bytes.is_empty() => {
            let at = begin.min(bytes.len() - 1);
            bytes[at] ^= 1 << random.below(8);
        }
        1 => bytes.insert(begin, random.next() as u8),
        2 => drop(bytes.drain(begin..end)),
        3 => {
            let times = *random.pick(&[1, 2, 100, 3_000]);
            let piece = bytes[begin..end.min(begin + 100)].repeat(times);
            bytes.splice(end..end, piece);
        }
        4 => {
            let other = random.pick(others);
            let (from, to) = range(random, other.len());
            bytes.splice(begin..end, other[from..to].iter().copied());
        }
        5 | 6 => number(random, bytes),
        7 => nest(random, bytes, (begin, end)),
        8 => {
            let piece = random.pick(&PIECES).bytes();
            bytes.splice(begin..begin, piece);
        }
        _ => {
            let times = *random.pick(&[10, 1_000, 30_000]);
            let item = *random.pick(&[
                "1,", "'x',", "0.5,", "\"a\",", "(1),", "[1],", "null,", "a b ",
            ]);
            bytes.splice(begin..begin, item.repeat(times).into_bytes());
        }
    }
}

/// A range, mostly a short one.
fn range(random: &mut Random, len: usize) -> (usize, usize) {
    let begin = random.below(len as u64 + 1) as usize;
    let most = if random.once_in(4) { len } else { 12 };
    let length = random.below(most as u64 + 1) as usize;
    (begin, (begin + length).min(len))
}

/// Puts another number in the place of one.
fn number(random: &mut Random, bytes: &mut Vec<u8>) {
    let is_digit = |at: &usize| bytes[*at].is_ascii_digit();
    let digits: Vec<usize> = (0..bytes.len()).filter(is_digit).take(4_096).collect();
    if digits.is_empty() {
        return;
    }
    let begin = *random.pick(&digits);
    let length = bytes[begin..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    bytes.splice(begin..begin + length, random.pick(&NUMBERS).bytes());
}

fn nest(random: &mut Random, bytes: &mut Vec<u8>, (begin, end): (usize, usize)) {
    let (open, close) = *random.pick(&NESTS);
    let levels = *random.pick(&[1, 30, 130, 1_000, 10_000, 100_000]);
    bytes.splice(end..end, close.repeat(levels).into_bytes());
    bytes.splice(begin..begin, open.repeat(levels).into_bytes());
}

/// A number, huge at times.
pub fn any_number(random: &mut Random) -> String {
    match random.once_in(8) {
        true => (*random.pick(&NUMBERS)).to_owned(),
        false => format!("{:.*}", random.below(3) as usize, random.share() * 100.0),
    }
}

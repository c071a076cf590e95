//! The kinds of values that settings have: how each is read, shown, and explained.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalSyncMethod {
    /// A write, then `fdatasync`.
    Fdatasync,
    /// Writes that return when they are on the disk.
    Dsync,
    /// Not at all.
    None,
}

/// How the log's lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For a reader at a terminal.
    Console,
}

/// The most that may be acknowledged and not yet synced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Bytes of log.
    pub bytes: u64,
    /// Age of the oldest entry.
    pub age: Duration,
}

/// What an option takes, with its limits (both ends included).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// An IP address and a port.
    Addr,
    /// A path of the file system, not empty.
    Path,
    /// Any text, empty or not.
    Text,
    /// A text that is not empty.
    Name,
    /// True or false.
    Flag,
    /// A whole number.
    Int(u64, u64),
    /// A number with a fraction.
    Float(f64, f64),
    /// A number of bytes.
    Bytes(u64, u64),
    /// A time span, in milliseconds here.
    Span(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Words separated by commas.
    List,
    /// Bytes and an age, separated by a comma.
    Unsynced,
}

/// The value of an option. Its `Display` can be read again by [`Kind::parse`] to an equal value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Addr`].
    Addr(SocketAddr),
    /// Of [`Kind::Path`].
    Path(PathBuf),
    /// Of [`Kind::Text`], [`Kind::Name`] or [`Kind::Choice`].
    Text(String),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Int`].
    Int(u64),
    /// Of [`Kind::Float`].
    Float(f64),
    /// Of [`Kind::Bytes`].
    Bytes(u64),
    /// Of [`Kind::Span`].
    Span(Duration),
    /// Of [`Kind::List`].
    List(Vec<String>),
    /// Of [`Kind::Unsynced`].
    Unsynced(Unsynced),
}

/// The window of [`Kind::Unsynced`]: wide enough for one batch, and not so wide that it is none.
const UNSYNCED_BYTES: (u64, u64) = (64 << 10, 64 << 30);
const UNSYNCED_AGE_MS: (u64, u64) = (1, 3_600_000);

/// No option needs longer text; longer text in a message helps nobody.
const MAX_TEXT: usize = 4096;

/// No path and no name may hold these: NUL ends a path for the system, and the replacement character stands where
/// an environment variable was not UTF-8.
const UNREADABLE: [char; 2] = ['\0', '\u{FFFD}'];

impl Kind {
    /// Reads a value, or gives `None` if `text` is none of this kind; [`Kind::allowed`] says what would be.
    pub fn parse(&self, text: &str) -> Option<Value> {
        if text.len() > MAX_TEXT || text.contains(UNREADABLE) {
            return None;
        }
        let text = text.trim();
        match *self {
            Kind::Addr => addr(text).map(Value::Addr),
            Kind::Path => (!text.is_empty()).then(|| Value::Path(PathBuf::from(text))),
            Kind::Text => Some(Value::Text(text.to_owned())),
            Kind::Name => (!text.is_empty()).then(|| Value::Text(text.to_owned())),
            Kind::Flag => flag(text).map(Value::Flag),
            Kind::Int(min, max) => text
                .parse()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .map(Value::Int),
            Kind::Float(min, max) => text
                .parse()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .map(Value::Float),
            Kind::Bytes(min, max) => bytes(text)
                .filter(|n| (min..=max).contains(n))
                .map(Value::Bytes),
            Kind::Span(min, max) => span(text, min, max).map(Value::Span),
            Kind::Choice(words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text))?;
                Some(Value::Text((*word).to_owned()))
            }
            Kind::List => Some(Value::List(
                text.split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
                    .collect(),
            )),
            Kind::Unsynced => {
                let (size, age) = text.split_once(',')?;
                let bytes = bytes(size.trim())
                    .filter(|n| (UNSYNCED_BYTES.0..=UNSYNCED_BYTES.1).contains(n))?;
                let age = span(age.trim(), UNSYNCED_AGE_MS.0, UNSYNCED_AGE_MS.1)?;
                Some(Value::Unsynced(Unsynced { bytes, age }))
            }
        }
    }

    /// What the option takes, in words.
    pub fn allowed(&self) -> String {
        let ms = |n: u64| Value::Span(Duration::from_millis(n));
        match *self {
            Kind::Addr => {
                "an IP address and a port, such as 127.0.0.1:3000 (port 0: any free one)".into()
            }
            Kind::Path => "a path".into(),
            Kind::Text => "any text".into(),
            Kind::Name => "a text that is not empty".into(),
            Kind::Flag => "true or false".into(),
            Kind::Int(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Float(min, max) => format!("a number from {min} to {max}"),
            Kind::Bytes(min, max) => {
                format!(
                    "bytes, plain or as 64MiB, from {} to {}",
                    Value::Bytes(min),
                    Value::Bytes(max)
                )
            }
            Kind::Span(min, max) => format!(
                "a time such as 200ms, 1s or 1h, from {} to {}",
                ms(min),
                ms(max)
            ),
            Kind::Choice(words) => words.join(" or "),
            Kind::List => "words separated by commas".into(),
            Kind::Unsynced => format!(
                "bytes and a time, such as 256MiB,1s: from {} to {}, and from {} to {}",
                Value::Bytes(UNSYNCED_BYTES.0),
                Value::Bytes(UNSYNCED_BYTES.1),
                ms(UNSYNCED_AGE_MS.0),
                ms(UNSYNCED_AGE_MS.1)
            ),
        }
    }
}

/// An address; `localhost` is taken for 127.0.0.1, so that no name server is asked.
fn addr(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
        None => text.parse().ok(),
    }
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// `K`, `M` and `G` alone are refused, because half of the world reads them as powers of ten.
const BYTE_UNITS: [(&str, u64); 13] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, factor) = BYTE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*factor)
}

const SPAN_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// A time: `0`, `200ms`, `1s`, `1h30m`. A bare number other than 0 is refused, because it doesn't say of what.
fn span(text: &str, min_ms: u64, max_ms: u64) -> Option<Duration> {
    let mut total = 0u64;
    let mut rest = if text == "0" { "0s" } else { text };
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let end = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let unit = tail[..end].trim();
        let (_, factor) = SPAN_UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.checked_mul(*factor)?)?;
        rest = &tail[end..];
    }
    (min_ms..=max_ms)
        .contains(&total)
        .then(|| Duration::from_millis(total))
}

/// The digits that `text` begins with as a number, and what follows them.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Addr(addr) => write!(f, "{addr}"),
            Value::Path(path) => write!(f, "{}", path.display()),
            Value::Text(text) => f.write_str(text),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(n) => write!(f, "{n}"),
            Value::Bytes(n) => {
                let whole = |(_, factor): &&(&str, u64)| *n >= *factor && n.is_multiple_of(*factor);
                match BYTE_UNITS[..4].iter().find(whole) {
                    Some((unit, factor)) => write!(f, "{}{unit}", n / factor),
                    None => write!(f, "{n}"),
                }
            }
            Value::Span(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let whole =
                    |(_, factor): &&(&str, u64)| ms >= *factor && ms.is_multiple_of(*factor);
                match SPAN_UNITS[..4].iter().rev().find(whole) {
                    Some((unit, factor)) => write!(f, "{}{unit}", ms / factor),
                    None => write!(f, "{ms}"),
                }
            }
            Value::List(words) => f.write_str(&words.join(",")),
            Value::Unsynced(Unsynced { bytes, age }) => {
                write!(f, "{},{}", Value::Bytes(*bytes), Value::Span(*age))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Kind; 12] = [
        Kind::Addr,
        Kind::Path,
        Kind::Text,
        Kind::Name,
        Kind::Flag,
        Kind::Int(0, u64::MAX),
        Kind::Float(0.0, 1.0),
        Kind::Bytes(0, u64::MAX),
        Kind::Span(0, u64::MAX),
        Kind::Choice(&["json", "console"]),
        Kind::List,
        Kind::Unsynced,
    ];

    #[test]
    fn reads_bytes() {
        let any = Kind::Bytes(0, u64::MAX);
        for (text, expected) in [
            ("0", Some(0)),
            ("536870912", Some(512 << 20)),
            ("256MiB", Some(256 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("1gib", Some(1 << 30)),
            ("2Gi", Some(2 << 30)),
            ("1GB", Some(1_000_000_000)),
            ("7B", Some(7)),
            ("1G", None),
            ("MiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("99999999999TiB", None),
            ("", None),
        ] {
            assert_eq!(any.parse(text), expected.map(Value::Bytes), "{text:?}");
        }
        assert_eq!(Kind::Bytes(10, 20).parse("9"), None);
        assert_eq!(Kind::Bytes(10, 20).parse("21"), None);
    }

    #[test]
    fn reads_times() {
        let any = Kind::Span(0, u64::MAX);
        for (text, expected) in [
            ("0", Some(0)),
            ("200ms", Some(200)),
            ("1s", Some(1000)),
            ("1h", Some(3_600_000)),
            ("1h30m", Some(5_400_000)),
            ("2 h", Some(7_200_000)),
            ("5", None),
            ("s", None),
            ("1fortnight", None),
            ("-1s", None),
            ("", None),
            ("99999999999999999999s", None),
            ("9999999999999999999h", None),
        ] {
            assert_eq!(
                any.parse(text),
                expected.map(|ms| Value::Span(Duration::from_millis(ms))),
                "{text:?}"
            );
        }
        assert_eq!(Kind::Span(10, 20).parse("21ms"), None);
    }

    #[test]
    fn reads_the_unsynced_window() {
        let window = Unsynced {
            bytes: 256 << 20,
            age: Duration::from_secs(1),
        };
        assert_eq!(
            Kind::Unsynced.parse("256MiB,1s"),
            Some(Value::Unsynced(window))
        );
        assert_eq!(
            Kind::Unsynced.parse("256 MiB, 1 s"),
            Some(Value::Unsynced(window))
        );
        for bad in [
            "256MiB",
            "1s",
            "1s,256MiB",
            "0,1s",
            "256MiB,0",
            "256MiB,1s,1s",
        ] {
            assert_eq!(Kind::Unsynced.parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn reads_the_rest() {
        let local = Value::Addr("127.0.0.1:3000".parse().expect("an address"));
        assert_eq!(Kind::Addr.parse("localhost:3000"), Some(local.clone()));
        assert_eq!(Kind::Addr.parse("127.0.0.1:3000"), Some(local));
        for bad in ["3000", "localhost", "example.com:80", "1.2.3.4:99999"] {
            assert_eq!(Kind::Addr.parse(bad), None, "{bad:?}");
        }
        assert_eq!(Kind::Flag.parse("YES"), Some(Value::Flag(true)));
        assert_eq!(Kind::Flag.parse("maybe"), None);
        assert_eq!(Kind::Float(0.0, 1.0).parse("NaN"), None);
        assert_eq!(Kind::Float(0.0, 1.0).parse("0.9"), Some(Value::Float(0.9)));
        assert_eq!(
            Kind::Choice(&["json"]).parse("JSON"),
            Some(Value::Text("json".into()))
        );
        assert_eq!(
            Kind::List.parse("a, b,,"),
            Some(Value::List(vec!["a".into(), "b".into()]))
        );
        assert_eq!(Kind::Path.parse(" "), None);
        assert_eq!(Kind::Text.parse(&"x".repeat(MAX_TEXT + 1)), None);
        assert_eq!(Kind::Path.parse("a\0b"), None);
        assert_eq!(Kind::Text.parse("a\u{FFFD}b"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_shown_reads_back(text in "\\PC{0,40}|[0-9]{1,22}[a-zA-Z ,.:]{0,6}[0-9a-z]{0,4}") {
            for kind in KINDS {
                if let Some(value) = kind.parse(&text) {
                    prop_assert_eq!(kind.parse(&value.to_string()), Some(value));
                }
            }
        }

        #[test]
        fn bytes_and_times_read_back(n in any::<u64>(), shift in 0u32..60) {
            let n = n >> shift;
            prop_assert_eq!(bytes(&Value::Bytes(n).to_string()), Some(n));
            let time = Duration::from_millis(n);
            prop_assert_eq!(Kind::Span(0, u64::MAX).parse(&Value::Span(time).to_string()), Some(Value::Span(time)));
        }
    }
}

//! Arguments of more than one command.

use clap::{Arg, value_parser};
use longbow_types::{Kind, Value};

/// One value, still without its parser.
pub fn one(name: &'static str, value: &'static str, help: impl Into<String>) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help.into())
}

/// A whole number.
pub fn int(name: &'static str, help: impl Into<String>, min: i64, max: i64) -> Arg {
    let number = value_parser!(i64).range(min..=max);
    one(name, "N", help).value_parser(number)
}

/// A number of things, in digits, or short like `10k`, `10M` or `2G`: thousands, millions, thousands of millions.
pub fn count(name: &'static str, help: impl Into<String>, min: u64, max: u64) -> Arg {
    let parse = move |text: &str| {
        let allowed = |n: &u64| (min..=max).contains(n);
        let whole = Kind::Int(min, max).allowed();
        counted(text)
            .filter(allowed)
            .ok_or_else(|| format!("allowed: {whole}, also like 10k, 10M or 2G"))
    };
    one(name, "N", help).value_parser(parse)
}

fn counted(text: &str) -> Option<u64> {
    let units = [
        ('k', 1_000),
        ('K', 1_000),
        ('M', 1_000_000),
        ('G', 1_000_000_000),
    ];
    let short = units
        .iter()
        .find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit)));
    let (digits, unit) = short.unwrap_or((text, 1));
    digits
        .replace('_', "")
        .parse::<u64>()
        .ok()?
        .checked_mul(unit)
}

/// A number of bytes, in the words of the configuration.
pub fn size(name: &'static str, help: impl Into<String>, min: u64, max: u64) -> Arg {
    let kind = move || Kind::Bytes(min, max);
    let parse = move |text: &str| match kind().parse(text) {
        Some(Value::Bytes(n)) => Ok(n),
        _ => Err(format!("allowed: {}", kind().allowed())),
    };
    one(name, "BYTES", help).value_parser(parse)
}

/// What a command reads in a line, for tests.
#[cfg(test)]
pub fn read(command: clap::Command, line: &str) -> Result<clap::ArgMatches, String> {
    command
        .no_binary_name(true)
        .try_get_matches_from(line.split_whitespace())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_short() {
        for (text, expected) in [
            ("0", Some(0)),
            ("10_000", Some(10_000)),
            ("10k", Some(10_000)),
            ("10M", Some(10_000_000)),
            ("2G", Some(2_000_000_000)),
            ("M", None),
            ("1.5M", None),
            ("-1", None),
            ("99999999999G", None),
        ] {
            assert_eq!(counted(text), expected, "{text}");
        }
    }
}

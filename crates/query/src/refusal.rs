//! Why a request is not answered: a class, a stable code, and a text with the value that was wrong and what to do.

use longbow_engine::{Class, Error};

/// A refused request, in the words that every front end uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {text}")]
pub struct Refusal {
    /// What the caller may do about it.
    pub class: Class,
    /// A stable name; programs may match on it.
    pub code: &'static str,
    /// One line for people.
    pub text: String,
}

/// Result of a request.
pub type Result<T> = std::result::Result<T, Refusal>;

/// Bytes of a text. It travels in a header of gRPC, three bytes for each that is not ASCII, and clients take 16 KiB of
/// headers.
const MOST_BYTES: usize = 4_000;
/// Bytes of the end of a longer text: there it says what to do.
const END_BYTES: usize = 1_000;

impl Refusal {
    /// A refusal. What the caller sent stands in the text, and the text ends up in terminals and logs: it becomes one
    /// line without control characters, and of a long one the middle is left out.
    pub fn new(class: Class, code: &'static str, text: &str) -> Refusal {
        let mut line = String::with_capacity(text.len());
        for character in text.trim_end().chars() {
            match character {
                '\n' | '\r' | '\t' => line.push(' '),
                other if other.is_control() => line.extend(other.escape_debug()),
                other => line.push(other),
            }
        }
        if line.len() > MOST_BYTES {
            let begin = line.floor_char_boundary(MOST_BYTES - END_BYTES);
            let end = line.ceil_char_boundary(line.len() - END_BYTES);
            line = format!("{} … {}", &line[..begin], &line[end..]);
        }
        Refusal {
            class,
            code,
            text: line,
        }
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Refusal {
        match error {
            Error::Log(log) if log.is_no_space() => {
                let text = format!("{log}; free space on the disk");
                Refusal::new(Class::ResourceExhausted, "disk_space", &text)
            }
            error => Refusal::new(error.class(), error.code(), &error.to_string()),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::from(&error)
    }
}

/// The request is wrong.
pub fn invalid(code: &'static str, text: &str) -> Refusal {
    Refusal::new(Class::InvalidArgument, code, text)
}

/// The request asks for what this version does not have.
pub fn unimplemented(what: &str) -> Refusal {
    let text = format!("{what} is not in this version of Longbow; leave it out of the request");
    Refusal::new(Class::Unimplemented, "unimplemented", &text)
}

/// The text of an error of DataFusion's without what it adds to those that it takes for faults of its own.
pub(crate) fn without_appeal(text: &str) -> &str {
    let text = text.strip_prefix("Internal error: ").unwrap_or(text);
    let own = text.split("This issue was likely caused").next();
    own.unwrap_or(text).trim_end_matches(['.', ' ', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_without_control_characters() {
        let refused = invalid("bad_name", "'a\nb\x1b[31m' is € no name; use another\n\n");
        assert_eq!(
            refused.to_string(),
            r"bad_name: 'a b\u{1b}[31m' is € no name; use another"
        );
    }

    #[test]
    fn of_a_long_text_the_middle_is_left_out() {
        let text = format!("'{}' is no name; use another", "€".repeat(100_000));
        let refused = invalid("bad_name", &text).text;
        assert!(refused.len() < MOST_BYTES + 10, "{}", refused.len());
        assert!(refused.starts_with("'€€") && refused.ends_with("€' is no name; use another"));
    }
}

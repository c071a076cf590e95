//! Errors of the engine and of requests as gRPC statuses: `code: text`, where the code is stable.

use longbow_engine::{Class, Error};
use tonic::{Code, Status};

/// A status for an error of the engine.
pub(crate) fn of(error: &Error) -> Status {
    if let Error::Log(log) = error
        && log.is_no_space()
    {
        return status(
            Code::ResourceExhausted,
            "disk_space",
            &format!("{log}; free space on the disk"),
        );
    }
    let code = match error.class() {
        Class::NotFound => Code::NotFound,
        Class::InvalidArgument => Code::InvalidArgument,
        Class::ResourceExhausted => Code::ResourceExhausted,
        Class::Unavailable => Code::Unavailable,
        Class::FailedPrecondition => Code::FailedPrecondition,
        Class::Unimplemented => Code::Unimplemented,
        Class::DeadlineExceeded => Code::DeadlineExceeded,
        Class::Internal => Code::Internal,
    };
    status(code, error.code(), &error.to_string())
}

/// A status with a stable code and a text. What a client sent stands in the text, and the text ends up in terminals
/// and logs: it becomes one line without control characters.
pub(crate) fn status(code: Code, name: &str, text: &str) -> Status {
    let mut line = String::with_capacity(name.len() + 2 + text.len());
    line.push_str(name);
    line.push_str(": ");
    for character in text.trim_end().chars() {
        match character {
            '\n' | '\r' | '\t' => line.push(' '),
            other if other.is_control() => line.extend(other.escape_debug()),
            other => line.push(other),
        }
    }
    Status::new(code, line)
}

/// A status that the transport made, in our words: it has neither a stable code nor a remedy.
pub(crate) fn of_transport(refused: Status) -> Status {
    let text = refused.message();
    let coded = text.split_once(": ").is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    });
    match refused.code() {
        Code::OutOfRange if !coded => invalid(
            "message_too_large",
            &format!("{text}; send smaller messages or raise LONGBOW_GRPC_MAX_RECV_MSG_SIZE"),
        ),
        Code::Internal if !coded => invalid(
            "bad_message",
            &format!("{text}; send what the Flight protocol says"),
        ),
        Code::Unimplemented if !coded => status(
            Code::Unimplemented,
            "unknown_call",
            &format!(
                "the transport does not offer this ({text}); send an uncompressed Flight call"
            ),
        ),
        _ => refused,
    }
}

/// The request is wrong.
pub(crate) fn invalid(name: &str, text: &str) -> Status {
    status(Code::InvalidArgument, name, text)
}

/// The request asks for what this version does not have.
pub(crate) fn unimplemented(what: &str) -> Status {
    let text = format!("{what} is not in this version of Longbow; leave it out of the request");
    status(Code::Unimplemented, "unimplemented", &text)
}

/// The stable code at the start of a status's text; for metrics.
pub(crate) fn name_of(status: &Status) -> &str {
    status
        .message()
        .split_once(':')
        .map_or("error", |(name, _)| name)
}

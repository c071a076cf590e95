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

/// A status with a stable code and a text.
pub(crate) fn status(code: Code, name: &str, text: &str) -> Status {
    Status::new(code, format!("{name}: {text}"))
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

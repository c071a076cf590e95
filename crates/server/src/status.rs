//! Errors of the engine and of requests as gRPC statuses: `code: text`, where the code is stable.

use longbow_engine::{Class, Error};
use longbow_query::Refusal;
use tonic::{Code, Status};

/// A status for an error of the engine.
pub(crate) fn of(error: &Error) -> Status {
    refused(Refusal::from(error))
}

/// A status for a request that is refused.
pub(crate) fn refused(refusal: Refusal) -> Status {
    let code = match refusal.class {
        Class::NotFound => Code::NotFound,
        Class::InvalidArgument => Code::InvalidArgument,
        Class::ResourceExhausted => Code::ResourceExhausted,
        Class::Unavailable => Code::Unavailable,
        Class::FailedPrecondition => Code::FailedPrecondition,
        Class::Unimplemented => Code::Unimplemented,
        Class::DeadlineExceeded => Code::DeadlineExceeded,
        Class::Internal => Code::Internal,
    };
    Status::new(code, refusal.to_string())
}

/// A status with a stable code and a text, which becomes one line without control characters.
pub(crate) fn status(code: Code, name: &'static str, text: &str) -> Status {
    let refusal = Refusal::new(Class::Internal, name, text);
    Status::new(code, refusal.to_string())
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
pub(crate) fn invalid(name: &'static str, text: &str) -> Status {
    refused(longbow_query::invalid(name, text))
}

/// The request asks for what this version does not have.
pub(crate) fn unimplemented(what: &str) -> Status {
    refused(longbow_query::unimplemented(what))
}

/// The stable code at the start of a status's text; for metrics.
pub(crate) fn name_of(status: &Status) -> &str {
    status
        .message()
        .split_once(':')
        .map_or("error", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_begins_with_its_code() {
        assert_eq!(name_of(&invalid("bad_name", "use another")), "bad_name");
    }

    #[test]
    fn what_the_transport_refuses_gets_a_code_and_a_remedy() {
        for (code, text, expected, name) in [
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 9 bytes",
                Code::InvalidArgument,
                "message_too_large",
            ),
            (
                Code::Internal,
                "failed to decode Protobuf message: x",
                Code::InvalidArgument,
                "bad_message",
            ),
            (Code::Unimplemented, "", Code::Unimplemented, "unknown_call"),
        ] {
            let told = of_transport(Status::new(code, text));
            assert_eq!((told.code(), name_of(&told)), (expected, name));
            assert!(told.message().contains(text) && told.message().contains("; send "));
        }
        let ours = status(Code::Internal, "encode", "no");
        assert_eq!(of_transport(ours).message(), "encode: no");
        let gone = of_transport(Status::cancelled("the client went away"));
        assert_eq!(gone.code(), Code::Cancelled);
    }
}

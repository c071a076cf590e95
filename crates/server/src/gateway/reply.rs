//! Answers, as JSON or Arrow.

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use longbow_engine::Class;
use longbow_query::Refusal;
use longbow_query::rows::write_bytes;
use serde_json::{Value, json};

use super::wanted::{ARROW, Format};

/// A request that was refused, as an answer.
#[derive(Debug)]
pub struct Refused(pub Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused(refusal)
    }
}

impl From<ArrowError> for Refused {
    fn from(error: ArrowError) -> Self {
        Refusal::new(Class::Internal, "encode", &error.to_string()).into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(refusal) = self;
        let status = match (refusal.code, refusal.class) {
            ("message_too_large", _) => StatusCode::PAYLOAD_TOO_LARGE,
            ("wrong_method", _) => StatusCode::METHOD_NOT_ALLOWED,
            ("content_type", _) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ("not_acceptable", _) => StatusCode::NOT_ACCEPTABLE,
            ("disk_space", _) => StatusCode::INSUFFICIENT_STORAGE,
            (_, Class::NotFound) => StatusCode::NOT_FOUND,
            (_, Class::InvalidArgument) => StatusCode::BAD_REQUEST,
            (_, Class::ResourceExhausted) => StatusCode::TOO_MANY_REQUESTS,
            (_, Class::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
            (_, Class::FailedPrecondition) => StatusCode::CONFLICT,
            (_, Class::Unimplemented) => StatusCode::NOT_IMPLEMENTED,
            (_, Class::DeadlineExceeded) => StatusCode::GATEWAY_TIMEOUT,
            (_, Class::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = json!({"code": refusal.code, "message": refusal.text});
        (status, json_of(&body)).into_response()
    }
}

/// A JSON answer.
pub fn json_of(value: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, value.to_string()).into_response()
}

/// A table: as JSON under `rows`, with more beside it; as Arrow alone, whose schema says the rest.
pub fn table(
    format: Format,
    batch: RecordBatch,
    beside: &[(&str, Value)],
) -> Result<Response, Refused> {
    if format == Format::Arrow {
        let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
        stream.write(&batch)?;
        return Ok(([(header::CONTENT_TYPE, ARROW)], stream.into_inner()?).into_response());
    }
    let mut body = b"{\"rows\":".to_vec();
    body.extend(write_bytes(&batch)?);
    for (name, value) in beside {
        body.extend(format!(",\"{name}\":{value}").bytes());
    }
    body.push(b'}');
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

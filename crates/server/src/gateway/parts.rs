//! The parts of a request as the gateway takes them: what cannot be read is refused in JSON, with a code, like all else.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use longbow_engine::Class;
use longbow_query::{Refusal, invalid};
use serde::de::DeserializeOwned;

use super::MOST_BYTES;
use super::reply::Refused;

/// The name that stands in the path.
#[derive(Debug)]
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let name = Path::from_request_parts(parts, state).await;
        let Path(name) = name.map_err(|error| {
            let text = format!("{}; write the name in UTF-8", error.body_text());
            invalid("bad_path", &text)
        })?;
        Ok(Name(name))
    }
}

/// What stands behind the question mark.
#[derive(Debug)]
pub struct Wishes<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Wishes<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let wishes = Query::from_request_parts(parts, state).await;
        let Query(wishes) = wishes.map_err(|error| {
            let what = error.body_text();
            let what = what
                .rsplit_once("query string: ")
                .map_or(&*what, |(_, what)| what);
            let text = format!("what stands behind the question mark is wrong: {what}; correct it");
            invalid("bad_query", &text)
        })?;
        Ok(Wishes(wishes))
    }
}

/// The body.
#[derive(Debug)]
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let body = Bytes::from_request(request, state).await;
        Ok(Body(body.map_err(refused)?))
    }
}

fn refused(error: BytesRejection) -> Refusal {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let most = MOST_BYTES >> 20;
        let text = format!("the body has more than {most} MiB; send it in parts, or by Flight");
        return Refusal::new(Class::InvalidArgument, "message_too_large", &text);
    }
    invalid("bad_body", &format!("{}; send it again", error.body_text()))
}

//! Bulk transfers, straight on HTTP/2.
//!
//! The general gRPC stack gathers each message in one buffer and copies bodies once more on the way out. For the two
//! calls that move tables that is most of the work, so they are read and written here: a body is copied once from the
//! socket's buffers, into memory aligned for Arrow, and leaves without being copied by us at all. All other calls go
//! to the generated service.
//!
//! ```text
//! gRPC message   0            1          5
//!                compressed?  length n   n bytes of protobuf
//!                u8           u32 BE
//! FlightData     field 1 descriptor, 2 header, 3 metadata, 1000 body: each tag, length, bytes
//! ```

mod read;
mod recycle;
#[cfg(test)]
mod tests;
mod write;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::StreamExt;
use http::{HeaderValue, Request, Response};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service as TowerService;

use crate::context::Role;
use crate::get::Answer;
use crate::service::{Service, counted};
use crate::status::of_transport;
use crate::{get, put, sql};

pub(crate) use read::MessageReader;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
const DO_PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";
/// Longest ticket, in bytes: a search of 1,000 vectors of 4,096 numbers fits.
const MAX_TICKET: usize = 64 << 20;

/// The Flight service with `DoGet` and `DoPut` taken out of the general path.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    service: Service,
    rest: FlightServiceServer<Service>,
}

impl Flight {
    /// Wraps the service of one server.
    pub fn new(service: Service) -> Self {
        let config = &service.context.config;
        let rest = FlightServiceServer::new(service.clone())
            .max_decoding_message_size(config.grpc_max_recv_msg_size)
            .max_encoding_message_size(config.grpc_max_send_msg_size);
        Flight { service, rest }
    }
}

impl NamedService for Flight {
    const NAME: &'static str = <FlightServiceServer<Service> as NamedService>::NAME;
}

impl TowerService<Request<Body>> for Flight {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        TowerService::<Request<Body>>::poll_ready(&mut self.rest, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.service.clone();
        match request.uri().path() {
            DO_GET => Box::pin(async move {
                Ok(do_get(service, request.into_body())
                    .await
                    .unwrap_or_else(refusal))
            }),
            DO_PUT => Box::pin(async move {
                Ok(match service.role {
                    Role::Data => do_put(service, request),
                    Role::Meta => put_sql(service, request).await,
                }
                .unwrap_or_else(refusal))
            }),
            _ => {
                let answered = self.rest.call(request);
                Box::pin(async move { answered.await.map(in_our_words) })
            }
        }
    }
}

async fn do_get(service: Service, body: Body) -> Result<Response<Body>, Status> {
    let limit = service.context.config.grpc_max_recv_msg_size;
    let mut reader = MessageReader::new(body, limit.min(MAX_TICKET));
    let Some(ticket) = reader.next_bytes(1).await? else {
        return Err(crate::status::invalid(
            "bad_ticket",
            "the call has no ticket; send a dataset's name or JSON",
        ));
    };
    let limit = service.context.config.grpc_max_send_msg_size;
    let answered = match sql::command(&ticket)? {
        None => get::answer(&service, &ticket)?,
        Some(command) => {
            service.only(Role::Meta, "Flight SQL")?;
            let got = sql::get(&service.context, &command).await;
            Answer::Stream(counted("sql_get", got)?)
        }
    };
    Ok(answer(match answered {
        Answer::Whole(messages) => write::whole(write::together(messages, limit)?),
        Answer::Stream(messages) => {
            write::body(messages.map(move |message| write::flight_data(message?, limit)))
        }
    }))
}

fn do_put(service: Service, request: Request<Body>) -> Result<Response<Body>, Status> {
    service.only(Role::Data, "DoPut")?;
    let options = put::options(request.headers())?;
    let body = request.into_body();
    let reader = MessageReader::new(body, service.context.config.grpc_max_recv_msg_size);
    let answers = UnboundedReceiverStream::new(put::start(service.context, reader, options));
    Ok(answer(write::body(
        answers.map(|result| Ok(write::put_result(&result?))),
    )))
}

/// What Flight SQL sends. Everything else that is put is the data server's.
async fn put_sql(service: Service, request: Request<Body>) -> Result<Response<Body>, Status> {
    let limit = service.context.config.grpc_max_recv_msg_size;
    let mut reader = MessageReader::new(request.into_body(), limit);
    let first = reader.next().await?.unwrap_or_default();
    let descriptor = first.flight_descriptor.as_ref();
    let command = descriptor.map_or(Ok(None), |descriptor| sql::command(&descriptor.cmd))?;
    let Some(command) = command else {
        return service
            .only(Role::Data, "DoPut")
            .map(|()| answer(Body::empty()));
    };
    let result = counted(
        "sql_put",
        sql::put(&service.context, command, first, reader).await,
    )?;
    let told = futures::stream::iter([Ok(write::put_result(&result))]);
    Ok(answer(write::body(told)))
}

/// A refusal by the generated service itself has neither our codes nor a remedy.
fn in_our_words(response: Response<Body>) -> Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(refused) if refused.code() != Code::Ok => refusal(of_transport(refused)),
        _ => response,
    }
}

fn answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    response
}

fn refusal(status: Status) -> Response<Body> {
    debug_assert_ne!(status.code(), Code::Ok);
    status.into_http()
}

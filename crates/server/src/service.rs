//! The Flight service, of both servers.

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult,
    Ticket,
};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use longbow_types::metrics;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::context::{Role, Shared};
use crate::status::{name_of, status};
use crate::vigil::Vigil;
use crate::{actions, exchange, info, put, sql};

/// One of the two Flight servers.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub context: Shared,
    pub role: Role,
    /// Watches over the connections that are served beside this.
    pub vigil: Arc<Vigil>,
}

type Answers<T> = BoxStream<'static, Result<T, Status>>;

impl Service {
    /// Refuses a call that belongs to the other server.
    pub fn only(&self, role: Role, call: &str) -> Result<(), Status> {
        if self.role == role {
            return Ok(());
        }
        let (other, address) = self.context.other(self.role);
        let text = format!("{call} is on the {other} server, {address}; call it there");
        Err(status(Code::Unimplemented, "wrong_server", &text))
    }
}

/// Counts a call by its outcome.
pub(crate) fn counted<T>(method: &str, outcome: Result<T, Status>) -> Result<T, Status> {
    let status = outcome
        .as_ref()
        .err()
        .map_or("ok", |status| name_of(status));
    metrics()
        .flight_operations
        .with_label_values(&[method, status])
        .inc();
    outcome
}

fn all<T: Send + 'static>(items: Vec<T>) -> Answers<T> {
    stream::iter(items.into_iter().map(Ok)).boxed()
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<ActionResult>;
    type ListActionsStream = Answers<ActionType>;

    async fn handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let text = "this version has no authentication; call without a handshake";
        counted(
            "handshake",
            Err(status(Code::Unimplemented, "no_handshake", text)),
        )
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        let listed = self
            .only(Role::Meta, "ListFlights")
            .and_then(|()| info::list(&self.context, request.get_ref()));
        counted("list", listed).map(|infos| Response::new(all(infos)))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let descriptor = request.get_ref();
        let found = match sql::command(&descriptor.cmd)? {
            None => self
                .only(Role::Meta, "GetFlightInfo")
                .and_then(|()| info::info(&self.context, descriptor)),
            Some(command) => {
                self.only(Role::Meta, "Flight SQL")?;
                sql::info(&self.context, command, descriptor).await
            }
        };
        counted("info", found).map(Response::new)
    }

    async fn poll_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        let text = "PollFlightInfo is not offered; GetFlightInfo answers at once";
        counted("poll", Err(status(Code::Unimplemented, "no_poll", text)))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        let descriptor = request.get_ref();
        let found = match sql::command(&descriptor.cmd)? {
            None => info::schema(&self.context, descriptor),
            Some(command) => {
                self.only(Role::Meta, "Flight SQL")?;
                sql::schema(&self.context, &command).await
            }
        };
        counted("schema", found).map(Response::new)
    }

    async fn do_get(
        &self,
        _request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        // As DoPut.
        Err(status(
            Code::Internal,
            "misrouted",
            "DoGet came to the general path; report this",
        ))
    }

    async fn do_put(
        &self,
        _request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        // Taken out of this path by `wire`, which serves the same port.
        Err(status(
            Code::Internal,
            "misrouted",
            "DoPut came to the general path; report this",
        ))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        counted("exchange", self.only(Role::Data, "DoExchange"))?;
        let options = put::options(request.metadata().as_ref())?;
        let messages = request.into_inner();
        let answers = exchange::start(self, messages, options);
        Ok(Response::new(ReceiverStream::new(answers).boxed()))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        let action = request.get_ref();
        let of_sql = sql::ACTIONS.iter().any(|(name, _)| *name == action.r#type);
        let results = if of_sql {
            self.only(Role::Meta, "Flight SQL")?;
            sql::action(&self.context, action).await
        } else {
            actions::run(&self.context, self.role, action)
        };
        let results = counted("action", results)?;
        Ok(Response::new(all(results
            .into_iter()
            .map(|body| ActionResult { body })
            .collect())))
    }

    async fn list_actions(
        &self,
        _request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        counted("list_actions", self.only(Role::Meta, "ListActions"))?;
        Ok(Response::new(all(actions::list(self.role))))
    }
}

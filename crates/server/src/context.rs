//! What every call may use.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longbow_engine::Engine;
use longbow_query::sql::Session;
use longbow_types::Config;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::sql::Prepared;
use crate::status::status;

/// Shared by both Flight servers and the HTTP server.
#[derive(Debug)]
pub(crate) struct Context {
    pub engine: Engine,
    pub config: Config,
    /// Runs statements.
    pub sql: Session,
    /// Those that clients prepared.
    pub prepared: Prepared,
    /// Where the data server listens.
    pub data: SocketAddr,
    /// Where the meta server listens.
    pub meta: SocketAddr,
    /// Says true once the node is to stop.
    pub stopped: watch::Receiver<bool>,
    /// When that began, once it has.
    pub stop_began: OnceLock<Instant>,
}

/// How long the next message of a stream is waited for once the node is to stop.
const IDLE: Duration = Duration::from_secs(1);
/// For how long streams of which more comes all the time are heard then: less than until all that is left is cut off.
const LAST: Duration = Duration::from_secs(6);

/// The node is to stop, and what its client should do.
pub(crate) fn stopped(then: &str) -> Status {
    let text = format!("the node stops; {then}");
    status(Code::Unavailable, "node_stopped", &text)
}

/// Which of the two Flight servers a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Bulk transfers and searches.
    Data,
    /// Status and catalog.
    Meta,
}

impl Context {
    /// Waits until the node is to stop.
    pub async fn stopping(&self) {
        let mut stopped = self.stopped.clone();
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// The next message of a stream. Once the node is to stop and none comes, or has been to for some time, an error that says what to do
    /// `then`.
    pub async fn unless_idle<T>(
        &self,
        next: impl Future<Output = T>,
        then: &str,
    ) -> Result<T, Status> {
        let mut next = pin!(next);
        let left = || {
            let seen = *self.stop_began.get_or_init(Instant::now);
            (seen + LAST).saturating_duration_since(Instant::now())
        };
        if *self.stopped.borrow() && left().is_zero() {
            return Err(stopped(then));
        }
        tokio::select! {
            biased;
            next = &mut next => Ok(next),
            () = self.stopping() => {
                timeout(left().min(IDLE), next).await.map_err(|_| stopped(then))
            }
        }
    }

    /// The address of the other server, for a call that came to the wrong one.
    pub fn other(&self, role: Role) -> (&'static str, SocketAddr) {
        match role {
            Role::Data => ("meta", self.meta),
            Role::Meta => ("data", self.data),
        }
    }

    /// The location of the data server as Flight clients write it.
    pub fn data_location(&self) -> String {
        format!("grpc+tcp://{}", self.data)
    }
}

/// Takes what a client still sends, for so long; who has more to say is not heard.
pub(crate) async fn let_finish<T>(
    mut rest: impl Stream<Item = Result<T, Status>> + Unpin,
    within: Duration,
) {
    let until = Instant::now() + within;
    while let Ok(Some(Ok(_))) = timeout_at(until, rest.next()).await {
        // Of messages that are there already no time is told.
        if Instant::now() > until {
            return;
        }
    }
}

/// Runs a call of the engine that may take long or block, without holding up other calls of this thread.
pub(crate) fn blocking<T>(call: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(call)
}

/// Shared handle on a [`Context`].
pub(crate) type Shared = Arc<Context>;

//! The sockets and what serves on them.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::StreamExt;
use longbow_engine::Engine;
use longbow_types::Config;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::connection::Connection;
use crate::context::{Context, Role};
use crate::error::Error;
use crate::loops::{self, Connections};
use crate::service::Service;
use crate::vigil::{Threads, Vigil};
use crate::wire::Flight;

/// Where everything listens, and what was found at the start.
#[derive(Debug, Clone)]
pub struct Started {
    /// The data server.
    pub data: SocketAddr,
    /// The meta server.
    pub meta: SocketAddr,
    /// The HTTP server.
    pub http: SocketAddr,
    /// What recovery did, in words.
    pub recovery: String,
}

/// Bound sockets.
pub(crate) struct Listeners {
    data: TcpListener,
    meta: TcpListener,
    http: SocketAddr,
}

impl Listeners {
    /// Binds all three addresses. The last, of HTTP, is served before the others.
    pub async fn bind(config: &Config) -> Result<(Self, TcpListener), Error> {
        let data = bind(config.listen_addr, "LONGBOW_LISTEN_ADDR").await?;
        let meta = bind(config.meta_addr, "LONGBOW_META_ADDR").await?;
        let listener = bind(config.metrics_addr, "LONGBOW_METRICS_ADDR").await?;
        let http = address(&listener);
        Ok((Listeners { data, meta, http }, listener))
    }

    /// Where the data server listens.
    pub fn data_addr(&self) -> SocketAddr {
        address(&self.data)
    }

    /// Where the meta server listens.
    pub fn meta_addr(&self) -> SocketAddr {
        address(&self.meta)
    }

    /// What to tell whoever started us.
    pub fn started(&self, engine: &Engine) -> Started {
        let found = engine.recovered();
        let recovery = format!(
            "{} datasets, {} rows; checkpoint {}, {} log entries replayed, {} bytes of log read, {} bytes of torn log cut; {:.2?}",
            found.datasets,
            found.rows,
            found.checkpoint,
            found.replayed,
            found.log_bytes,
            found.cut_bytes,
            found.took
        );
        Started {
            data: address(&self.data),
            meta: address(&self.meta),
            http: self.http,
            recovery,
        }
    }

    /// Serves until `stopped` says true, and then until the calls under way have ended, those of `http`, too.
    pub async fn serve(
        self,
        context: &Arc<Context>,
        http: impl Future<Output = Result<(), Error>>,
        stopped: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let data = loops::serve(self.data, stopped.clone(), |connections, vigil| {
            let service = Service {
                context: Arc::clone(context),
                role: Role::Data,
                vigil,
            };
            flight(service, connections, stopped.clone())
        });
        let service = Service {
            context: Arc::clone(context),
            role: Role::Meta,
            // Nobody keeps it.
            vigil: Vigil::new(&Threads::new(1), 0),
        };
        let connections = TcpIncoming::from(self.meta).with_nodelay(Some(true));
        let connections = connections.map(|stream| Ok(Connection::new(stream?, None)));
        let meta = flight(service, connections.boxed(), stopped.clone());
        tokio::try_join!(data, meta, http).map(|_| ())
    }
}

async fn bind(address: SocketAddr, option: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Bind {
            address,
            option,
            source,
        })
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener
        .local_addr()
        .expect("a bound socket has an address")
}

/// Until it says true.
pub(crate) async fn told(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// How much of a stream is under way before the receiver says that it took some. One window holds a batch or two, so
/// that the sender seldom waits.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Long transfers pay for each frame; short calls have frames of their own size anyway. Each frame is received into a
/// buffer and copied from it to its place: at this size it is still in the cache then, and the allocator keeps the
/// buffer for the next one, where larger ones come as pages that the system has to clear.
const FRAME_BYTES: u32 = 256 << 10;

async fn flight(
    service: Service,
    connections: Connections,
    stopped: watch::Receiver<bool>,
) -> Result<(), Error> {
    let context = Arc::clone(&service.context);
    let config = &context.config;
    let served = Server::builder()
        .http2_keepalive_interval(Some(config.grpc_keepalive_time))
        .max_concurrent_streams(config.grpc_max_concurrent_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_BYTES)
        .add_service(Flight::new(service))
        .serve_with_incoming_shutdown(connections, told(stopped))
        .await;
    Ok(served?)
}

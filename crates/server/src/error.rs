//! Why the server did not start or ended.

use std::io::ErrorKind;
use std::net::SocketAddr;

/// An error of the server as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error(
        "{code}: cannot listen on {address} ({option}): {source}; stop what listens there or set {option}",
        code = bind_code(.source)
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The option that sets it.
        option: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The engine refused.
    #[error("{code}: {0}", code = .0.code())]
    Engine(#[from] longbow_engine::Error),
    /// A server ended by itself.
    #[error("transport: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The HTTP server ended by itself.
    #[error("http: {0}")]
    Http(#[from] std::io::Error),
    /// The system gives no threads for connections.
    #[error("threads: cannot start the threads that serve connections: {0}")]
    Threads(std::io::Error),
    /// SQL refused.
    #[error("{0}")]
    Sql(longbow_query::Refusal),
    /// A thread that opens or closes the engine or serves connections panicked.
    #[error("panicked: a thread of the server panicked; this is a bug, the log above tells where")]
    Panicked,
}

/// A port that is taken is told from an address that this machine does not have, or may not use.
fn bind_code(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::AddrInUse => "port_in_use",
        _ => "cannot_listen",
    }
}

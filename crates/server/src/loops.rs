//! Threads that each serve connections of their own.
//!
//! A connection stays with the thread that it was dealt to, together with all that its calls do in brief. Where threads share
//! connections, one that takes up a message wakes another to look for more, and for small calls, one after the other, that
//! takes as long as all else. What takes long runs on other threads ([`crate::context::blocking`]), so that a connection does
//! not hold up those beside it.

use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::BoxStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::error::Error;
use crate::vigil::Vigil;

/// Connections as they come.
pub(crate) type Connections = BoxStream<'static, std::io::Result<TcpStream>>;

/// How long nothing is accepted where the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread, and its connections.
struct Loop {
    runtime: Option<Runtime>,
    connections: mpsc::UnboundedSender<std::net::TcpStream>,
    served: Option<JoinHandle<Result<(), Error>>>,
}

impl Loop {
    fn new<F>(
        serve: impl FnOnce(Connections, Arc<Vigil>) -> F,
        watches: bool,
    ) -> Result<Self, Error>
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("data")
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let vigil = Vigil::new();
        if watches {
            runtime.spawn(Arc::clone(&vigil).keep());
        }
        let (connections, dealt) = mpsc::unbounded_channel();
        let dealt = UnboundedReceiverStream::new(dealt).map(TcpStream::from_std);
        let served = runtime.spawn(serve(dealt.boxed(), vigil));
        Ok(Loop {
            runtime: Some(runtime),
            connections,
            served: Some(served),
        })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Others may be dropped where waiting is forbidden.
            runtime.shutdown_background();
        }
    }
}

/// Serves what a listener accepts, on a thread for each core, until `stopped` says true and the calls under way have ended. `serve` serves the
/// connections of one thread.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    stopped: watch::Receiver<bool>,
    serve: impl Fn(Connections, Arc<Vigil>) -> F,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let cores = available_parallelism().map_or(1, usize::from);
    // On a single core, who stays awake is in the way of who would call.
    let loops = (0..cores).map(|_| Loop::new(&serve, cores > 1));
    let mut loops = loops.collect::<Result<Vec<_>, _>>()?;
    let served: Vec<_> = loops.iter_mut().filter_map(|of| of.served.take()).collect();
    let served = served
        .into_iter()
        .map(|served| async { served.await.map_err(|_| Error::Panicked)? });
    let deal = async {
        deal(&listener, &loops, stopped).await;
        Ok(())
    };
    tokio::try_join!(try_join_all(served), deal).map(|_| ())
}

/// Gives each thread a connection in turn.
async fn deal(listener: &TcpListener, loops: &[Loop], mut stopped: watch::Receiver<bool>) {
    for to in loops.iter().cycle() {
        let accepted = tokio::select! {
            accepted = accept(listener) => accepted,
            // An error means that the sender is gone, which is a stop as well.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        // A thread that ended says so itself.
        let _ = to.connections.send(accepted);
    }
}

async fn accept(listener: &TcpListener) -> std::net::TcpStream {
    loop {
        let accepted = listener.accept().await.and_then(|(stream, _)| {
            stream.set_nodelay(true)?;
            stream.into_std()
        });
        match accepted {
            Ok(stream) => return stream,
            // The client went away again.
            Err(error) if is_of_the_client(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_the_client(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::InvalidInput
            | ErrorKind::NotConnected
    )
}

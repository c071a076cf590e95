//! Threads that each serve connections of their own.
//!
//! A connection stays with the thread that it was dealt to, together with all that its calls do in brief. Where threads share
//! connections, one that takes up a message wakes another to look for more, and for small calls, one after the other, that
//! takes as long as all else. What takes long runs on other threads ([`crate::context::blocking`]), so that a connection does
//! not hold up those beside it.

use std::future::Future;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::serve::Listener;
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::BoxStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::connection::Connection;
use crate::error::Error;
use crate::vigil::{Threads, Vigil};

/// Connections as they come.
pub(crate) type Connections = BoxStream<'static, std::io::Result<Connection>>;

/// A thread, and its connections.
struct Loop {
    runtime: Option<Runtime>,
    dealt: mpsc::UnboundedSender<(std::net::TcpStream, Arc<()>)>,
    /// Each of its connections has a handle, too.
    counted: Arc<()>,
    served: Option<JoinHandle<Result<(), Error>>>,
}

impl Loop {
    fn new<F>(
        serve: impl FnOnce(Connections, Arc<Vigil>) -> F,
        vigil: Arc<Vigil>,
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
        runtime.spawn(Arc::clone(&vigil).keep());
        let (dealt, connections) = mpsc::unbounded_channel();
        let connections = UnboundedReceiverStream::new(connections).map(|(stream, counted)| {
            let stream = TcpStream::from_std(stream)?;
            Ok(Connection::new(stream, Some(counted)))
        });
        let served = runtime.spawn(serve(connections.boxed(), vigil));
        Ok(Loop {
            runtime: Some(runtime),
            dealt,
            counted: Arc::new(()),
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
    let threads = Threads::new(cores);
    let loops = (0..cores).map(|at| Loop::new(&serve, Vigil::new(&threads, at)));
    let mut loops = loops.collect::<Result<Vec<_>, _>>()?;
    let served: Vec<_> = loops.iter_mut().filter_map(|of| of.served.take()).collect();
    let served = served
        .into_iter()
        .map(|served| async { served.await.map_err(|_| Error::Panicked)? });
    let deal = async {
        deal(listener, &loops, stopped).await;
        Ok(())
    };
    tokio::try_join!(try_join_all(served), deal).map(|_| ())
}

/// Gives each connection to the thread that has the fewest. Nothing listens any more when it ends: who calls then is refused.
async fn deal(mut listener: TcpListener, loops: &[Loop], mut stopped: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            // Which waits for a while where the system has no room for another.
            (accepted, _) = Listener::accept(&mut listener) => accepted,
            // An error means that the sender is gone, which is a stop as well.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let accepted = accepted
            .set_nodelay(true)
            .and_then(|()| accepted.into_std());
        let Ok(accepted) = accepted else {
            // The client went away again.
            continue;
        };
        let fewest = loops.iter().min_by_key(|to| Arc::strong_count(&to.counted));
        if let Some(to) = fewest {
            // A thread that ended says so itself.
            let _ = to.dealt.send((accepted, Arc::clone(&to.counted)));
        }
    }
}

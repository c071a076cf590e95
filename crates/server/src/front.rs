//! The HTTP side from the first moment on: it says that the node starts while the engine reads its log, and has all its routes then.
//!
//! Who watches the process would else take a long recovery for a hang, and end it again and again.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::Service;

use crate::error::Error;
use crate::http::plain;
use crate::listen::told;

const STARTING: &str =
    "starting: the log is being read, and what its last checkpoint lacks is done again\n";

/// What answers on the HTTP address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Front {
    /// All routes, once there is an engine behind them.
    whole: Arc<OnceLock<Router>>,
}

impl Front {
    /// Answers by these routes from now on. Only the first call has an effect.
    pub fn open(&self, whole: Router) {
        let _ = self.whole.set(whole);
    }

    /// Serves until `stopped` says true, and then until the calls under way have ended.
    pub async fn serve(
        self,
        listener: TcpListener,
        stopped: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let router = Router::new().fallback(answer).with_state(self);
        axum::serve(listener, router)
            .with_graceful_shutdown(told(stopped))
            .await
            .map_err(Error::Http)
    }
}

async fn answer(State(front): State<Front>, request: Request) -> Response {
    let Some(whole) = front.whole.get() else {
        return match request.uri().path() {
            "/healthz" => plain(StatusCode::OK, "ok\n"),
            _ => plain(StatusCode::SERVICE_UNAVAILABLE, STARTING),
        };
    };
    match whole.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// The status of an answer, and the body.
    async fn ask(connection: &mut TcpStream, path: &str) -> (String, String) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\n\r\n");
        let sent = connection.write_all(request.as_bytes()).await;
        sent.expect("a request is sent");
        let mut answer = Vec::new();
        loop {
            let read = connection.read_buf(&mut answer).await;
            assert!(read.expect("an answer") > 0, "{answer:?}");
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && head.contains(&format!("content-length: {}", body.len()))
            {
                let status = head.split(' ').nth(1).expect("a status");
                return (status.to_owned(), body.to_owned());
            }
        }
    }

    #[tokio::test]
    async fn it_answers_before_there_is_an_engine_and_by_all_routes_then() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (stop, stopped) = watch::channel(false);
        let front = Front::default();
        let serving = tokio::spawn(front.clone().serve(listener, stopped));
        let mut connection = TcpStream::connect(address).await.expect("a connection");
        let check = |(status, body): (String, String), expected, word: &str| {
            assert_eq!(status, expected, "{body}");
            assert!(body.contains(word), "{body}");
        };
        check(ask(&mut connection, "/healthz").await, "200", "ok");
        for path in ["/readyz", "/metrics", "/v1/datasets", "/here"] {
            check(ask(&mut connection, path).await, "503", "starting");
        }
        front.open(Router::new().route("/here", get(async || "it is open")));
        check(ask(&mut connection, "/here").await, "200", "it is open");
        drop(connection);
        stop.send(true).expect("it serves");
        let served = serving.await.expect("no panic");
        assert!(served.is_ok(), "{served:?}");
    }
}

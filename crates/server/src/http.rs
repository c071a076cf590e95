//! The HTTP side: metrics, health, an index of what is here, and the JSON gateway.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use longbow_types::metrics;

/// What the HTTP side asks of the rest of the process. Both calls must be quick: they run on a network thread.
pub trait Health: Send + Sync + 'static {
    /// Whether requests are served.
    ///
    /// # Errors
    /// Why not, in words for an operator: still recovering, or the log can't be written any more.
    fn ready(&self) -> Result<(), String>;

    /// Brings gauges that are computed on demand up to date, before they are rendered.
    fn refresh_metrics(&self);
}

/// All routes: `/`, `/metrics`, `/healthz`, `/readyz`, and the gateway under `/v1`.
pub fn router(health: Arc<dyn Health>, gateway: Router) -> Router {
    let own = Router::new()
        .route("/", get(index))
        .route("/metrics", get(render_metrics))
        .route("/healthz", get(async || plain(StatusCode::OK, "ok\n")))
        .route("/readyz", get(readiness))
        .fallback(not_found)
        .with_state(health);
    own.nest("/v1", gateway)
}

const INDEX: &str = "\
Longbow: a vector database that speaks Apache Arrow.

/metrics   Prometheus metrics
/healthz   200 while the process lives
/readyz    200 when requests are served, 503 with the reason when not
/v1        datasets, rows and searches as JSON; /v1/openapi.json says how

Arrow Flight is on the other two ports.
";

/// Prometheus' text format, version 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of text.
pub(crate) fn plain(status: StatusCode, text: impl Into<String>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, text.into()).into_response()
}

async fn index() -> Response {
    plain(StatusCode::OK, INDEX)
}

async fn render_metrics(State(health): State<Arc<dyn Health>>) -> Response {
    health.refresh_metrics();
    ([(header::CONTENT_TYPE, METRICS_TYPE)], metrics().render()).into_response()
}

async fn readiness(State(health): State<Arc<dyn Health>>) -> Response {
    match health.ready() {
        Ok(()) => plain(StatusCode::OK, "ready\n"),
        Err(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn not_found() -> Response {
    plain(
        StatusCode::NOT_FOUND,
        "no such page; see / for what is here\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::{Method, Request};
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::Service;

    #[derive(Default)]
    struct Fake {
        trouble: Option<&'static str>,
        refreshed: AtomicUsize,
    }

    impl Health for Fake {
        fn ready(&self) -> Result<(), String> {
            self.trouble.map_or(Ok(()), |reason| Err(reason.to_owned()))
        }

        fn refresh_metrics(&self) {
            self.refreshed.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn ask(health: Arc<dyn Health>, method: Method, path: &str) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).expect("a request");
        let gateway = Router::new().route("/here", get(async || "gateway"));
        let response = match router(health, gateway).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body");
        (
            status,
            String::from_utf8(body.to_bytes().to_vec()).expect("text"),
        )
    }

    #[tokio::test]
    async fn every_page_answers() {
        for (path, status, word) in [
            ("/", 200, "/metrics"),
            ("/healthz", 200, "ok"),
            ("/readyz", 200, "ready"),
            ("/v1/here", 200, "gateway"),
            ("/nothing", 404, "see /"),
        ] {
            let (got, body) = ask(Arc::new(Fake::default()), Method::GET, path).await;
            assert_eq!(got.as_u16(), status, "{path}");
            assert!(body.contains(word), "{path}: {body}");
        }
    }

    #[tokio::test]
    async fn readiness_says_why_not() {
        let health = Arc::new(Fake {
            trouble: Some("recovering the log"),
            ..Fake::default()
        });
        let (status, body) = ask(health.clone(), Method::GET, "/readyz").await;
        assert_eq!(
            (status.as_u16(), body.as_str()),
            (503, "recovering the log\n")
        );
        // The process lives all the same.
        let (status, _) = ask(health, Method::GET, "/healthz").await;
        assert_eq!(status, StatusCode::OK);
    }

    #[tokio::test]
    async fn metrics_are_refreshed_before_they_are_rendered() {
        let health = Arc::new(Fake::default());
        let (status, body) = ask(health.clone(), Method::GET, "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(health.refreshed.load(Ordering::Relaxed), 1);
        assert!(
            body.contains("# HELP longbow_wal_bytes_written_total"),
            "{body}"
        );
    }

    #[tokio::test]
    async fn nothing_can_be_written_here() {
        for path in ["/", "/metrics", "/healthz", "/readyz"] {
            let (status, _) = ask(Arc::new(Fake::default()), Method::POST, path).await;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        }
    }
}

//! The admin endpoint: `/livez`, `/readyz` and `/metrics` over plain HTTP.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{ConnectInfo, Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use self::connections::AdminConnections;
pub use self::connections::{AdminPeer, KeptConnection};

mod connections;
mod origin;

/// Whether the process is ready, and if not, why. Clones share the state. The shell sets it, and `/readyz` reads it.
#[derive(Clone, Debug)]
pub struct Readiness(watch::Sender<Result<(), &'static str>>);

/// The routes of the admin endpoint. A binary may add more.
pub fn router(readiness: Readiness, registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(metrics).with_state(registry))
}

/// Serves `router` over HTTP/1.1 until the future is dropped. A connection has one response at a time,
/// so the number of unread responses is bounded by the number of connections.
///
/// A request is refused if a foreign page in a browser may have made it: the port is reached by an IP address or as localhost.
///
/// A new connection beyond `connections_max` displaces the oldest one of the peer with most. So a peer with many connections does not
/// keep probes out. Each connection lasts 20 seconds at most. A handler that streams a response [keeps](AdminPeer::keep) its connection:
/// the connection then lasts as long as the handler wants, and does not count any more.
pub async fn serve(listener: TcpListener, router: Router, connections_max: usize) {
    let router = router.layer(from_fn(check_origin));
    let connections = AdminConnections::new(listener, connections_max);
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = served.join_next() => {}
            (connection, peer) = connections.accept() => {
                let router = router.clone().layer(Extension(ConnectInfo(peer)));
                served.spawn(connection.serve(router));
            }
        }
    }
}

async fn check_origin(request: Request, next: Next) -> Response {
    match origin::check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    }
}

async fn readyz(State(readiness): State<Readiness>) -> Response {
    match readiness.check() {
        Ok(()) => (StatusCode::OK, "ok\n").into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// The page in OpenMetrics, which Prometheus and its agents read.
async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Readiness {
    /// A state that is not ready, with the reason.
    pub fn not_ready(why: &'static str) -> Self {
        Self(watch::Sender::new(Err(why)))
    }

    /// Sets the state; the error is the reason.
    pub fn set(&self, ready: Result<(), &'static str>) {
        self.0.send_modify(|state| *state = ready);
    }

    /// Whether the process is ready.
    ///
    /// # Errors
    /// The reason why the process is not ready.
    pub fn check(&self) -> Result<(), &'static str> {
        *self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;

    /// The response to these bytes, until the end of the connection.
    async fn answer_to(bytes: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let router = router(Readiness::not_ready("tests"), Arc::default());
        let served = tokio::spawn(serve(listener, router, 1));
        let mut peer = TcpStream::connect(address).await.expect("it listens");
        peer.write_all(bytes).await.expect("it is sent");
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.expect("text");
        served.abort();
        answer
    }

    #[tokio::test]
    async fn port_speaks_no_http_2() {
        let asked = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        assert!(answer_to(asked).await.ends_with("ok\n"));
        let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let answer = answer_to(settings).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer:?}"
        );
    }
}

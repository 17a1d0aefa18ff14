//! The admin endpoint: `/livez`, `/readyz` and `/metrics` over plain HTTP.

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use self::connections::Connections;
pub use self::connections::{Kept, Peer};
use crate::exposition::Exposition;

mod connections;

/// Whether the process is ready, and if not, why. Clones share the state; the shell sets it, `/readyz` reads it.
#[derive(Clone, Debug)]
pub struct Readiness(watch::Sender<Result<(), &'static str>>);

/// Returns the routes of the admin endpoint; a binary may add its own.
pub fn router(readiness: Readiness, registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(metrics).with_state(registry))
}

/// Serves `router` until `stop` is cancelled. Requests that are under way are not waited for.
///
/// There are at most `connections_max` connections, of which a new one displaces the oldest: whoever holds them all keeps no probe
/// out. Each lasts 20 seconds at most. A handler that streams an answer [keeps](Peer::keep) its connection: it then lasts for as long as
/// its peer reads, and counts no more.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    connections_max: usize,
) -> io::Result<()> {
    let connections = Connections::new(listener, connections_max);
    let router = router.into_make_service_with_connect_info::<Peer>();
    tokio::select! {
        biased;
        () = stop.cancelled() => Ok(()),
        served = axum::serve(connections, router) => served,
    }
}

async fn readyz(State(readiness): State<Readiness>) -> Response {
    match readiness.check() {
        Ok(()) => (StatusCode::OK, "ok\n").into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn metrics(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    // A header that came in parts is one list.
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    let accepted: Vec<_> = accepted.filter_map(|part| part.to_str().ok()).collect();
    let exposition = Exposition::accepted(&accepted.join(","));
    match exposition.page(&registry) {
        Ok(page) => ([(header::CONTENT_TYPE, exposition.content_type())], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

// === impl Readiness ===

impl Readiness {
    /// Returns a state that is not ready, for `why`.
    #[must_use]
    pub fn not_ready(why: &'static str) -> Self {
        Self(watch::Sender::new(Err(why)))
    }

    /// Says that the process is ready, or why it is not.
    pub fn set(&self, ready: Result<(), &'static str>) {
        self.0.send_modify(|state| *state = ready);
    }

    /// Returns whether the process is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), &'static str> {
        *self.0.borrow()
    }
}

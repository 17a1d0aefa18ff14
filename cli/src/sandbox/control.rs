//! The access of other processes to the embedded cluster of this one: one route on its admin port.
//!
//! **Invariant:** only a program of this machine acts. The port must be on the loopback interface, and the request must name the
//! port by its address or as `localhost`. The request must be JSON, which no page of a browser can send elsewhere without asking.

use std::net::SocketAddr;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::post,
};
use decree_agent::FakeCluster;
use serde_json::{Value, json};

use super::{
    act::Act,
    missing::{ActRefusal, missing},
};

/// The path for acts.
pub(crate) const PATH: &str = "/demo/act";

/// The maximum size of an act: objects of a large cluster, as kubectl prints them.
const ACT_BYTES_MAX: usize = 256 << 20;

pub(crate) fn routes(cluster: FakeCluster) -> Router {
    Router::new()
        .route(PATH, post(act))
        .layer(DefaultBodyLimit::max(ACT_BYTES_MAX))
        .route_layer(from_fn(only_local))
        .with_state(cluster)
}

/// Refuses a request that was not made for this machine, before its body is read.
async fn only_local(request: Request, next: Next) -> Response {
    if is_local(request.headers()) {
        return next.run(request).await;
    }
    let error = json!({"error": "only localhost may act on the embedded cluster"});
    (StatusCode::FORBIDDEN, Json(error)).into_response()
}

async fn act(
    State(cluster): State<FakeCluster>,
    Json(act): Json<Act>,
) -> (StatusCode, Json<Value>) {
    let done = cluster.with(|model| match missing(&act, model) {
        Some(refusal) => Err(refusal),
        None => act
            .perform(model)
            .map_err(|error| ActRefusal { error, hint: None }),
    });
    match done {
        Ok(done) => (StatusCode::OK, Json(json!({"done": done}))),
        Err(refusal) => (StatusCode::CONFLICT, Json(json!(refusal))),
    }
}

/// Whether a request names this machine by address or as `localhost`. Another name is no proof, because anyone can let a name
/// point here.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    host.is_some_and(|host| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let address = host.parse::<SocketAddr>();
        name == "localhost" || address.is_ok_and(|address| address.ip().is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let is = |host: &str| {
            let headers = [(header::HOST, host.parse().expect("a header"))];
            is_local(&headers.into_iter().collect())
        };
        assert!(
            is("127.0.0.1:8080") && is("[::1]:8080") && is("localhost:8080") && is("localhost")
        );
        assert!(!is("evil.example:8080") && !is("10.0.0.1:8080") && !is(""));
    }
}

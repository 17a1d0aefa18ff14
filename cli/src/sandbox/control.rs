//! The access of other processes to the embedded cluster of this one: one route on its admin port.
//!
//! **Invariant:** only a program of this machine acts. The port must be on the loopback interface, and it refuses foreign pages. The
//! request must be JSON, which no page of a browser can send elsewhere without asking.

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
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
        .with_state(cluster)
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

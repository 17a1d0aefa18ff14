//! The access of other processes to the embedded cluster of this one: one route on its admin port.
//!
//! **Invariant:** only a program of this machine acts. The port must be on the loopback interface, and it refuses foreign pages. The
//! request must be JSON, which no page of a browser can send elsewhere without asking.

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, RawQuery, State},
    http::StatusCode,
    routing::{get, post},
};
use decree_agent::FakeCluster;
use serde_json::{Value, json};

use super::{
    act::Act,
    missing::{self, ActRefusal, Names, missing},
};

/// The path for acts.
pub(crate) const PATH: &str = "/demo/act";

/// The path of the names of objects for acts.
pub(crate) const NAMES_PATH: &str = "/demo/names";

/// The maximum size of an act: objects of a large cluster, as kubectl prints them.
const ACT_BYTES_MAX: usize = 256 << 20;

pub(crate) fn routes(cluster: FakeCluster) -> Router {
    Router::new()
        .route(PATH, post(act))
        .route(NAMES_PATH, get(names))
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

/// Answers with the names that begin with the prefix in the query. The prefix has no letters that need an escape.
async fn names(State(cluster): State<FakeCluster>, RawQuery(query): RawQuery) -> Json<Names> {
    let prefix = query.as_deref().and_then(|it| it.strip_prefix("prefix="));
    Json(cluster.with(|model| missing::names(model, prefix.unwrap_or_default())))
}

//! The console: pages for a browser on the admin port, and the data behind them, which is what inspection shows.
//!
//! Reads only. The pages are files of the folder `console/`, embedded as they are and the same for everyone; data is what
//! [`Access`](crate::access::Access) lets the caller see. [`gate`] stands before all of it. Data is followed as server-sent events, by a
//! bounded number of [`stream`]s whose connections do not count among those of the admin port, so that `/metrics` and the probes
//! always get through.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Extension, Router,
    extract::{ConnectInfo, Path, Query, State},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use decree::v1;
use prost::Message as _;
use runtime::admin::AdminPeer;
use server_session::wire::{Fault, Violation};
use tokio::time::Instant;

use self::{answer::Refused, console_state::ConsoleState, gate::admit, view::View};
use crate::{access::Caller, error::Refusal, service::Decisions, shared::Shared};

mod answer;
mod assets;
mod board;
mod console_state;
mod differences;
mod event;
mod gate;
mod json;
mod pods;
mod reader;
mod replica_set;
mod rescue;
mod sessions;
mod stream;
mod view;

/// Adds the console to the routes of the admin port, unless it is turned off.
pub(crate) fn add(router: Router, shared: &Arc<Shared>) -> Router {
    if shared.config.limits.console_streams_max == 0 {
        return router;
    }
    let state = Arc::new(ConsoleState::new(Arc::clone(shared)));
    let data = Router::new()
        .route("/console/api/stream", get(follow))
        .route("/console/api/simulate", get(simulate))
        .route("/console/api/rescue", get(rescue))
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&state),
            gate::authorize,
        ));
    let console = Router::new()
        .route("/", get(|| async { Redirect::temporary("/console/") }))
        .route(
            "/console",
            get(|| async { Redirect::temporary("/console/") }),
        )
        .route("/console/", get(|| async { file("index.html") }))
        .route(
            "/console/{file}",
            get(|Path(name): Path<String>| async move { file(&name) }),
        )
        .merge(data)
        .route_layer(middleware::from_fn_with_state(Arc::clone(&state), admit))
        .with_state(state);
    router.merge(console)
}

fn file(name: &str) -> Response {
    match assets::find(name) {
        Some(asset) => {
            ([(header::CONTENT_TYPE, asset.content_type)], asset.content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Streams what a page shows, and what changes of it.
async fn follow(
    State(state): State<Arc<ConsoleState>>,
    Query(query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    ConnectInfo(peer): ConnectInfo<AdminPeer>,
) -> Result<Response, Refused> {
    state.shared.check_draining()?;
    let view = View::parse(&query)?;
    Ok(stream::open(&state, caller, &peer, view)?)
}

/// Answers what would happen with another number of replicas.
async fn simulate(
    State(state): State<Arc<ConsoleState>>,
    Query(mut query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    state.shared.check_draining()?;
    let replicas = replicas(&mut query)?;
    let mut field = |name: &str| query.remove(name).unwrap_or_default();
    let request = v1::SimulateRequest {
        cluster: field("cluster"),
        namespace: field("namespace"),
        name: field("name"),
        replicas: Some(replicas),
    };
    let until = Instant::now() + state.shared.config.deadline;
    let decisions = Decisions(Arc::clone(&state.shared));
    let answer = decisions.imagine(caller, request, until).await?;
    let answer = v1::SimulateResponse::decode(answer).expect("it is ours");
    Ok(answer::json(state.json.text("SimulateResponse", &answer)))
}

/// Answers what would keep a pod that a scale-down would delete.
async fn rescue(
    State(state): State<Arc<ConsoleState>>,
    Query(mut query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    state.shared.check_draining()?;
    let replicas = replicas(&mut query)?;
    let mut field = |name: &str| query.remove(name).unwrap_or_default();
    let (cluster, namespace, name) = (field("cluster"), field("namespace"), field("name"));
    let pod = field("pod");
    let until = Instant::now() + state.shared.config.deadline;
    let of = (&*cluster, &*namespace, &*name);
    let decisions = Decisions(Arc::clone(&state.shared));
    let answer = decisions.about(&caller, of, until, move |around, go_on| {
        rescue::rescue(&around, replicas, &pod, go_on)
    });
    Ok(answer::json(answer.await?.to_string()))
}

/// Takes the number of replicas out of a query.
fn replicas(query: &mut HashMap<String, String>) -> Result<i32, Refusal> {
    let text = query.remove("replicas").unwrap_or_default();
    let parsed = text.parse().ok().filter(|number| *number >= 0);
    parsed.ok_or_else(|| {
        let description = format!("{text:?} must be a number from 0 to 2147483647");
        Refusal::field(Violation::new("replicas", Fault::Range, description))
    })
}

//! The console: pages for a browser on the admin port, and their data, which is the data of inspection.
//!
//! # Theory of operation
//!
//! [`add`] adds the routes of the console to the routes of the admin port. The pages are files of the folder `console/`, embedded, and the
//! same for all users. The data is that of `InspectionService` in the same process. The module `gate` checks each request first.
//! Pages follow their data by server-sent events. The number of event streams is bounded. Their connections do not count as
//! connections of the admin port, so `/metrics` and the probes always work. [`recording_page`] has the routes of another page, whose data is
//! one text.
//!
//! **Invariant:** the console only reads.
//! **Invariant:** the console of a server shows nothing that gRPC would not tell the same caller.

use std::{
    collections::HashMap,
    future::{Ready, ready},
    sync::Arc,
};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{ConnectInfo, Path, Query, State},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use decree_api::v1::{
    self, inspection_service_server::InspectionService as _, simulate_cluster_request::Change,
};
use service::{admin::AdminPeer, escaped_json};

use self::{
    answer::Refused,
    assets::Asset,
    gate::admit,
    state::{ConsoleState, ask},
    view::{PageView, subject},
};
use crate::{access::Caller, clock, shared::Shared};

mod answer;
mod assets;
mod board;
mod gate;
mod pods;
mod reader;
mod replica_set;
mod rescue;
mod state;
mod stream;
mod view;

/// Adds the console to the routes of the admin port, unless the console is turned off.
pub(crate) fn add(router: Router, shared: &Arc<Shared>) -> Router {
    if shared.config.limits.console_streams_max == 0 {
        return router;
    }
    let state = Arc::new(ConsoleState::new(shared));
    let data = Router::new()
        .route("/console/api/stream", get(follow))
        .route("/console/api/simulate", get(simulate))
        .route("/console/api/simulate-cluster", get(simulate_cluster))
        .route("/console/api/nodes", get(nodes))
        .route("/console/api/rescue", get(rescue))
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&state),
            gate::authorize,
        ));
    let insecure = shared.config.tls.insecure;
    let console = guarded(pages(assets::OF_SERVER).merge(data), insecure);
    router.merge(console.with_state(state))
}

/// The page of a recording, for this machine only. `steps` is the JSON of the page.
pub fn recording_page(steps: &str) -> Router {
    let steps = Bytes::from(escaped_json(steps).into_owned());
    let data = get(move || ready(answer::escaped(steps.clone())));
    let page = pages(assets::OF_RECORDING).route("/console/api/recording", data);
    guarded(page, false)
}

/// The routes of pages, the first of which is shown first.
fn pages<S: Clone + Send + Sync + 'static>(of: &'static [Asset]) -> Router<S> {
    let to_first = || async { Redirect::temporary("/console/") };
    let named = move |Path(name): Path<String>| async move { file(assets::find(of, &name)) };
    Router::new()
        .route("/", get(to_first))
        .route("/console", get(to_first))
        .route("/console/", get(move || async move { file(of.first()) }))
        .route("/console/{file}", get(named))
}

fn guarded<S: Clone + Send + Sync + 'static>(router: Router<S>, insecure: bool) -> Router<S> {
    router.route_layer(middleware::from_fn_with_state(insecure, admit))
}

fn file(asset: Option<&'static Asset>) -> Response {
    match asset {
        Some(asset) => {
            ([(header::CONTENT_TYPE, asset.content_type)], asset.content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Streams the data of a page, and its changes.
fn follow(
    State(state): State<Arc<ConsoleState>>,
    Query(query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    ConnectInfo(peer): ConnectInfo<AdminPeer>,
) -> Ready<Result<Response, Refused>> {
    let view = PageView::parse(&query);
    ready(view.and_then(|view| stream::open(&state, caller, &peer, view)))
}

/// The effect of another number of replicas, and of costs that pods would answer.
async fn simulate(
    State(state): State<Arc<ConsoleState>>,
    Query(mut query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    let assumed = (Some(number(&mut query, "replicas")?), costs(&mut query)?);
    let answer = state.simulate(&caller, &subject(&query), assumed).await?;
    Ok(answer::json(&answer))
}

/// The first page of the ReplicaSets that a node drain or a quota would affect.
async fn simulate_cluster(
    State(state): State<Arc<ConsoleState>>,
    Query(mut query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    let change = match query.remove("node") {
        Some(node) => Change::NodeDrain(v1::NodeDrain { node }),
        None => Change::PodQuota(v1::PodQuota {
            namespace: query.remove("namespace").unwrap_or_default(),
            pods: number(&mut query, "pods")?,
        }),
    };
    let request = v1::SimulateClusterRequest {
        cluster: query.remove("cluster").unwrap_or_default(),
        change: Some(change),
        ..v1::SimulateClusterRequest::default()
    };
    let answer = state
        .inspection
        .simulate_cluster(ask(&caller, request))
        .await?;
    let text = state.json("SimulateClusterResponse", answer.get_ref());
    Ok(answer::json(&text))
}

/// The nodes of a cluster by name, each with the number of its active pods.
async fn nodes(
    State(state): State<Arc<ConsoleState>>,
    Query(query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    let cluster = query.get("cluster").map_or("", String::as_str);
    Ok(answer::json(&state.nodes(&caller, cluster).await?))
}

/// The changes that would keep a pod in a scale-down.
async fn rescue(
    State(state): State<Arc<ConsoleState>>,
    Query(mut query): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    let assumed = (number(&mut query, "replicas")?, costs(&mut query)?);
    let pod = query.remove("pod").unwrap_or_default();
    let (subject, now) = (subject(&query), clock::now());
    let answer = state.compute(&caller, &subject, move |around, go_on| {
        rescue::rescue(around, assumed, &pod, now, go_on)
    });
    Ok(answer::json(&answer.await?))
}

/// The costs that pods would answer: the words of the query are a pod, its cost, and so on.
fn costs(query: &mut HashMap<String, String>) -> Result<HashMap<String, i32>, Refused> {
    let text = query.remove("costs").unwrap_or_default();
    let words: Vec<_> = text.split_whitespace().collect();
    let costs = words.chunks(2).map(|words| match words {
        [pod, cost] => Some(((*pod).to_owned(), cost.parse().ok()?)),
        _ => None,
    });
    let costs = costs.collect::<Option<_>>();
    costs
        .ok_or_else(|| Refused::field("costs", "must be pods, each with a whole number of 32 bits"))
}

fn number(query: &mut HashMap<String, String>, field: &'static str) -> Result<i32, Refused> {
    let text = query.remove(field).unwrap_or_default();
    let parsed = text.parse().ok().filter(|number| *number >= 0);
    parsed.ok_or_else(|| {
        let description = format!("{text:?} must be a number from 0 to 2147483647");
        Refused::field(field, &description)
    })
}

//! How people resume the holds of a budget in an embedded cluster. The cluster has no API for clients, so its agent sets the annotation for
//! them.

use agent_core::{
    api::ApiError,
    budget::resume::{Extent, RESUME_ANNOTATION},
};
use agent_fake::Kind;
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    routing::post,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::{FakeCluster, fake::calls::refused};

/// The path of the route.
pub const RESUME_PATH: &str = "/resume";
const BYTES_MAX: usize = 4096;

/// A request to resume, as JSON: for a ReplicaSet by namespace and name, or for all.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeRequest {
    /// The namespace of the ReplicaSet.
    pub namespace: Option<String>,
    /// The name of the ReplicaSet; `None` for all.
    pub name: Option<String>,
}

/// Returns the route for requests to an embedded cluster.
///
/// Such a cluster needs no protection. On a real cluster, users who may patch a ReplicaSet may annotate it.
pub fn router(cluster: FakeCluster) -> Router {
    Router::new()
        .route(RESUME_PATH, post(resume).with_state(cluster))
        .layer(DefaultBodyLimit::max(BYTES_MAX))
}

impl ResumeRequest {
    /// Returns which holds to resume.
    pub const fn extent(&self) -> Extent {
        match self.name {
            Some(_) => Extent::ReplicaSet,
            None => Extent::All,
        }
    }
}

/// Annotates a ReplicaSet, and answers with its namespace and name.
async fn resume(
    State(cluster): State<FakeCluster>,
    Json(request): Json<ResumeRequest>,
) -> Result<String, (StatusCode, String)> {
    cluster
        .with(|model| annotate(model, &request))
        .map_err(|error| {
            let code = error.code.and_then(|code| StatusCode::from_u16(code).ok());
            (
                code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                error.message,
            )
        })
}

fn annotate(model: &mut agent_fake::Cluster, request: &ResumeRequest) -> Result<String, ApiError> {
    let named = |set: &agent_fake::Object| {
        let text = |field| set["metadata"][field].as_str().unwrap_or_default();
        ["namespace", "name"].map(|field| text(field).to_owned())
    };
    let sets: Vec<_> = model.objects(Kind::ReplicaSet).map(named).collect();
    let is = |found: &String, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| wanted == found)
    };
    let found = sets
        .iter()
        .find(|[namespace, name]| is(namespace, &request.namespace) && is(name, &request.name));
    let Some([namespace, name]) = found else {
        let elsewhere = sets
            .iter()
            .find(|[_, name]| Some(name) == request.name.as_ref());
        let elsewhere = elsewhere
            .map(|[namespace, _]| format!(": it exists in namespace {namespace}"))
            .unwrap_or_default();
        return Err(ApiError {
            code: Some(404),
            message: format!("there is no such ReplicaSet{elsewhere}"),
            ..ApiError::default()
        });
    };
    let value = request.extent().to_annotation(&model.now().to_string());
    let patch = json!({"metadata": {"annotations": {RESUME_ANNOTATION: value}}});
    let patched = model.patch(Kind::ReplicaSet, namespace, name, &patch);
    patched.map_err(refused)?;
    Ok(format!("{namespace}/{name}"))
}

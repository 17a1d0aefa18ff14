//! How people resume what the budget holds in an embedded cluster, which has no API of its own: its agent annotates for them.

use agent_core::{
    api::ApiError,
    resume::{Extent, RESUME_ANNOTATION},
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

/// Where it is asked for.
pub const RESUME_PATH: &str = "/resume";
/// The most bytes of a request.
const BYTES_MAX: usize = 4096;

/// What is to be resumed, as JSON: of a ReplicaSet by namespace and name, of a namespace, or all.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeRequest {
    /// The namespace; all of them without.
    pub namespace: Option<String>,
    /// The name of the ReplicaSet; all of the namespace without.
    pub name: Option<String>,
}

/// Returns the route by which an embedded cluster is asked.
///
/// There is nothing in such a cluster that is worth guarding. On a real one, whoever may patch a ReplicaSet may annotate it.
pub fn router(cluster: FakeCluster) -> Router {
    Router::new()
        .route(RESUME_PATH, post(resume).with_state(cluster))
        .layer(DefaultBodyLimit::max(BYTES_MAX))
}

// === impl ResumeRequest ===

impl ResumeRequest {
    /// Returns how far it goes.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        match (&self.namespace, &self.name) {
            (_, Some(_)) => Extent::ReplicaSet,
            (Some(_), None) => Extent::Namespace,
            (None, None) => Extent::All,
        }
    }
}

/// Annotates a ReplicaSet. Answers with its namespace and name.
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
    let text = |set: &agent_fake::Object, field: &str| {
        set["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let is_meant = |set: &&agent_fake::Object| {
        let is = |field, wanted: &Option<String>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| text(set, field) == *wanted)
        };
        is("namespace", &request.namespace) && is("name", &request.name)
    };
    let found = model.objects(Kind::ReplicaSet).find(is_meant);
    let Some((namespace, name)) = found.map(|set| (text(set, "namespace"), text(set, "name")))
    else {
        let mut sets = model.objects(Kind::ReplicaSet);
        let elsewhere = sets.find(|set| Some(text(set, "name")) == request.name);
        let elsewhere = elsewhere.map(|set| text(set, "namespace"));
        let elsewhere = elsewhere.map(|namespace| format!(": it exists in namespace {namespace}"));
        let message = format!(
            "there is no such ReplicaSet{}",
            elsewhere.unwrap_or_default()
        );
        return Err(ApiError {
            code: Some(404),
            message,
            ..ApiError::default()
        });
    };
    let value = request.extent().to_annotation(&model.now().to_string());
    let patch = json!({"metadata": {"annotations": {RESUME_ANNOTATION: value}}});
    let patched = model.patch(Kind::ReplicaSet, &namespace, &name, &patch);
    patched.map_err(refused)?;
    Ok(format!("{namespace}/{name}"))
}

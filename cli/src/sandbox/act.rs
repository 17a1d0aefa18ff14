//! The acts of a person on the embedded cluster of this process, and the route of its admin port for other processes.
//!
//! **Invariant:** only a program of this machine acts. The port must be on the loopback interface, and it refuses foreign pages. The
//! request must be JSON, which no page of a browser can send elsewhere without asking.

use std::slice;

use agent_core::budget::resume::{Extent, RESUME_ANNOTATION};
use agent_fake::{ApiError, Cluster, Kind, is_active, is_ready};
use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use decree_agent::FakeCluster;
use decree_core::wording::count;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    args::Named,
    exit::{Exit, Failure},
    near, not_found,
};

pub(crate) const PATH: &str = "/demo/act";
const QUOTA: &str = "pods";
/// The maximum number of existing nodes in a message.
const NAMED_MAX: usize = 5;

/// One act, as the admin port takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Act {
    /// Gives a ReplicaSet as many desired pods.
    Scale(Named, i32),
    /// Resumes what the budget of the agent holds of a ReplicaSet.
    Resume(Named),
    /// Stops a node.
    Fail(String),
    /// Starts a node, and lets it take pods.
    Restore(String),
    /// Cordons a node, and evicts the pods whose ReplicaSets have as many other ready pods as desired.
    Drain(String),
    /// Limits the pods of a namespace.
    Quota(String, u32),
}

pub(crate) fn routes(cluster: FakeCluster) -> Router {
    Router::new().route(PATH, post(act)).with_state(cluster)
}

async fn act(
    State(cluster): State<FakeCluster>,
    Json(act): Json<Act>,
) -> (StatusCode, Json<Value>) {
    match cluster.with(|model| act.perform(model)) {
        Ok(done) => (StatusCode::OK, Json(json!({"done": done}))),
        Err(Failure { cause, hint, .. }) => {
            let refusal = json!({"error": cause, "hint": hint});
            (StatusCode::CONFLICT, Json(refusal))
        }
    }
}

impl Act {
    /// Executes the act, and says so as kubectl does.
    pub(crate) fn perform(&self, cluster: &mut Cluster) -> Result<String, Failure> {
        match self {
            Self::Scale(set, replicas) => {
                let Named { namespace, name } = check_set(cluster, set)?;
                cluster.scale(namespace, name, *replicas)?;
                Ok(format!("replicaset.apps/{name} scaled to {replicas}"))
            }
            Self::Resume(set) => {
                let Named { namespace, name } = check_set(cluster, set)?;
                let value = Extent::ReplicaSet.to_annotation(&cluster.now().to_string());
                let patch = json!({"metadata": {"annotations": {RESUME_ANNOTATION: value}}});
                cluster.patch(Kind::ReplicaSet, namespace, name, &patch)?;
                Ok(format!("replicaset.apps/{name} annotated"))
            }
            Self::Fail(node) => {
                check_node(cluster, node)?;
                let pods = cluster.objects(Kind::Pod);
                let pods = pods.filter(|it| it["spec"]["nodeName"] == **node && is_active(it));
                let pods = count(pods.count(), "pod");
                cluster.fail_node(node)?;
                Ok(format!("node/{node} is down ({pods})"))
            }
            Self::Restore(node) => {
                check_node(cluster, node)?;
                cluster.recover_node(node)?;
                cordon(cluster, node, false)?;
                Ok(format!("node/{node} is up"))
            }
            Self::Drain(node) => {
                check_node(cluster, node)?;
                cordon(cluster, node, true)?;
                Ok(match evict_replaced(cluster, node)? {
                    0 => format!("node/{node} drained"),
                    left => {
                        let pods = count(left, "pod");
                        format!("node/{node} cordoned, {pods} without a ready replacement")
                    }
                })
            }
            Self::Quota(namespace, pods) => {
                let spec = json!({"hard": {"pods": pods.to_string()}});
                let known = cluster.peek(Kind::ResourceQuota, namespace, QUOTA);
                if known.is_some() {
                    let patch = json!({"spec": spec});
                    cluster.patch(Kind::ResourceQuota, namespace, QUOTA, &patch)?;
                } else {
                    cluster.create(json!({
                        "apiVersion": "v1", "kind": "ResourceQuota",
                        "metadata": {"namespace": namespace, "name": QUOTA}, "spec": spec,
                    }))?;
                }
                let pods = count(*pods, "pod");
                Ok(format!(
                    "resourcequota/{QUOTA} of {namespace} set to {pods}"
                ))
            }
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::new(Exit::No, error.message)
    }
}

fn cordon(cluster: &mut Cluster, node: &str, on: bool) -> Result<(), ApiError> {
    let patch = json!({"spec": {"unschedulable": on.then_some(true)}});
    cluster.patch(Kind::Node, "", node, &patch).map(drop)
}

/// Evicts the pods of a node whose ReplicaSets have as many other ready pods as desired, and the pods of others. Returns the
/// number of the remaining active ones.
fn evict_replaced(cluster: &mut Cluster, node: &str) -> Result<usize, ApiError> {
    let pods = cluster.objects(Kind::Pod).filter(|it| is_active(it));
    let on_node = pods.filter(|it| it["spec"]["nodeName"] == *node);
    let mut left = 0;
    for pod in on_node.cloned().collect::<Vec<_>>() {
        let owner = owner(&pod);
        let set = (cluster.objects(Kind::ReplicaSet)).find(|it| it["metadata"]["uid"] == *owner);
        let desired = set.map_or(0, |it| it["spec"]["replicas"].as_u64().unwrap_or(1));
        let pods = cluster.objects(Kind::Pod).filter(|it| is_active(it));
        let ready = pods.filter(|it| self::owner(it) == owner && is_ready(it));
        let others = ready.count() - usize::from(is_ready(&pod));
        if others as u64 >= desired {
            let Named { namespace, name } = Named::of(&pod);
            cluster.evict(&namespace, &name)?;
        } else {
            left += 1;
        }
    }
    Ok(left)
}

fn owner(pod: &Value) -> &Value {
    &pod["metadata"]["ownerReferences"][0]["uid"]
}

/// Fails if a ReplicaSet is missing, with what was probably meant.
fn check_set<'a>(cluster: &Cluster, set: &'a Named) -> Result<&'a Named, Failure> {
    if cluster
        .peek(Kind::ReplicaSet, &set.namespace, &set.name)
        .is_some()
    {
        return Ok(set);
    }
    let known = cluster.objects(Kind::ReplicaSet).map(|it| Named::of(it));
    let known: Vec<_> = known.collect();
    Err(not_found::failure(
        slice::from_ref(set),
        &known,
        not_found::LIST,
    ))
}

/// Fails if a node is missing, with those that exist.
fn check_node(cluster: &Cluster, node: &str) -> Result<(), Failure> {
    if cluster.peek(Kind::Node, "", node).is_some() {
        return Ok(());
    }
    let nodes = cluster.objects(Kind::Node).map(|it| Named::of(it).name);
    let nodes = near::first_of(&nodes.collect::<Vec<_>>(), NAMED_MAX);
    let failure = Failure::new(Exit::No, format!("node {node} not found"));
    Err(failure.hint(format!("the nodes are {nodes}")))
}

#[cfg(test)]
mod tests {
    use super::{super::beginning, *};

    /// Acts, and what they say.
    const ACTS: &str = r#"
{"scale": [{"namespace": "default", "name": "web-old"}, 3]} => replicaset.apps/web-old scaled to 3
{"scale": [{"namespace": "shop", "name": "web-old"}, 3]} => ReplicaSet shop/web-old not found; it exists in namespace default
{"resume": {"namespace": "default", "name": "web-old"}} => replicaset.apps/web-old annotated
{"fail": "node-b"} => node/node-b is down (2 pods)
{"restore": "node-b"} => node/node-b is up
{"scale": [{"namespace": "default", "name": "web-old"}, 6]} => replicaset.apps/web-old scaled to 6
{"drain": "node-b"} => node/node-b cordoned, 1 pod without a ready replacement
{"restore": "node-b"} => node/node-b is up
{"fail": "node-x"} => node node-x not found; the nodes are node-a, node-b, node-c
{"quota": ["default", 1]} => resourcequota/pods of default set to 1 pod
{"quota": ["default", 9]} => resourcequota/pods of default set to 9 pods"#;

    #[test]
    fn acts_say_what_they_do_or_what_is_missing() {
        let mut cluster = Cluster::new(agent_fake::ClusterConfig::default());
        beginning::install(&mut cluster, true).expect("it is empty");
        for row in ACTS.lines().skip(1) {
            let (act, said) = row.split_once(" => ").expect("two columns");
            let act: Act = serde_json::from_str(act).expect("it is an act");
            let done = act.perform(&mut cluster).unwrap_or_else(|failure| {
                let hint = failure.hint.unwrap_or_default();
                format!("{}; {hint}", failure.cause)
            });
            assert_eq!(done, said);
        }
    }
}

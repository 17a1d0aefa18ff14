//! Missing targets of acts on an embedded cluster, and the existing objects.

use agent_fake::{Cluster, Kind, Object};
use serde::{Deserialize, Serialize};

use super::act::Act;
use crate::{args::Named, near, not_found};

/// The maximum number of existing names in a message.
const NAMED_MAX: usize = 5;

/// Why an act failed, and the remedy.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct ActRefusal {
    pub(crate) error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// The refusal of an act whose object is missing.
pub(crate) fn missing(act: &Act, cluster: &Cluster) -> Option<ActRefusal> {
    match act {
        Act::Scale {
            namespace, name, ..
        } => missing_one(cluster, Kind::ReplicaSet, namespace, name),
        Act::Delete { namespace, name }
        | Act::Cost {
            namespace, name, ..
        } => missing_one(cluster, Kind::Pod, namespace, name),
        Act::Fail { node } | Act::Restore { node } => missing_node(cluster, node),
        Act::Quota { .. } | Act::Apply { .. } => None,
    }
}

fn missing_one(cluster: &Cluster, kind: Kind, namespace: &str, name: &str) -> Option<ActRefusal> {
    if cluster.peek(kind, namespace, name).is_some() {
        return None;
    }
    let missing = Named::new(namespace, name);
    let known = cluster.objects(kind).map(named).collect::<Vec<_>>();
    let (noun, list) = if kind == Kind::ReplicaSet {
        ("ReplicaSet", Some(not_found::LIST.to_owned()))
    } else {
        ("pod", None)
    };
    Some(ActRefusal {
        error: format!("{noun} {} not found", missing.path()),
        hint: not_found::hint(&missing, &known).or(list),
    })
}

fn missing_node(cluster: &Cluster, node: &str) -> Option<ActRefusal> {
    if cluster.peek(Kind::Node, "", node).is_some() {
        return None;
    }
    let nodes = cluster.objects(Kind::Node).map(|node| named(node).name);
    let nodes = near::first_of(&nodes.collect::<Vec<_>>(), NAMED_MAX);
    Some(ActRefusal {
        error: format!("node {node} not found"),
        hint: Some(format!("the nodes are {nodes}")),
    })
}

/// The namespace and the name of an object.
pub(crate) fn named(object: &Object) -> Named {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Named::new(text("namespace"), text("name"))
}

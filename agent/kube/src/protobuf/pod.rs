//! A pod as far as a decision reads it, projected in the moment that it is read: pods are most of what a cluster sends.

use std::{collections::HashMap, iter};

use agent_core::project::{DELETION_COST, READY, pod_phase, present_time, ready_condition};
use decree::v1;
use prost::Message;
use prost_types::Timestamp;

use super::{OwnerReference, Time};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<PodMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<PodSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<PodStatus>,
}

/// An ObjectMeta, as far as it is read of a pod.
#[derive(Clone, PartialEq, Message)]
struct PodMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(int64, optional, tag = "10")]
    deletion_grace_period_seconds: Option<i64>,
    #[prost(map = "string, string", tag = "11")]
    labels: HashMap<String, String>,
    #[prost(message, repeated, tag = "12")]
    annotations: Vec<Annotation>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct PodSpec {
    #[prost(string, tag = "10")]
    node_name: String,
    #[prost(message, repeated, tag = "20")]
    init_containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, optional, tag = "24")]
    restart_policy: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct PodStatus {
    #[prost(string, tag = "1")]
    phase: String,
    #[prost(message, repeated, tag = "2")]
    conditions: Vec<PodCondition>,
    #[prost(message, repeated, tag = "8")]
    container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct PodCondition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Time>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerStatus {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "5")]
    restart_count: i32,
}

// === impl Pod ===

impl Pod {
    /// Returns whether an API server that answers a deletion with this pod has removed it at once: its grace period is over, and
    /// nothing holds it.
    pub(super) fn is_gone(&self) -> bool {
        let metadata = self.metadata.as_ref();
        metadata.is_some_and(|it| {
            it.deletion_grace_period_seconds == Some(0) && it.finalizers.is_empty()
        })
    }

    /// Returns what a decision reads of it, as [`agent_core::project`] does of a pod in JSON.
    pub(super) fn project(self) -> v1::Pod {
        let metadata = self.metadata.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let status = self.status.unwrap_or_default();
        let mut annotations = metadata.annotations.into_iter();
        let cost = annotations.rfind(|annotation| annotation.key == DELETION_COST);
        let mut owners = metadata.owner_references.into_iter();
        let controller = owners.find(|it| it.controller == Some(true));
        v1::Pod {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            controller: controller.map(reference),
            created: time(metadata.creation_timestamp.as_ref()),
            deleted: time(metadata.deletion_timestamp.as_ref()),
            node_name: spec.node_name,
            phase: pod_phase(&status.phase).into(),
            ready: ready(&status.conditions),
            deletion_cost: cost.map(|annotation| annotation.value),
            max_regular_restarts: restarts(&status.container_statuses, |_| true),
            max_sidecar_restarts: restarts(&status.init_container_statuses, |name| {
                is_sidecar(&spec.init_containers, name)
            }),
        }
    }
}

fn reference(owner: OwnerReference) -> v1::OwnerReference {
    let OwnerReference {
        kind,
        name,
        uid,
        api_version,
        controller: _,
        block_owner_deletion,
    } = owner;
    v1::OwnerReference {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion,
    }
}

fn ready(conditions: &[PodCondition]) -> Option<v1::ReadyCondition> {
    let entries = conditions.iter().filter(|it| it.r#type == READY);
    ready_condition(entries.map(|it| (it.status == "True", time(it.last_transition_time.as_ref()))))
}

/// Returns the highest restart count among the chosen containers, at least 0.
fn restarts(statuses: &[ContainerStatus], chosen: impl Fn(&str) -> bool) -> i32 {
    let chosen = statuses.iter().filter(|it| chosen(&it.name));
    let counts = chosen.map(|it| it.restart_count);
    counts.chain(iter::once(0)).max().unwrap_or_default()
}

fn is_sidecar(init_containers: &[Container], name: &str) -> bool {
    let is_always = |it: &Container| it.restart_policy.as_deref() == Some("Always");
    init_containers
        .iter()
        .any(|it| it.name == name && is_always(it))
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    present_time(time?.seconds?)
}

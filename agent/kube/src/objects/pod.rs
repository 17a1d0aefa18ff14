//! The projection of a pod: pods are most of a cluster's data.

use agent_core::api::InvalidObject;
use decree::v1;
use prost::Message;
use serde::Deserialize;

use super::{
    metadata::{ObjectMeta, OwnerReference, Time, or_default},
    projected::Projected,
};

/// The only annotation that decisions read.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The type of the only condition that decisions read.
const READY: &str = "Ready";
/// The condition that an eviction sets on its pod.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Pod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<PodSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<PodStatus>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodSpec {
    #[prost(string, tag = "10")]
    #[serde(deserialize_with = "or_default")]
    node_name: String,
    #[prost(message, repeated, tag = "20")]
    #[serde(deserialize_with = "or_default")]
    init_containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct Container {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[prost(string, optional, tag = "24")]
    restart_policy: Option<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodStatus {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    phase: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<PodCondition>,
    #[prost(message, repeated, tag = "8")]
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodCondition {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    r#type: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "or_default")]
    status: String,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Time>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ContainerStatus {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[prost(int32, tag = "5")]
    #[serde(deserialize_with = "or_default")]
    restart_count: i32,
}

// === impl Pod ===

impl Pod {
    /// True if an API server that answers a deletion with this pod has removed it at once: the grace period is over, and no finalizer holds
    /// the pod.
    pub(crate) fn is_gone(&self) -> bool {
        let metadata = self.metadata.as_ref();
        metadata.is_some_and(|it| {
            it.deletion_grace_period_seconds == Some(0) && it.finalizers.is_empty()
        })
    }
}

impl Projected for Pod {
    const NOUN: &'static str = "pod";
    type Into = v1::Pod;

    fn resource_version(&self) -> &str {
        let metadata = self.metadata.as_ref();
        metadata.map_or("", |metadata| &metadata.resource_version)
    }

    fn project(self) -> Result<v1::Pod, InvalidObject> {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let ObjectMeta {
            name,
            namespace,
            uid,
            resource_version,
            generation: _,
            creation_timestamp,
            deletion_timestamp,
            deletion_grace_period_seconds: _,
            labels,
            mut annotations,
            owner_references,
            finalizers: _,
        } = ObjectMeta::required(metadata, Self::NOUN)?;
        let PodSpec {
            node_name,
            init_containers,
        } = spec.unwrap_or_default();
        let PodStatus {
            phase,
            conditions,
            container_statuses,
            init_container_statuses,
        } = status.unwrap_or_default();
        let disruption_target = is_true(&conditions, DISRUPTION_TARGET);
        Ok(v1::Pod {
            namespace,
            name,
            uid,
            resource_version,
            labels,
            controller: OwnerReference::managing(owner_references),
            created: Time::project(creation_timestamp),
            deleted: Time::project(deletion_timestamp),
            node_name,
            phase: to_phase(&phase).into(),
            ready: ready(conditions),
            deletion_cost: annotations.remove(DELETION_COST),
            max_regular_restarts: restarts(&container_statuses, |_| true),
            max_sidecar_restarts: restarts(&init_container_statuses, |name| {
                is_sidecar(&init_containers, name)
            }),
            disruption_target,
        })
    }
}

/// The contract's value for a phase; an unknown phase is unspecified.
fn to_phase(text: &str) -> v1::PodPhase {
    match text {
        "Pending" => v1::PodPhase::Pending,
        "Unknown" => v1::PodPhase::Unknown,
        "Running" => v1::PodPhase::Running,
        "Succeeded" => v1::PodPhase::Succeeded,
        "Failed" => v1::PodPhase::Failed,
        _ => v1::PodPhase::Unspecified,
    }
}

/// "Is ready" reads the first condition of type [`READY`], and "ready since" the first that is true. They differ only if the condition is
/// there twice (spec 1.1).
fn ready(conditions: Vec<PodCondition>) -> Option<v1::ReadyCondition> {
    let mut entries = conditions
        .into_iter()
        .filter(|it| it.r#type == READY)
        .peekable();
    let is_true = |it: &PodCondition| it.status == "True";
    let ready = is_true(entries.peek()?);
    let since = entries.find(is_true).and_then(|it| it.last_transition_time);
    Some(v1::ReadyCondition {
        ready,
        since: Time::project(since),
    })
}

fn is_true(conditions: &[PodCondition], kind: &str) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|it| it.r#type == kind && it.status == "True")
}

/// The highest restart count of the chosen containers, at least 0.
fn restarts(statuses: &[ContainerStatus], chosen: impl Fn(&str) -> bool) -> i32 {
    let chosen = statuses.iter().filter(|it| chosen(&it.name));
    chosen.map(|it| it.restart_count).fold(0, i32::max)
}

fn is_sidecar(init_containers: &[Container], name: &str) -> bool {
    let is_always = |it: &Container| it.restart_policy.as_deref() == Some("Always");
    init_containers
        .iter()
        .any(|it| it.name == name && is_always(it))
}

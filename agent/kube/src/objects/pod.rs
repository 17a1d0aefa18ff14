//! The projection of a pod: pods are most of a cluster's data.

use agent_core::api::InvalidObject;
use decree_api::v1;
use prost::Message;
use serde::Deserialize;

use super::{
    metadata::{ObjectMeta, OwnerReference, Time, or_default},
    projected::Projected,
};

/// The annotation that the order of deletion reads.
pub(super) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation that marks a deletion cost as advice: the same value.
pub(super) const ADVISED_COST: &str = "decree.dev/advised-cost";
/// Announces the eviction of its pod, with any value but `false`.
pub(crate) const LEAVING: &str = "decree.dev/leaving";
/// The type of the only condition that decisions read.
const READY: &str = "Ready";
/// The condition that an eviction sets on its pod.
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The condition that says why a pod has no node.
const SCHEDULED: &str = "PodScheduled";
/// The reason of that condition while no node fits.
const UNSCHEDULABLE: &str = "Unschedulable";
/// The reasons of containers that wait in the course of every start.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// The maximum length of a waiting reason, in bytes.
const WAITING_MAX: usize = 128;

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
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodSpec {
    #[prost(string, optional, tag = "10")]
    node_name: Option<String>,
    #[prost(message, repeated, tag = "20")]
    #[serde(deserialize_with = "or_default")]
    init_containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct Container {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "24")]
    restart_policy: Option<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodStatus {
    #[prost(string, optional, tag = "1")]
    phase: Option<String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<PodCondition>,
    #[prost(string, optional, tag = "4")]
    reason: Option<String>,
    #[prost(message, repeated, tag = "8")]
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct PodCondition {
    #[prost(string, optional, tag = "1")]
    r#type: Option<String>,
    #[prost(string, optional, tag = "2")]
    status: Option<String>,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Time>,
    #[prost(string, optional, tag = "5")]
    reason: Option<String>,
    #[prost(string, optional, tag = "6")]
    message: Option<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ContainerStatus {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, optional, tag = "2")]
    state: Option<ContainerState>,
    #[prost(int32, optional, tag = "5")]
    restart_count: Option<i32>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ContainerState {
    #[prost(message, optional, tag = "1")]
    waiting: Option<Waiting>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct Waiting {
    #[prost(string, optional, tag = "1")]
    reason: Option<String>,
}

impl Pod {
    /// The last version, if an API server that answers a deletion with this pod has removed it at once: the grace period is over, and no
    /// finalizer holds the pod.
    pub(crate) fn gone_at(&self) -> Option<&str> {
        let metadata = self.metadata.as_ref()?;
        let is_gone = metadata.deletion_grace_period_seconds == Some(0);
        (is_gone && metadata.finalizers.is_empty())
            .then(|| metadata.resource_version.as_deref().unwrap_or_default())
    }
}

impl Projected for Pod {
    const NOUN: &'static str = "pod";
    type Into = v1::Pod;

    fn project(self) -> Result<v1::Pod, InvalidObject> {
        let mut metadata = ObjectMeta::required(self.metadata, Self::NOUN)?;
        let (spec, status) = (
            self.spec.unwrap_or_default(),
            self.status.unwrap_or_default(),
        );
        let is_target = |it: &PodCondition| it.r#type.as_deref() == Some(DISRUPTION_TARGET);
        let mut conditions = status.conditions.iter();
        let disruption_target = conditions.any(|it| is_target(it) && is_true(it));
        let is_sidecar = |status: &ContainerStatus| {
            let mut containers = spec.init_containers.iter();
            let container = containers.find(|it| it.name == status.name);
            container.is_some_and(|it| it.restart_policy.as_deref() == Some("Always"))
        };
        // In protobuf, API servers write an absent name as an empty one.
        let is_unassigned = spec.node_name.as_deref().unwrap_or_default().is_empty();
        let waiting_reason = waiting_reason(&status, is_unassigned);
        let leaving = metadata.annotations.remove(LEAVING);
        Ok(v1::Pod {
            waiting_reason,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            labels: metadata.labels,
            controller: OwnerReference::managing(metadata.owner_references),
            creation_timestamp: Time::project(metadata.creation_timestamp),
            deletion_timestamp: Time::project(metadata.deletion_timestamp),
            phase: to_phase(status.phase.as_deref()).into(),
            ready: ready(status.conditions),
            deletion_cost: metadata.annotations.remove(DELETION_COST),
            advised_cost: metadata.annotations.remove(ADVISED_COST),
            max_regular_restarts: restarts(&status.container_statuses, |_| true),
            max_sidecar_restarts: restarts(&status.init_container_statuses, is_sidecar),
            node_name: spec.node_name.unwrap_or_default(),
            disruption_target,
            leaving: leaving.is_some_and(|it| it != "false"),
        })
    }
}

/// The contract's value for a phase; an unknown phase is unspecified.
fn to_phase(text: Option<&str>) -> v1::PodPhase {
    match text {
        Some("Pending") => v1::PodPhase::Pending,
        Some("Unknown") => v1::PodPhase::Unknown,
        Some("Running") => v1::PodPhase::Running,
        Some("Succeeded") => v1::PodPhase::Succeeded,
        Some("Failed") => v1::PodPhase::Failed,
        Some(_) | None => v1::PodPhase::Unspecified,
    }
}

/// "Is ready" reads the first condition of type [`READY`], and "ready since" the first that is true. They differ only if the condition is
/// there twice (spec 1.1).
fn ready(conditions: Vec<PodCondition>) -> Option<v1::ReadyCondition> {
    let entries = conditions.into_iter();
    let mut entries = entries
        .filter(|it| it.r#type.as_deref() == Some(READY))
        .peekable();
    let ready = is_true(entries.peek()?);
    let since = entries.find(is_true).and_then(|it| it.last_transition_time);
    Some(v1::ReadyCondition {
        ready,
        last_transition_time: Time::project(since),
    })
}

/// What a pod waits for, or how it ended; empty if nothing is known.
fn waiting_reason(status: &PodStatus, is_unassigned: bool) -> String {
    let is_unschedulable = |it: &&PodCondition| {
        let [kind, reason] = [&it.r#type, &it.reason].map(Option::as_deref);
        kind == Some(SCHEDULED) && reason == Some(UNSCHEDULABLE) && !is_true(it)
    };
    let mut containers = (status.container_statuses.iter()).chain(&status.init_container_statuses);
    let mut text = if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        status.reason.clone().unwrap_or_default()
    } else if let Some(reason) = containers.find_map(ContainerStatus::waits_for) {
        reason.to_owned()
    } else if let Some(condition) = status.conditions.iter().find(is_unschedulable)
        && is_unassigned
    {
        let message = condition.message.as_deref().unwrap_or_default();
        let said = format!("{UNSCHEDULABLE}: {message}");
        said.trim_end_matches(": ").to_owned()
    } else {
        String::new()
    };
    if text.len() > WAITING_MAX {
        text.truncate(text.floor_char_boundary(WAITING_MAX - '…'.len_utf8()));
        text.push('…');
    }
    text
}

impl ContainerStatus {
    fn waits_for(&self) -> Option<&str> {
        let reason = self.state.as_ref()?.waiting.as_ref()?.reason.as_deref()?;
        (!reason.is_empty() && !STARTING.contains(&reason)).then_some(reason)
    }
}

fn is_true(condition: &PodCondition) -> bool {
    condition.status.as_deref() == Some("True")
}

/// The highest restart count of the chosen containers, at least 0.
fn restarts(statuses: &[ContainerStatus], chosen: impl Fn(&ContainerStatus) -> bool) -> i32 {
    let chosen = statuses.iter().filter(|it| chosen(it));
    chosen.filter_map(|it| it.restart_count).fold(0, i32::max)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::objects::pod;

    #[test]
    fn pod_is_leaving_by_its_annotation() {
        let leaving = |annotations: Value| {
            let metadata =
                json!({"namespace": "n", "name": "a", "uid": "u", "annotations": annotations});
            pod(&json!({"metadata": metadata})).expect("valid").leaving
        };
        assert!(leaving(json!({"decree.dev/leaving": "true"})));
        assert!(leaving(json!({"decree.dev/leaving": ""})));
        assert!(!leaving(json!({"decree.dev/leaving": "false"})));
        assert!(!leaving(json!({})));
    }
}

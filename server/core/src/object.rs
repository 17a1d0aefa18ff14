//! A pod and a ReplicaSet in the core: exactly the fields that a decision reads (spec 1.1, 1.2).

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::{
    labels::Labels,
    preferences::{Preferences, ScaleIn},
    selector::{Parts, Quarantine, Selector},
};

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, saturating at both ends (years 1677 and 2262).
///
/// A time of an object is `None` if it is absent. Only a deadline of the controller has a default, which has always passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A span of time in nanoseconds; negative spans are legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub i64);

/// The version of an object's state. Versions of one kind grow with every write in the cluster.
///
/// On the wire it is a decimal number without leading zeros; any other text does not become a `ResourceVersion` (spec 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

/// The UID of an object: unique in a cluster, never reused.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub Arc<str>);

/// Identifies a ReplicaSet for its lifetime. A recreated ReplicaSet has another key (W23).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The UID.
    pub uid: Uid,
}

/// The controller owner of an object (spec 0, controllerRef). All fields are compared to notice a change; ownership depends on `uid`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerReference {
    /// Group and version.
    pub api_version: Arc<str>,
    /// The kind; only a reference of kind `ReplicaSet` resolves to a ReplicaSet.
    pub kind: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The UID.
    pub uid: Uid,
    /// Whether the owner's deletion waits for this object; absent differs from false.
    pub block_owner_deletion: Option<bool>,
}

/// The phase of a pod. The order is the order of deletion (spec 7.2, rule 2): `Other` sorts with `Pending`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Accepted, but not all containers run.
    #[default]
    Pending,
    /// Empty, or unknown to this version: active, and ranks as `Pending`.
    Other,
    /// The node does not respond.
    Unknown,
    /// Running.
    Running,
    /// Ended with success; not active.
    Succeeded,
    /// Ended with a failure; not active.
    Failed,
}

/// The pod's condition `Ready` (spec 1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ready {
    /// Whether the first condition `Ready` has status True.
    pub ready: bool,
    /// Since when; `None` if unknown. Without it, a pod never becomes available while `min_ready_seconds` is above 0.
    pub since: Option<Timestamp>,
}

/// One pod, as the agent projected it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The UID.
    pub uid: Uid,
    /// The version of this state; `None` if the agent has none. Then the latest state to arrive counts.
    pub version: Option<ResourceVersion>,
    /// All labels.
    pub labels: Labels,
    /// The controller owner; `None` for an orphan.
    pub controller: Option<OwnerReference>,
    /// The node; `None` while unassigned.
    pub node: Option<Arc<str>>,
    /// What it waits for, or how it ended, for people. No decision reads it.
    pub waiting: Option<Arc<str>>,
    /// The deletion timestamp, which is the end of the grace period.
    pub deleted: Option<Timestamp>,
    /// The plain values.
    pub state: PodState,
}

/// The plain values of a pod that a decision reads. They are the same from the wire through the index to the order of deletion.
///
/// The default is a pod that was just accepted: pending, not ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodState {
    /// The time of creation.
    pub created: Option<Timestamp>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The phase.
    pub phase: Phase,
    /// The condition `Ready`.
    pub ready: Ready,
    /// The annotation `controller.kubernetes.io/pod-deletion-cost`; 0 if absent or invalid (spec 7.2).
    pub deletion_cost: i32,
    /// Whether somebody else than an agent that advises has set that annotation.
    pub foreign_cost: bool,
    /// The highest restart count of the regular containers.
    pub restarts: i32,
    /// The highest restart count of the sidecars.
    pub sidecar_restarts: i32,
    /// Whether it is evicted, preempted or deleted with its node, according to the condition DisruptionTarget.
    pub disruption_target: bool,
    /// Whether somebody has announced that it will be evicted.
    pub leaving: bool,
}

/// One ReplicaSet, as the agent projected it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Namespace, name and UID.
    pub key: Key,
    /// The version of this state; `None` if the agent has none.
    pub version: Option<ResourceVersion>,
    /// The generation of the spec.
    pub generation: i64,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The controller owner, such as a Deployment.
    pub controller: Option<OwnerReference>,
    /// The number of desired pods, 0 or more. The wire turns absent into 1.
    pub replicas: i32,
    /// How long a pod must be ready to be available, in seconds, 0 or more.
    pub min_ready_seconds: i32,
    /// The selector, or why it is invalid: such a ReplicaSet is quarantined (W24).
    pub selector: Result<Selector, Quarantine>,
    /// The labels of the template.
    pub template_labels: Labels,
    /// The status in the cluster.
    pub status: Status,
    /// The latest request of a person to resume creates, empty without one: a change is a request. [`Resume`] reads it.
    pub resume: Arc<str>,
    /// The wishes of its owner; `None` without one.
    pub preferences: Option<Box<Preferences>>,
    /// The manager that last wrote the number of desired pods; empty if unknown. For people only.
    pub replicas_manager: Arc<str>,
}

/// The ReplicaSets whose creates a person resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The ReplicaSet with the request.
    ReplicaSet,
    /// All ReplicaSets.
    All,
}

/// The status of a ReplicaSet (spec 1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// Active pods.
    pub replicas: i32,
    /// Active pods with all labels of the template.
    pub fully_labeled_replicas: i32,
    /// Active and ready pods.
    pub ready_replicas: i32,
    /// Active pods that have been ready for long enough.
    pub available_replicas: i32,
    /// Terminating pods; absent differs from 0.
    pub terminating_replicas: Option<i32>,
    /// The generation that the status reflects.
    pub observed_generation: i64,
    /// The conditions, in the order of the object.
    pub conditions: Vec<Condition>,
}

/// One condition of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The type; the core itself writes only `ReplicaFailure`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the status last changed.
    pub last_transition: Option<Timestamp>,
    /// A word for programs.
    pub reason: String,
    /// A text for people.
    pub message: String,
}

/// The kinds of objects in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods.
    Pod,
    /// ReplicaSets.
    ReplicaSet,
}

/// One value for each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByKind<T> {
    pods: T,
    replica_sets: T,
}

impl Default for Timestamp {
    fn default() -> Self {
        Self(i64::MIN)
    }
}

impl Timestamp {
    /// The time `seconds` after the epoch, saturating.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// This time plus `span`, saturating.
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to this time, saturating.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This time without its fraction of a second, as the API writes times.
    pub const fn truncated(self) -> Self {
        Self(self.0 - self.0.rem_euclid(1_000_000_000))
    }
}

impl Span {
    /// A span of whole seconds, saturating.
    pub const fn seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// A span of whole milliseconds, saturating.
    pub const fn millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
}

impl Resume {
    /// Reads a request: its first word can be `all`.
    pub fn of(request: &str) -> Self {
        match request.split_whitespace().next() {
            Some("all") => Self::All,
            Some(_) | None => Self::ReplicaSet,
        }
    }
}

impl ResourceVersion {
    /// Parses a version in the form of the API: decimal digits, no leading zero, not 0. Any other text is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        canonical.then(|| text.parse().ok().map(Self)).flatten()
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Pod, Self::ReplicaSet];
}

impl<T> ByKind<T> {
    /// The value of a kind.
    pub const fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Pod => &self.pods,
            Kind::ReplicaSet => &self.replica_sets,
        }
    }

    /// The value of a kind, to change it.
    pub const fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
        }
    }
}

impl Pod {
    /// A pod of a ReplicaSet: it has the labels of the template, and was just accepted. Set the other fields as they are.
    pub fn of(set: &ReplicaSet, name: impl Into<Arc<str>>, uid: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: Arc::clone(&set.key.namespace),
            name: name.into(),
            uid: Uid(uid.into()),
            version: None,
            labels: set.template_labels.clone(),
            controller: Some(OwnerReference::to_replica_set(&set.key)),
            node: None,
            waiting: None,
            deleted: None,
            state: PodState::default(),
        }
    }
}

impl ReplicaSet {
    /// The preferences for the order of deletion, the most important first.
    pub(crate) fn scale_in(&self) -> &[ScaleIn] {
        let preferences = self.preferences.as_deref();
        preferences.map_or(&[], |it| &it.scale_in)
    }

    /// A new ReplicaSet. Its template has these labels, and its selector requires them. If there are none, or one is invalid, the selector
    /// is an error, and the ReplicaSet is quarantined. Set the other fields as they are.
    pub fn new(
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        uid: impl Into<Arc<str>>,
        replicas: u32,
        labels: &[(&str, &str)],
    ) -> Self {
        let labels = labels
            .iter()
            .map(|&(key, value)| (key.into(), value.into()));
        let template_labels: Labels = labels.collect();
        let parts = Parts {
            match_labels: template_labels.texts().collect(),
            ..Parts::default()
        };
        let selector = Selector::parse(Some(parts)).and_then(|selector| {
            selector.verify(&template_labels)?;
            Ok(selector)
        });
        Self {
            key: Key {
                namespace: namespace.into(),
                name: name.into(),
                uid: Uid(uid.into()),
            },
            version: None,
            generation: 1,
            deleting: false,
            controller: None,
            replicas: i32::try_from(replicas).unwrap_or(i32::MAX),
            min_ready_seconds: 0,
            selector,
            template_labels,
            status: Status::default(),
            resume: Arc::default(),
            preferences: None,
            replicas_manager: Arc::default(),
        }
    }
}

impl PodState {
    /// The deletion cost, if advice may change it: nobody else has set it.
    pub(crate) fn advised_cost(&self) -> Option<i32> {
        (!self.foreign_cost).then_some(self.deletion_cost)
    }

    /// The state without the cost that is advice.
    pub(crate) fn without_advice(self) -> Self {
        let deletion_cost = self.deletion_cost * i32::from(self.foreign_cost);
        Self {
            deletion_cost,
            ..self
        }
    }

    /// Whether the pod counts as a replica (spec 1.3).
    pub const fn is_active(&self) -> bool {
        !self.deleting && !self.phase.has_ended()
    }

    /// Whether the pod is terminating and has not ended (spec 1.3).
    pub const fn is_terminating(&self) -> bool {
        self.deleting && !self.phase.has_ended()
    }
}

impl Phase {
    /// Whether the pod has ended, with success or not.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// The position in the order of deletion (spec 7.2, rule 2).
    pub const fn ordinal(self) -> u8 {
        match self {
            Self::Pending | Self::Other | Self::Succeeded | Self::Failed => 0,
            Self::Unknown => 1,
            Self::Running => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Decision, decide};

    #[test]
    fn versions_are_decimal_without_a_leading_zero() {
        let parsed = |text| ResourceVersion::parse(text).map(|version| version.0);
        assert_eq!(parsed("10"), Some(10));
        assert_eq!(parsed("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "0", "01", "+1", "-1", "1a", "18446744073709551616"] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn new_replica_set_selects_its_own_pods_or_is_quarantined() {
        let decided = |labels: &[_], ready| {
            let set = ReplicaSet::new("shop", "web", "1", 1, labels);
            let mut pod = Pod::of(&set, "web-one", "2");
            pod.state.ready.ready = ready;
            let pods = [pod, Pod::of(&set, "web-two", "3")];
            decide(&set, &pods, Timestamp::default(), &Config::default())
        };
        let victims = |decision: Decision| decision.deletes.into_iter().map(|it| it.pod.name);
        let good = decided(&[("app", "web")], true);
        assert!(victims(good).eq(["web-two".into()]), "it is not ready");
        for bad in [&[][..], &[("app", "-")]] {
            let decision = decided(bad, true);
            assert!(decision.quarantined.is_some(), "{decision:?}");
            assert_eq!(victims(decision).len(), 0);
        }
    }
}

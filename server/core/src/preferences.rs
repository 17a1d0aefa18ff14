//! The wishes of owners of ReplicaSets beyond Kubernetes' rules.

/// The wishes of the owner of a ReplicaSet beyond Kubernetes' rules; see `Preferences` of the contract. The default is as Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Pods being deleted count as replicas until they have ended.
    pub create_after_termination: bool,
    /// The number of ended pods to keep; `None` for all.
    pub keep_ended: Option<usize>,
    /// Who goes first among pods of equal phase and readiness, the most important rule first.
    pub scale_in: Vec<ScaleIn>,
    /// The maximum number of replacements to create before evictions.
    pub surge: i32,
    /// The same in percent of the desired pods, rounded up. The larger number counts.
    pub surge_percent: i32,
    /// Whether pods are asked for their deletion costs before a choice among them.
    pub scale_in_cost: Option<ScaleInCost>,
    /// Why annotations of preferences are not followed, for people.
    pub ignored: Vec<Box<str>>,
}

/// A preference for the order of deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleIn {
    /// Pods with this label go first: key and value.
    First(Box<str>, Box<str>),
    /// Pods on the node with the fewest active pods go first.
    EmptiestNode,
    /// The youngest pods go first.
    Youngest,
    /// Pods that are expected to be evicted go first.
    LeavingNode,
    /// A pod of the domain with the most pods goes first, and so on: the nodes of a domain have the same value of this label.
    Spread(Box<str>),
}

/// The preference that pods are asked for their deletion costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleInCost {
    /// The source of the costs, for people.
    pub source: Box<str>,
    /// Whether no pod is deleted while one of them is silent.
    pub waits: bool,
}

impl ScaleInCost {
    /// The kind of the source, such as `http`.
    pub(crate) fn kind(&self) -> Box<str> {
        self.source.split(':').next().unwrap_or_default().into()
    }
}

impl Preferences {
    /// Whether they say in which order pods are deleted.
    pub(crate) fn order(&self) -> bool {
        !self.scale_in.is_empty() || self.scale_in_cost.is_some()
    }

    /// The maximum number of pods to create in advance, for this number of desired pods.
    pub(crate) fn surge(&self, desired: i32) -> i32 {
        let of_all = i64::from(self.surge_percent) * i64::from(desired.max(0));
        let of_all = i32::try_from((of_all + 99) / 100).unwrap_or(i32::MAX);
        self.surge.max(of_all).clamp(0, desired.max(0))
    }
}

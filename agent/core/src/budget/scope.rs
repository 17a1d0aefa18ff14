//! The counted operations, and their scopes.

use std::fmt;

use decree::{causes, v1};

/// A kind of operation that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Creates of pods.
    Create,
    /// Deletes of pods.
    Delete,
}

/// Where operations are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For one ReplicaSet.
    ReplicaSet {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// For all ReplicaSets.
    Cluster,
}

impl Verb {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Create, Self::Delete];

    /// Returns the value of a metric's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }
}

impl Scope {
    /// The values of a metric's label: those that [`level`](Self::level) returns.
    pub const LEVELS: [&str; 2] = ["replicaset", "cluster"];

    /// Returns the level of the scope, in one word.
    pub const fn level(&self) -> &'static str {
        match self {
            Self::ReplicaSet { .. } => "replicaset",
            Self::Cluster => "cluster",
        }
    }

    /// Returns the command that resumes the scope.
    pub fn command(&self) -> String {
        match self {
            Self::ReplicaSet {
                namespace, name, ..
            } => format!("decree resume {namespace}/{name}"),
            Self::Cluster => "decree resume --all".to_owned(),
        }
    }

    /// The cause of a ReplicaSet in a scope that a budget holds.
    pub(super) const fn held(&self) -> &'static str {
        match self {
            Self::ReplicaSet { .. } => causes::HELD_BY_BUDGET,
            Self::Cluster => causes::HELD_BY_BUDGET_OF_CLUSTER,
        }
    }

    pub(super) fn of(replica_set: &v1::ObjectRef) -> Self {
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = replica_set.clone();
        Self::ReplicaSet {
            namespace,
            name,
            uid,
        }
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        *self == Self::Cluster || self == other
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplicaSet {
                namespace, name, ..
            } => write!(formatter, "replica set {namespace}/{name}"),
            Self::Cluster => formatter.write_str("the cluster"),
        }
    }
}

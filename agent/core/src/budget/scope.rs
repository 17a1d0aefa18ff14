//! The counted operations, and their scopes.

use decree_api::v1;

use super::Key;

/// A kind of operation that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Creates of pods.
    Create,
    /// Deletes of pods.
    Delete,
}

/// Where operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For one ReplicaSet.
    ReplicaSet,
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
    /// Both scopes.
    pub const ALL: [Self; 2] = [Self::ReplicaSet, Self::Cluster];

    /// Returns the value of a metric's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replicaset",
            Self::Cluster => "cluster",
        }
    }

    /// The key of the scope, which is that of this ReplicaSet or the cluster.
    pub(super) fn key(self, verb: Verb, replica_set: &v1::ObjectRef) -> Key {
        let uid = (self == Self::ReplicaSet).then(|| replica_set.uid.clone());
        (verb, uid)
    }
}

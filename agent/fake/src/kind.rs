//! The kinds of objects that the model holds.

use std::fmt;

/// A kind of object. Pods and ReplicaSets can be watched; the other kinds exist for their rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Pod.
    Pod,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `v1` Namespace; its own namespace is empty.
    Namespace,
    /// `v1` ResourceQuota; counts objects only.
    ResourceQuota,
    /// `v1` Node; its own namespace is empty.
    Node,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Pod,
        Self::ReplicaSet,
        Self::Namespace,
        Self::ResourceQuota,
        Self::Node,
    ];

    /// Returns the kind of this name, as in the field `kind` of an object.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name, as in the field `kind` of an object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::ReplicaSet => "ReplicaSet",
            Self::Namespace => "Namespace",
            Self::ResourceQuota => "ResourceQuota",
            Self::Node => "Node",
        }
    }

    /// Returns the group and version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::ReplicaSet => "apps/v1",
            Self::Pod | Self::Namespace | Self::ResourceQuota | Self::Node => "v1",
        }
    }

    /// Returns the resource with its group, as in messages.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::ReplicaSet => "replicasets.apps",
            Self::Namespace => "namespaces",
            Self::ResourceQuota => "resourcequotas",
            Self::Node => "nodes",
        }
    }

    /// Returns whether objects of this kind have a namespace.
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Pod | Self::ReplicaSet | Self::ResourceQuota => true,
            Self::Namespace | Self::Node => false,
        }
    }

    /// The name with its group, as in validation messages.
    pub(crate) const fn qualified(self) -> &'static str {
        match self {
            Self::ReplicaSet => "ReplicaSet.apps",
            Self::Pod | Self::Namespace | Self::ResourceQuota | Self::Node => self.name(),
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

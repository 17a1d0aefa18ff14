//! The permissions of one identity to call, serve and see, from its grants.

use std::sync::Arc;

use serde::Deserialize;

use crate::{
    identity::{Identity, IdentityPattern},
    method::Need,
    pattern::Pattern,
};

/// A cluster in the words of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCluster<'a> {
    /// Its UID.
    pub uid: &'a str,
    /// Its name for people; may be empty.
    pub name: &'a str,
    /// The shard of the agent; may be empty.
    pub shard: &'a str,
}

/// A role that identities have for clusters, as a policy writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    pub(crate) identities: Vec<IdentityPattern>,
    pub(crate) role: Role,
    /// The UIDs of the clusters. Without this list, or one of the others, it is for any.
    pub(crate) clusters: Option<Vec<Pattern>>,
    pub(crate) names: Option<Vec<Pattern>>,
    pub(crate) shards: Option<Vec<Pattern>>,
}

/// The role of an identity for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Opens sessions for the cluster, and sees it.
    Agent,
    /// Sees the cluster.
    Viewer,
    /// Sees all clusters, and may call methods that no other role may call.
    Admin,
}

/// The permissions of one identity under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub(crate) is_unrestricted: bool,
    pub(crate) is_admin: bool,
    pub(crate) agent: Vec<Arc<Grant>>,
    pub(crate) viewer: Vec<Arc<Grant>>,
}

impl Grant {
    pub(crate) fn is_for(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|it| it.matches(identity))
    }

    /// Whether a cluster is among those of the grant, the shard included.
    pub(crate) fn contains(&self, cluster: NamedCluster<'_>) -> bool {
        let scope = [
            (&self.clusters, cluster.uid),
            (&self.names, cluster.name),
            (&self.shards, cluster.shard),
        ];
        let mut scope = scope.into_iter();
        scope.all(|(list, text)| {
            let list = list.as_ref();
            list.is_none_or(|list| list.iter().any(|it| it.matches(text)))
        })
    }
}

impl Permissions {
    /// The permissions of everyone, without a restriction.
    pub fn unrestricted() -> Self {
        Self {
            is_unrestricted: true,
            ..Self::default()
        }
    }

    /// Whether a method with this need may be called at all; its cluster is checked separately.
    pub const fn may_call(&self, need: Option<Need>) -> bool {
        let has_any = self.is_admin || !self.agent.is_empty() || !self.viewer.is_empty();
        self.is_unrestricted
            || match need {
                Some(Need::Health | Need::AnyRole | Need::View) => has_any,
                Some(Need::Agent) => !self.agent.is_empty(),
                None => self.is_admin,
            }
    }

    /// Whether a session for a cluster may be opened, by the identity's own grants.
    pub fn may_open(&self, cluster: NamedCluster<'_>) -> bool {
        self.is_unrestricted || self.agent.iter().any(|it| it.contains(cluster))
    }

    /// Whether the data of a cluster may be seen. Its agent may see the data, since they all come from it.
    pub fn may_view(&self, cluster: NamedCluster<'_>) -> bool {
        let mut grants = self.viewer.iter().chain(&self.agent);
        self.is_unrestricted || self.is_admin || grants.any(|it| it.contains(cluster))
    }
}

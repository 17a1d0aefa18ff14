//! The permissions of one identity to call, serve and see.

use crate::{method::Need, pattern::Pattern};

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

/// Clusters in the words of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantScope {
    /// The UIDs.
    pub(crate) clusters: Vec<Pattern>,
    pub(crate) names: Vec<Pattern>,
    pub(crate) shards: Vec<Pattern>,
}

/// The permissions of one identity under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub(crate) is_unrestricted: bool,
    pub(crate) is_admin: bool,
    pub(crate) agent: Vec<GrantScope>,
    pub(crate) viewer: Vec<GrantScope>,
}

impl GrantScope {
    /// Whether a cluster is in the scope, the shard included.
    pub(crate) fn contains(&self, cluster: NamedCluster<'_>) -> bool {
        let any = |patterns: &[Pattern], text| patterns.iter().any(|it| it.matches(text));
        any(&self.clusters, cluster.uid)
            && any(&self.names, cluster.name)
            && any(&self.shards, cluster.shard)
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
        self.is_unrestricted || self.agent.iter().any(|scope| scope.contains(cluster))
    }

    /// Whether the data of a cluster may be seen. Its agent may see the data, since they all come from it.
    pub fn may_view(&self, cluster: NamedCluster<'_>) -> bool {
        let mut scopes = self.viewer.iter().chain(&self.agent);
        self.is_unrestricted || self.is_admin || scopes.any(|scope| scope.contains(cluster))
    }
}

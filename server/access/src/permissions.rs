//! What one identity may call, serve and see.

use crate::{method::Need, pattern::Pattern};

/// A cluster as a session names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCluster<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// What people call it; may be empty.
    pub name: &'a str,
    /// The part that the agent serves; may be empty.
    pub shard: &'a str,
}

/// Clusters as a policy names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantScope {
    /// The uids.
    pub clusters: Vec<Pattern>,
    /// The names.
    pub names: Vec<Pattern>,
    /// The shards.
    pub shards: Vec<Pattern>,
}

/// What one identity may do under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub(crate) is_unrestricted: bool,
    pub(crate) is_admin: bool,
    pub(crate) agent: Vec<GrantScope>,
    pub(crate) viewer: Vec<GrantScope>,
}

// === impl GrantScope ===

impl GrantScope {
    /// Returns whether a cluster is meant, the shard included.
    #[must_use]
    pub fn contains(&self, cluster: NamedCluster<'_>) -> bool {
        let any = |patterns: &[Pattern], text| patterns.iter().any(|it| it.matches(text));
        any(&self.clusters, cluster.uid)
            && any(&self.names, cluster.name)
            && any(&self.shards, cluster.shard)
    }
}

// === impl Permissions ===

impl Permissions {
    /// Returns the permissions of everyone where nothing is restricted.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self {
            is_unrestricted: true,
            ..Self::default()
        }
    }

    /// Returns whether a method with this need may be called at all; which clusters it may be about is another question.
    #[must_use]
    pub const fn may_call(&self, need: Option<Need>) -> bool {
        let has_any = self.is_admin || !self.agent.is_empty() || !self.viewer.is_empty();
        self.is_unrestricted
            || match need {
                Some(Need::Health | Need::Reflection | Need::AnyRole | Need::View) => has_any,
                Some(Need::Agent) => !self.agent.is_empty(),
                Some(Need::Admin) | None => self.is_admin,
            }
    }

    /// Returns whether a session for a cluster may be opened, as far as the identity's own grants go.
    #[must_use]
    pub fn may_open(&self, cluster: NamedCluster<'_>) -> bool {
        self.is_unrestricted || self.agent.iter().any(|scope| scope.contains(cluster))
    }

    /// Returns whether what is known of a cluster may be seen. Its agent may see it, since everything known comes from there.
    #[must_use]
    pub fn may_view(&self, cluster: NamedCluster<'_>) -> bool {
        let mut scopes = self.viewer.iter().chain(&self.agent);
        self.is_unrestricted || self.is_admin || scopes.any(|scope| scope.contains(cluster))
    }
}

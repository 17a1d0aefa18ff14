//! One entry of a policy.

use crate::{
    identity::{Identity, IdentityPattern},
    permissions::GrantScope,
};

/// A role that identities have for clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The identities.
    pub identities: Vec<IdentityPattern>,
    /// The role.
    pub role: Role,
    /// The clusters; an admin has all.
    pub scope: GrantScope,
}

/// The role of an identity for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens sessions for the cluster, and sees it.
    Agent,
    /// Sees the cluster.
    Viewer,
    /// Sees all clusters, and may call methods that no other role may call.
    Admin,
}

// === impl Grant ===

impl Grant {
    pub(super) fn is_for(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|it| it.matches(identity))
    }
}

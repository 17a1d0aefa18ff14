//! One entry of a policy.

use crate::{
    identity::{Identity, IdentityPattern},
    permissions::GrantScope,
};

/// Gives identities a role for clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub identities: Vec<IdentityPattern>,
    /// What.
    pub role: Role,
    /// Of which clusters; an admin's are all.
    pub scope: GrantScope,
}

/// What an identity is for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens sessions for it, and sees it.
    Agent,
    /// Sees it.
    Viewer,
    /// Sees all clusters, and may call what no other role may.
    Admin,
}

// === impl Grant ===

impl Grant {
    /// Returns whether an identity is meant.
    pub(super) fn is_for(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|it| it.matches(identity))
    }
}

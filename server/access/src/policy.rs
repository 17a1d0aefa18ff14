//! The policy: the permissions of identities, read from a TOML file.

use self::file::{Grant, Role};
use crate::{
    identity::Identity,
    pattern::Pattern,
    permissions::{GrantScope, NamedCluster, Permissions},
};

pub use self::file::PolicyError;

mod file;

/// The permissions of identities. Everything that it does not grant is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    grants: Vec<Grant>,
}

impl Policy {
    /// Parses the text of a policy file.
    ///
    /// # Errors
    /// Names the first line and field that is wrong. A policy without grants is an error: it is more likely incomplete than intended.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PolicyError> {
        let grants = file::read(text.as_ref())?;
        Ok(Self { grants })
    }

    /// The permissions of an identity.
    pub fn permissions(&self, identity: &Identity) -> Permissions {
        let mut permissions = Permissions::default();
        for grant in self.grants.iter().filter(|it| it.is_for(identity)) {
            match grant.role {
                Role::Agent => permissions.agent.push(grant.scope.clone()),
                Role::Viewer => permissions.viewer.push(grant.scope.clone()),
                Role::Admin => permissions.is_admin = true,
            }
        }
        permissions
    }

    /// Returns whether grants to agents name exactly the UID, and the name, of a cluster, but only for other identities. A word that the
    /// policy names as a UID is not free as a name, nor the other way round.
    pub(crate) fn of_others(&self, identity: &Identity, cluster: NamedCluster<'_>) -> [bool; 2] {
        let is_for_this = |word, of: fn(&GrantScope) -> &[Pattern], cluster| {
            let names = |it: &&Grant| of(&it.scope).iter().any(|it| it.is_exactly(word));
            let agents = self.grants.iter().filter(|it| it.role == Role::Agent);
            let named: Vec<_> = agents.filter(names).collect();
            let mut each = named.iter();
            let is_for = each.any(|it| it.is_for(identity) && it.scope.contains(cluster));
            (!named.is_empty()).then_some(is_for)
        };
        let as_uid = |uid| is_for_this(uid, |it| &it.clusters, NamedCluster { uid, ..cluster });
        let as_name = |name| is_for_this(name, |it| &it.names, NamedCluster { name, ..cluster });
        let NamedCluster { uid, name, .. } = cluster;
        [
            as_uid(uid).or_else(|| as_name(uid)) == Some(false),
            as_name(name).or_else(|| as_uid(name)) == Some(false),
        ]
    }
}

#[cfg(test)]
mod tests;

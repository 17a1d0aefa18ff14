//! The policy: the permissions of identities, read from a TOML file.

use std::sync::Arc;

use crate::{
    identity::Identity,
    pattern::Pattern,
    permissions::{Grant, NamedCluster, Permissions, Role},
};

pub use self::file::PolicyError;

mod file;

/// The permissions of identities. Everything that it does not grant is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    grants: Vec<Arc<Grant>>,
}

impl Policy {
    /// Parses the text of a policy file.
    ///
    /// # Errors
    /// Names a line that is wrong, and what is right there. A policy without grants is an error: it is more likely incomplete than intended.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PolicyError> {
        let grants = file::read(text.as_ref())?;
        Ok(Self { grants })
    }

    /// The permissions of an identity.
    pub fn permissions(&self, identity: &Identity) -> Permissions {
        let mut permissions = Permissions::default();
        for grant in self.grants.iter().filter(|it| it.is_for(identity)) {
            match grant.role {
                Role::Agent => permissions.agent.push(Arc::clone(grant)),
                Role::Viewer => permissions.viewer.push(Arc::clone(grant)),
                Role::Admin => permissions.is_admin = true,
            }
        }
        permissions
    }

    /// Returns whether grants to agents name exactly the UID, and the name, of a cluster, but only for other identities. A word that the
    /// policy names as a UID is not free as a name, nor the other way round.
    pub(crate) fn of_others(&self, identity: &Identity, cluster: NamedCluster<'_>) -> [bool; 2] {
        let is_for_this = |word, of: fn(&Grant) -> Option<&Vec<Pattern>>, cluster| {
            let is = |it: &Pattern| it.is_exactly(word);
            let names = |it: &&Arc<Grant>| of(it).is_some_and(|list| list.iter().any(is));
            let agents = self.grants.iter().filter(|it| it.role == Role::Agent);
            let named: Vec<_> = agents.filter(names).collect();
            let mut each = named.iter();
            let is_for = each.any(|it| it.is_for(identity) && it.contains(cluster));
            (!named.is_empty()).then_some(is_for)
        };
        let as_uid = |uid| {
            let cluster = NamedCluster { uid, ..cluster };
            is_for_this(uid, |it| it.clusters.as_ref(), cluster)
        };
        let as_name = |name| {
            let cluster = NamedCluster { name, ..cluster };
            is_for_this(name, |it| it.names.as_ref(), cluster)
        };
        let NamedCluster { uid, name, .. } = cluster;
        [
            as_uid(uid).or_else(|| as_name(uid)) == Some(false),
            as_name(name).or_else(|| as_uid(name)) == Some(false),
        ]
    }
}

#[cfg(test)]
mod tests;

//! The policy: the permissions of identities, read from a TOML file.

use self::index::GrantIndex;
use crate::{
    identity::Identity,
    permissions::{NamedCluster, Permissions},
};

pub use self::{
    file::PolicyError,
    grant::{Grant, Role},
};

mod file;
mod grant;
mod index;

/// The permissions of identities. Everything that it does not grant is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    grants: Vec<Grant>,
    index: GrantIndex,
}

// === impl Policy ===

impl Policy {
    /// Parses the text of a policy file.
    ///
    /// # Errors
    /// Names the first line and field that is wrong. A policy without grants is an error: it is more likely incomplete than intended.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PolicyError> {
        let grants = file::read(text.as_ref())?;
        let index = GrantIndex::new(&grants);
        Ok(Self { grants, index })
    }

    /// The permissions of an identity.
    #[must_use]
    pub fn permissions(&self, identity: &Identity) -> Permissions {
        let mut permissions = Permissions::default();
        for grant in self.grants_of(identity) {
            match grant.role {
                Role::Agent => permissions.agent.push(grant.scope.clone()),
                Role::Viewer => permissions.viewer.push(grant.scope.clone()),
                Role::Admin => permissions.is_admin = true,
            }
        }
        permissions
    }

    /// Returns whether the policy names agents of exactly this UID, and whether this identity is one of them.
    pub(crate) fn named_for_uid(&self, identity: &Identity, cluster: NamedCluster<'_>) -> Naming {
        self.naming(identity, self.index.of_uid(cluster.uid), cluster)
    }

    /// Returns whether the policy names agents of clusters with exactly this name, and whether this identity is one of them.
    pub(crate) fn named_for_name(&self, identity: &Identity, cluster: NamedCluster<'_>) -> Naming {
        self.naming(identity, self.index.of_name(cluster.name), cluster)
    }

    /// Returns whom the grants with the numbers in `naming` name.
    fn naming(&self, identity: &Identity, naming: &[usize], cluster: NamedCluster<'_>) -> Naming {
        let mut grants = naming.iter().map(|number| &self.grants[*number]);
        if naming.is_empty() {
            Naming::Nobody
        } else if grants.any(|grant| grant.is_for(identity) && grant.scope.contains(cluster)) {
            Naming::This
        } else {
            Naming::Others
        }
    }

    fn grants_of(&self, identity: &Identity) -> impl Iterator<Item = &Grant> {
        let numbers = self.index.of_identity(identity).into_iter();
        numbers.map(|number| &self.grants[number])
    }
}

/// The identities that a policy names for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Nobody,
    This,
    Others,
}

// === impl Naming ===

impl Naming {
    /// Combines the naming of a word as UID or name with its naming as the other of the two: a word that the policy names there for others
    /// is not free.
    pub(crate) fn or_as_other(self, as_other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::This | Self::Others => self,
            Self::Nobody => match as_other() {
                Self::Others => Self::Others,
                Self::This | Self::Nobody => Self::Nobody,
            },
        }
    }
}

#[cfg(test)]
mod tests;

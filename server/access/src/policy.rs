//! The policy: the permissions of identities, read from a TOML file.

use std::collections::{BTreeMap, BTreeSet};

use self::file::{Grant, Role};
use crate::{
    identity::Identity,
    ownership::Ground,
    pattern::Pattern,
    permissions::{NamedCluster, Permissions},
};

pub use self::file::PolicyError;

mod file;

/// The permissions of identities. Everything that it does not grant is denied. Grants are found by what they name, so that a check does not
/// go through all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    grants: Vec<Grant>,
    by_identity: BTreeMap<Identity, Positions>,
    /// The grants with a pattern that matches more than one identity.
    by_pattern: Positions,
    agents_by_uid: BTreeMap<String, Positions>,
    agents_by_name: BTreeMap<String, Positions>,
}

/// Positions of grants in the policy.
type Positions = BTreeSet<usize>;

impl Policy {
    /// Parses the text of a policy file.
    ///
    /// # Errors
    /// Names the first line and field that is wrong. A policy without grants is an error: it is more likely incomplete than intended.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        for (number, grant) in file::read(text.as_ref())?.into_iter().enumerate() {
            for pattern in &grant.identities {
                let numbers = match pattern.exact() {
                    Some(identity) => policy.by_identity.entry(identity).or_default(),
                    None => &mut policy.by_pattern,
                };
                numbers.insert(number);
            }
            if grant.role == Role::Agent {
                add(&mut policy.agents_by_uid, &grant.scope.clusters, number);
                add(&mut policy.agents_by_name, &grant.scope.names, number);
            }
            policy.grants.push(grant);
        }
        Ok(policy)
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

    /// Returns the grounds on which an identity asks for the UID and for the name of a cluster, if grants to agents name exactly this word.
    pub(crate) fn grounds(
        &self,
        identity: &Identity,
        cluster: NamedCluster<'_>,
    ) -> [Option<Ground>; 2] {
        let ground = |numbers: &Positions, cluster: NamedCluster<'_>| {
            let mut grants = numbers.iter().map(|number| &self.grants[*number]);
            if grants.any(|it| it.is_for(identity) && it.scope.contains(cluster)) {
                Ground::Named
            } else {
                Ground::NamedForOthers
            }
        };
        let as_uid = |uid: &str| {
            let numbers = self.agents_by_uid.get(uid)?;
            Some(ground(numbers, NamedCluster { uid, ..cluster }))
        };
        let as_name = |name: &str| {
            let numbers = self.agents_by_name.get(name)?;
            Some(ground(numbers, NamedCluster { name, ..cluster }))
        };
        // A UID that the policy names for others as a name is not free, nor such a name.
        let others = |ground: &Ground| *ground == Ground::NamedForOthers;
        [
            as_uid(cluster.uid).or_else(|| as_name(cluster.uid).filter(others)),
            as_name(cluster.name).or_else(|| as_uid(cluster.name).filter(others)),
        ]
    }

    /// Returns the grants for an identity, in the order of the policy.
    fn grants_of(&self, identity: &Identity) -> impl Iterator<Item = &Grant> {
        let exact = self.by_identity.get(identity).into_iter().flatten();
        let is_for = |number: &&usize| self.grants[**number].is_for(identity);
        let matching = self.by_pattern.iter().filter(is_for);
        let numbers: BTreeSet<_> = exact.chain(matching).collect();
        numbers.into_iter().map(|number| &self.grants[*number])
    }
}

fn add(index: &mut BTreeMap<String, Positions>, patterns: &[Pattern], number: usize) {
    for text in patterns.iter().filter_map(Pattern::exact) {
        index.entry(text.to_owned()).or_default().insert(number);
    }
}

#[cfg(test)]
mod tests;

//! The grants of a policy by identities and clusters, so that a check does not go through all of them.

use std::collections::BTreeMap;

use super::grant::{Grant, Role};
use crate::{
    identity::{Identity, IdentityPattern},
    pattern::Pattern,
};

/// The positions in a policy of the grants for an identity or a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GrantIndex {
    by_identity: BTreeMap<Identity, Vec<usize>>,
    /// The patterns that match more than one identity.
    by_pattern: Vec<(IdentityPattern, usize)>,
    agents_by_uid: BTreeMap<String, Vec<usize>>,
    agents_by_name: BTreeMap<String, Vec<usize>>,
}

// === impl GrantIndex ===

impl GrantIndex {
    pub(super) fn new(grants: &[Grant]) -> Self {
        let mut index = Self::default();
        for (number, grant) in grants.iter().enumerate() {
            for pattern in &grant.identities {
                match pattern.exact() {
                    Some(identity) => {
                        index.by_identity.entry(identity).or_default().push(number);
                    }
                    None => index.by_pattern.push((pattern.clone(), number)),
                }
            }
            if grant.role == Role::Agent {
                add(&mut index.agents_by_uid, &grant.scope.clusters, number);
                add(&mut index.agents_by_name, &grant.scope.names, number);
            }
        }
        index
    }

    /// Returns the grants for an identity, in the order of the policy.
    pub(super) fn of_identity(&self, identity: &Identity) -> Vec<usize> {
        let exact = self.by_identity.get(identity).into_iter().flatten();
        let patterns = self.by_pattern.iter();
        let matching = patterns.filter(|(pattern, _)| pattern.matches(identity));
        let mut found: Vec<_> = exact
            .chain(matching.map(|(_, number)| number))
            .copied()
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(super) fn of_uid(&self, uid: &str) -> &[usize] {
        self.agents_by_uid.get(uid).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_name(&self, name: &str) -> &[usize] {
        self.agents_by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

fn add(index: &mut BTreeMap<String, Vec<usize>>, patterns: &[Pattern], number: usize) {
    for text in patterns.iter().filter_map(Pattern::exact) {
        let numbers = index.entry(text.to_owned()).or_default();
        // A list may contain a text twice.
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }
}

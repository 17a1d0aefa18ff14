//! The ReplicaSets in their newest state, and the generations that share its template.

use std::collections::HashMap;

use decree_api::v1;

use crate::api::{ReplicaSet, Template, parse_version};

/// Why no pod can be made: the template has no labels, so its pod would be an orphan.
const NO_LABELS: &str = "unable to create pods, no labels";
/// Why no pod can be made: the ReplicaSet has no template.
const NO_TEMPLATE: &str = "unable to create pods, no template";

/// The ReplicaSets by uid. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    by_uid: HashMap<String, Entry>,
    /// The desired pods of all.
    desired: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    newest: ReplicaSet,
    /// The first generation that is known to have this template.
    since: i64,
}

/// The desired number of pods; one if unset.
pub(crate) fn replicas(set: &v1::ReplicaSet) -> u32 {
    u32::try_from(set.replicas.unwrap_or(1)).unwrap_or(0)
}

impl Templates {
    /// Takes a ReplicaSet's state; an older state changes nothing. Returns whether a person has resumed its holds. An annotation on a
    /// ReplicaSet that is seen for the first time resumes nothing, nor does its removal.
    pub(crate) fn apply(&mut self, replica_set: &ReplicaSet) -> bool {
        let projected = &replica_set.projected;
        let Some(entry) = self.by_uid.get_mut(&projected.uid) else {
            self.desired += u64::from(replicas(projected));
            let entry = Entry {
                newest: replica_set.clone(),
                since: projected.generation,
            };
            self.by_uid.insert(projected.uid.clone(), entry);
            return false;
        };
        self.desired -= u64::from(replicas(&entry.newest.projected));
        let has_resumed = entry.apply(replica_set);
        self.desired += u64::from(replicas(&entry.newest.projected));
        has_resumed
    }

    pub(crate) fn delete(&mut self, uid: &str) {
        if let Some(entry) = self.by_uid.remove(uid) {
            self.desired -= u64::from(replicas(&entry.newest.projected));
        }
    }

    /// Forgets all ReplicaSets but those for which `keep` holds.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.by_uid.retain(|uid, entry| {
            let is_kept = keep(uid);
            if !is_kept {
                self.desired -= u64::from(replicas(&entry.newest.projected));
            }
            is_kept
        });
    }

    pub(crate) fn count(&self) -> usize {
        self.by_uid.len()
    }

    pub(crate) fn newest(&self, uid: &str) -> Option<&v1::ReplicaSet> {
        self.by_uid.get(uid).map(|entry| &entry.newest.projected)
    }

    /// The desired pods of all ReplicaSets.
    pub(crate) fn desired(&self) -> u32 {
        u32::try_from(self.desired).unwrap_or(u32::MAX)
    }

    /// Returns the template of a generation, or why it makes no pod; `None` if the template of the generation is unknown. Pods of a
    /// replaced template are not created.
    pub(crate) fn of_generation(
        &self,
        uid: &str,
        generation: i64,
    ) -> Option<Result<Template, &'static str>> {
        let Entry { newest, since } = self.by_uid.get(uid)?;
        if generation < *since || newest.projected.generation < generation {
            return None;
        }
        Some(match &newest.template {
            None => Err(NO_TEMPLATE),
            Some(_) if newest.projected.template_labels.is_empty() => Err(NO_LABELS),
            Some(template) => Ok(template.clone()),
        })
    }
}

impl Entry {
    fn apply(&mut self, set: &ReplicaSet) -> bool {
        let version = |set: &ReplicaSet| parse_version(&set.projected.resource_version);
        let (old, new) = (version(&self.newest), version(set));
        if new.is_some() && new < old {
            return false;
        }
        if self.newest.template != set.template {
            self.since = set.projected.generation;
        }
        let resume = &set.projected.resume;
        let has_resumed = self.newest.projected.resume != *resume && !resume.is_empty();
        self.newest.clone_from(set);
        has_resumed
    }
}

#[cfg(test)]
mod tests;

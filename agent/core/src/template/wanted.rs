//! How many pods ReplicaSets want together.

use std::collections::HashMap;

use decree::v1;

/// The pods that ReplicaSets want, by namespace and in all. Owned and changed by one [`Templates`](super::Templates).
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    by_namespace: HashMap<String, u64>,
    all: u64,
}

/// Returns how many pods a ReplicaSet wants: one where it does not say.
pub(crate) fn replicas(set: &v1::ReplicaSet) -> u32 {
    u32::try_from(set.replicas.unwrap_or(1)).unwrap_or(0)
}

// === impl Wanted ===

impl Wanted {
    /// Returns how many are wanted in a namespace.
    pub(crate) fn of_namespace(&self, namespace: &str) -> u32 {
        narrowed(self.by_namespace.get(namespace).copied().unwrap_or(0))
    }

    /// Returns how many are wanted in all namespaces.
    pub(crate) fn all(&self) -> u32 {
        narrowed(self.all)
    }

    pub(super) fn add(&mut self, set: &v1::ReplicaSet) {
        let replicas = u64::from(replicas(set));
        *self.by_namespace.entry(set.namespace.clone()).or_default() += replicas;
        self.all += replicas;
    }

    /// Takes off what a ReplicaSet wants that was [added](Self::add) so.
    pub(super) fn subtract(&mut self, set: &v1::ReplicaSet) {
        let replicas = u64::from(replicas(set));
        if let Some(count) = self.by_namespace.get_mut(&set.namespace) {
            *count -= replicas;
            self.all -= replicas;
            if *count == 0 {
                self.by_namespace.remove(&set.namespace);
            }
        }
    }
}

fn narrowed(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

//! How many active pods ReplicaSets have together.

use std::{collections::HashMap, sync::Arc};

/// The active pods that ReplicaSets control, by namespace and in all. Owned and changed by one [`Pods`](super::Pods).
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    by_namespace: HashMap<Arc<str>, u32>,
    all: u32,
}

// === impl Totals ===

impl Totals {
    /// Returns how many there are in a namespace.
    pub(crate) fn of_namespace(&self, namespace: &str) -> u32 {
        self.by_namespace.get(namespace).copied().unwrap_or(0)
    }

    /// Returns how many there are in all namespaces.
    pub(crate) const fn all(&self) -> u32 {
        self.all
    }

    /// Returns a name of a namespace, shared with those that have counted under it.
    pub(super) fn shared(&self, namespace: &str) -> Arc<str> {
        match self.by_namespace.get_key_value(namespace) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(namespace),
        }
    }

    pub(super) fn add(&mut self, namespace: &Arc<str>) {
        *self.by_namespace.entry(Arc::clone(namespace)).or_default() += 1;
        self.all += 1;
    }

    /// Counts one pod less in a namespace in which one was [added](Self::add).
    pub(super) fn subtract(&mut self, namespace: &str) {
        if let Some(count) = self.by_namespace.get_mut(namespace) {
            *count -= 1;
            self.all -= 1;
            if *count == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }
}

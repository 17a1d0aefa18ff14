//! Numbers of current or desired pods, by namespace and in total.

use std::{collections::HashMap, sync::Arc};

/// Counts of pods by namespace and in total. Owned and changed by one [`Pods`](crate::pods::Pods) or
/// [`Templates`](crate::template::Templates).
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    by_namespace: HashMap<Arc<str>, u64>,
    all: u64,
}

// === impl Totals ===

impl Totals {
    /// Saturates at `u32::MAX`.
    pub(crate) fn of_namespace(&self, namespace: &str) -> u32 {
        narrowed(self.by_namespace.get(namespace).copied().unwrap_or(0))
    }

    /// Saturates at `u32::MAX`.
    pub(crate) fn all(&self) -> u32 {
        narrowed(self.all)
    }

    /// The name of a namespace, shared by all that have counted under it.
    pub(crate) fn shared(&self, namespace: &str) -> Arc<str> {
        match self.by_namespace.get_key_value(namespace) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(namespace),
        }
    }

    pub(crate) fn add(&mut self, namespace: &Arc<str>, count: u32) {
        *self.by_namespace.entry(Arc::clone(namespace)).or_default() += u64::from(count);
        self.all += u64::from(count);
    }

    /// The caller has [added](Self::add) at least as many to the namespace.
    pub(crate) fn subtract(&mut self, namespace: &str, count: u32) {
        if let Some(known) = self.by_namespace.get_mut(namespace) {
            *known -= u64::from(count);
            self.all -= u64::from(count);
            if *known == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }
}

fn narrowed(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

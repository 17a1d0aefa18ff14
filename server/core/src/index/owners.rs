//! The controller references of pods: one copy of each, while a pod has it.

use std::sync::Arc;

use super::{
    cost,
    map::{self, Map},
};
use crate::{held::Held, object::OwnerReference};

/// The references, with the number of pods that have each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    shared: Map<Arc<OwnerReference>, u32>,
    bytes: usize,
}

impl Owners {
    /// Returns the shared copy of a reference, counted once more.
    pub(crate) fn share(&mut self, owner: Arc<OwnerReference>) -> Arc<OwnerReference> {
        if let Some((shared, count)) = self.shared.get_key_value_mut(&owner) {
            *count += 1;
            return Arc::clone(shared);
        }
        self.bytes += cost::owner(&owner);
        self.shared.insert(Arc::clone(&owner), 1);
        owner
    }

    pub(crate) fn drop_one(&mut self, owner: &Arc<OwnerReference>) {
        if let Some(count) = self.shared.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.bytes -= cost::owner(owner);
                map::remove(&mut self.shared, owner);
            }
        }
    }
}

impl Held for Owners {
    fn bytes(&self) -> usize {
        let Self { shared: _, bytes } = self;
        *bytes
    }
}

//! Keeps one copy of values that many objects share, as long as one of them does.

use std::{hash::Hash, sync::Arc};

use super::{cost::Shared, map::Map};

/// Shared values and how many share them.
#[derive(Debug)]
pub(crate) struct Interner<T: ?Sized> {
    shared: Map<Arc<T>, u32>,
    bytes: usize,
}

// === impl Interner ===

impl<T: ?Sized> Clone for Interner<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            bytes: self.bytes,
        }
    }
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            shared: Map::default(),
            bytes: 0,
        }
    }
}

impl<T: ?Sized + Eq + Hash + Shared> Interner<T> {
    /// Returns about how many bytes all values take.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the shared copy of a value, counted once more.
    pub(crate) fn share(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(shared) = self.share_known(&value) {
            return shared;
        }
        self.bytes += value.cost();
        self.shared.insert(Arc::clone(&value), 1);
        value
    }

    /// Returns the shared copy of a value that is known, counted once more.
    pub(crate) fn share_known(&mut self, value: &T) -> Option<Arc<T>> {
        let (shared, count) = self.shared.get_key_value_mut(value)?;
        *count += 1;
        Some(Arc::clone(shared))
    }

    /// Counts a value once less and drops it with its last use.
    pub(crate) fn drop_one(&mut self, value: &Arc<T>) {
        if let Some(count) = self.shared.get_mut(value) {
            *count -= 1;
            if *count == 0 {
                self.bytes -= value.cost();
                self.shared.remove(value);
            }
        }
    }
}

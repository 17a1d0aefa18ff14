//! The objects with much content, by its size, and those whose content was forgotten.

use std::collections::{BTreeMap, BTreeSet};

use crate::{held::Held, selector::Quarantine, wording::count};

/// The content of an object counts as large from this size in bytes on.
const LARGE: usize = 8 << 10;
/// The memory of a large object in these collections, in bytes.
const OBJECT_BYTES: usize = 150;

const REMEDY: &str = "shrink the largest objects, or raise --session-memory-max";

#[derive(Clone, Debug)]
pub(crate) struct LargeObjects<I> {
    held: BySize<I>,
    forgotten: BySize<I>,
}

#[derive(Clone, Debug)]
struct BySize<I> {
    sizes: BTreeMap<I, usize>,
    order: BTreeSet<(usize, I)>,
}

impl<I: Copy + Ord> LargeObjects<I> {
    pub(super) fn weigh(&mut self, id: I, size: usize) {
        self.forgotten.set(id, 0);
        self.held.set(id, if size < LARGE { 0 } else { size });
    }

    /// Notes that the content of an object was forgotten, which had this size.
    pub(super) fn forget(&mut self, id: I, size: usize) {
        self.held.set(id, 0);
        self.forgotten.set(id, size);
    }

    pub(super) fn remove(&mut self, id: I) {
        self.weigh(id, 0);
    }

    /// Returns the object with most content. Among equals, returns the latest.
    pub(super) fn largest(&self) -> Option<(usize, I)> {
        self.held.order.last().copied()
    }

    pub(super) fn smallest_forgotten(&self) -> Option<usize> {
        self.forgotten.order.first().map(|(size, _)| *size)
    }

    pub(super) fn is_forgotten(&self, id: I) -> bool {
        self.forgotten.sizes.contains_key(&id)
    }

    pub(super) fn forgotten(&self) -> usize {
        self.forgotten.sizes.len()
    }
}

impl<I> Default for LargeObjects<I> {
    fn default() -> Self {
        Self {
            held: BySize::default(),
            forgotten: BySize::default(),
        }
    }
}

impl<I> Held for LargeObjects<I> {
    fn bytes(&self) -> usize {
        let Self { held, forgotten } = self;
        (held.sizes.len() + forgotten.sizes.len()) * OBJECT_BYTES
    }
}

impl<I: Copy + Ord> BySize<I> {
    /// Sets the size of an object; 0 removes the object.
    fn set(&mut self, id: I, size: usize) {
        let before = match size {
            0 if self.sizes.is_empty() => None,
            0 => self.sizes.remove(&id),
            _ => self.sizes.insert(id, size),
        };
        if let Some(before) = before {
            self.order.remove(&(before, id));
        }
        if size > 0 {
            self.order.insert((size, id));
        }
    }
}

impl<I> Default for BySize<I> {
    fn default() -> Self {
        Self {
            sizes: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

pub(super) fn object(bytes: usize) -> Quarantine {
    let size = bytes.div_ceil(1 << 10);
    Quarantine {
        field: "object".to_owned(),
        detail: format!("takes {size} KiB, for which the session has no memory; {REMEDY}"),
    }
}

/// Returns the quarantine for a ReplicaSet with this number of pods whose labels were forgotten.
pub(super) fn pods(pods: i32) -> Quarantine {
    let pods = count(pods, "pod");
    Quarantine {
        field: "pods".to_owned(),
        detail: format!("{pods} with labels for which the session has no memory; {REMEDY}"),
    }
}

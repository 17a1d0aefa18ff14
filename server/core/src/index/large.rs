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

/// The sizes of objects, and the objects in the order of their sizes.
type BySize<I> = (BTreeMap<I, usize>, BTreeSet<(usize, I)>);

impl<I: Copy + Ord> LargeObjects<I> {
    pub(super) fn weigh(&mut self, id: I, size: usize) {
        set(&mut self.forgotten, id, 0);
        set(&mut self.held, id, if size < LARGE { 0 } else { size });
    }

    /// Notes that the content of an object was forgotten, which had this size.
    pub(super) fn forget(&mut self, id: I, size: usize) {
        set(&mut self.held, id, 0);
        set(&mut self.forgotten, id, size);
    }

    pub(super) fn remove(&mut self, id: I) {
        self.weigh(id, 0);
    }

    /// Returns the object with most content. Among equals, returns the latest.
    pub(super) fn largest(&self) -> Option<(usize, I)> {
        self.held.1.last().copied()
    }

    pub(super) fn smallest_forgotten(&self) -> Option<usize> {
        self.forgotten.1.first().map(|(size, _)| *size)
    }

    pub(super) fn is_forgotten(&self, id: I) -> bool {
        self.forgotten.0.contains_key(&id)
    }

    pub(super) fn forgotten(&self) -> usize {
        self.forgotten.0.len()
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
        (held.0.len() + forgotten.0.len()) * OBJECT_BYTES
    }
}

/// Sets the size of an object; 0 removes the object.
fn set<I: Copy + Ord>((sizes, order): &mut BySize<I>, id: I, size: usize) {
    let before = match size {
        0 if sizes.is_empty() => None,
        0 => sizes.remove(&id),
        _ => sizes.insert(id, size),
    };
    if let Some(before) = before {
        order.remove(&(before, id));
    }
    if size > 0 {
        order.insert((size, id));
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

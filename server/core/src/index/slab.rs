//! Values in numbered slots. The slots are in pages, so an addition moves no value and few slots are spare.

use std::num::NonZeroU32;

/// The number of a slot, from 1.
pub(crate) type Slot = NonZeroU32;

/// The number of slots of a page.
const PAGE: usize = 256;

/// Values by the number of their slot. A slot is reused after the removal of its value.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    /// All pages but the last are full.
    pages: Vec<Vec<Option<T>>>,
    vacant: Vec<Slot>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn reserve(&mut self) -> Slot {
        self.vacant.pop().unwrap_or_else(|| self.append())
    }

    fn append(&mut self) -> Slot {
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            // A small slab grows in small steps.
            let capacity = if self.pages.is_empty() { 0 } else { PAGE };
            self.pages.push(Vec::with_capacity(capacity));
        }
        let full = self.pages.len() - 1;
        self.pages[full].push(None);
        let number = u32::try_from(full * PAGE + self.pages[full].len());
        let number = number.ok().and_then(Slot::new);
        number.expect("fewer than 2^32 objects fit in memory")
    }

    /// Frees a slot whose value was taken.
    pub(crate) fn release(&mut self, at: Slot) {
        self.vacant.push(at);
    }

    pub(crate) fn get(&self, at: Slot) -> Option<&T> {
        let at = at.get() as usize - 1;
        self.pages.get(at / PAGE)?.get(at % PAGE)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: Slot) -> Option<&mut T> {
        self.slot_mut(at)?.as_mut()
    }

    /// Takes the value of a slot, which stays reserved.
    pub(crate) fn take(&mut self, at: Slot) -> Option<T> {
        self.slot_mut(at)?.take()
    }

    pub(crate) fn put(&mut self, at: Slot, value: T) {
        if let Some(slot) = self.slot_mut(at) {
            *slot = Some(value);
        }
    }

    fn slot_mut(&mut self, at: Slot) -> Option<&mut Option<T>> {
        let at = at.get() as usize - 1;
        self.pages.get_mut(at / PAGE)?.get_mut(at % PAGE)
    }

    /// Returns all values with their slots, in the order of the slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let slots = (1..).zip(self.pages.iter().flatten());
        slots.filter_map(|(at, value)| Some((Slot::new(at)?, value.as_ref()?)))
    }

    /// The memory of slots without a value, in bytes.
    pub(crate) fn vacant_bytes(&self) -> usize {
        let last = self.pages.last();
        let spare = last.map_or(0, |page| page.capacity() - page.len());
        (self.vacant.len() + spare) * size_of::<Option<T>>()
            + self.vacant.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_found_page_by_page() {
        let mut slab = Slab::default();
        for number in 1..=600 {
            let at = slab.reserve();
            assert_eq!(at.get(), number);
            slab.put(at, number);
        }
        let third = Slot::new(3).expect("it is not 0");
        assert_eq!(slab.take(third), Some(3));
        assert_eq!(slab.get(third), None);
        assert_eq!(slab.take(third), None);
        slab.release(third);
        assert_eq!((slab.reserve().get(), slab.reserve().get()), (3, 601));
        let found = slab.iter().map(|(at, value)| (at.get(), *value));
        let expected = (1..=600).filter(|number| *number != 3);
        assert!(found.eq(expected.map(|number| (number, number))));
    }
}

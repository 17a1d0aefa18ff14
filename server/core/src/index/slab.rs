//! Values in numbered slots. The slots are in pages, so an addition moves no value and few slots are spare.

/// The number of slots of a page.
const PAGE: usize = 256;

/// Values by the number of their slot. A slot is reused after the removal of its value.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    /// All pages but the last are full.
    pages: Vec<Vec<Option<T>>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

// === impl Slab ===

impl<T> Slab<T> {
    /// Reserves a vacant slot and returns it.
    pub(crate) fn reserve(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| self.append())
    }

    fn append(&mut self) -> u32 {
        match self.pages.last_mut() {
            Some(page) if page.len() < PAGE => page.push(None),
            // A small slab grows in small steps.
            None => self.pages.push(vec![None]),
            Some(_) => {
                let mut page = Vec::with_capacity(PAGE);
                page.push(None);
                self.pages.push(page);
            }
        }
        let last = self.pages.last().map_or(0, Vec::len);
        let at = (self.pages.len() - 1) * PAGE + last - 1;
        u32::try_from(at).expect("fewer than 2^32 objects fit in memory")
    }

    /// Frees a slot whose value was taken.
    pub(crate) fn release(&mut self, at: u32) {
        self.vacant.push(at);
    }

    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        let at = at as usize;
        self.pages.get(at / PAGE)?.get(at % PAGE)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.slot_mut(at)?.as_mut()
    }

    /// Takes the value of a slot, which stays reserved.
    pub(crate) fn take(&mut self, at: u32) -> Option<T> {
        self.slot_mut(at)?.take()
    }

    /// Puts a value into a reserved slot.
    pub(crate) fn put(&mut self, at: u32, value: T) {
        if let Some(slot) = self.slot_mut(at) {
            *slot = Some(value);
        }
    }

    fn slot_mut(&mut self, at: u32) -> Option<&mut Option<T>> {
        let at = at as usize;
        self.pages.get_mut(at / PAGE)?.get_mut(at % PAGE)
    }

    /// Returns all values with their slots, in the order of the slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = (0..).zip(self.pages.iter().flatten());
        slots.filter_map(|(at, value)| Some((at, value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_found_page_by_page() {
        let mut slab = Slab::default();
        for number in 0..600 {
            let at = slab.reserve();
            assert_eq!(at, number);
            slab.put(at, number);
        }
        assert_eq!(slab.take(3), Some(3));
        assert_eq!(slab.get(3), None);
        assert_eq!(slab.take(3), None);
        slab.release(3);
        assert_eq!((slab.reserve(), slab.reserve()), (3, 600));
        let found: Vec<_> = slab.iter().map(|(at, value)| (at, *value)).collect();
        let expected = (0..600).filter(|number| *number != 3);
        assert_eq!(
            found,
            expected.map(|number| (number, number)).collect::<Vec<_>>()
        );
    }
}

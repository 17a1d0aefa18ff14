//! The number of deletions that count as deletions by others.

/// How many deletions count as deletions by others before any comparison.
const FIRST: u32 = 1;
/// The maximum number of such deletions.
const MOST: u32 = 3;
/// How many correct choices of victims allow one more such deletion.
const PRICE: u32 = 100;

/// The stream does not show who deletes a pod. A person who deletes one during a scale-down looks like a controller that chose it. People
/// do so rarely, and a controller that chooses wrongly does so again. So a few such deletions count as deletions by others.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    left: u32,
    paid: u32,
}

// === impl Allowance ===

impl Default for Allowance {
    fn default() -> Self {
        Self {
            left: FIRST,
            paid: 0,
        }
    }
}

impl Allowance {
    pub(super) fn agree(&mut self) {
        self.paid += 1;
        if self.paid >= PRICE {
            self.paid = 0;
            self.left = MOST.min(self.left + 1);
        }
    }

    /// Returns whether one more deletion counts as a deletion by others, and uses it up.
    pub(super) fn take(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

//! How many deletions may be somebody else's.

/// How many deletions are believed to be somebody else's before any was compared.
const FIRST: u32 = 1;
/// How many are believed at most.
const MOST: u32 = 3;
/// How many choices of victims that agree pay for one.
const PRICE: u32 = 100;

/// Who deletes a pod is not to be seen. A person who deletes one amid a scale-down looks like a controller that chose it; but people do so
/// rarely, and a controller that chooses wrongly does so again. So a few are believed.
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
    /// Notes a choice that agrees.
    pub(super) fn agree(&mut self) {
        self.paid += 1;
        if self.paid >= PRICE {
            self.paid = 0;
            self.left = MOST.min(self.left + 1);
        }
    }

    /// Returns whether one more is believed.
    pub(super) fn take(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

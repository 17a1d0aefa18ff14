//! How much is done in one go.

/// A number of units of work, of which each takes about a microsecond at most: a sync begun, some orphans tried, some pods counted.
///
/// What spends them stops when none is left and goes on where it stopped when it is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    left: u64,
    has_paused: bool,
}

// === impl Work ===

impl Work {
    /// Returns so many units; 0 stands for no bound.
    #[must_use]
    pub const fn units(units: u64) -> Self {
        Self {
            left: if units == 0 { u64::MAX } else { units },
            has_paused: false,
        }
    }

    /// Returns whether something stopped for want of units, with work left.
    #[must_use]
    pub const fn has_paused(&self) -> bool {
        self.has_paused
    }

    /// Returns whether none is left.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Notes that something stops for want of units.
    pub const fn pause(&mut self) {
        self.has_paused = true;
    }

    /// Spends units, of which there may be too few.
    pub fn spend(&mut self, units: usize) {
        self.left = self.left.saturating_sub(units as u64);
    }
}

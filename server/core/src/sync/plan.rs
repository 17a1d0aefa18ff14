//! The decision of a step of a sync.

use super::rank::RankedPod;
use crate::{
    batch::Action,
    reason::{Reason, Thousandths},
};

/// The decision of a step.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    pub(crate) reasons: Vec<Reason>,
    /// The relative ages of victims (spec 7.7).
    pub(crate) age_ratios: Vec<Thousandths>,
    pub(crate) near_cut: Vec<RankedPod>,
}

impl Plan {
    pub(super) const fn new(action: Action, reasons: Vec<Reason>) -> Self {
        Self {
            action,
            reasons,
            age_ratios: Vec::new(),
            near_cut: Vec::new(),
        }
    }
}

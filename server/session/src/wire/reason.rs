//! Reasons, from the core to the contract.

use decree_api::v1;
use decree_core::{Reason, Rule};

/// Writes a reason.
pub fn reason(reason: Reason) -> v1::Reason {
    v1::Reason {
        rule: rule(reason.rule).into(),
        detail: reason.detail.into_owned(),
    }
}

/// Writes reasons.
pub fn reasons(reasons: Vec<Reason>) -> Vec<v1::Reason> {
    reasons.into_iter().map(reason).collect()
}

namesakes! {
    pub(crate) fn rule(Rule) -> v1::Rule {
        TooFewReplicas TooManyReplicas AllGo Unassigned Phase NotReady DeletionCost CrowdedNode ReadyRecently Restarts
        CreatedRecently Uid OrphanMatches NoLongerMatches StatusDiffers InSync BatchInFlight ViewOlderThanWrite PartialView Backoff
        AvailabilityCheck BeingDeleted Quarantined BurstLimited RefusedByAgent Throttled PodsDoNotLast ManyUnassigned
        AfterTermination EndedPods First EmptiestNode Youngest Surge Replaced LeavingNode FullestDomain CostsAsked Advice
    }
}

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

pub(crate) const fn rule(rule: Rule) -> v1::Rule {
    match rule {
        Rule::TooFewReplicas => v1::Rule::TooFewReplicas,
        Rule::TooManyReplicas => v1::Rule::TooManyReplicas,
        Rule::AllGo => v1::Rule::AllGo,
        Rule::Unassigned => v1::Rule::Unassigned,
        Rule::Phase => v1::Rule::Phase,
        Rule::NotReady => v1::Rule::NotReady,
        Rule::DeletionCost => v1::Rule::DeletionCost,
        Rule::CrowdedNode => v1::Rule::CrowdedNode,
        Rule::ReadyRecently => v1::Rule::ReadyRecently,
        Rule::Restarts => v1::Rule::Restarts,
        Rule::CreatedRecently => v1::Rule::CreatedRecently,
        Rule::Uid => v1::Rule::Uid,
        Rule::OrphanMatches => v1::Rule::OrphanMatches,
        Rule::NoLongerMatches => v1::Rule::NoLongerMatches,
        Rule::StatusDiffers => v1::Rule::StatusDiffers,
        Rule::InSync => v1::Rule::InSync,
        Rule::BatchInFlight => v1::Rule::BatchInFlight,
        Rule::ViewOlderThanWrite => v1::Rule::ViewOlderThanWrite,
        Rule::PartialView => v1::Rule::PartialView,
        Rule::Backoff => v1::Rule::Backoff,
        Rule::AvailabilityCheck => v1::Rule::AvailabilityCheck,
        Rule::BeingDeleted => v1::Rule::BeingDeleted,
        Rule::Quarantined => v1::Rule::Quarantined,
        Rule::BurstLimited => v1::Rule::BurstLimited,
        Rule::RefusedByAgent => v1::Rule::RefusedByAgent,
        Rule::Throttled => v1::Rule::Throttled,
        Rule::PodsDoNotLast => v1::Rule::PodsDoNotLast,
        Rule::ManyUnassigned => v1::Rule::ManyUnassigned,
        Rule::AfterTermination => v1::Rule::AfterTermination,
        Rule::EndedPods => v1::Rule::EndedPods,
        Rule::First => v1::Rule::First,
        Rule::EmptiestNode => v1::Rule::EmptiestNode,
        Rule::Youngest => v1::Rule::Youngest,
        Rule::Surge => v1::Rule::Surge,
        Rule::Replaced => v1::Rule::Replaced,
        Rule::LeavingNode => v1::Rule::LeavingNode,
        Rule::FullestDomain => v1::Rule::FullestDomain,
        Rule::CostsAsked => v1::Rule::CostsAsked,
        Rule::Advice => v1::Rule::Advice,
    }
}

//! Why the server does something, or does not.

use std::borrow::Cow;

use crate::held::Held;

/// The rule that decided; see `Rule` of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "one to one with decree.v1.Rule, which documents them"
)]
pub enum Rule {
    TooFewReplicas,
    TooManyReplicas,
    AllGo,
    Unassigned,
    Phase,
    NotReady,
    DeletionCost,
    CrowdedNode,
    ReadyRecently,
    Restarts,
    CreatedRecently,
    Uid,
    OrphanMatches,
    NoLongerMatches,
    StatusDiffers,
    InSync,
    BatchInFlight,
    ViewOlderThanWrite,
    PartialView,
    Backoff,
    AvailabilityCheck,
    BeingDeleted,
    Quarantined,
    BurstLimited,
    RefusedByAgent,
    Throttled,
    PodsDoNotLast,
    ManyUnassigned,
    AfterTermination,
    EndedPods,
    First,
    EmptiestNode,
    Youngest,
    Surge,
    Replaced,
    LeavingNode,
    FullestDomain,
    CostsAsked,
    Advice,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// One line for people.
    pub detail: Cow<'static, str>,
}

impl Reason {
    pub(crate) fn new(rule: Rule, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self { rule, detail }
    }
}

impl Held for Reason {
    fn bytes(&self) -> usize {
        let Self { rule: _, detail } = self;
        size_of::<Self>() + detail.len()
    }
}

//! What a controller can do wrongly.

/// What the other controller does wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not look whether pods are ready.
    ReadinessIgnored,
    /// It deletes first what costs most.
    CostReversed,
    /// It deletes first on nodes with few related pods.
    CrowdingReversed,
    /// It deletes first what has been ready for longest.
    ReadyTimeReversed,
    /// It deletes assigned pods before unassigned ones.
    AssignmentReversed,
    /// It makes one pod too many.
    MakesOneMore,
    /// It makes one pod too few.
    MakesOneLess,
    /// It deletes one pod too many.
    DeletesOneMore,
    /// It deletes one pod too few.
    DeletesOneLess,
    /// It does not wait until it sees what it has written.
    Impatient,
    /// It adopts pods that its ReplicaSets do not select.
    AdoptsStrangers,
    /// It writes that one more is ready than there are.
    StatusTooGood,
}

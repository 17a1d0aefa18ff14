//! Faults of a controller.

/// A fault of the other controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The controller ignores the readiness of pods.
    ReadinessIgnored,
    /// The controller deletes the pods with the highest cost first.
    CostReversed,
    /// The controller prefers victims on nodes with few related pods.
    CrowdingReversed,
    /// The controller prefers victims that have been ready for longest.
    ReadyTimeReversed,
    /// The controller deletes assigned pods before unassigned ones.
    AssignmentReversed,
    /// The controller creates one pod too many.
    MakesOneMore,
    /// The controller creates one pod too few.
    MakesOneLess,
    /// The controller deletes one pod too many.
    DeletesOneMore,
    /// The controller deletes one pod too few.
    DeletesOneLess,
    /// The controller does not wait until it sees its own writes.
    Impatient,
    /// The controller adopts pods that its ReplicaSets do not select.
    AdoptsStrangers,
    /// The controller reports one ready pod too many in the status.
    StatusTooGood,
}

//! What each method of the contract, and of the services beside it, needs.

/// What a caller needs for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A role, unless health is open to everyone.
    Health,
    /// A role, unless reflection is open to everyone.
    Reflection,
    /// Any role: the answer depends on the question alone.
    AnyRole,
    /// The role of an agent; the Hello says of which cluster.
    Agent,
    /// A view of the cluster that the call is about; a list holds what the caller may see.
    View,
    /// The role of an admin.
    Admin,
}

/// The path of every method that is served, with its need.
pub const NEEDS: &[(&str, Need)] = &[
    ("/decree.v1.DecisionService/Reconcile", Need::Agent),
    ("/decree.v1.DecisionService/RenewSession", Need::Agent),
    ("/decree.v1.DecisionService/Decide", Need::AnyRole),
    ("/decree.v1.DecisionService/Simulate", Need::View),
    ("/decree.v1.InspectionService/ListReplicaSets", Need::View),
    ("/decree.v1.InspectionService/GetReplicaSet", Need::View),
    ("/decree.v1.InspectionService/WatchDecisions", Need::View),
    ("/decree.v1.InspectionService/ListSessions", Need::View),
    ("/decree.v1.InspectionService/ListDifferences", Need::View),
    ("/decree.v1.InspectionService/SimulateCluster", Need::View),
    ("/grpc.health.v1.Health/Check", Need::Health),
    ("/grpc.health.v1.Health/Watch", Need::Health),
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Need::Reflection,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Need::Reflection,
    ),
];

/// Returns what a method needs; `None` for one that is not known.
#[must_use]
pub fn need(path: &str) -> Option<Need> {
    let known = NEEDS.iter().find(|(known, _)| *known == path);
    known.map(|(_, need)| *need)
}

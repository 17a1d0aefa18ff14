//! The needs of the methods of the contract, and of the services beside it.

/// The need of a method: what its caller must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A role, unless health is open to everyone.
    Health,
    /// A role, unless reflection is open to everyone.
    Reflection,
    /// Any role: the answer depends only on the question.
    AnyRole,
    /// The role of an agent; the Hello names its cluster.
    Agent,
    /// A view of the cluster of the call; a list contains only the clusters that the caller may see.
    View,
    /// The role of an admin.
    Admin,
}

/// The path of every served method, with its need.
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

/// The need of a method; `None` for an unknown method.
#[must_use]
pub fn need(path: &str) -> Option<Need> {
    let known = NEEDS.iter().find(|(known, _)| *known == path);
    known.map(|(_, need)| *need)
}

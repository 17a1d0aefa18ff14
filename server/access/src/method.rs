//! The methods of the contract, and of the services beside it.

/// The need of a method: what its caller must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: health is open to everyone.
    Health,
    /// Any role: the answer depends only on the question.
    AnyRole,
    /// The role of an agent; the Hello names its cluster.
    Agent,
    /// A view of the cluster of the call; a list contains only the clusters that the caller may see.
    View,
}

/// Whether caller and server send one message or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One message from each.
    Unary,
    /// One message from the caller.
    ServerStream,
    /// Many messages from both.
    BidiStream,
}

/// A served method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The path of its calls.
    pub path: &'static str,
    /// Its messages.
    pub shape: Shape,
    /// What its caller must have.
    pub need: Need,
}

const fn method(path: &'static str, shape: Shape, need: Need) -> Method {
    Method { path, shape, need }
}

/// The path of sessions.
pub const SESSION: &str = "/decree.v1.DecisionService/Reconcile";

/// Every served method.
pub const METHODS: &[Method] = {
    use Need::{Agent, AnyRole, Health, View};
    use Shape::{BidiStream, ServerStream, Unary};
    &[
        method(SESSION, BidiStream, Agent),
        method("/decree.v1.DecisionService/RenewSession", Unary, Agent),
        method("/decree.v1.DecisionService/Decide", Unary, AnyRole),
        method("/decree.v1.DecisionService/Simulate", Unary, View),
        method("/decree.v1.InspectionService/ListReplicaSets", Unary, View),
        method("/decree.v1.InspectionService/GetReplicaSet", Unary, View),
        method(
            "/decree.v1.InspectionService/WatchDecisions",
            ServerStream,
            View,
        ),
        method("/decree.v1.InspectionService/ListSessions", Unary, View),
        method("/decree.v1.InspectionService/ListDifferences", Unary, View),
        method("/decree.v1.InspectionService/SimulateCluster", Unary, View),
        method("/grpc.health.v1.Health/Check", Unary, Health),
        method("/grpc.health.v1.Health/Watch", ServerStream, Health),
        method(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            BidiStream,
            AnyRole,
        ),
        method(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            BidiStream,
            AnyRole,
        ),
    ]
};

/// The method of a path.
pub fn find(path: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.path == path)
}

impl Shape {
    /// The word of grpc-prometheus.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ServerStream => "server_stream",
            Self::BidiStream => "bidi_stream",
        }
    }
}

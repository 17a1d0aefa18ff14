//! The interface between the console and its server.

use std::{fmt, net::SocketAddr, pin::Pin, sync::Arc};

use decree::v1;
use http::{Extensions, HeaderMap};
use server_core::{Interrupted, Surroundings, Timestamp};
use tokio_stream::Stream;
use tonic::Status;

/// The caller of a request: the extensions that the server would add to a gRPC call.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Extensions);

/// The name of a ReplicaSet, in a cluster by uid or name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSetName {
    /// The cluster; empty if there is only one.
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A session with data that its summary does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionUsage {
    /// The session.
    pub summary: v1::SessionSummary,
    /// The identity that opened the session, as a policy writes it.
    pub identity: Option<String>,
    /// The approximate memory of the session, in bytes.
    pub bytes: usize,
    /// The number of quarantined ReplicaSets.
    pub quarantined: usize,
    /// The number of queued ReplicaSets.
    pub queued: usize,
}

/// The reason to end a stream: the server drains, or the caller has lost the permission.
pub type StreamEnd = Pin<Box<dyn Future<Output = Status> + Send>>;

/// Decisions when they are made.
pub type DecisionStream =
    Pin<Box<dyn Stream<Item = Result<v1::WatchDecisionsResponse, Status>> + Send>>;

/// Computes a JSON text from the input of a decision on a ReplicaSet, as long as the second argument returns true. `None` if the
/// ReplicaSet is not known.
pub type DecisionAttempt = Arc<
    dyn Fn(&Surroundings, &dyn Fn() -> bool) -> Result<Option<String>, Interrupted> + Send + Sync,
>;

/// Computes a JSON text from the input of decisions on a ReplicaSet, in each session of its cluster.
pub type SurroundingsReader = Box<dyn FnOnce(&[Surroundings]) -> String + Send>;

/// The server of the console. Its answers are those of `InspectionService` to the same caller, with additional data.
#[tonic::async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Identifies the sender of a request, by its headers and the address of its peer.
    ///
    /// # Errors
    /// If the sender is not allowed to call `method`, or the server drains.
    async fn authorize(
        &self,
        method: &str,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<Caller, Status>;

    /// Watches the permission of a caller until the return value is dropped.
    fn follow(&self, caller: &Caller) -> StreamEnd;

    /// The server's time.
    fn now(&self) -> Timestamp;

    /// The answer of the RPC with the same name.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn list_replica_sets(
        &self,
        caller: &Caller,
        request: v1::ListReplicaSetsRequest,
    ) -> Result<v1::ListReplicaSetsResponse, Status>;

    /// The answer of the RPC with the same name.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn get_replica_set(
        &self,
        caller: &Caller,
        request: v1::GetReplicaSetRequest,
    ) -> Result<v1::GetReplicaSetResponse, Status>;

    /// The answer of the RPC with the same name.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn watch_decisions(
        &self,
        caller: &Caller,
        request: v1::WatchDecisionsRequest,
    ) -> Result<DecisionStream, Status>;

    /// The answer of the RPC with the same name.
    async fn list_sessions(&self, caller: &Caller) -> Vec<v1::SessionSummary>;

    /// The answer of the RPC with the same name.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn list_differences(
        &self,
        caller: &Caller,
        request: v1::ListDifferencesRequest,
    ) -> Result<v1::ListDifferencesResponse, Status>;

    /// The answer of the RPC with the same name, within the server's deadline.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn simulate(
        &self,
        caller: &Caller,
        request: v1::SimulateRequest,
    ) -> Result<v1::SimulateResponse, Status>;

    /// The answer of the RPC with the same name, within the server's deadline.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn simulate_cluster(
        &self,
        caller: &Caller,
        request: v1::SimulateClusterRequest,
    ) -> Result<v1::SimulateClusterResponse, Status>;

    /// The sessions that the caller may see, with their usage.
    async fn usage(&self, caller: &Caller) -> Vec<SessionUsage>;

    /// Runs `attempt` outside the threads that serve sessions, within the server's deadline, for the session that knows the ReplicaSet.
    ///
    /// # Errors
    /// If no session knows the ReplicaSet, or the deadline has passed.
    async fn attempt(
        &self,
        caller: &Caller,
        subject: &ReplicaSetName,
        attempt: DecisionAttempt,
    ) -> Result<String, Status>;

    /// Runs `read` outside the threads that serve sessions, within the server's deadline. `None` if the input exceeds the limit of a decision,
    /// or a session has just ended.
    ///
    /// # Errors
    /// If the cluster is not known, or the deadline has passed.
    async fn read(
        &self,
        caller: &Caller,
        subject: &ReplicaSetName,
        read: SurroundingsReader,
    ) -> Result<Option<String>, Status>;
}

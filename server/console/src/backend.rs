//! The server that the console shows, as the console asks it.

use std::{fmt, net::SocketAddr, pin::Pin, sync::Arc};

use decree::v1;
use http::{Extensions, HeaderMap};
use server_core::{Interrupted, Surroundings, Timestamp};
use tokio_stream::Stream;
use tonic::Status;

/// Who sends a request, as the server left it among the extensions of a call.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Extensions);

/// A ReplicaSet by its name, in a cluster by uid or name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSetName {
    /// The cluster; empty where there is only one.
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A session, with what its summary does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionUsage {
    /// The session.
    pub summary: v1::SessionSummary,
    /// Who opened it, as a policy names them.
    pub identity: Option<String>,
    /// About how many bytes it holds.
    pub bytes: usize,
    /// How many ReplicaSets are quarantined.
    pub quarantined: usize,
    /// How many ReplicaSets are queued.
    pub queued: usize,
}

/// Why a stream has to end; it comes when the server drains, or when the caller may look no more.
pub type StreamEnd = Pin<Box<dyn Future<Output = Status> + Send>>;

/// Decisions as they are made.
pub type DecisionStream =
    Pin<Box<dyn Stream<Item = Result<v1::WatchDecisionsResponse, Status>> + Send>>;

/// Computes a JSON text from what a decision on a ReplicaSet reads, as long as the second argument returns true. `None` where the
/// ReplicaSet is not known.
pub type DecisionAttempt = Arc<
    dyn Fn(&Surroundings, &dyn Fn() -> bool) -> Result<Option<String>, Interrupted> + Send + Sync,
>;

/// Computes a JSON text from what decisions on a ReplicaSet read, in each session of its cluster.
pub type SurroundingsReader = Box<dyn FnOnce(&[Surroundings]) -> String + Send>;

/// The server behind the console. Its answers are those of `InspectionService` to the same caller, and what they do not say yet.
#[tonic::async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Finds out who sends a request, by its headers and the address of its peer.
    ///
    /// # Errors
    /// If they may not call `method`, or the server drains.
    async fn authorize(
        &self,
        method: &str,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<Caller, Status>;

    /// Follows whether a caller may look, until what is returned is dropped.
    fn follow(&self, caller: &Caller) -> StreamEnd;

    /// Returns the server's time.
    fn now(&self) -> Timestamp;

    /// Answers as the method of the same name.
    ///
    /// # Errors
    /// As the method.
    async fn list_replica_sets(
        &self,
        caller: &Caller,
        request: v1::ListReplicaSetsRequest,
    ) -> Result<v1::ListReplicaSetsResponse, Status>;

    /// Answers as the method of the same name.
    ///
    /// # Errors
    /// As the method.
    async fn get_replica_set(
        &self,
        caller: &Caller,
        request: v1::GetReplicaSetRequest,
    ) -> Result<v1::GetReplicaSetResponse, Status>;

    /// Answers as the method of the same name.
    ///
    /// # Errors
    /// As the method.
    async fn watch_decisions(
        &self,
        caller: &Caller,
        request: v1::WatchDecisionsRequest,
    ) -> Result<DecisionStream, Status>;

    /// Answers as the method of the same name.
    async fn list_sessions(&self, caller: &Caller) -> Vec<v1::SessionSummary>;

    /// Answers as the method of the same name.
    ///
    /// # Errors
    /// As the method.
    async fn list_differences(
        &self,
        caller: &Caller,
        request: v1::ListDifferencesRequest,
    ) -> Result<v1::ListDifferencesResponse, Status>;

    /// Answers as the method of the same name, within the server's deadline.
    ///
    /// # Errors
    /// As the method.
    async fn simulate(
        &self,
        caller: &Caller,
        request: v1::SimulateRequest,
    ) -> Result<v1::SimulateResponse, Status>;

    /// Answers as the method of the same name, within the server's deadline.
    ///
    /// # Errors
    /// As the method.
    async fn simulate_cluster(
        &self,
        caller: &Caller,
        request: v1::SimulateClusterRequest,
    ) -> Result<v1::SimulateClusterResponse, Status>;

    /// Returns the sessions that the caller may see, with what they use.
    async fn usage(&self, caller: &Caller) -> Vec<SessionUsage>;

    /// Computes something beside the threads that serve sessions, within the server's deadline, in the session that knows the ReplicaSet.
    ///
    /// # Errors
    /// If no session knows the ReplicaSet, or the deadline has passed.
    async fn attempt(
        &self,
        caller: &Caller,
        subject: &ReplicaSetName,
        attempt: DecisionAttempt,
    ) -> Result<String, Status>;

    /// Computes something beside the threads that serve sessions, within the server's deadline. `None` where more is around the ReplicaSet
    /// than a decision is made from, or a session has just ended.
    ///
    /// # Errors
    /// If its cluster is not known, or the deadline has passed.
    async fn read(
        &self,
        caller: &Caller,
        subject: &ReplicaSetName,
        read: SurroundingsReader,
    ) -> Result<Option<String>, Status>;
}

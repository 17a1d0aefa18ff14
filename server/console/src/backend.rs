//! The interface between the console and its server.

use std::{collections::BTreeMap, fmt, net::SocketAddr, pin::Pin, sync::Arc};

use decree::v1::{self, inspection_service_server::InspectionService};
use http::{Extensions, HeaderMap};
use server_core::{Interrupted, Surroundings, Timestamp};
use tokio_stream::Stream;
use tonic::{Request, Status, metadata::MetadataMap};

/// The caller of a request: the extensions that the server would add to a gRPC call.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Extensions);

impl Caller {
    /// A request of this caller.
    pub(crate) fn ask<T>(&self, message: T) -> Request<T> {
        Request::from_parts(MetadataMap::new(), self.0.clone(), message)
    }
}

/// A session with data that its summary does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionUsage {
    /// The session.
    pub summary: v1::SessionSummary,
    /// The identity that opened the session, as a policy writes it.
    pub identity: Option<String>,
    /// The number of quarantined ReplicaSets.
    pub quarantined: usize,
}

/// The nodes with active pods of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNodes {
    /// The number of active pods by the name of the node.
    pub pods: BTreeMap<Arc<str>, u32>,
    /// Whether all sessions of the cluster have answered.
    pub is_complete: bool,
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

/// The server of the console: `InspectionService` in the same process, and data that the service does not have.
#[tonic::async_trait]
pub trait Backend: InspectionService<WatchDecisionsStream = DecisionStream> + fmt::Debug {
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

    /// The answer of the RPC with the same name, within the server's deadline.
    ///
    /// # Errors
    /// The errors of the RPC.
    async fn simulate(
        &self,
        caller: &Caller,
        request: v1::SimulateRequest,
    ) -> Result<v1::SimulateResponse, Status>;

    /// The nodes of a cluster, by its uid or name.
    ///
    /// # Errors
    /// If the caller may see no such cluster, or several.
    async fn nodes(&self, caller: &Caller, cluster: &str) -> Result<KnownNodes, Status>;

    /// The sessions that the caller may see, with their usage.
    fn usage(&self, caller: &Caller) -> Vec<SessionUsage>;

    /// Runs `attempt` outside the threads that serve sessions, within the server's deadline, for the session that knows the ReplicaSet.
    ///
    /// # Errors
    /// If no session knows the ReplicaSet, the input exceeds the limit of a decision, or the deadline has passed.
    async fn attempt(
        &self,
        caller: &Caller,
        subject: &v1::GetReplicaSetRequest,
        attempt: DecisionAttempt,
    ) -> Result<String, Status>;
}

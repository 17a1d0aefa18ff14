//! `DecisionService`: sessions, and the two unary calls that answer from the same core.

use std::sync::Arc;

use bytes::Bytes;
use decree::v1::{self, decision_service_server::DecisionService};
use http::Extensions;
use prost::Message;
use runtime::process::lower_priority;
use server_core::{Interrupted, Surroundings};
use server_session::{
    OutgoingFrame,
    wire::{Fault, Violation, encode},
};
use tokio::{task::spawn_blocking, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::{
    access::Caller,
    deadline::{self, Until},
    decide::{Asked, decide},
    error::{Limit, Refusal},
    fair_queue::Permit,
    inspection::find,
    peer::Peer,
    places::Rank,
    session::{self, Arrival, SessionHandle},
    shared::Shared,
    shares::Owner,
};

/// Serves `DecisionService`.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl DecisionService for Decisions {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    /// Is not reached: [`crate::reconcile`] serves the method.
    async fn reconcile(
        &self,
        _: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        Err(elsewhere())
    }

    /// Is not reached, as [`Self::reconcile`].
    async fn decide(
        &self,
        _: Request<v1::DecideRequest>,
    ) -> Result<Response<v1::DecideResponse>, Status> {
        Err(elsewhere())
    }

    /// Is not reached, as [`Self::reconcile`].
    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<v1::SimulateResponse>, Status> {
        Err(elsewhere())
    }

    async fn renew_session(
        &self,
        request: Request<v1::RenewSessionRequest>,
    ) -> Result<Response<v1::RenewSessionResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let expires = self
            .0
            .access
            .renew(&caller, &request.get_ref().session_id)?;
        let expire_time = expires.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 });
        Ok(Response::new(v1::RenewSessionResponse { expire_time }))
    }
}

/// Returns the status of a method that [`crate::reconcile`] serves.
fn elsewhere() -> Status {
    let message = "the method is served elsewhere".to_owned();
    let code = Code::Unimplemented;
    Refusal::Transport { code, message }.into()
}

// === impl Decisions ===

impl Decisions {
    /// Opens a session on a stream of frames.
    pub(crate) fn open(
        &self,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<ReceiverStream<Result<OutgoingFrame, Status>>>, Status> {
        self.0.check_draining()?;
        let deadline =
            deadline::asked(request.metadata().as_ref()).map(|asked| Instant::now() + asked);
        let caller = Caller::of(request.extensions());
        let peer = Peer::of(request.extensions());
        let place = peer.take(&self.0.pending_sessions, Rank::Settled);
        let place = place.map_err(|_| self.0.pending_refusal())?;
        let arrival = Arrival {
            peer,
            caller,
            place,
            deadline,
        };
        let frames = session::open(&self.0, request.into_inner(), arrival);
        Ok(Response::new(ReceiverStream::new(frames)))
    }

    /// Serves `Decide`.
    pub(crate) async fn decide_bytes(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        self.0.check_draining()?;
        let (_, mut extensions, message) = request.into_parts();
        let asked = extensions.remove::<Asked>().unwrap_or(Asked(message));
        let limits = self.0.config.limits.clone();
        let permit = self.permit(&Caller::of(&extensions)).await;
        let computed = self.beside(permit, self.until(&extensions), move |go_on| {
            let decision = Some(encode::decision(decide(asked, &limits, go_on)?));
            Ok(v1::DecideResponse { decision }.encode_to_vec().into())
        });
        Ok(Response::new(computed.await?))
    }

    /// Serves `Simulate`.
    pub(crate) async fn simulate_bytes(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        self.0.check_draining()?;
        let (_, extensions, message) = request.into_parts();
        let request = v1::SimulateRequest::decode(message).map_err(Refusal::from)?;
        let until = self.until(&extensions);
        let caller = Caller::of(&extensions);
        let response = self.imagine(caller, request, until).await?;
        Ok(Response::new(response))
    }

    fn until(&self, extensions: &Extensions) -> Instant {
        let until = extensions.get::<Until>().map(|until| until.0);
        until.unwrap_or_else(|| Instant::now() + self.0.config.deadline)
    }

    /// Waits for the permission to compute, and to hold what that takes. Those who ask for much take turns with those who ask for little.
    pub(crate) async fn permit(&self, caller: &Caller) -> Permit {
        self.0.decides.peer(Owner::of(caller)).enter().await
    }

    /// Computes something beside the threads that serve sessions, and with what they leave of the processor; a panic becomes a refusal.
    /// It ends when nobody waits for it any more.
    pub(crate) async fn beside<T: Send + 'static>(
        &self,
        permit: Permit,
        until: Instant,
        compute: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let wanted = CancellationToken::new();
        let _waiting = wanted.clone().drop_guard();
        let computed = spawn_blocking(move || {
            let _permit = permit;
            lower_priority();
            compute(&|| !wanted.is_cancelled() && Instant::now() < until)
        });
        computed.await.unwrap_or_else(|_| {
            self.0.metrics.panics.inc();
            Err(Refusal::Panicked)
        })
    }

    /// Returns the decision that would be made with another number of replicas.
    pub(crate) async fn imagine(
        &self,
        caller: Caller,
        request: v1::SimulateRequest,
        until: Instant,
    ) -> Result<Bytes, Refusal> {
        let v1::SimulateRequest {
            cluster,
            namespace,
            name,
            replicas,
        } = request;
        if let Some(replicas @ ..0) = replicas {
            let description = format!("{replicas} must be 0 or more");
            return Err(Refusal::field(Violation::new(
                "replicas",
                Fault::Range,
                description,
            )));
        }
        for found in find(&self.0, &caller, &cluster, &namespace, &name)? {
            let permit = self.permit(&caller).await;
            let around = self.surroundings(&found.handle, &namespace, &name).await?;
            let decided = self.beside(permit, until, move |go_on| {
                let decided = around.decide(replicas, go_on);
                let decided = decided.map_err(|Interrupted| Refusal::DeadlineExceeded)?;
                Ok(decided.map(|decision| {
                    let decision = Some(encode::decision(decision));
                    v1::SimulateResponse { decision }.encode_to_vec().into()
                }))
            });
            if let Some(response) = decided.await? {
                return Ok(response);
            }
        }
        Err(Refusal::ReplicaSetUnknown { namespace, name })
    }

    /// Copies out of a session what a decision reads.
    pub(crate) async fn surroundings(
        &self,
        session: &SessionHandle,
        namespace: &str,
        name: &str,
    ) -> Result<Surroundings, Refusal> {
        let max = self.0.config.limits.decide_objects_max;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let around = session.ask(move |session, now| {
            let around = session.surroundings(now, &namespace, &name, max);
            // Too many are freed here, beside the threads that serve sessions.
            (around.objects() <= max).then_some(around)
        });
        let what = Limit::DecideObjects;
        around.await?.ok_or(Refusal::Exhausted { what, max })
    }
}

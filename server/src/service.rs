//! `DecisionService`: sessions, and two unary calls that use the same core.

use std::sync::Arc;

use bytes::Bytes;
use decree_api::v1;
use decree_core::{Costs, Surroundings, SurroundingsCopy};
use http::Extensions;
use prost::Message;
use server_session::wire::{Fault, encode};
use service::admission::{
    Permit,
    deadline::{self, CallDeadline},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use self::decision_service::decision_service_server::DecisionService;
pub(crate) use self::decision_service::decision_service_server::DecisionServiceServer;
use crate::{
    access::Caller,
    decide::{costs, decide},
    error::Refusal,
    peer::ConnectionPeer,
    questions::{ask_first, stale_view},
    session::{self, Arrival, Frames},
    shared::Shared,
    visible::find,
};

#[expect(
    clippy::default_constructed_unit_structs,
    clippy::too_many_lines,
    unreachable_pub,
    unused_qualifications,
    reason = "it is generated"
)]
mod decision_service {
    tonic::include_proto!("decree.v1.DecisionService");
}

/// The field `costs` of `SimulateRequest`.
const COSTS: u32 = 6;

/// A `SimulateRequest` without its costs.
#[derive(Message)]
struct Simulation {
    #[prost(string, tag = "1")]
    cluster: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(int32, optional, tag = "4")]
    replicas: Option<i32>,
    #[prost(string, tag = "5")]
    shard: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Decisions(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl DecisionService for Decisions {
    type ReconcileStream = Frames;

    async fn reconcile(
        &self,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        self.0.check_draining()?;
        let deadline =
            deadline::requested(request.metadata().as_ref()).map(|asked| Instant::now() + asked);
        let caller = Caller::of(request.extensions());
        let peer = ConnectionPeer::of(request.extensions());
        let slot = peer.take(&self.0.pending_sessions, 1)?;
        let arrival = Arrival {
            peer,
            caller,
            slot,
            deadline,
        };
        let frames = session::open(&self.0, request.into_inner(), arrival);
        Ok(Response::new(frames))
    }

    async fn decide(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.0.check_draining()?;
        let (_, extensions, message) = request.into_parts();
        let limits = self.0.config.limits.clone();
        let permit = self.permit(&Caller::of(&extensions)).await;
        let computed = self.in_background(permit, self.until(&extensions), move |go_on| {
            let decision = Some(encode::decision(decide(&message, &limits, go_on)?));
            Ok(v1::DecideResponse { decision }.encode_to_vec().into())
        });
        Ok(Response::new(computed.await?))
    }

    async fn simulate(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.0.check_draining()?;
        let (_, extensions, message) = request.into_parts();
        let request = Simulation::decode(&*message).map_err(Refusal::from)?;
        let until = self.until(&extensions);
        let subject = v1::GetReplicaSetRequest {
            cluster: request.cluster,
            namespace: request.namespace,
            name: request.name,
            shard: request.shard,
        };
        let max = self.0.config.limits.decide_objects_max;
        let costs = move || costs(&message, COSTS, max);
        let (caller, assumed) = (Caller::of(&extensions), (request.replicas, costs));
        let answered = self.simulate_for(&caller, &subject, assumed, until, |it| {
            it.encode_to_vec().into()
        });
        Ok(Response::new(answered.await?))
    }

    async fn renew_session(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let (_, extensions, message) = request.into_parts();
        let request = v1::RenewSessionRequest::decode(message).map_err(Refusal::from)?;
        if request.session_id.is_empty() {
            return Err(Refusal::field("session_id", Fault::Required, "is empty").into());
        }
        let caller = Caller::of(&extensions);
        let expires = self.0.access.renew(&caller, &request.session_id)?;
        let expire_time = expires.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 });
        let response = v1::RenewSessionResponse { expire_time };
        Ok(Response::new(response.encode_to_vec().into()))
    }
}

impl Decisions {
    pub(crate) fn server(shared: &Arc<Shared>) -> DecisionServiceServer<Self> {
        let max = shared.config.limits.frame_bytes_max;
        DecisionServiceServer::new(Self(Arc::clone(shared)))
            .max_decoding_message_size(max)
            .max_encoding_message_size(max)
    }

    /// The deadline of a call.
    pub(crate) fn until(&self, extensions: &Extensions) -> Instant {
        let until = extensions.get::<CallDeadline>().map(|until| until.0);
        until.unwrap_or_else(|| Instant::now() + self.0.config.deadline)
    }

    /// Waits for a permit for the processor time and memory of a computation. Owners alternate, regardless of their number of requests.
    pub(crate) async fn permit(&self, caller: &Caller) -> Permit {
        self.0.decides.peer(caller.owner()).enter().await
    }

    /// Computes in the background. A panic becomes a refusal. The computation stops when nobody waits for it.
    pub(crate) async fn in_background<T: Send + 'static>(
        &self,
        permit: Permit,
        until: Instant,
        compute: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let wanted = CancellationToken::new();
        let _waiting = wanted.clone().drop_guard();
        let computed = self.0.background.spawn(move || {
            let _permit = permit;
            compute(&|| !wanted.is_cancelled() && Instant::now() < until)
        });
        computed.await.unwrap_or_else(|_| {
            self.0.metrics.panics.inc();
            Err(Refusal::Panicked)
        })
    }

    /// Decides for a number of replicas and costs of pods. The costs are read, and `answer` runs, beside the decision, outside the threads
    /// that serve sessions.
    pub(crate) async fn simulate_for<T: Send + 'static>(
        &self,
        caller: &Caller,
        subject: &v1::GetReplicaSetRequest,
        (replicas, costs): (
            Option<i32>,
            impl FnOnce() -> Result<Costs, Refusal> + Send + 'static,
        ),
        until: Instant,
        answer: fn(v1::SimulateResponse) -> T,
    ) -> Result<T, Refusal> {
        if let Some(replicas @ ..0) = replicas {
            let description = format!("{replicas} must be 0 or more");
            return Err(Refusal::field("replicas", Fault::Range, description));
        }
        let answered = self.about(
            caller,
            subject,
            until,
            move |mut around, stale_view, go_on| {
                let costs = costs()?;
                if !costs.is_empty() {
                    around.give_costs(costs);
                }
                let decided = around.decide(replicas, go_on)?;
                Ok(decided.map(|decision| {
                    answer(v1::SimulateResponse {
                        decision: Some(encode::decision(decision)),
                        stale_view,
                    })
                }))
            },
        );
        answered.await
    }

    /// Computes from the input of a decision on a ReplicaSet, outside the threads that serve sessions. `compute` also gets the view that
    /// the input comes from, if it is stale.
    pub(crate) async fn about<T: Send + 'static>(
        &self,
        caller: &Caller,
        subject: &v1::GetReplicaSetRequest,
        until: Instant,
        compute: impl FnOnce(
            Surroundings,
            Option<v1::StaleView>,
            &dyn Fn() -> bool,
        ) -> Result<Option<T>, Refusal>
        + Send
        + 'static,
    ) -> Result<T, Refusal> {
        let sessions = find(&self.0, caller, subject)?;
        let permit = self.permit(caller).await;
        let max = self.0.config.limits.decide_objects_max;
        let mut copy = SurroundingsCopy::new(&subject.namespace, &subject.name, max);
        let copied = ask_first(sessions, caller, move |session, now| {
            let around = copy.step(now, session.controller())?;
            Some((!around.replica_sets().is_empty()).then_some(around))
        });
        let unknown = || Refusal::unknown(subject.clone());
        let (session, around) = copied.await?.ok_or_else(unknown)?;
        let stale_view = stale_view(&self.0, &session, false);
        let computed = self.in_background(permit, until, move |go_on| {
            if around.objects() > max {
                return Err(Refusal::exhausted("objects of a decision", max));
            }
            compute(around, stale_view, go_on)
        });
        computed.await?.ok_or_else(unknown)
    }
}

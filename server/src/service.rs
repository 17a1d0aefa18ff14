//! `DecisionService`: sessions, and the two unary calls that answer from the same core.

use std::sync::Arc;

use bytes::Bytes;
use decree::v1::{self, decision_service_server::DecisionService};
use server_core::{Config, Decision, Pod, ReplicaSet};
use server_session::wire::{Fault, Violation, decode, encode};
use tokio::{task::spawn_blocking, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::{
    access::Caller,
    clock, deadline,
    error::Refusal,
    inspection::find,
    peer::Peer,
    places::Rank,
    session::{self, Arrival},
    shared::Shared,
};

/// Serves `DecisionService`.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(pub(crate) Arc<Shared>);

/// What one `Decide` is about, read and checked.
struct Question {
    now: server_core::Timestamp,
    config: Config,
    replica_set: (Arc<str>, Arc<str>),
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
}

#[tonic::async_trait]
impl DecisionService for Decisions {
    type ReconcileStream = ReceiverStream<Result<v1::ReconcileResponse, Status>>;

    /// Is not reached: [`crate::reconcile`] serves the method.
    async fn reconcile(
        &self,
        _: Request<Streaming<v1::ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let message = "sessions are served frame by frame".to_owned();
        let code = Code::Unimplemented;
        Err(Refusal::Transport { code, message }.into())
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

    async fn decide(
        &self,
        request: Request<v1::DecideRequest>,
    ) -> Result<Response<v1::DecideResponse>, Status> {
        self.0.check_draining()?;
        let decision = encode::decision(self.compute(request.into_inner()).await?);
        Ok(Response::new(v1::DecideResponse {
            decision: Some(decision),
        }))
    }

    async fn simulate(
        &self,
        request: Request<v1::SimulateRequest>,
    ) -> Result<Response<v1::SimulateResponse>, Status> {
        self.0.check_draining()?;
        let (_, extensions, request) = request.into_parts();
        let decision = self.imagine(Caller::of(&extensions), request).await?;
        Ok(Response::new(v1::SimulateResponse {
            decision: Some(decision),
        }))
    }
}

// === impl Decisions ===

impl Decisions {
    /// Opens a session on a stream of frames.
    pub(crate) fn open(
        &self,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<ReceiverStream<Result<v1::ReconcileResponse, Status>>>, Status> {
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

    /// Decides beside the threads that serve sessions; a panic becomes a refusal.
    async fn compute(&self, request: v1::DecideRequest) -> Result<Decision, Refusal> {
        let permit = Arc::clone(&self.0.decides).acquire_owned().await;
        let permit = permit.map_err(|_| self.0.drain_refusal())?;
        let limits = self.0.config.limits.clone();
        let decided = spawn_blocking(move || {
            let _permit = permit;
            let Question {
                now,
                config,
                replica_set: (namespace, name),
                replica_sets,
                pods,
            } = read(request, limits.operations_in_flight_max)?;
            let key = (namespace.as_ref(), name.as_ref());
            let decision = server_core::decide(now, config, key, replica_sets, pods);
            decision.ok_or_else(|| Refusal::ReplicaSetUnknown {
                namespace: namespace.to_string(),
                name: name.to_string(),
            })
        });
        decided.await.unwrap_or_else(|_| {
            self.0.metrics.panics.inc();
            Err(Refusal::Panicked)
        })
    }

    async fn imagine(
        &self,
        caller: Caller,
        request: v1::SimulateRequest,
    ) -> Result<v1::Decision, Refusal> {
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
            let (namespace, name) = (namespace.clone(), name.clone());
            let decision = found
                .handle
                .ask(move |session, now| session.simulate(now, &namespace, &name, replicas));
            if let Some(decision) = decision.await? {
                return Ok(decision);
            }
        }
        Err(Refusal::ReplicaSetUnknown { namespace, name })
    }
}

/// Reads a `Decide`; what is wrong with any of its objects is wrong with the request.
fn read(request: v1::DecideRequest, operations_in_flight_max: usize) -> Result<Question, Refusal> {
    let v1::DecideRequest {
        replica_set,
        other_replica_sets,
        pods,
        now,
        options,
    } = request;
    let mut violations = Vec::new();
    let mut keep = |parent: &str, mut found: Vec<Violation>| {
        found = found
            .into_iter()
            .map(|violation| violation.within(parent))
            .collect();
        violations.append(&mut found);
    };
    let subject = replica_set
        .ok_or_else(|| vec![Violation::new("", Fault::Required, "is absent")])
        .and_then(|set| decode::replica_set(&set))
        .map_err(|found| keep("replica_set", found))
        .ok();
    let others = other_replica_sets
        .into_iter()
        .enumerate()
        .filter_map(|(place, set)| {
            decode::replica_set(&set)
                .map_err(|found| keep(&format!("other_replica_sets[{place}]"), found))
                .ok()
        });
    let mut replica_sets: Vec<_> = others.collect();
    let pods = pods.into_iter().enumerate().filter_map(|(place, pod)| {
        decode::pod(&pod)
            .map_err(|found| keep(&format!("pods[{place}]"), found))
            .ok()
    });
    let pods: Vec<_> = pods.collect();
    let now = decode::timestamp("now", now.as_ref())
        .map(|now| now.unwrap_or_else(clock::now))
        .map_err(|violation| violations.push(violation));
    let base = Config {
        operations_in_flight_max,
        ..Config::default()
    };
    let config =
        decode::options(options.as_ref(), base).map_err(|mut found| violations.append(&mut found));
    let (Some(subject), Ok(now), Ok(config), true) = (subject, now, config, violations.is_empty())
    else {
        return Err(Refusal::invalid(violations));
    };
    let replica_set = (
        Arc::clone(&subject.key.namespace),
        Arc::clone(&subject.key.name),
    );
    replica_sets.push(subject);
    Ok(Question {
        now,
        config,
        replica_set,
        replica_sets,
        pods,
    })
}

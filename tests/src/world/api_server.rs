//! The calls of an agent, with their delays and their faults.

use std::time::Duration;

use agent_core::api::{self, Call, CallId, CreatePod, Reply, Request};
use agent_fake::{ApiError, DeleteOptions, Kind, Object};
use decree_agent::cluster::fake::calls;
use decree_api::v1;
use serde_json::{Value, json};

use super::{
    boundaries::{Moment, Party},
    happening::Happening,
    state::World,
};
use crate::{
    actors::CREATES,
    facts::{Cause, Fact},
    mutants::Mutant,
    workloads::{BYSTANDER, NAMESPACE},
};

impl World {
    pub(super) fn send_call(&mut self, life: u64, call: Call) {
        let leads = self.leadership.leads(life, self.now());
        if !leads && !self.is_mutant(Mutant::IgnoreLeaseLoss) {
            // The process is ending, so it would only report an answer.
            return;
        }
        let actor = self.agents.get(&life);
        let session = actor.and_then(|actor| actor.agent.session_id().map(str::to_owned));
        let cause = self.ledger.cause(life, &call.request);
        if let Some(cause) = cause.clone() {
            let creates = self.ledger.note_call(life, call.id, &cause);
            self.facts.push(Fact::WriteBegan {
                cause,
                session,
                creates,
                epochs: self.leadership.epochs(life, self.now()),
            });
        }
        let mut delay = self.rng.delay(self.chaos.call_max);
        let late = self.rng.chance(self.chaos.be_late);
        if late {
            let text = "context deadline exceeded";
            let result = Err(api::ApiError::no_answer(text));
            self.schedule.after(
                delay,
                Happening::Reply {
                    life,
                    id: call.id,
                    result,
                },
            );
            self.ledger.doubtful_writes |= cause.is_some();
            delay += if let Request::CreatePod(create) = &call.request {
                self.ledger.note_unknown(create);
                self.lateness_of_create(delay)
            } else {
                self.rng.delay(4 * self.chaos.call_max)
            };
        }
        let arrival = Happening::CallArrives {
            life,
            call,
            cause,
            answered: late,
        };
        self.schedule.after(delay, arrival);
    }

    /// Draws the delay of the effect of a create: up to the last possible moment, and often exactly that.
    fn lateness_of_create(&mut self, delay: Duration) -> Duration {
        let mut latest = CREATES.timeout + CREATES.margin;
        // The margin also covers the clocks, and the measuring clock may be the faster one.
        latest -= latest * u32::from(self.chaos.clock_drift) / 1_000_000;
        if self.mutant == Some(Mutant::IgnoreTimeout) {
            latest *= 3;
        }
        let left = latest.saturating_sub(delay);
        if self.rng.chance(500) {
            left
        } else {
            self.rng.delay(left)
        }
    }

    pub(super) fn call_arrives(
        &mut self,
        life: u64,
        call: Call,
        cause: Option<Cause>,
        answered: bool,
    ) {
        let dead = !self.agents.contains_key(&life);
        if dead && self.rng.chance(self.chaos.lose_calls) {
            return;
        }
        self.ledger.doubtful_writes |= dead && cause.is_some();
        if dead
            && !answered
            && let Request::CreatePod(create) = &call.request
        {
            // Nobody waits for its answer, so the create may take effect at the last moment.
            self.ledger.note_unknown(create);
            let lateness = self.lateness_of_create(self.chaos.call_max);
            let arrival = Happening::CallArrives {
                life,
                call,
                cause,
                answered: true,
            };
            return self.schedule.after(lateness, arrival);
        }
        if self.rng.chance(self.chaos.refuse) {
            let refusals = [
                ApiError::new(500, "InternalError", "etcdserver: leader changed"),
                ApiError::new(503, "ServiceUnavailable", "not able to handle it now"),
                ApiError::too_many_requests(1),
            ];
            let result = Err(calls::refused(self.rng.pick(&refusals).clone()));
            self.answer(life, call.id, result, answered);
            return;
        }
        let lost = self.rng.chance(self.chaos.lose_reply);
        if let Request::CreatePod(create) = &call.request
            && lost
        {
            self.ledger.note_unknown(create);
        }
        let known = self.ledger.ours.len();
        let verb = call.request.verb();
        let result = self.execute(call.request, cause.clone());
        let created = self.ledger.ours.len() > known;
        if let (true, Ok(Reply::Pod(pod))) = ((dead || answered || lost) && created, &result) {
            self.ledger.unannounced.insert(pod.uid.clone());
        }
        self.pass(verb, Moment::Committed, Party::Life(life));
        self.ledger.doubtful_writes |= lost && cause.is_some();
        let unknown = [
            ApiError::timeout(),
            ApiError::new(500, "InternalError", "etcdserver: request timed out"),
        ];
        let result = if lost {
            Err(calls::refused(self.rng.pick(&unknown).clone()))
        } else {
            result
        };
        self.answer(life, call.id, result, answered);
    }

    fn answer(
        &mut self,
        life: u64,
        id: CallId,
        result: Result<Reply, api::ApiError>,
        answered: bool,
    ) {
        if !answered {
            let delay = self.rng.delay(self.chaos.call_max);
            self.schedule
                .after(delay, Happening::Reply { life, id, result });
        }
    }

    fn execute(&mut self, request: Request, cause: Option<Cause>) -> Result<Reply, api::ApiError> {
        let before = self.cluster.version();
        let is_witnessed = self.is_witnessed || self.malice.is_some();
        let witnessed = is_witnessed.then(|| self.witnessed(&request));
        let adopts = matches!(request, Request::AdoptPod { .. });
        let result = match request {
            Request::CreatePod(create) => self.create_pod(&create, cause),
            Request::DeletePod {
                pod,
                resource_version,
            } => self.delete_pod(&pod, resource_version, cause),
            // A patch that changes nothing is answered with the pod as it is.
            Request::AdoptPod { pod, .. } if self.occurs(self.chaos.orphan) => {
                let (namespace, name) = (pod.namespace, pod.name);
                calls::call(&mut self.cluster, Request::ReadPod { namespace, name })
            }
            Request::AdoptPod { .. }
            | Request::ReleasePod { .. }
            | Request::AdvisePod { .. }
            | Request::WriteStatus(_)
            | Request::ReadPod { .. }
            | Request::ReadReplicaSet { .. } => calls::call(&mut self.cluster, request),
        };
        self.ledger.adopted += usize::from(adopts && result.is_ok());
        let took_effect = self.cluster.version() > before;
        self.ledger.writes += u64::from(took_effect);
        if let Some((request, before)) = witnessed {
            self.facts.push(Fact::Called {
                request,
                before,
                took_effect,
            });
        }
        result
    }

    /// A call, and its pod before the call.
    fn witnessed(&self, request: &Request) -> (Box<Request>, Option<Box<Object>>) {
        let pod = match request {
            Request::DeletePod { pod, .. }
            | Request::AdoptPod { pod, .. }
            | Request::ReleasePod { pod, .. }
            | Request::AdvisePod { pod, .. } => {
                self.cluster.peek(Kind::Pod, &pod.namespace, &pod.name)
            }
            Request::CreatePod(_)
            | Request::WriteStatus(_)
            | Request::ReadPod { .. }
            | Request::ReadReplicaSet { .. } => None,
        };
        (Box::new(request.clone()), pod.cloned().map(Box::new))
    }

    fn create_pod(
        &mut self,
        create: &CreatePod,
        cause: Option<Cause>,
    ) -> Result<Reply, api::ApiError> {
        let mut pod = calls::new_pod(create)?;
        let replay = self.mutate_create(&mut pod);
        self.relabel_new(&mut pod);
        let created = self.cluster.create(pod);
        self.note_created(&created, cause.as_ref());
        if let Ok(pod) = &created {
            self.end_new(pod);
        }
        if let Some(replay) = replay {
            let replayed = self.cluster.create(replay);
            self.note_created(&replayed, cause.as_ref());
        }
        let created = created.map_err(calls::refused)?;
        calls::reply(&self.mutate_created(created))
    }

    fn note_created(&mut self, created: &Result<Object, ApiError>, cause: Option<&Cause>) {
        if let (Ok(pod), Some(cause)) = (created, cause) {
            *self.ledger.created.entry(cause.clone()).or_default() += 1;
            self.ledger.ours.insert(uid(pod), cause.clone());
            self.ledger.note_name(pod);
            let (_, desired) = self.ledger.wanted_since(&cause.set, 0);
            let now = self.now();
            let creates = &mut self.ledger.creates_paid;
            creates.note_created(now, &cause.set, desired, pod);
            self.facts.push(Fact::PodCreated {
                cause: cause.clone(),
                pod: pod.clone(),
            });
        }
    }

    fn delete_pod(
        &mut self,
        pod: &v1::ObjectRef,
        resource_version: Option<String>,
        cause: Option<Cause>,
    ) -> Result<Reply, api::ApiError> {
        let v1::ObjectRef {
            namespace,
            name,
            uid: chosen,
        } = pod;
        let (mut name, mut chosen) = (name.as_str(), chosen.clone());
        let mut options = DeleteOptions {
            uid: Some(chosen.clone()),
            resource_version,
            ..DeleteOptions::default()
        };
        if self.mutant == Some(Mutant::DropUidPrecondition) {
            options.uid = None;
        }
        if self.mutant == Some(Mutant::DeleteBystanders) {
            let bystander = self.cluster.peek(Kind::Pod, namespace, BYSTANDER);
            chosen = bystander.map(uid).unwrap_or_default();
            (options.uid, name) = (None, BYSTANDER);
        }
        let neighbour = self.neighbour(name);
        if let Some(neighbour) = &neighbour {
            (options.uid, name) = (None, neighbour);
        }
        let before = self.cluster.peek(Kind::Pod, namespace, name).cloned();
        let deletion = self.cluster.delete(Kind::Pod, namespace, name, &options);
        let deletion = deletion.map_err(calls::refused)?;
        if let (Some(before), Some(cause)) = (before, cause) {
            self.ledger.deleted.insert(chosen.clone());
            self.ledger.creates_paid.note_deleted(&chosen);
            self.facts.push(Fact::PodDeleted {
                cause,
                chosen,
                before,
            });
        }
        calls::deleted(&deletion)
    }

    /// Lets webhooks change a pod before its creation.
    pub(super) fn relabel_new(&mut self, pod: &mut Value) {
        if self.occurs(self.chaos.relabel) {
            pod["metadata"]["labels"] = Value::Null;
        }
        if self.occurs(self.chaos.orphan) {
            pod["metadata"]["ownerReferences"] = Value::Null;
        }
    }

    /// Ends a pod that was just created.
    pub(super) fn end_new(&mut self, pod: &Object) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if self.occurs(self.chaos.reject) {
            let failed = self
                .cluster
                .set_pod_status(NAMESPACE, name, &json!({"phase": "Failed"}));
            failed.expect("it is there");
        } else if self.occurs(self.chaos.remove) {
            let removed = self.cluster.remove_pod_now(NAMESPACE, name);
            removed.expect("it is there");
        }
    }

    /// Draws nothing if the chance is zero, so that worlds without the fault do not change.
    pub(super) fn occurs(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.rng.chance(per_mille)
    }
}

fn uid(object: &Object) -> String {
    object["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

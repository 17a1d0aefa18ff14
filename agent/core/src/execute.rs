//! All batches under way: many ReplicaSets at a time, one batch each, and a bound on the calls in flight.
//!
//! Ready operations of different ReplicaSets take turns, so a large one does not hold up a small one (`turns`).

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::Duration,
};

use decree_api::v1::{self, NotStartedCause, batch::Action};

use jiff::Timestamp;

use self::{
    advice::Advice,
    batch::{ActiveBatch, unstarted},
    creates::{CreateLimits, Unsettled},
    guard::{Guard, operation_count},
    operation::{PodWrite, Stage, Step, read_replica_set},
    turns::{Turns, Weight},
};
use crate::{
    api::{Answer, Call, CallId, Request, display},
    budget::{self, Budget, Scope, Verb},
    pace::after,
    refusal::{Refusal, Rule},
    report::{Refused, Report},
    view::{View, pods, template},
};

/// How long a watch may take to show a write of unknown effect that took effect at the last moment. The write counts for the rules until
/// then.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);
/// The most memory of batches in flight, in bytes. 50,000 operations of an honest server take less, apart from statuses with huge
/// conditions, which then come one after the other.
const BYTES_IN_FLIGHT_MAX: usize = 64 << 20;

/// The batches and their calls. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batches {
    /// The most calls in flight, at least one.
    pub(crate) calls_max: usize,
    active: BTreeMap<u64, ActiveBatch>,
    served: HashSet<String>,
    turns: Turns,
    calls: HashMap<CallId, CallContext>,
    follow_ups: VecDeque<Call>,
    /// The outcomes that wait for the server.
    pub(crate) outcomes: VecDeque<v1::Outcome>,
    reports: VecDeque<Report>,
    pub(crate) unsettled: Unsettled,
    pub(crate) budget: Budget,
    advice: Advice,
    /// When the next advice may start, if its pace alone holds it back.
    pub(crate) paced_until: Option<Timestamp>,
    call_last: u64,
    /// The number of operations without an outcome.
    pub(crate) operations: usize,
    /// The approximate memory of the batches in flight.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct CallContext {
    batch: u64,
    /// The [key](pods::key) of the ReplicaSet of the call.
    owner: String,
    weight: Weight,
    purpose: Purpose,
}

#[derive(Clone, Debug)]
enum Purpose {
    Recheck,
    Operation(u32, Stage),
}

impl Batches {
    pub(crate) fn new(
        calls_max: usize,
        creates: CreateLimits,
        budget: budget::BudgetConfig,
    ) -> Self {
        Self {
            calls_max: calls_max.max(1),
            unsettled: Unsettled::new(creates),
            budget: Budget::new(budget),
            ..Self::default()
        }
    }

    /// Takes a batch that passed the guard, or answers NOT_STARTED if its ReplicaSet has a batch in flight or there is no memory for it.
    pub(crate) fn handle_batch(&mut self, batch: v1::Batch) {
        let active = ActiveBatch::new(batch);
        let bytes = self.bytes.saturating_add(active.bytes);
        let refused = if self.bytes > 0 && bytes > BYTES_IN_FLIGHT_MAX {
            Some("the batches in flight take too much memory".to_owned())
        } else if !self.served.insert(active.owner.uid.clone()) {
            let owner = display(&active.owner);
            Some(format!("replica set {owner} has a batch in flight"))
        } else {
            None
        };
        if let Some(message) = refused {
            let refusal = Refusal::new(Rule::Limit, message);
            return self.refuse(&active.batch, &refusal);
        }
        self.bytes = bytes;
        let id = active.batch.id;
        let note = notes::of_limited(&active.batch);
        self.reports.extend(note.map(Report::Noted));
        self.operations += active.total as usize;
        self.active.insert(id, active);
        self.settle(id);
    }

    /// Answers every operation of a batch with NOT_STARTED.
    pub(crate) fn refuse(&mut self, batch: &v1::Batch, refusal: &Refusal) {
        let operations = operation_count(batch);
        let owner = batch.replica_set.clone().unwrap_or_default();
        self.note_refused(&owner, refusal, operations);
        for operation in 0..operations {
            self.push_outcome(v1::Outcome {
                batch_id: batch.id,
                operation: u32::try_from(operation).unwrap_or(u32::MAX),
                outcome: Some(unstarted(refusal.cause, &refusal.message)),
            });
        }
    }

    /// Takes the answer to a call. The view learns of it even if its batch was abandoned.
    pub(crate) fn handle_reply(
        &mut self,
        now: Timestamp,
        view: &mut View,
        id: CallId,
        answer: Answer,
    ) {
        let Some(context) = self.calls.remove(&id) else {
            return;
        };
        self.turns.note_answer(context.weight);
        let batch = context.batch;
        match context.purpose {
            Purpose::Recheck => {
                view.absorb(&answer);
                if let Some(active) = self.active.get_mut(&batch) {
                    let outcomes = active.handle_recheck(answer);
                    self.push_outcomes(outcomes);
                }
            }
            Purpose::Operation(operation, stage) => {
                let end = after(self.unsettled.end(now), SHOWN_WITHIN);
                stage.note_answer(view, &context.owner, &answer, end);
                if let Stage::Write(PodWrite::Advise, pod) = &stage {
                    self.advice.note_answer(pod, &answer);
                    self.reports.extend(advice::failed(pod, &answer));
                }
                self.unsettled
                    .handle_answer(now, (batch, operation), &stage, &answer);
                let Some(active) = self.active.get(&batch) else {
                    return;
                };
                let change = stage
                    .pod_change()
                    .map(|(verb, pod)| (verb, pod.name.clone()));
                let step = stage.handle_answer(&active.owner, answer);
                if let (Some((verb, pod)), Step::Finish(outcome)) = (change, &step) {
                    let note = notes::of_end(&active.owner, verb, &pod, outcome);
                    self.reports.extend(note.map(Report::Noted));
                }
                self.follow(batch, operation, step);
            }
        }
        self.settle(batch);
    }

    /// Starts no further operation. Operations that have not begun get NOT_STARTED; operations that have begun run to their end.
    pub(crate) fn stop(&mut self, cause: NotStartedCause, text: &str) {
        let active = self.active.values_mut();
        let outcomes: Vec<_> = active.flat_map(|active| active.stop(cause, text)).collect();
        self.push_outcomes(outcomes);
        for id in self.active.keys().copied().collect::<Vec<_>>() {
            self.settle(id);
        }
    }

    /// Forgets all batches after the end of their session. Calls in flight stay until they are answered.
    pub(crate) fn abandon(&mut self) {
        for call in self.follow_ups.drain(..) {
            if let Some(context) = self.calls.remove(&call.id) {
                self.turns.note_answer(context.weight);
            }
        }
        self.active.clear();
        self.served.clear();
        self.turns.clear();
        self.outcomes.clear();
        (self.operations, self.bytes) = (0, 0);
    }

    /// The next call to make, checked against the guard at this moment.
    pub(crate) fn poll_call(
        &mut self,
        now: Timestamp,
        view: &mut View,
        guard: &Guard,
    ) -> Option<Call> {
        if let Some(call) = self.follow_ups.pop_front() {
            return Some(call);
        }
        let advises = guard.config.mode == v1::Mode::Advise;
        while self.calls.len() < self.calls_max {
            self.paced_until = self.advice.paced_until(now).filter(|_| advises);
            if self.paced_until.is_some() {
                return None;
            }
            let batch = self.turns.pop(self.calls_max)?;
            let Some(active) = self.active.get_mut(&batch) else {
                continue;
            };
            active.queued = false;
            if active.take_recheck(view, guard) {
                let request = read_replica_set(&active.owner);
                let call = self.note_call(batch, Purpose::Recheck, request);
                self.settle(batch);
                return Some(call);
            }
            let Some(operation) = active.ready.pop_front() else {
                continue;
            };
            let owner = active.owner.clone();
            let key = pods::key(&owner.namespace, &owner.uid);
            view.pods.forget_expired(now, &key);
            let started = active.start(operation, view, guard);
            let admitted = started.and_then(|step| {
                if let Step::Call(stage, _) = &step {
                    if let Stage::Write(PodWrite::Advise, pod) = stage {
                        self.advice.admit(now, pod)?;
                    }
                    admit(&mut self.budget, now, view, &owner, stage)?;
                    stage.note_start(view, &key);
                }
                Ok(step)
            });
            let step = admitted.unwrap_or_else(|refusal| {
                self.note_refused(&owner, &refusal, 1);
                Step::Finish(unstarted(refusal.cause, &refusal.message))
            });
            self.follow(batch, operation, step);
            self.settle(batch);
            if let Some(call) = self.follow_ups.pop_front() {
                return Some(call);
            }
        }
        None
    }

    /// The number for a call that belongs to no batch.
    pub(crate) const fn next_call(&mut self) -> CallId {
        self.call_last += 1;
        CallId(self.call_last)
    }

    /// Moves the reports to the end of `reports`.
    pub(crate) fn drain_reports(&mut self, reports: &mut VecDeque<Report>) {
        let changes = self.budget.changes.drain(..).map(Box::new);
        reports.extend(changes.map(Report::Budget));
        reports.extend(self.budget.notes.drain(..).map(Report::Noted));
        reports.append(&mut self.reports);
    }

    pub(crate) fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// The pod that a call in flight creates, or reads after its create failed.
    pub(crate) fn created(&self, call: CallId) -> Option<&v1::ObjectRef> {
        let Purpose::Operation(_, stage) = &self.calls.get(&call)?.purpose else {
            return None;
        };
        let (verb, pod) = stage.pod_change()?;
        (verb == Verb::Create).then_some(pod)
    }

    fn note_refused(&mut self, owner: &v1::ObjectRef, refusal: &Refusal, operations: usize) {
        if let Some(rule) = refusal.rule {
            self.reports.push_back(Report::Refused(Refused {
                replica_set: owner.clone(),
                rule,
                message: refusal.message.clone(),
                operations,
            }));
        }
    }

    fn follow(&mut self, batch: u64, operation: u32, step: Step) {
        match step {
            Step::Call(stage, request) => {
                let purpose = Purpose::Operation(operation, stage);
                let call = self.note_call(batch, purpose, request);
                self.follow_ups.push_back(call);
            }
            Step::Finish(outcome) => {
                if let Some(active) = self.active.get_mut(&batch) {
                    let outcomes = active.finish(operation, outcome);
                    self.push_outcomes(outcomes);
                }
            }
        }
    }

    /// Queues outcomes of batches in flight. Each outcome frees a place under `max_operations_in_flight`.
    fn push_outcomes(&mut self, outcomes: Vec<v1::Outcome>) {
        self.operations -= outcomes.len();
        outcomes.into_iter().for_each(|it| self.push_outcome(it));
    }

    fn push_outcome(&mut self, outcome: v1::Outcome) {
        self.reports.push_back(Report::finished(&outcome));
        self.outcomes.push_back(outcome);
    }

    fn note_call(&mut self, batch: u64, purpose: Purpose, request: Request) -> Call {
        let id = self.next_call();
        let active = self.active.get(&batch);
        let weight = active.map_or(Weight::Neutral, ActiveBatch::weight);
        self.turns.note_call(weight);
        let context = CallContext {
            batch,
            owner: active
                .map(|active| pods::key(&active.owner.namespace, &active.owner.uid))
                .unwrap_or_default(),
            weight,
            purpose,
        };
        self.calls.insert(id, context);
        Call { id, request }
    }

    /// Removes a batch that is over, or queues it for its next turn.
    fn settle(&mut self, batch: u64) {
        let Some(active) = self.active.get_mut(&batch) else {
            return;
        };
        if active.is_over() {
            self.served.remove(&active.owner.uid);
            self.bytes -= active.bytes;
            self.active.remove(&batch);
        } else if active.is_ready() && !active.queued {
            active.queued = true;
            self.turns.push(batch, active.weight());
        }
    }
}

impl ActiveBatch {
    fn weight(&self) -> Weight {
        let counts_pods = matches!(
            &self.batch.action,
            Some(Action::Create(_) | Action::Delete(_))
        );
        Weight::of(self.total, counts_pods)
    }
}

/// Counts an operation that is about to start, if it creates or deletes a pod.
fn admit(
    budget: &mut Budget,
    now: Timestamp,
    view: &View,
    owner: &v1::ObjectRef,
    stage: &Stage,
) -> Result<(), Refusal> {
    let Some((verb, pod)) = stage.pod_change() else {
        return Ok(());
    };
    let key = pods::key(&owner.namespace, &owner.uid);
    // The preference of the owner bounds the deletion of ended pods.
    if verb == Verb::Delete && view.pods.kept_with(&key, &pod.uid).is_some() {
        return Ok(());
    }
    budget.admit(now, verb, owner, |scope| match (verb, scope) {
        (Verb::Create, Scope::ReplicaSet) => {
            let set = view.templates.newest(&owner.uid);
            set.map_or(0, template::replicas)
        }
        (Verb::Create, Scope::Cluster) => view.templates.desired(),
        (Verb::Delete, Scope::ReplicaSet) => view.pods.counts(&key).active,
        (Verb::Delete, Scope::Cluster) => view.pods.of_replica_sets,
    })
}

mod advice;
mod batch;
pub mod creates;
pub(crate) mod guard;
mod notes;
mod operation;
mod rules;
#[cfg(test)]
mod tests;
mod turns;

//! One batch under way: which operation may start, and when the batch is over.
//!
//! **Invariant:** each operation gets exactly one outcome, also one that was refused or never started.

use std::{collections::VecDeque, ops::Range};

use decree_api::v1::{
    self, FailureClass, NotStartedCause, batch::Action, outcome::Outcome as OutcomeKind,
};

use prost::Message;

use super::{
    guard::{Guard, operation_count},
    operation::{PodWrite, Stage, Step, failed, failure, start_status},
    rules,
};
use crate::{
    api::{Answer, CreatePod, Reply, Request, display},
    preferences::surges,
    refusal::{Refusal, Rule},
    view::View,
};

/// The memory of an entry of a list of a batch in bytes, without its texts.
const ENTRY_BYTES: usize = 200;

/// The rounds of creates: 1, 2, 4, 8… operations. A round begins when the whole round before has succeeded (spec 6.2).
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    total: u32,
    begun: u32,
    round_next: u32,
    awaited: u32,
}

/// A batch and its state. Owned by [`Batches`](super::Batches).
#[derive(Clone, Debug)]
pub(crate) struct ActiveBatch {
    pub(crate) batch: v1::Batch,
    pub(crate) owner: v1::ObjectRef,
    pub(crate) total: u32,
    /// Whether the batch waits for its turn.
    pub(crate) queued: bool,
    ramp: SlowStart,
    /// The operations that may start now.
    pub(crate) ready: VecDeque<u32>,
    recheck: Recheck,
    /// The number of operations without an outcome.
    open: u32,
    /// The approximate memory of the batch.
    pub(crate) bytes: usize,
}

/// Whether the ReplicaSet was read live before the first adoption (spec 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recheck {
    Wanted,
    Asked,
    Over,
}

impl SlowStart {
    /// Creates a ramp over `total` operations, `initial` of them in the first round.
    pub(crate) fn new(total: u32, initial: u32) -> Self {
        Self {
            total,
            begun: 0,
            round_next: initial.max(1),
            awaited: 0,
        }
    }

    /// The operations of the next round; `None` while a round is under way, after a failure and at the end.
    pub(crate) fn next_round(&mut self) -> Option<Range<u32>> {
        if self.awaited > 0 || self.begun == self.total {
            return None;
        }
        let size = self.round_next.min(self.total - self.begun);
        let round = self.begun..self.begun + size;
        self.begun = round.end;
        self.awaited = size;
        self.round_next = size.saturating_mul(2);
        Some(round)
    }

    pub(crate) const fn succeeded(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }

    /// Begins no further round. Returns, once, the operations that will never start.
    pub(crate) const fn stop(&mut self) -> Range<u32> {
        let rest = self.begun..self.total;
        self.begun = self.total;
        rest
    }
}

impl ActiveBatch {
    pub(crate) fn new(batch: v1::Batch) -> Self {
        let total = u32::try_from(operation_count(&batch)).unwrap_or(u32::MAX);
        let initial = match &batch.action {
            Some(Action::Create(create)) => u32::try_from(create.slow_start_initial).unwrap_or(1),
            Some(
                Action::Delete(_) | Action::Claim(_) | Action::WriteStatus(_) | Action::Advise(_),
            )
            | None => total,
        };
        let mut active = Self {
            owner: batch.replica_set.clone().unwrap_or_default(),
            total,
            queued: false,
            ramp: SlowStart::new(total, initial),
            ready: VecDeque::new(),
            recheck: Recheck::Over,
            open: total,
            bytes: bytes(&batch),
            batch,
        };
        active.begin_round();
        let adopts = active.adopt_count();
        if adopts > 0 {
            active.ready.drain(..adopts as usize);
            active.recheck = Recheck::Wanted;
        }
        active
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.open == 0
    }

    /// True if a call of this batch waits to be made.
    pub(crate) fn is_ready(&self) -> bool {
        self.recheck == Recheck::Wanted || !self.ready.is_empty()
    }

    /// True, once, if the ReplicaSet must be read live first. If no adoption would start, no read is needed: a request against the rules
    /// costs the cluster nothing.
    pub(crate) fn take_recheck(&mut self, view: &View, guard: &Guard) -> bool {
        if self.recheck != Recheck::Wanted {
            return false;
        }
        let starts = |operation| {
            let step = self.start(operation, view, guard);
            matches!(step, Ok(Step::Call(..)))
        };
        let adopts = 0..self.adopt_count();
        if adopts.clone().any(starts) {
            self.recheck = Recheck::Asked;
            return true;
        }
        self.recheck = Recheck::Over;
        self.ready.extend(adopts);
        false
    }

    /// Checks an operation against the guard and the rules, and returns its first step.
    ///
    /// # Errors
    /// The reason why the operation does not start.
    pub(crate) fn start(
        &self,
        operation: u32,
        view: &View,
        guard: &Guard,
    ) -> Result<Step, Refusal> {
        let set = guard.check_replica_set(view, &self.batch)?;
        let unless_lenient = |checked: Result<(), Refusal>| {
            if guard.config.lenient {
                Ok(())
            } else {
                checked
            }
        };
        let index = operation as usize;
        match &self.batch.action {
            None => Ok(failed(FailureClass::Invalid, "the batch has no action")),
            Some(Action::Create(create)) => {
                let checked = rules::check_create(view, set, create, &create.names[index]);
                unless_lenient(checked)?;
                self.start_create(create, index, view, guard)
            }
            Some(Action::Delete(delete)) => {
                let victim = &delete.victims[index];
                let pod = victim.pod.clone().unwrap_or_default();
                if !rules::check_ownership(view, &self.owner, &pod, false)? {
                    return Ok(absent(&pod));
                }
                unless_lenient(rules::check_delete(view, set, &pod))?;
                let version = &victim.resource_version;
                let request = Request::DeletePod {
                    pod: pod.clone(),
                    resource_version: (!version.is_empty()).then(|| version.clone()),
                };
                Ok(Step::Call(Stage::Write(PodWrite::Delete, pod), request))
            }
            Some(Action::Claim(claim)) => {
                let adopts = index < claim.adopts.len();
                let mut pods = claim.adopts.iter().chain(&claim.releases);
                let pod = pods.nth(index).cloned().unwrap_or_default();
                if !rules::check_ownership(view, &self.owner, &pod, adopts)? {
                    return Ok(absent(&pod));
                }
                unless_lenient(rules::check_claimed(view, set, &pod, adopts))?;
                Ok(self.start_claim(pod, adopts, guard))
            }
            Some(Action::Advise(advise)) => {
                let v1::Advice { pod, cost } = &advise.advices[index];
                let pod = pod.clone().unwrap_or_default();
                if !rules::check_ownership(view, &self.owner, &pod, false)? {
                    return Ok(absent(&pod));
                }
                unless_lenient(rules::check_advice(view, set, &pod, *cost))?;
                Ok(start_advice(view, pod, *cost))
            }
            Some(Action::WriteStatus(write)) => {
                let status = write.status.clone().unwrap_or_default();
                unless_lenient(rules::check_status(view, set, &status))?;
                let decided_on =
                    Some(set).filter(|set| set.resource_version == self.batch.replica_set_version);
                Ok(start_status(&self.owner, status, decided_on))
            }
        }
    }

    /// Takes the live ReplicaSet. Returns the outcomes of the adoptions if none may start.
    pub(crate) fn handle_recheck(&mut self, answer: Answer) -> Vec<v1::Outcome> {
        if std::mem::replace(&mut self.recheck, Recheck::Over) != Recheck::Asked {
            return Vec::new();
        }
        let adopts = 0..self.adopt_count();
        let Err(text) = self.check_live(answer) else {
            self.ready.extend(adopts);
            return Vec::new();
        };
        let failed = OutcomeKind::Failed(failure(FailureClass::OwnerChanged, text));
        let mut outcomes = Vec::new();
        for operation in adopts {
            outcomes.extend(self.finish(operation, failed.clone()));
        }
        outcomes
    }

    fn adopt_count(&self) -> u32 {
        match &self.batch.action {
            Some(Action::Claim(claim)) => u32::try_from(claim.adopts.len()).unwrap_or(u32::MAX),
            Some(
                Action::Create(_) | Action::Delete(_) | Action::WriteStatus(_) | Action::Advise(_),
            )
            | None => 0,
        }
    }

    /// Takes an operation's end. Returns its outcome first, then the outcomes of operations that will never start.
    pub(crate) fn finish(&mut self, operation: u32, outcome: OutcomeKind) -> Vec<v1::Outcome> {
        let rest = match &outcome {
            OutcomeKind::Done(_) => {
                self.ramp.succeeded();
                self.begin_round();
                0..0
            }
            OutcomeKind::Failed(_) | OutcomeKind::NotStarted(_) => self.ramp.stop(),
        };
        let stops_round = matches!(&outcome, OutcomeKind::Failed(failed)
            if failed.failure_class() == FailureClass::NamespaceTerminating);
        let skipped = if stops_round {
            std::mem::take(&mut self.ready)
        } else {
            VecDeque::new()
        };
        let mut outcomes = vec![self.record(operation, outcome)];
        for operation in skipped.into_iter().chain(rest) {
            let text = "slow start stopped at a failure";
            outcomes.push(self.record(operation, unstarted(NotStartedCause::SlowStart, text)));
        }
        outcomes
    }

    /// Ends all operations that have not started.
    pub(crate) fn stop(&mut self, cause: NotStartedCause, text: &str) -> Vec<v1::Outcome> {
        let held = match std::mem::replace(&mut self.recheck, Recheck::Over) {
            Recheck::Wanted | Recheck::Asked => 0..self.adopt_count(),
            Recheck::Over => 0..0,
        };
        let ready = std::mem::take(&mut self.ready).into_iter();
        let operations = ready.chain(held).chain(self.ramp.stop());
        operations
            .map(|operation| self.record(operation, unstarted(cause, text)))
            .collect()
    }

    fn begin_round(&mut self) {
        if let Some(round) = self.ramp.next_round() {
            self.ready.extend(round);
        }
    }

    fn record(&mut self, operation: u32, outcome: OutcomeKind) -> v1::Outcome {
        self.open -= 1;
        v1::Outcome {
            batch_id: self.batch.id,
            operation,
            outcome: Some(outcome),
        }
    }

    fn start_create(
        &self,
        create: &v1::Create,
        index: usize,
        view: &View,
        guard: &Guard,
    ) -> Result<Step, Refusal> {
        let (uid, generation) = (&self.owner.uid, self.batch.generation);
        let Some(template) = view.templates.of_generation(uid, generation) else {
            let owner = display(&self.owner);
            let message = format!(
                "replica set {owner}: the template of generation {generation} is not at hand"
            );
            return Err(Refusal::new(Rule::Template, message));
        };
        let name = create.names[index].clone();
        Ok(match template {
            Ok(template) => {
                let request = Request::CreatePod(CreatePod {
                    namespace: self.owner.namespace.clone(),
                    name: name.clone(),
                    generate_name: create.generate_name.clone(),
                    controller: guard.controller_reference(&self.owner),
                    template,
                    responds: view.templates.newest(uid).is_some_and(surges),
                    timeout: guard.config.creates.timeout,
                });
                let pod = v1::ObjectRef {
                    namespace: self.owner.namespace.clone(),
                    name,
                    uid: String::new(),
                };
                Step::Call(Stage::Write(PodWrite::Create, pod), request)
            }
            Err(why) => failed(FailureClass::Invalid, why),
        })
    }

    fn start_claim(&self, pod: v1::ObjectRef, adopts: bool, guard: &Guard) -> Step {
        let (write, request) = if adopts {
            let request = Request::AdoptPod {
                pod: pod.clone(),
                controller: guard.controller_reference(&self.owner),
            };
            (PodWrite::Adopt, request)
        } else {
            let request = Request::ReleasePod {
                pod: pod.clone(),
                owner_uid: self.owner.uid.clone(),
            };
            (PodWrite::Release, request)
        };
        Step::Call(Stage::Write(write, pod), request)
    }

    /// Checks that the live ReplicaSet is the owner, and not being deleted.
    fn check_live(&self, answer: Answer) -> Result<(), String> {
        let owner = &self.owner;
        match answer {
            Ok(Reply::ReplicaSet(live)) if live.projected.uid != owner.uid => Err(format!(
                "original ReplicaSet {} is gone: got uid {}, wanted {}",
                display(owner),
                live.projected.uid,
                owner.uid
            )),
            Ok(Reply::ReplicaSet(live)) if live.projected.deletion_timestamp.is_some() => {
                Err(format!("{} has just been deleted", display(owner)))
            }
            Ok(Reply::ReplicaSet(_)) => Ok(()),
            Err(error) => Err(format!("can't recheck DeletionTimestamp: {error}")),
            Ok(Reply::Pod(_) | Reply::Gone(_)) => Err("can't recheck DeletionTimestamp".into()),
        }
    }
}

fn absent(pod: &v1::ObjectRef) -> Step {
    failed(
        FailureClass::NotFound,
        format!("pod {} does not exist", display(pod)),
    )
}

fn start_advice(view: &View, pod: v1::ObjectRef, cost: i32) -> Step {
    let version = view.pods.get(&pod.uid).and_then(|it| it.version);
    let request = Request::AdvisePod {
        pod: pod.clone(),
        resource_version: version.map_or_else(String::new, |it| it.to_string()),
        cost,
    };
    Step::Call(Stage::Write(PodWrite::Advise, pod), request)
}

/// Returns the approximate memory of a decoded batch, in bytes. An empty entry of a list takes two bytes in a frame, and far more in memory.
fn bytes(batch: &v1::Batch) -> usize {
    let conditions = match &batch.action {
        Some(Action::WriteStatus(write)) => {
            write.status.as_ref().map_or(0, |it| it.conditions.len())
        }
        Some(Action::Create(_) | Action::Delete(_) | Action::Claim(_) | Action::Advise(_))
        | None => 0,
    };
    let entries = operation_count(batch) + batch.reasons.len() + conditions;
    batch.encoded_len() + entries * ENTRY_BYTES
}

pub(crate) fn unstarted(cause: NotStartedCause, text: &str) -> OutcomeKind {
    OutcomeKind::NotStarted(v1::NotStarted {
        cause: cause.into(),
        message: text.to_owned(),
    })
}

#[cfg(test)]
mod tests;

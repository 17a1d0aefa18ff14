//! The execution of batches: the next call, and the outcomes.

use std::collections::{BTreeMap, VecDeque};

use agent_core::{
    api::{ApiError, Call, CallId, ReplicaSet, Reply, Request},
    creates::CreateLimits,
};
use decree::v1::{
    self, FailureClass, NotStartedCause, batch::Action, done, outcome::Outcome as Kind,
};
use jiff::Timestamp;

use super::{
    behaviour::Behaviour,
    operation::{Next, Operation, failed},
};
use crate::rng::Rng;

/// The batches of a session, and their outcomes.
#[derive(Clone, Debug)]
pub(super) struct Work {
    limits: CreateLimits,
    /// The number of the session: results of an older session are dropped.
    session: u64,
    batches: BTreeMap<u64, Batch>,
    calls: BTreeMap<CallId, Running>,
    calls_made: u64,
    /// The waiting outcomes, each with the earliest time for its report.
    outcomes: Vec<(Timestamp, v1::Outcome)>,
    /// The time at which every create of unknown effect has taken effect or never will.
    settled_at: Timestamp,
}

#[derive(Clone, Debug)]
struct Batch {
    owner: v1::ObjectRef,
    generate_name: String,
    waiting: VecDeque<(u32, Operation)>,
    /// The maximum number of concurrent calls. Creates run one by one, which is slower than slow start requires.
    calls_max: usize,
    calls: usize,
}

#[derive(Clone, Debug)]
struct Running {
    session: u64,
    batch: u64,
    index: u32,
    operation: Operation,
}

// === impl Work: what is asked for ===

impl Work {
    pub(super) const fn new(now: Timestamp, limits: CreateLimits) -> Self {
        Self {
            limits,
            session: 0,
            batches: BTreeMap::new(),
            calls: BTreeMap::new(),
            calls_made: 0,
            outcomes: Vec::new(),
            settled_at: now,
        }
    }

    /// Takes a batch that may be executed.
    pub(super) fn begin(&mut self, batch: &v1::Batch, behaviour: &Behaviour) {
        let is_create = matches!(batch.action, Some(Action::Create(_)));
        let calls_max = if is_create { 1 } else { behaviour.calls_max };
        let generate_name = match &batch.action {
            Some(Action::Create(create)) => create.generate_name.clone(),
            Some(Action::Delete(_) | Action::Claim(_) | Action::WriteStatus(_)) | None => {
                String::new()
            }
        };
        let started = Batch {
            owner: batch.replica_set.clone().unwrap_or_default(),
            generate_name,
            waiting: (0..).zip(operations(batch)).collect(),
            calls_max,
            calls: 0,
        };
        self.batches.insert(batch.id, started);
    }

    /// Answers all operations of a batch without starting any.
    pub(super) fn refuse(&mut self, now: Timestamp, batch: &v1::Batch, cause: NotStartedCause) {
        for (index, _) in (0..).zip(operations(batch)) {
            self.report(now, batch.id, index, not_started(cause));
        }
    }

    /// Starts nothing more, and reports the operations that have not started.
    pub(super) fn wind_down(&mut self, now: Timestamp, cause: NotStartedCause) {
        let ids: Vec<_> = self.batches.keys().copied().collect();
        ids.into_iter().for_each(|id| self.cancel(now, id, cause));
    }

    /// Ends the session: drops the results of calls in flight, and discards the calls in `unmade`.
    pub(super) fn abandon(&mut self, unmade: Vec<Call>) {
        for call in unmade {
            self.calls.remove(&call.id);
        }
        self.session += 1;
        self.batches.clear();
        self.outcomes.clear();
    }

    fn cancel(&mut self, now: Timestamp, id: u64, cause: NotStartedCause) {
        let batch = self.batches.get_mut(&id);
        let waiting = batch.map(|batch| std::mem::take(&mut batch.waiting));
        for (index, _) in waiting.into_iter().flatten() {
            self.report(now, id, index, not_started(cause));
        }
    }
}

// === impl Work: calls ===

impl Work {
    /// The next call. Reports operations that cannot start.
    pub(super) fn poll_call(
        &mut self,
        now: Timestamp,
        sets: &BTreeMap<String, ReplicaSet>,
    ) -> Option<Call> {
        loop {
            let mut batches = self.batches.iter_mut();
            let (id, batch) =
                batches.find(|(_, it)| it.calls < it.calls_max && !it.waiting.is_empty())?;
            let (id, (index, operation)) = (*id, batch.waiting.pop_front()?);
            let set = sets.get(&batch.owner.uid);
            match operation.request(&batch.owner, &batch.generate_name, set, self.limits.timeout) {
                Some(request) => {
                    batch.calls += 1;
                    return Some(self.call(id, index, operation, request));
                }
                None => self.report(now, id, index, not_started(NotStartedCause::Guard)),
            }
        }
    }

    pub(super) fn handle_reply(
        &mut self,
        now: Timestamp,
        id: CallId,
        result: Result<Reply, ApiError>,
        behaviour: &Behaviour,
        rng: &mut Rng,
    ) -> Option<Call> {
        let running = self.calls.remove(&id)?;
        let (index, batch_id) = (running.index, running.batch);
        if matches!(running.operation, Operation::Create(_)) && is_unknown(&result) {
            let until = now + self.limits.timeout + self.limits.margin;
            self.settled_at = self.settled_at.max(until);
        }
        let batch = self.batches.get_mut(&batch_id);
        let batch = batch.filter(|_| running.session == self.session)?;
        match running.operation.answered(&batch.owner, result) {
            Next::Call(operation, request) => Some(self.call(batch_id, index, operation, request)),
            Next::Begin(operation) => {
                batch.calls -= 1;
                batch.waiting.push_front((index, operation));
                None
            }
            Next::Report(outcome) => {
                batch.calls -= 1;
                let stops = batch.calls_max == 1 && matches!(outcome, Kind::Failed(_));
                let at = now + rng.delay(behaviour.outcome_delay);
                if !behaviour.withholds(batch_id) {
                    self.report(at, batch_id, index, told(outcome, behaviour, rng));
                }
                if stops {
                    self.cancel(now, batch_id, NotStartedCause::SlowStart);
                }
                None
            }
        }
    }

    fn call(&mut self, batch: u64, index: u32, operation: Operation, request: Request) -> Call {
        self.calls_made += 1;
        let id = CallId(self.calls_made);
        let running = Running {
            session: self.session,
            batch,
            index,
            operation,
        };
        self.calls.insert(id, running);
        Call { id, request }
    }

    /// Whether no call is in flight, and no create may take effect later.
    pub(super) fn is_settled(&self, now: Timestamp) -> bool {
        self.calls.is_empty() && self.settled_at <= now
    }

    /// Whether no work and no report is left.
    pub(super) fn is_done(&self) -> bool {
        self.calls.is_empty() && self.outcomes.is_empty()
    }
}

// === impl Work: outcomes ===

impl Work {
    /// The due outcomes, at most `max`, the latest due first. An outcome whose pod is `held` stays.
    pub(super) fn poll_outcomes(
        &mut self,
        now: Timestamp,
        max: usize,
        held: impl Fn(&str) -> bool,
    ) -> Option<v1::Outcomes> {
        self.outcomes.sort_by_key(|(at, _)| *at);
        let may_leave = |(at, outcome): &(Timestamp, v1::Outcome)| {
            *at <= now && !pod_uid(outcome).is_some_and(&held)
        };
        let mut outcomes = Vec::new();
        while let Some(next) = self.outcomes.iter().position(may_leave)
            && outcomes.len() < max
        {
            outcomes.insert(0, self.outcomes.remove(next).1);
        }
        (!outcomes.is_empty()).then_some(v1::Outcomes { outcomes })
    }

    /// The future deadlines; overdue work waits for its turn.
    pub(super) fn poll_timeouts(&self) -> impl Iterator<Item = Timestamp> {
        let outcomes = self.outcomes.iter().map(|(at, _)| *at);
        outcomes.chain([self.settled_at])
    }

    fn report(&mut self, at: Timestamp, batch_id: u64, operation: u32, outcome: Kind) {
        let outcome = v1::Outcome {
            batch_id,
            operation,
            outcome: Some(outcome),
            ..v1::Outcome::default()
        };
        self.outcomes.push((at, outcome));
    }
}

fn operations(batch: &v1::Batch) -> Vec<Operation> {
    match &batch.action {
        Some(Action::Create(it)) => it.names.iter().cloned().map(Operation::Create).collect(),
        Some(Action::Delete(it)) => {
            let victims = it.victims.iter().cloned();
            victims.map(Operation::Delete).collect()
        }
        Some(Action::Claim(it)) => {
            let adopts = it.adopts.iter().cloned().map(Operation::CheckOwner);
            let releases = it.releases.iter().cloned().map(Operation::Release);
            adopts.chain(releases).collect()
        }
        Some(Action::WriteStatus(it)) => {
            let status = it.status.clone().unwrap_or_default();
            vec![Operation::ReadForStatus(status, 0)]
        }
        None => Vec::new(),
    }
}

/// The uid of the pod in an outcome.
fn pod_uid(outcome: &v1::Outcome) -> Option<&str> {
    match outcome.outcome.as_ref()? {
        Kind::Done(done) => match done.object.as_ref()? {
            done::Object::Pod(pod) => Some(&pod.uid),
            done::Object::ReplicaSet(_) | done::Object::Gone(_) => None,
        },
        Kind::Failed(_) | Kind::NotStarted(_) => None,
    }
}

/// Reduces some successes to the bare fact.
fn told(mut outcome: Kind, behaviour: &Behaviour, rng: &mut Rng) -> Kind {
    if let Kind::Done(done) = &mut outcome
        && rng.chance(behaviour.bare)
    {
        done.object = None::<done::Object>;
        if behaviour.bare_without_version {
            done.resource_version.clear();
        }
    }
    outcome
}

fn is_unknown(result: &Result<Reply, ApiError>) -> bool {
    let class = result.as_ref().err().map(|error| failed(error).class());
    class.is_some_and(|class| class == FailureClass::Timeout)
}

fn not_started(cause: NotStartedCause) -> Kind {
    Kind::NotStarted(v1::NotStarted {
        cause: cause.into(),
        message: "not started".to_owned(),
    })
}

//! The state machine. It takes events and outcomes by `handle_*` and gives batches and reports by `poll_*`. The time is an argument.

mod cluster_change;
mod events;
mod in_flight;
mod inspect;
mod known;
mod memory;
mod nodes;
mod outcomes;
mod stream;
mod surroundings;
mod unconverged;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    cluster_change::{Impact, ImpactWalk, Need, NeedWalk, QuotaLimits},
    inspect::Sizes,
    known::{Deletable, KnownSet},
    memory::keep_within,
    surroundings::{Surroundings, SurroundingsCopy, SurroundingsIndex},
};
use self::{
    in_flight::InFlight,
    stream::{ListWait, Stream},
    unconverged::Unconverged,
};
use crate::{
    batch::{Action, Batch, BatchId},
    config::Config,
    held::{HeldMap, HeldQueue},
    index::{Index, Ledger, NodeId, PodId, SetId, paid},
    object::{ByKind, Kind, ResourceVersion, Span, Timestamp, Uid},
    preferences::Preferences,
    queue::{Priority, Queue},
    reason::{Reason, Rule},
    report::{ControllerReport, ScaleDown},
    sync::{
        self, Next, Plan, SyncResult, SyncStep, advise::IN_FLIGHT_MAX, asking::CostsWanted,
        batch_result::BatchResult, limits::blocking,
    },
};

/// The interval between lists for objects that had no room. Each list reads the whole cluster.
const LISTS_EVERY: Span = Span::seconds(5 * 60);
/// The latest time of a decision, a day before times saturate: a delay would end at once after it, and its sync would never end.
const LATEST: Timestamp = Timestamp(i64::MAX - 86_400 * 1_000_000_000);

/// Decides for one cluster.
///
/// Time never goes back here, since availability is counted forward. A `now` before an earlier `now` counts as the earlier one.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(crate) config: Config,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) reports: HeldQueue<ControllerReport>,
    /// The lists to request from the agent, with the cause.
    requests: BTreeMap<Kind, String>,
    quarantined: HeldMap<SetId, String>,
    /// The ReplicaSets with missing or surplus pods.
    miscounted: Unconverged,
    /// The ReplicaSets with the desired number of pods, of which some are not available.
    unavailable: Unconverged,
    /// The obstacle to the last attempt of each ReplicaSet, until an attempt succeeds.
    obstacles: HeldMap<SetId, Reason>,
    streams: ByKind<Stream>,
    /// Whether the agent shows nodes, and has not shown all of them.
    nodes_awaited: bool,
    /// The nodes whose pods are expected to be evicted, or not any more, since the last decision.
    pub(crate) changed_nodes: BTreeSet<NodeId>,
    /// The kind that must be listed again before the first decision.
    unconfirmed: Option<Kind>,
    /// A list that shows that versions went back: its kind, the version of a write already reported, and its own.
    went_back: Option<(Kind, ResourceVersion, ResourceVersion)>,
    running: HeldMap<SetId, RunningSync>,
    /// The UIDs of ReplicaSets that were deleted while they had batches in flight, even if they came back.
    abandoned: BTreeSet<Uid>,
    in_flight: InFlight,
    /// The syncs that wait for a list after the outcomes of their batch.
    waiting: HeldMap<SetId, ListWait>,
    /// The syncs whose batch has all its outcomes. They continue before other syncs begin.
    answered: HeldQueue<(SetId, BatchResult)>,
    /// The sync whose next batch found no room. No other continues before it.
    without_room: Option<ReadySync>,
    /// When lists may be requested again for objects that had no room in memory.
    lists_at: Timestamp,
    next_batch: u64,
    clock: Timestamp,
}

/// A sync that waits for the outcomes of its batch.
#[derive(Clone, Debug)]
struct RunningSync {
    batch: BatchId,
    step: SyncStep,
}

/// A sync that can continue: from its beginning, or from a step whose batch has all its outcomes.
#[derive(Clone, Debug)]
struct ReadySync {
    set: SetId,
    answered: Option<(SyncStep, BatchResult)>,
}

/// Answers questions about a controller, without changing it.
#[derive(Clone, Copy, Debug)]
pub struct Inspect<'a>(&'a Controller);

impl Controller {
    /// Creates a controller without objects. It decides nothing until the snapshots of both kinds are complete.
    pub fn new(config: Config) -> Self {
        Self {
            index: Index::new(config.names, config.create_back_off),
            nodes_awaited: config.nodes,
            changed_nodes: BTreeSet::new(),
            config,
            queue: Queue::default(),
            reports: HeldQueue::default(),
            requests: BTreeMap::new(),
            quarantined: HeldMap::default(),
            miscounted: Unconverged::default(),
            unavailable: Unconverged::default(),
            obstacles: HeldMap::default(),
            streams: ByKind::default(),
            unconfirmed: None,
            went_back: None,
            running: HeldMap::default(),
            abandoned: BTreeSet::new(),
            in_flight: InFlight::default(),
            waiting: HeldMap::default(),
            answered: HeldQueue::default(),
            without_room: None,
            lists_at: Timestamp(i64::MIN),
            next_batch: 1,
            clock: Timestamp(i64::MIN),
        }
    }

    /// Whether both kinds have been listed.
    pub fn is_synced(&self) -> bool {
        Kind::BOTH.iter().all(|kind| self.is_listed(*kind))
    }

    /// The newest version seen of a kind.
    pub const fn version(&self, kind: Kind) -> Option<ResourceVersion> {
        self.streams.of(kind).seen
    }

    /// The version of the last complete list of a kind that had a version.
    pub const fn last_list(&self, kind: Kind) -> Option<ResourceVersion> {
        self.streams.of(kind).listed
    }

    /// Whether the view is complete: both kinds have been listed, no list is open, and nodes are complete if the agent shows them.
    pub fn is_view_whole(&self) -> bool {
        let mut kinds = Kind::BOTH.iter();
        self.is_synced()
            && self.unconfirmed.is_none()
            && !self.nodes_awaited
            && kinds.all(|kind| self.streams.of(*kind).open_list.is_none())
    }

    /// The list that shows that the versions of the cluster went back, if there is one: its kind, the version that the cluster had reached
    /// before it, and its own version.
    pub const fn went_back(&self) -> Option<(Kind, ResourceVersion, ResourceVersion)> {
        self.went_back
    }

    /// Takes the lost creates of an earlier session of the cluster that ended this long ago, before the first event.
    pub fn inherit(&mut self, now: Timestamp, mut left: Ledger, ago: Span) {
        self.tick(now);
        if self.index.ledger.is_some() {
            left.shift(Span(now.0.saturating_sub(ago.0)));
            left.begin_first_list();
            self.index.ledger = Some(left);
        }
    }

    /// Whether a kind has been listed.
    pub const fn is_listed(&self, kind: Kind) -> bool {
        self.streams.of(kind).is_listed()
    }

    /// Whether a list of a kind is requested and has not begun.
    pub const fn is_list_requested(&self, kind: Kind) -> bool {
        self.streams.of(kind).is_list_requested
    }

    fn tick(&mut self, now: Timestamp) {
        self.clock = self.clock.max(now.min(LATEST));
        self.index.now = self.clock;
        self.queue.now = self.clock;
        self.miscounted.tick(self.clock);
        self.unavailable.tick(self.clock);
    }

    /// Read access to everything known, queued and in flight.
    pub const fn inspect(&self) -> Inspect<'_> {
        Inspect(self)
    }

    /// Requests a list, even if one is requested already.
    fn request_list(&mut self, kind: Kind, cause: &str) {
        self.streams.of_mut(kind).is_list_requested = true;
        self.requests.insert(kind, cause.to_owned());
    }

    /// Requests lists, unless they are open or requested already.
    fn request_lists(&mut self, kinds: BTreeSet<Kind>, cause: &str) {
        for kind in kinds {
            let stream = self.streams.of(kind);
            if !stream.is_list_requested && stream.open_list.is_none() {
                self.request_list(kind, cause);
            }
        }
    }

    /// Advances the time: delayed keys become due, and the controller requests a list if the stream does not show our writes.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.tick(now);
        self.queue.handle_timeout();
        for kind in Kind::BOTH {
            if let Some(cause) = self.streams.of_mut(kind).take_due(self.clock) {
                self.request_list(kind, cause);
            }
        }
        self.request_room_lists();
    }

    /// Requests lists, from time to time, when there is room for objects whose content was forgotten.
    fn request_room_lists(&mut self) {
        if self.index.forgotten() == 0 || self.clock < self.lists_at {
            return;
        }
        let kinds = Kind::BOTH.into_iter();
        let kinds = kinds.filter(|kind| self.index.has_room_again(*kind));
        let kinds: BTreeSet<_> = kinds.collect();
        if !kinds.is_empty() {
            self.lists_at = self.clock.plus(LISTS_EVERY);
            self.request_lists(kinds, "there is memory again for objects that had none");
        }
    }

    /// Returns the next batch to send; `None` if there is nothing to do now.
    ///
    /// [`Self::handle_outcome`] must receive an outcome for each of its operations.
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Batch> {
        self.handle_timeout(now);
        if !self.is_view_whole() {
            return None;
        }
        self.queue_evicted();
        loop {
            let (ready, adoptable) = self.next_ready()?;
            let set = ready.set;
            match self.advance(ready, &adoptable) {
                Next::Send(plan, step) => return self.send(set, plan, step),
                Next::Finished(result) => self.finish(set, result),
            }
        }
    }

    /// Returns the next sync that can continue, and the orphans that its ReplicaSet selects. A sync whose batch finds no room stays first.
    fn next_ready(&mut self) -> Option<(ReadySync, Vec<PodId>)> {
        let due = self.without_room.take().or_else(|| self.next_due())?;
        if due.answered.is_none() {
            self.index.doubt_presumed(due.set);
        }
        self.index.count_evictions(due.set);
        let step = due.answered.as_ref().map(|(step, _)| step);
        let adoptable = if matches!(step, None | Some(SyncStep::Claim(_))) {
            self.index.adoptable(due.set)
        } else {
            Vec::new()
        };
        let set = self.index.set(due.set);
        let operations = sync::operations_max(&self.config, set, &adoptable, step);
        let max = self.config.operations_in_flight_max;
        let of_advice = self.config.advises.then_some(IN_FLIGHT_MAX);
        let max = of_advice.map_or(max, |it| it.min(max));
        if self.in_flight.have_room(operations, max) {
            return Some((due, adoptable));
        }
        self.without_room = Some(due);
        None
    }

    fn next_due(&mut self) -> Option<ReadySync> {
        self.next_answered().or_else(|| {
            let (set, answered) = (self.queue.take()?, None);
            Some(ReadySync { set, answered })
        })
    }

    /// Begins or continues a sync. Skips a ReplicaSet that is gone or quarantined.
    fn advance(&mut self, ready: ReadySync, adoptable: &[PodId]) -> Next {
        let ReadySync { set: id, answered } = ready;
        let now = self.clock;
        let Some(set) = self.index.set_mut(id) else {
            return Next::Finished(SyncResult::default());
        };
        set.note_convergence(now);
        // The controller leaves alone the pods of a ReplicaSet that is being deleted.
        let lacks = set.unconverged_since.is_some() && !set.object.deleting;
        let miscounted = set.surplus() != 0;
        self.miscounted.note(now, id, lacks && miscounted);
        self.unavailable.note(now, id, lacks && !miscounted);
        if self.abandoned.contains(&set.object.key.uid) {
            // The ReplicaSet is back, and its batch is in flight. The last outcome queues the ReplicaSet.
            return Next::Finished(SyncResult::default());
        }
        if let Some(quarantine) = set.quarantine() {
            let (key, detail) = (set.object.key.clone(), quarantine.to_string());
            let known = self.quarantined.insert(id, detail.clone());
            if known.as_ref() != Some(&detail) {
                let report = ControllerReport::Quarantined { key, detail };
                self.reports.push_back(report);
            }
            // Advice is taken away whatever the ReplicaSet selects.
            let preferences = set.object.preferences.as_deref();
            if !self.config.advises || preferences.is_some_and(Preferences::order) {
                return Next::Finished(SyncResult::default());
            }
        } else {
            self.quarantined.remove(&id);
        }
        let (index, config) = (&mut self.index, &self.config);
        sync::advance(index, config, (id, adoptable), answered)
    }

    fn next_answered(&mut self) -> Option<ReadySync> {
        while let Some((set, result)) = self.answered.pop_front() {
            if let Some(sync) = self.running.remove(&set) {
                return Some(ReadySync {
                    set,
                    answered: Some((sync.step, result)),
                });
            }
        }
        None
    }

    fn send(&mut self, id: SetId, plan: Plan, step: SyncStep) -> Option<Batch> {
        let set = self.index.set(id)?;
        let object = &set.object;
        let batch = Batch {
            id: BatchId(self.next_batch),
            key: object.key.clone(),
            generation: object.generation,
            replica_set_version: object.version,
            pods_version: self.streams.of(Kind::Pod).view(),
            action: plan.action,
            reasons: plan.reasons,
        };
        self.next_batch += 1;
        // A replaced pod that has not lasted for a minute is a lost create: the next one may come to a leaving node again.
        if let Action::Delete(victims) = &batch.action
            && set.surplus() > 0
        {
            let asked = batch.reasons.iter().find(|it| it.rule == Rule::CostsAsked);
            let scale_down = ScaleDown {
                key: batch.key.clone(),
                at: self.clock,
                batch: batch.id,
                from: set.counts.active,
                to: set.target(),
                chosen: victims.len(),
                pods: plan.near_cut,
                costs: asked.map_or_else(Box::default, |it| it.detail.as_ref().into()),
            };
            let report = ControllerReport::ScaleDown(Box::new(scale_down));
            self.reports.push_back(report);
            let names = victims.iter().map(|victim| &*victim.pod.name);
            paid::mark_victims(&mut self.index, &batch.key.namespace, names, true);
        } else if let Action::Delete(replaced) = &batch.action {
            let names = replaced.iter().map(|victim| &*victim.pod.name);
            paid::mark_replaced(&mut self.index, &batch.key.namespace, names);
        }
        let sync = RunningSync {
            batch: batch.id,
            step,
        };
        self.running.insert(id, sync);
        self.in_flight.insert(self.clock, id, &batch);
        Some(batch)
    }

    fn finish(&mut self, id: SetId, result: SyncResult) {
        let SyncResult {
            error,
            is_pending,
            requeue_at,
            retry,
            retry_after,
        } = result;
        let now = self.clock;
        let set = self.index.set_mut(id);
        let is_unanswered = set.is_some_and(|set| std::mem::take(&mut set.pace.is_unanswered));
        match retry {
            Some(retry) => {
                let max = self.config.backoff_max;
                let delay = self.queue.retry(id, (retry, retry_after), max);
                if let Some(set) = self.index.set_mut(id).filter(|_| is_unanswered) {
                    set.pace.unanswered_until = now.plus(delay);
                }
            }
            None if is_pending => {}
            None => {
                self.queue.forget(id);
                self.obstacles.remove(&id);
            }
        }
        self.wait_for_limits(id);
        let requeue_after = requeue_at.map(|at| at.since(now).max(Default::default()));
        if let Some(delay) = requeue_after {
            self.queue.add_after(id, delay);
        }
        let costs = self.index.questions.waits_until(id);
        if let Some(until) = costs.filter(|until| *until > now) {
            self.queue.add_after(id, until.since(now));
        }
        if let Some(set) = self.index.set(id) {
            if let Some(until) = set.pace.presumed_until {
                self.queue.add_after(id, until.since(now));
            }
            self.reports.push_back(ControllerReport::Synced {
                key: set.object.key.clone(),
                error,
                requeue_after,
            });
        }
        self.queue.done(id);
    }

    /// Lets a ReplicaSet that may create no pods now wait until it may, and reports that, at most once a minute. After failures, it waits
    /// for its backoff, which can be longer.
    fn wait_for_limits(&mut self, id: SetId) {
        let now = self.clock;
        let mut blocking = blocking(&self.index, &self.config, id);
        let Some(until) = blocking.iter().map(|it| it.until).max() else {
            return;
        };
        let wait = until.since(now);
        if self.queue.failures(id) == 0 || self.queue.due(id).is_none() {
            self.queue.add_after(id, wait);
        }
        // A missing answer has a report of its own, and must not hide the other limits. A wait that the owner prefers needs none.
        let told = [Rule::PodsDoNotLast, Rule::ManyUnassigned];
        blocking.retain(|limit| told.contains(&limit.reason.rule));
        if let Some(limit) = blocking.into_iter().max_by_key(|it| it.until)
            && let Some(set) = self.index.set_mut(id)
            && set.pace.told_until <= now
        {
            set.pace.told_until = limit.until.max(now.plus(Span::seconds(60)));
            let (key, reason) = (set.object.key.clone(), limit.reason);
            let report = ControllerReport::CreatesWait { key, reason, wait };
            self.reports.push_back(report);
        }
    }

    /// Returns the next report, the oldest first. The caller drains the reports after every step.
    pub fn poll_report(&mut self) -> Option<ControllerReport> {
        self.reports.pop_front()
    }

    /// Returns the next kind to request a list of, with the cause. A request ends when a list begins.
    pub fn poll_request(&mut self) -> Option<(Kind, String)> {
        self.requests.pop_first()
    }

    /// Takes the answer to a question for costs, with the reasons for pods without one. Answers to questions that nobody waits for have no effect.
    pub fn handle_costs(
        &mut self,
        now: Timestamp,
        question: u64,
        costs: Vec<(Uid, Result<i32, Box<str>>)>,
    ) {
        self.tick(now);
        if let Some(id) = self.index.questions.answer(now, question, costs) {
            self.queue.add(id, Priority::Live);
        }
    }

    /// Returns the next question for the costs of pods. [`Self::handle_costs`] takes the answer.
    pub fn poll_question(&mut self) -> Option<CostsWanted> {
        self.index.questions.poll()
    }

    /// Returns when [`Self::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let unseen = Kind::BOTH.map(|kind| self.streams.of(kind).due());
        let due = unseen.into_iter().chain([self.queue.next_due()]);
        due.flatten().min()
    }
}

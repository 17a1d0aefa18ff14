//! The one machine: news in by `handle_*`, work out by `poll_*`, time by argument.

mod flights;
mod inspect;

use std::collections::{BTreeMap, VecDeque};

use crate::{
    batch::{Action, Batch, BatchId},
    consistency::Consistency,
    event::Event,
    handlers::{self, Wake},
    index::{Index, PodChange, SetChange, SetId},
    object::{Kind, Pod, ReplicaSet, ResourceVersion, Timestamp},
    queue::{Lane, Queue},
    report::{Reason, Report},
    sync::{End, Flight, Next, Run, Step, Tally},
};

/// What decisions are made by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many creates or deletes one sync may decide; upstream: 500.
    pub burst_replicas: u32,
    /// How many creates slow start begins with; upstream: 1.
    pub slow_start_initial: u32,
    /// Whether deletes carry the version as a further precondition.
    pub delete_by_version: bool,
    /// How many operations may be in flight at once over all ReplicaSets; further batches wait their turn.
    pub operations_in_flight_max: usize,
}

/// Decides for one cluster.
#[derive(Debug)]
pub struct Controller {
    pub(crate) config: Config,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) reports: VecDeque<Report>,
    /// Why ReplicaSets are left alone.
    pub(crate) quarantined: BTreeMap<SetId, String>,
    pub(crate) runs: BTreeMap<SetId, Run>,
    consistency: Consistency,
    pods: Snapshot,
    replica_sets: Snapshot,
    flights: BTreeMap<BatchId, Flight>,
    operations_in_flight: usize,
    /// Runs whose batch is answered.
    answered: VecDeque<(SetId, Tally)>,
    next_batch: u64,
    /// The latest time told; time never goes back here, as availability is counted forward only.
    clock: Timestamp,
}

/// How far the snapshots of a kind are.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    complete: bool,
    /// The number of the snapshot that is open.
    open: Option<u32>,
}

/// How much a controller holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Pods.
    pub pods: usize,
    /// ReplicaSets.
    pub replica_sets: usize,
    /// Batches in flight.
    pub batches_in_flight: usize,
    /// ReplicaSets that are queued (`workqueue_depth`).
    pub queued: usize,
    /// ReplicaSets that are quarantined.
    pub quarantined: usize,
    /// Keys ever added to the queue (`workqueue_adds_total`).
    pub adds: u64,
    /// Delayed adds ever (`workqueue_retries_total`).
    pub retries: u64,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            burst_replicas: 500,
            slow_start_initial: 1,
            delete_by_version: false,
            operations_in_flight_max: 10_000,
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Returns a controller that knows nothing; it decides nothing until a snapshot of both kinds is complete.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            index: Index::default(),
            queue: Queue::default(),
            reports: VecDeque::new(),
            quarantined: BTreeMap::new(),
            runs: BTreeMap::new(),
            consistency: Consistency::default(),
            pods: Snapshot::default(),
            replica_sets: Snapshot::default(),
            flights: BTreeMap::new(),
            operations_in_flight: 0,
            answered: VecDeque::new(),
            next_batch: 1,
            clock: Timestamp(i64::MIN),
        }
    }

    /// Records news. Decides nothing.
    pub fn handle_event(&mut self, now: Timestamp, event: Event) {
        let now = self.tick(now);
        match event {
            Event::SnapshotBegin(kind) => {
                let number = self.index.begin_snapshot();
                self.snapshot(kind).open = Some(number);
            }
            Event::SnapshotEnd { kind, version } => self.end_snapshot(now, kind, version),
            Event::PodApplied(pod) => self.apply_pod(now, pod),
            Event::ReplicaSetApplied(set) => self.apply_set(now, *set),
            Event::PodDeleted {
                namespace,
                name,
                uid,
                version,
            } => {
                let change = self.index.remove_pod(&namespace, &name, &uid, version);
                self.pods_changed(now, Lane::Live, change);
                self.saw(Kind::Pod, version);
            }
            Event::ReplicaSetDeleted { key, version } => {
                if let Some(id) = self.index.remove_set(&key, version) {
                    self.forget_set(id);
                }
                self.saw(Kind::ReplicaSet, version);
            }
            Event::Bookmark { kind, version } => self.saw(kind, Some(version)),
        }
    }

    /// Lets time pass: delayed keys become due, and a stream that does not show our writes is asked for a list.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.tick(now);
        self.queue.handle_timeout(now);
        for kind in self.consistency.overdue(now) {
            let cause = "the stream has not shown a write for 5 minutes".to_owned();
            self.reports.push_back(Report::ResyncNeeded { kind, cause });
        }
    }

    /// Returns the next batch to send, or `None` when there is nothing to do now.
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Batch> {
        let now = self.tick(now);
        self.queue.handle_timeout(now);
        if !self.is_view_whole() {
            return None;
        }
        loop {
            let (id, next) = self.next_step(now)?;
            match next {
                Next::Send(action, reasons, step) => return self.send(id, action, reasons, step),
                Next::Finished(end) => self.finish(now, id, end),
            }
        }
    }

    fn next_step(&mut self, now: Timestamp) -> Option<(SetId, Next)> {
        while let Some((id, tally)) = self.answered.pop_front() {
            if let Some(run) = self.runs.remove(&id) {
                return Some((id, self.resume(now, id, run.step, tally)));
            }
        }
        let room = self
            .config
            .operations_in_flight_max
            .saturating_sub(self.operations_in_flight);
        if self.operations_in_flight > 0 && room < self.config.burst_replicas as usize {
            return None;
        }
        let id = self.queue.take()?;
        Some((id, self.begin(now, id)))
    }

    fn send(
        &mut self,
        id: SetId,
        action: Action,
        reasons: Vec<Reason>,
        step: Step,
    ) -> Option<Batch> {
        let object = &self.index.set(id)?.object;
        let batch = Batch {
            id: BatchId(self.next_batch),
            key: object.key.clone(),
            generation: object.generation,
            replica_set_version: object.version,
            pods_version: self.consistency.view(Kind::Pod),
            action,
            reasons,
        };
        self.next_batch += 1;
        self.runs.insert(
            id,
            Run {
                batch: batch.id,
                step,
            },
        );
        self.launch(id, &batch);
        Some(batch)
    }

    fn finish(&mut self, now: Timestamp, id: SetId, end: End) {
        let End {
            error,
            requeue_after,
            afresh,
            retry_after,
        } = end;
        if error.is_some() || afresh {
            self.queue.retry(now, id, retry_after);
        } else {
            self.queue.forget(id);
        }
        if let Some(delay) = requeue_after {
            self.queue.add_after(now, id, delay);
        }
        if let Some(set) = self.index.set(id) {
            let key = set.object.key.clone();
            self.reports.push_back(Report::Synced {
                key,
                error,
                requeue_after,
            });
        }
        self.queue.done(id);
    }

    /// Returns the next report, oldest first.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns when [`Self::handle_timeout`] is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        [self.queue.next_due(), self.consistency.next_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns whether both kinds are complete.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.pods.complete && self.replica_sets.complete
    }

    /// Returns the newest version seen of a kind.
    #[must_use]
    pub const fn version(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.seen(kind)
    }

    /// Returns whether nothing is missing from the view: both kinds complete, and no list open.
    pub(crate) const fn is_view_whole(&self) -> bool {
        self.is_synced() && self.pods.open.is_none() && self.replica_sets.open.is_none()
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.clock = self.clock.max(now);
        self.clock
    }

    const fn snapshot(&mut self, kind: Kind) -> &mut Snapshot {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
        }
    }

    /// Lists wake by the lane of resyncs, changes by the live lane.
    fn lane_of(&mut self, kind: Kind) -> Lane {
        match self.snapshot(kind).open {
            Some(_) => Lane::Resync,
            None => Lane::Live,
        }
    }

    fn saw(&mut self, kind: Kind, version: Option<ResourceVersion>) {
        if self.snapshot(kind).open.is_none() {
            self.consistency.saw(kind, version);
            self.index.forget_gone(kind, self.consistency.seen(kind));
        }
    }

    fn apply_pod(&mut self, now: Timestamp, pod: Pod) {
        let version = pod.version;
        let lane = self.lane_of(Kind::Pod);
        let changes = self.index.apply_pod(now, pod);
        self.pods_changed(now, lane, changes);
        self.saw(Kind::Pod, version);
    }

    fn apply_set(&mut self, now: Timestamp, set: ReplicaSet) {
        let version = set.version;
        let lane = self.lane_of(Kind::ReplicaSet);
        for change in self.index.apply_set(now, set) {
            match change {
                SetChange::Applied(id) => self.queue.add(id, lane),
                SetChange::Removed(id) => self.forget_set(id),
            }
        }
        self.saw(Kind::ReplicaSet, version);
    }

    /// Completes a list. One that is older than a write of ours is not used: the view stays partial until a newer one is complete.
    fn end_snapshot(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        let Some(number) = self.snapshot(kind).open else {
            return;
        };
        if !self.consistency.covers(kind, version) {
            let cause = "the list is older than a write already reported".to_owned();
            self.reports.push_back(Report::ResyncNeeded { kind, cause });
            return;
        }
        match kind {
            Kind::Pod => {
                let gone = self.index.sweep_pods(number, version);
                self.pods_changed(now, Lane::Resync, gone);
                self.index.forgive_names();
            }
            Kind::ReplicaSet => {
                for id in self.index.sweep_sets(number, version) {
                    self.forget_set(id);
                }
            }
        }
        *self.snapshot(kind) = Snapshot {
            complete: true,
            open: None,
        };
        self.saw(kind, version);
    }

    /// Wakes what changes of pods wake.
    fn pods_changed(
        &mut self,
        now: Timestamp,
        lane: Lane,
        changes: impl IntoIterator<Item = PodChange>,
    ) {
        for change in changes {
            let woken = handlers::pod_changed(&self.index, &change);
            if woken.matches > 1
                && let Some(pod) = &change.new
            {
                let pod = (pod.namespace.clone(), pod.name.clone());
                self.reports.push_back(Report::OrphanMatchesMany {
                    pod,
                    matches: woken.matches,
                });
            }
            for wake in woken.keys {
                match wake {
                    Wake::Now(id) => self.queue.add(id, lane),
                    Wake::After(id, delay) => self.queue.add_after(now, id, delay),
                }
            }
        }
    }

    /// Forgets what was kept for a ReplicaSet that is gone. Its batch in flight still reports.
    fn forget_set(&mut self, id: SetId) {
        self.queue.drop_key(id);
        self.runs.remove(&id);
        self.quarantined.remove(&id);
    }
}

//! What a controller holds, and the changes that news of any sort make to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    in_flight::InFlight,
    lists::{Progress, Unseen, Waiting},
    obstacles::Obstacles,
    unconverged::Unconverged,
};
use crate::{
    batch::BatchId,
    config::Config,
    consistency::Consistency,
    handlers::{self, Enqueue},
    index::{EndedReplica, Index, PodChange, PodNews, SetId},
    object::{Kind, ResourceVersion, Timestamp, Uid},
    queue::{Priority, Queue},
    reason::Reason,
    report::Report,
    sync::{Step, batch_result::BatchResult},
};

/// Decides for one cluster.
///
/// Time never goes back here: a `now` that is earlier than one given before counts as that one, since availability is counted forward.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(crate) config: Config,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) reports: VecDeque<Report>,
    /// The lists that the agent must be asked for, and why.
    pub(super) requests: BTreeMap<Kind, String>,
    /// Why ReplicaSets are left alone.
    pub(crate) quarantined: BTreeMap<SetId, String>,
    /// Those that have too few or too many pods.
    pub(super) miscounted: Unconverged,
    /// Those that have as many as are wanted, of which not all are available.
    pub(super) unavailable: Unconverged,
    /// What held back the last attempts.
    pub(super) obstacles: Obstacles,
    pub(super) consistency: Consistency,
    pub(super) lists: Progress,
    /// The syncs that wait for their batch in flight.
    pub(super) running: BTreeMap<SetId, RunningSync>,
    /// The uids of ReplicaSets that are gone, or were for a while, with batches in flight.
    pub(super) abandoned: BTreeSet<Uid>,
    pub(super) in_flight: InFlight,
    /// The syncs whose batch is answered, and which wait for a list.
    pub(super) waiting: BTreeMap<SetId, Waiting>,
    /// The syncs whose batch is answered, and which go on before others begin.
    pub(super) answered: VecDeque<(SetId, BatchResult)>,
    /// The sync whose next batch is a status that found no room.
    pub(super) status_without_room: Option<ReadySync>,
    /// The syncs whose next batch found no room, in order, with the operations that it may have. Statuses of others pass them.
    pub(super) without_room: VecDeque<(ReadySync, usize)>,
    pub(super) next_batch: u64,
    /// The latest time given.
    pub(super) clock: Timestamp,
}

/// A sync that waits for the outcomes of its batch.
#[derive(Clone, Debug)]
pub(super) struct RunningSync {
    pub(super) batch: BatchId,
    pub(super) step: Step,
}

/// A sync that can go on: from its beginning, or from a step whose batch is answered.
#[derive(Clone, Debug)]
pub(super) struct ReadySync {
    pub(super) set: SetId,
    pub(super) answered: Option<(Step, BatchResult)>,
}

// === impl Controller ===

impl Controller {
    /// Returns a controller that knows nothing; it decides nothing until a snapshot of both kinds is complete.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            index: Index::new(config.names),
            config,
            queue: Queue::default(),
            reports: VecDeque::new(),
            requests: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            miscounted: Unconverged::default(),
            unavailable: Unconverged::default(),
            obstacles: Obstacles::default(),
            consistency: Consistency::default(),
            lists: Progress::default(),
            running: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            in_flight: InFlight::default(),
            waiting: BTreeMap::new(),
            answered: VecDeque::new(),
            status_without_room: None,
            without_room: VecDeque::new(),
            next_batch: 1,
            clock: Timestamp(i64::MIN),
        }
    }

    /// Returns whether both kinds are complete.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.lists.is_synced()
    }

    /// Returns the newest version seen of a kind.
    #[must_use]
    pub const fn version(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.seen(kind)
    }

    /// Returns the version of the last complete list of a kind that had one.
    #[must_use]
    pub const fn last_list(&self, kind: Kind) -> Option<ResourceVersion> {
        self.consistency.last_list(kind)
    }

    /// Returns whether nothing is missing from the view: both kinds complete, and no list open.
    #[must_use]
    pub const fn is_view_whole(&self) -> bool {
        self.lists.is_whole()
    }

    /// Returns whether a list of a kind has been complete.
    #[must_use]
    pub const fn is_listed(&self, kind: Kind) -> bool {
        self.lists.is_listed(kind)
    }

    pub(super) fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.clock = self.clock.max(now);
        self.queue.set_now(self.clock);
        self.miscounted.tick(self.clock);
        self.unavailable.tick(self.clock);
        self.clock
    }

    /// Notes that the stream has shown everything of a kind up to a version. Inside a list that is not so yet.
    pub(super) fn saw(&mut self, now: Timestamp, kind: Kind, version: Option<ResourceVersion>) {
        if let Some(version) = version.filter(|_| self.lists.open(kind).is_none()) {
            self.consistency.saw(now, kind, version);
            self.index.forget_gone(kind, version);
        }
    }

    /// Queues the ReplicaSets that a pod affects as it was shown.
    pub(super) fn pod_applied(&mut self, now: Timestamp, priority: Priority, news: PodNews) {
        match news {
            PodNews::Nothing => {}
            PodNews::Version(owner) => {
                owner
                    .into_iter()
                    .for_each(|id| self.queue.add(id, priority));
            }
            PodNews::Changed(gone, change) => {
                self.pods_changed(now, priority, gone.into_iter().chain([change]));
            }
        }
    }

    /// Queues the ReplicaSets that changes of pods affect.
    pub(super) fn pods_changed(
        &mut self,
        now: Timestamp,
        priority: Priority,
        changes: impl IntoIterator<Item = PodChange>,
    ) {
        for change in changes {
            if let Some(ended) = change.ended {
                self.replica_ended(now, ended);
            }
            let affected = handlers::pod_changed(&self.index, &change);
            for key in affected.keys() {
                match key {
                    Enqueue::Now(id) => self.queue.add(id, priority),
                    Enqueue::After(id, delay) => self.queue.add_after(now, id, delay),
                }
            }
            if affected.matches() > 1
                && let Some(pod) = change.new
            {
                self.reports.push_back(Report::OrphanMatchesMany {
                    pod: (pod.namespace, pod.name),
                    matches: affected.matches(),
                });
            }
        }
    }

    /// Takes a replica that has ended, which closes the creates of its ReplicaSet where such pods do not last.
    pub(super) fn replica_ended(&mut self, now: Timestamp, ended: EndedReplica) {
        if !self.config.create_back_off || !self.index.end_replica(now, ended) {
            return;
        }
        let Some(set) = self.index.set(ended.set) else {
            return;
        };
        if let Some(back_off) = &set.create_back_off {
            let key = set.object.key.clone();
            let Reason { detail, .. } = back_off.reason();
            let until = back_off.closed_until(now);
            self.reports.push_back(Report::PodsDoNotLast {
                key,
                detail: detail.into_owned(),
                closed: until.map_or_else(Default::default, |until| until.since(now)),
            });
        }
    }

    /// Forgets what was kept for a ReplicaSet that is gone. The outcomes of its batch in flight are still recorded, and awaited if an
    /// older list brings it back.
    pub(super) fn forget_set(&mut self, id: SetId) {
        self.queue.drop_key(id);
        let sync = self.running.remove(&id);
        let sent = sync.and_then(|sync| self.in_flight.get(sync.batch));
        self.abandoned.extend(sent.map(|sent| sent.key.uid.clone()));
        self.quarantined.remove(&id);
        self.miscounted.forget(id);
        self.unavailable.forget(id);
        self.obstacles.remove(id);
        self.status_without_room.take_if(|ready| ready.set == id);
        self.without_room.retain(|(ready, _)| ready.set != id);
        if let Some(waiting) = self.waiting.remove(&id) {
            self.free_names(&waiting.namespace, &waiting.unseen);
        }
    }

    /// Reports how many pods a ReplicaSet wants, where that has changed.
    pub(super) fn note_wanted(&mut self, now: Timestamp, id: SetId) {
        let is_listed = self.lists.open(Kind::ReplicaSet).is_some();
        let Some(set) = self.index.set_mut(id) else {
            return;
        };
        let Some(from) = set.note_wanted() else {
            return;
        };
        if from.is_some() || !is_listed {
            let (key, to) = (set.object.key.clone(), set.wanted());
            let at = now;
            self.reports.push_back(Report::Scaled { key, at, from, to });
        }
    }

    /// Returns the priority of what the stream shows: lists come after changes.
    pub(super) const fn priority_of(&self, kind: Kind) -> Priority {
        if self.lists.open(kind).is_some() {
            Priority::Resync
        } else {
            Priority::Live
        }
    }

    /// Asks for a list, whether one was asked for or not.
    pub(super) fn request_list(&mut self, kind: Kind, cause: &str) {
        self.lists.request(kind);
        self.requests.insert(kind, cause.to_owned());
    }

    /// Asks for the lists that somebody waits for, unless one is open or asked for already.
    pub(super) fn request_missing(&mut self) {
        let waiting = self.waiting.values();
        let missing = waiting.flat_map(|waiting| self.lists.missing(&waiting.unseen));
        let missing: BTreeSet<_> = missing.collect();
        self.request_lists(missing);
    }

    /// Asks for lists, unless they are open or asked for already.
    pub(super) fn request_lists(&mut self, missing: BTreeSet<Kind>) {
        for kind in missing {
            if !self.lists.is_coming(kind) {
                self.request_list(kind, "an outcome did not show what its write led to");
            }
        }
    }

    /// Ends what kept the names of created pods that are not in the view.
    pub(super) fn free_names(&mut self, namespace: &str, unseen: &Unseen) {
        let names = unseen.names.iter();
        names.for_each(|name| self.index.end_making(namespace, name));
    }

    /// Notes that the pods of a ReplicaSet are made that no outcome carried, now that a list has shown what has become of them.
    pub(super) fn mark_listed(
        &mut self,
        now: Timestamp,
        id: SetId,
        namespace: &str,
        unseen: &Unseen,
    ) {
        for name in &unseen.names {
            if let Some(ended) = self.index.mark_made(now, id, (namespace, name, None)) {
                self.replica_ended(now, ended);
            }
        }
    }
}

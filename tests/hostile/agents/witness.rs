//! The agent's view of its cluster, as streamed, and the effects of lies on the cluster.

use std::collections::{BTreeMap, BTreeSet};

use decree::v1::{self, batch::Action, event::Event, reconcile_request::Frame as Heard};
use tests::objects::{pod_ref, set_ref};

/// The letters of suffixes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The observations. Owned by one server, over all its sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witness {
    /// The number of streams.
    pub(crate) sessions: u64,
    /// The number of lists, of either kind.
    pub(crate) lists: u64,
    /// The violated requirements.
    pub(crate) violations: Vec<String>,
    replica_sets: BTreeMap<String, v1::ReplicaSet>,
    pods: BTreeMap<String, v1::Pod>,
    /// The pods without a controlling ReplicaSet, as first listed.
    outside: BTreeMap<String, v1::Pod>,
    /// The number of active pods of each ReplicaSet at first.
    first: BTreeMap<String, usize>,
    is_greeted: bool,
    ends: BTreeSet<i32>,
    is_settled: bool,
    batch_last: u64,
    sent: u64,
    answered: u64,
}

// === impl Witness ===

impl Witness {
    pub(crate) fn replica_sets(&self) -> Vec<v1::ReplicaSet> {
        self.replica_sets.values().cloned().collect()
    }

    /// Whether each ReplicaSet has had its desired pods, so that the lies began.
    pub(crate) const fn is_settled(&self) -> bool {
        self.is_settled
    }

    pub(super) fn begin_session(&mut self) {
        self.sessions += 1;
        (self.is_greeted, self.batch_last) = (false, 0);
        (self.sent, self.answered) = (0, 0);
        self.ends.clear();
    }

    pub(super) const fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    pub(super) fn is_listed(&self) -> bool {
        self.ends.len() == 2
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.answered >= self.sent
    }

    /// Takes a frame of the agent.
    pub(super) fn hear(&mut self, frame: Heard) {
        match frame {
            Heard::Hello(_) => self.is_greeted = true,
            Heard::SnapshotBegin(begin) => {
                self.lists += 1;
                match begin.kind() {
                    v1::Kind::Pod => self.pods.clear(),
                    v1::Kind::ReplicaSet => self.replica_sets.clear(),
                    v1::Kind::Unspecified => {}
                }
            }
            Heard::SnapshotObjects(objects) => {
                let sets = objects.replica_sets.into_iter();
                self.replica_sets
                    .extend(sets.map(|set| (set.uid.clone(), set)));
                let pods = objects.pods.into_iter();
                self.pods.extend(pods.map(|pod| (pod.uid.clone(), pod)));
            }
            Heard::SnapshotEnd(end) => {
                self.ends.insert(end.kind);
                if self.is_listed() {
                    self.look();
                }
            }
            Heard::Events(events) => {
                events
                    .events
                    .into_iter()
                    .for_each(|event| self.apply(event));
                self.look();
            }
            Heard::Outcomes(outcomes) => self.answered += outcomes.outcomes.len() as u64,
            Heard::Heartbeat(_) => {}
        }
    }

    /// The batches that an honest server would send at the start.
    pub(super) fn wanted_batches(&mut self) -> Vec<v1::Batch> {
        let mut batches = Vec::new();
        for set in self.replica_sets() {
            let lack = wanted(&set).saturating_sub(self.pods_of(&set.uid).len());
            if lack > 0 && !self.is_settled {
                let prefix = format!("{}-", set.name);
                let names = (0..lack as u64).map(|at| format!("{prefix}{}", suffix(at)));
                let action = create(&prefix, names.collect(), 500);
                batches.push(self.batch(&set, action));
            }
        }
        batches
    }

    /// The next batch for a ReplicaSet.
    pub(crate) fn batch(&mut self, set: &v1::ReplicaSet, action: Action) -> v1::Batch {
        self.batch_last += 1;
        let batch = v1::Batch {
            id: self.batch_last,
            replica_set: Some(set_ref(set)),
            generation: set.generation,
            replica_set_version: set.resource_version.clone(),
            guard: Some(v1::Guard {
                session_id: "s".to_owned(),
                epoch: 0,
            }),
            action: Some(action),
            ..v1::Batch::default()
        };
        self.sent += agent_core::guard::operation_count(&batch) as u64;
        batch
    }

    /// The active pods of a ReplicaSet.
    pub(crate) fn pods_of(&self, uid: &str) -> Vec<v1::ObjectRef> {
        let pods = self.pods.values();
        pods.filter(|pod| pod.deleted.is_none() && controller(pod) == uid)
            .map(pod_ref)
            .collect()
    }

    /// The pods without a controlling ReplicaSet.
    pub(crate) fn outside(&self) -> Vec<v1::ObjectRef> {
        self.outside.values().map(pod_ref).collect()
    }

    fn apply(&mut self, event: v1::Event) {
        match event.event {
            Some(Event::PodApplied(pod)) => drop(self.pods.insert(pod.uid.clone(), pod)),
            Some(Event::ReplicaSetApplied(set)) => {
                self.replica_sets.insert(set.uid.clone(), set);
            }
            Some(Event::Deleted(deleted)) => {
                let uid = deleted.object.unwrap_or_default().uid;
                self.pods.remove(&uid);
                self.replica_sets.remove(&uid);
            }
            Some(Event::Bookmark(_)) | None => {}
        }
    }

    /// Checks for violations.
    fn look(&mut self) {
        if self.outside.is_empty() {
            let pods = self.pods.values();
            let outside = pods.filter(|pod| !self.replica_sets.contains_key(controller(pod)));
            self.outside = outside.map(|pod| (pod.uid.clone(), pod.clone())).collect();
        }
        let mut found = Vec::new();
        for (uid, pod) in &self.outside {
            let is_same = |now: &v1::Pod| now.controller == pod.controller && now.deleted.is_none();
            if !self.pods.get(uid).is_some_and(is_same) {
                found.push(format!("{}/{} was touched", pod.namespace, pod.name));
            }
        }
        for (uid, pod) in &self.pods {
            let set = self.replica_sets.get(controller(pod));
            let is_known = self.outside.contains_key(uid);
            if !is_known && set.is_none_or(|set| set.namespace != pod.namespace) {
                found.push(format!("{}/{} appeared", pod.namespace, pod.name));
            }
        }
        let mut settled = true;
        for set in self.replica_sets.values() {
            let (active, wanted) = (self.pods_of(&set.uid).len(), wanted(set));
            let first = *self.first.entry(set.uid.clone()).or_insert(active);
            settled &= active >= wanted;
            if active > wanted.max(first) || (self.is_settled && active < wanted) {
                found.push(format!("{} has {active} of {wanted} pods", set.name));
            }
            found.extend(false_status(set));
        }
        self.is_settled |= settled;
        self.violations.extend(found);
    }
}

/// The fault in the status of a ReplicaSet.
fn false_status(set: &v1::ReplicaSet) -> Option<String> {
    let status = set.status.as_ref()?;
    let wanted = i32::try_from(wanted(set)).ok()?;
    let counts = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
    ];
    let is_false = counts.into_iter().any(|count| count > wanted)
        || status.observed_generation > set.generation
        || !status.conditions.is_empty();
    is_false.then(|| format!("{} has the status {status:?}", set.name))
}

fn wanted(set: &v1::ReplicaSet) -> usize {
    usize::try_from(set.replicas.unwrap_or(1)).unwrap_or(0)
}

fn controller(pod: &v1::Pod) -> &str {
    pod.controller
        .as_ref()
        .map_or("", |owner| owner.uid.as_str())
}

/// A create in the format of an honest server.
pub(super) fn create(generate_name: &str, names: Vec<String>, slow: i32) -> Action {
    Action::Create(v1::Create {
        names,
        generate_name: generate_name.to_owned(),
        slow_start_initial: slow,
    })
}

/// A suffix in the format of the API server, different for each number.
pub(super) fn suffix(mut number: u64) -> String {
    let letters = (0..5).map(|_| {
        let letter = ALPHABET[usize::try_from(number % 27).expect("it is small")];
        number /= 27;
        char::from(letter)
    });
    letters.collect()
}

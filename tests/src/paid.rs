//! What the creates of each ReplicaSet have come to in a world, for the invariant that each create is paid for.

use std::collections::{BTreeMap, BTreeSet};

use agent_fake::{Cluster, Kind, Object, is_active};
use jiff::{SignedDuration, Timestamp};

/// A pod that lives for so long is credited.
const LASTING: SignedDuration = SignedDuration::from_secs(60);
/// The shortest period of a grant.
const PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// The creates by namespace and name of their ReplicaSet.
#[derive(Debug, Default)]
pub struct Creates {
    sets: BTreeMap<(String, String), Paid>,
    /// The namespaced names of ReplicaSets by uid.
    names: BTreeMap<String, (String, String)>,
    /// The young pods, by uid: their name, their ReplicaSet, and their creation.
    young: BTreeMap<String, (String, (String, String), Timestamp)>,
    version: u64,
}

/// The creates of one ReplicaSet.
#[derive(Debug, Default)]
struct Paid {
    /// The names of its pods: a repeat under the same name costs nothing.
    names: BTreeSet<String>,
    /// The largest number of desired pods.
    desired: u64,
    first: Option<Timestamp>,
    /// The number of its pods that have lived for a minute, or that an agent has deleted.
    credited: u64,
    /// The servers that have decided its creates, and the resumes of people. Each begins with nothing lost.
    beginnings: BTreeSet<(usize, Timestamp)>,
}

impl Creates {
    /// Notes that a process of a server creates pods of a ReplicaSet.
    pub(crate) fn note_decided(
        &mut self,
        (set, name): (&str, (&str, &str)),
        server: (usize, Timestamp),
    ) {
        let key = (name.0.to_owned(), name.1.to_owned());
        self.names.insert(set.to_owned(), key.clone());
        self.sets.entry(key).or_default().beginnings.insert(server);
    }

    /// Notes that a person resumes creates.
    pub(crate) fn note_resumed(&mut self, now: Timestamp) {
        for paid in self.sets.values_mut() {
            paid.beginnings.insert((usize::MAX, now));
        }
    }

    /// Notes a created pod of a ReplicaSet with this number of desired pods.
    pub(crate) fn note_created(&mut self, now: Timestamp, set: &str, desired: i64, pod: &Object) {
        let Some(key) = self.names.get(set) else {
            return;
        };
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let paid = self.sets.entry(key.clone()).or_default();
        paid.first.get_or_insert(now);
        paid.desired = paid.desired.max(u64::try_from(desired).unwrap_or(0));
        if paid.names.insert(text("name")) {
            self.young
                .insert(text("uid"), (text("name"), key.clone(), now));
        }
    }

    /// Notes that an agent has deleted a pod.
    pub(crate) fn note_deleted(&mut self, uid: &str) {
        if let Some((_, key, _)) = self.young.remove(uid) {
            self.credit(&key);
        }
    }

    /// Notes which young pods have ended, and which have lived for a minute.
    pub(crate) fn follow(&mut self, now: Timestamp, cluster: &Cluster) {
        let is_changed = self.version != cluster.version();
        self.version = cluster.version();
        let is_old = |made: Timestamp| made + LASTING <= now;
        let oldest = self.young.values().map(|(.., made)| *made).min();
        if self.young.is_empty() || !is_changed && !oldest.is_some_and(is_old) {
            return;
        }
        let mut credited = Vec::new();
        self.young.retain(|uid, (name, key, made)| {
            if is_old(*made) {
                credited.push(key.clone());
                return false;
            }
            let pod = cluster.peek(Kind::Pod, &key.0, name);
            pod.is_some_and(|pod| pod["metadata"]["uid"].as_str() == Some(uid) && is_replica(pod))
        });
        credited.iter().for_each(|key| self.credit(key));
    }

    fn credit(&mut self, key: &(String, String)) {
        if let Some(paid) = self.sets.get_mut(key) {
            paid.credited += 1;
        }
    }

    /// Returns the number of creates of a ReplicaSet, and how many are paid for at most: as if each period were short.
    pub fn balance(&self, now: Timestamp, set: &str) -> Option<(u64, u64)> {
        let paid = self.sets.get(self.names.get(set)?)?;
        let desired = paid.desired;
        let periods = now.duration_since(paid.first?).as_secs() / PERIOD.as_secs();
        let grants = u64::try_from(periods).unwrap_or(0) * (desired / 10).max(5);
        let beginnings = paid.beginnings.len() as u64;
        let paid_for = beginnings * (desired + desired.max(20)) + grants + paid.credited;
        Some((paid.names.len() as u64, paid_for))
    }
}

fn is_replica(pod: &Object) -> bool {
    let is_owned = pod["metadata"]["ownerReferences"].is_array();
    is_owned && pod["metadata"]["labels"].is_object() && is_active(pod)
}

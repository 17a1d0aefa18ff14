//! The API server of a bounded world: one ReplicaSet and its pods, with versions, uids, preconditions and taken names.
//!
//! Each kind has separate versions, and a uid derives from a name. So orders of events that lead to the same objects lead to the
//! same state. A deleted pod is gone at once.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{
    api::{ApiError, CreatePod, Object, ReplicaSet, Reply, Request, Template, WriteStatus},
    watch::{Items, List, Part, WatchEvent},
};
use decree::v1;
use jiff::Timestamp;

use super::bounds::{Act, Mutant};
use crate::lease_api::refusal;

const NAMESPACE: &str = "default";
const SET: &str = "web";

/// The API server. The fields from `names` on are only for the checks.
#[derive(Clone, Debug)]
pub struct Api {
    /// The ReplicaSet.
    pub set: v1::ReplicaSet,
    /// The pods by name.
    pub pods: BTreeMap<String, v1::Pod>,
    pods_version: u64,
    set_version: u64,
    /// Whether new pods become ready later.
    readiness: bool,
    /// The names of created pods, and how often a create used each.
    names: BTreeMap<String, i32>,
    /// The names of unanswered creates, which agents retry.
    unanswered: BTreeSet<String>,
    /// The lowest and the highest desired replicas so far.
    wanted: (i32, i32),
    /// The number of pods that users removed.
    taken_away: i32,
}

/// The effect of a call.
#[derive(Clone, Debug)]
pub struct Done {
    /// The answer.
    pub reply: Result<Reply, ApiError>,
    /// The event of watches.
    pub event: Option<WatchEvent>,
    /// The invariant that the call breaks.
    pub violation: Option<String>,
}

// === impl Api ===

impl Api {
    /// Returns an API server with a ReplicaSet of `replicas` desired and no current pods; with `readiness`, new pods become ready
    /// later.
    #[must_use]
    pub fn new(replicas: i32, readiness: bool) -> Self {
        let labels = || [("app".to_owned(), SET.to_owned())].into();
        let set = v1::ReplicaSet {
            namespace: NAMESPACE.to_owned(),
            name: SET.to_owned(),
            uid: "uid-of-web".to_owned(),
            resource_version: "1".to_owned(),
            generation: 1,
            replicas: Some(replicas),
            selector: Some(v1::LabelSelector {
                match_labels: labels(),
                match_expressions: Vec::new(),
            }),
            template_labels: labels(),
            status: Some(v1::ReplicaSetStatus::default()),
            ..v1::ReplicaSet::default()
        };
        Self {
            set,
            pods: BTreeMap::new(),
            pods_version: 1,
            set_version: 1,
            readiness,
            names: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            wanted: (replicas, replicas),
            taken_away: 0,
        }
    }

    /// Executes a call.
    pub fn execute(&mut self, now: Timestamp, request: &Request, mutant: Option<Mutant>) -> Done {
        match request {
            Request::CreatePod(create) => self.create(now, create),
            Request::DeletePod { pod, .. } => self.delete(pod, mutant),
            Request::WriteStatus(write) => self.write_status(write),
            Request::ReadPod { name, .. } => Done::read(self.pods.get(name).map(pod_reply)),
            Request::ReadReplicaSet { .. } => Done::read(Some(self.set_reply())),
            Request::AdoptPod { pod, .. } | Request::ReleasePod { pod, .. } => {
                let text = format!("claims pod {}, which needs no claim", pod.name);
                Done {
                    violation: Some(text),
                    ..Done::refused(422, "Invalid")
                }
            }
        }
    }

    /// Notes a create of unknown effect.
    pub fn note_unanswered(&mut self, request: &Request) {
        if let Request::CreatePod(create) = request {
            self.unanswered.insert(create.name.clone());
        }
    }

    /// Executes an act of a user. Returns the events of watches.
    pub fn act(&mut self, now: Timestamp, act: Act) -> Vec<WatchEvent> {
        match act {
            Act::Scale(replicas) => {
                self.set.replicas = Some(replicas);
                self.set.generation += 1;
                let (fewest, most) = self.wanted;
                self.wanted = (fewest.min(replicas), most.max(replicas));
                vec![self.set_changed()]
            }
            Act::Kill(place) => self
                .take_away(place)
                .map(|(_, event)| event)
                .into_iter()
                .collect(),
            Act::Replace(place) => {
                let Some((name, event)) = self.take_away(place) else {
                    return Vec::new();
                };
                let version = self.next_pods_version();
                let pod = v1::Pod {
                    uid: format!("uid-of-another-{name}"),
                    labels: BTreeMap::new().into_iter().collect(),
                    controller: None,
                    ..new_pod(now, name, version)
                };
                self.pods.insert(pod.name.clone(), pod.clone());
                vec![event, WatchEvent::Applied(Object::from(pod))]
            }
        }
    }

    /// Makes a pod ready. Returns the event of watches.
    pub fn make_ready(&mut self, now: Timestamp, place: usize) -> Option<WatchEvent> {
        let version = self.next_pods_version();
        let pod = self.pods.values_mut().nth(place)?;
        pod.resource_version = version;
        be_ready(pod, now);
        Some(WatchEvent::Applied(Object::from(pod.clone())))
    }

    /// Returns the places of pods that are not ready.
    pub fn unready(&self) -> impl Iterator<Item = usize> {
        let pods = self.pods.values().enumerate();
        pods.filter(|(_, pod)| pod.ready.is_none())
            .map(|(place, _)| place)
    }

    /// Returns all pods.
    #[must_use]
    pub fn list_pods(&self) -> List {
        List {
            part: Part::Whole,
            items: Items::Pods(self.pods.values().collect()),
            invalid: Vec::new(),
            resource_version: self.pods_version.to_string(),
        }
    }

    /// Returns all ReplicaSets.
    #[must_use]
    pub fn list_replica_sets(&self) -> List {
        List {
            part: Part::Whole,
            items: Items::ReplicaSets(vec![self.replica_set()]),
            invalid: Vec::new(),
            resource_version: self.set_version.to_string(),
        }
    }

    /// Returns the number of pods of the ReplicaSet.
    #[must_use]
    pub fn owned(&self) -> i32 {
        let owned = self.pods.values().filter(|pod| pod.controller.is_some());
        i32::try_from(owned.count()).unwrap_or(i32::MAX)
    }

    /// Returns a difference from the desired state, in the pods or in the status.
    #[must_use]
    pub fn not_as_wanted(&self) -> Option<String> {
        let (owned, wanted) = (self.owned(), self.set.replicas());
        if owned != wanted {
            return Some(format!("{owned} pods, {wanted} wanted"));
        }
        let ready = self
            .pods
            .values()
            .filter(|pod| pod.controller.is_some() && pod.ready.is_some());
        let ready = i32::try_from(ready.count()).unwrap_or(i32::MAX);
        let found = self.set.status.clone().unwrap_or_default();
        let right = v1::ReplicaSetStatus {
            replicas: owned,
            fully_labeled_replicas: owned,
            ready_replicas: ready,
            available_replicas: ready,
            observed_generation: self.set.generation,
            terminating_replicas: found.terminating_replicas,
            conditions: Vec::new(),
        };
        (found != right).then(|| format!("the status says {found:?}, right is {right:?}"))
    }

    fn create(&mut self, now: Timestamp, create: &CreatePod) -> Done {
        let name = &create.name;
        if self.pods.contains_key(name) {
            return Done::refused(409, "AlreadyExists");
        }
        let times = self.names.entry(name.clone()).or_default();
        *times += 1;
        let times = *times;
        let version = self.next_pods_version();
        let mut pod = v1::Pod {
            controller: Some(create.controller.clone()),
            labels: self.set.template_labels.clone(),
            ..new_pod(now, name.clone(), version)
        };
        if times > 1 {
            pod.uid = format!("{}-{times}", pod.uid);
        }
        if !self.readiness {
            be_ready(&mut pod, now);
        }
        self.pods.insert(name.clone(), pod.clone());
        Done {
            violation: self.surplus(name),
            ..Done::applied(pod)
        }
    }

    /// The fault of the pods after a create. An unanswered create and its retry may both take effect if somebody removes the
    /// first pod. Then there is one surplus pod until the controller deletes it (decision 11).
    fn surplus(&self, created: &str) -> Option<String> {
        if self.names[created] > 1 && !self.unanswered.contains(created) {
            return Some(format!("name {created} is used again"));
        }
        let doubled: i32 = self.names.values().map(|times| times - 1).sum();
        let (owned, most) = (self.owned(), self.wanted.1);
        (owned > most + doubled).then(|| format!("{owned} pods, {most} were wanted at most"))
    }

    fn delete(&mut self, chosen: &v1::ObjectRef, mutant: Option<Mutant>) -> Done {
        let Some(pod) = self.pods.get(&chosen.name) else {
            return Done::refused(404, "NotFound");
        };
        if pod.uid != chosen.uid && mutant != Some(Mutant::DropUidPrecondition) {
            return Done::refused(409, "Conflict");
        }
        let mut pod = pod.clone();
        self.pods.remove(&chosen.name);
        pod.resource_version = self.next_pods_version();
        let (left, fewest) = (self.owned(), self.wanted.0 - self.taken_away);
        let violation = if pod.uid == chosen.uid {
            (left < fewest).then(|| format!("{left} pods are left, {fewest} were wanted at least"))
        } else {
            Some(format!("a deletion of {} hits {}", chosen.uid, pod.uid))
        };
        Done {
            reply: Ok(Reply::Gone(pod.resource_version.clone())),
            event: Some(WatchEvent::Deleted(Object::from(pod))),
            violation,
        }
    }

    fn write_status(&mut self, write: &WriteStatus) -> Done {
        if write.replica_set.uid != self.set.uid {
            return Done::refused(409, "Conflict");
        }
        if write.resource_version != self.set.resource_version {
            return Done::refused(409, "Conflict");
        }
        if self.set.status.as_ref() == Some(&write.status) {
            return Done::read(Some(self.set_reply()));
        }
        self.set.status = Some(write.status.clone());
        let event = self.set_changed();
        Done {
            event: Some(event),
            ..Done::read(Some(self.set_reply()))
        }
    }

    fn take_away(&mut self, place: usize) -> Option<(String, WatchEvent)> {
        let name = self.pods.keys().nth(place)?.clone();
        let mut pod = self.pods.remove(&name)?;
        pod.resource_version = self.next_pods_version();
        self.taken_away += 1;
        Some((name, WatchEvent::Deleted(Object::from(pod))))
    }

    fn set_changed(&mut self) -> WatchEvent {
        self.set_version += 1;
        self.set.resource_version = self.set_version.to_string();
        WatchEvent::Applied(Object::from(self.replica_set()))
    }

    fn next_pods_version(&mut self) -> String {
        self.pods_version += 1;
        self.pods_version.to_string()
    }

    fn replica_set(&self) -> ReplicaSet {
        ReplicaSet {
            projected: self.set.clone(),
            template: Some(Template::new(*b"template")),
        }
    }

    fn set_reply(&self) -> Reply {
        Reply::ReplicaSet(Box::new(self.replica_set()))
    }
}

// === impl Done ===

impl Done {
    fn applied(pod: v1::Pod) -> Self {
        Self {
            reply: Ok(pod_reply(&pod)),
            event: Some(WatchEvent::Applied(Object::from(pod))),
            violation: None,
        }
    }

    fn read(found: Option<Reply>) -> Self {
        match found {
            Some(reply) => Self {
                reply: Ok(reply),
                event: None,
                violation: None,
            },
            None => Self::refused(404, "NotFound"),
        }
    }

    fn refused(code: u16, reason: &str) -> Self {
        Self {
            reply: Err(refusal(code, reason)),
            event: None,
            violation: None,
        }
    }
}

fn new_pod(now: Timestamp, name: String, resource_version: String) -> v1::Pod {
    v1::Pod {
        namespace: NAMESPACE.to_owned(),
        uid: format!("uid-of-{name}"),
        name,
        resource_version,
        created: Some(wire_time(now)),
        phase: v1::PodPhase::Pending.into(),
        ..v1::Pod::default()
    }
}

fn be_ready(pod: &mut v1::Pod, now: Timestamp) {
    "node".clone_into(&mut pod.node_name);
    pod.phase = v1::PodPhase::Running.into();
    pod.ready = Some(v1::ReadyCondition {
        ready: true,
        since: Some(wire_time(now)),
    });
}

fn pod_reply(pod: &v1::Pod) -> Reply {
    Reply::Pod(Box::new(pod.clone()))
}

fn wire_time(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

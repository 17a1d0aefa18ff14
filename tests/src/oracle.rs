//! The information of a session: an independent, plain model of the view for its decisions.
//!
//! The oracle reads the frames of the session, in the messages of the contract, and merges them by version, including outcomes.
//! The oracle is slow and simple on purpose. It judges the session, so it must not share its code.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::v1::{self, batch::Action, done, event, outcome, reconcile_request::Frame};
use jiff::Timestamp;

mod status;

/// The model of one session. Objects are identified by their uids.
#[derive(Debug, Default)]
pub struct Oracle {
    pods: BTreeMap<String, Known<v1::Pod>>,
    sets: BTreeMap<String, Known<v1::ReplicaSet>>,
    ready: status::Ready,
    lists: BTreeMap<v1::Kind, Listing>,
    /// The batch in flight of each ReplicaSet, and its operations without an outcome.
    in_flight: BTreeMap<String, (u64, BTreeSet<u32>)>,
    batches: BTreeMap<u64, v1::Batch>,
    /// ReplicaSets with a write whose object was not reported, and the list of that kind that must be complete before the next
    /// batch.
    unseen: BTreeMap<(String, v1::Kind), u64>,
}

/// The newest state of an object, or the fact that it is deleted.
#[derive(Debug, Default)]
struct Known<T> {
    version: u64,
    state: Option<T>,
}

/// The progress of the lists of a kind.
#[derive(Debug, Default)]
struct Listing {
    /// The objects in the open list.
    open: Option<BTreeSet<String>>,
    complete: bool,
    /// The number of lists that have begun.
    begun: u64,
    /// The version of the newest complete list, which contains everything that existed then. 0 if the list has no version.
    version: u64,
}

impl Oracle {
    /// Takes a frame of the agent.
    pub fn handle_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::SnapshotBegin(begin) => {
                let listing = self.listing(begin.kind());
                listing.begun += 1;
                listing.open = Some(BTreeSet::new());
            }
            Frame::SnapshotObjects(objects) => {
                objects.pods.iter().for_each(|pod| self.show_pod(pod));
                let sets = objects.replica_sets.iter();
                sets.for_each(|set| self.apply_set(set));
            }
            Frame::SnapshotEnd(end) => {
                self.end_list(end.kind(), &end.resource_version);
            }
            Frame::Events(events) => {
                let events = events.events.iter().filter_map(|it| it.event.as_ref());
                events.for_each(|event| self.handle_event(event));
            }
            Frame::Outcomes(outcomes) => outcomes
                .outcomes
                .iter()
                .for_each(|outcome| self.handle_outcome(outcome)),
            Frame::Hello(_) | Frame::Heartbeat(_) | Frame::Nodes(_) | Frame::Costs(_) => {}
        }
    }

    /// Takes an outgoing batch.
    pub fn note_batch(&mut self, batch: &v1::Batch) {
        let operations = (0..).take(operations(batch)).collect();
        self.in_flight
            .insert(set_uid(batch).to_owned(), (batch.id, operations));
        self.batches.insert(batch.id, batch.clone());
    }

    fn handle_event(&mut self, event: &event::Event) {
        match event {
            event::Event::PodApplied(pod) => self.show_pod(pod),
            event::Event::ReplicaSetApplied(set) => self.apply_set(set),
            event::Event::Deleted(deleted) => {
                let uid = deleted.object.as_ref().map_or("", |object| &object.uid);
                let version = newest(&deleted.resource_version);
                match deleted.kind() {
                    v1::Kind::ReplicaSet => note(&mut self.sets, uid, version, None),
                    v1::Kind::Pod | v1::Kind::Unspecified => {
                        note(&mut self.pods, uid, version, None)
                    }
                }
            }
            event::Event::Bookmark(_) => {}
        }
    }

    fn handle_outcome(&mut self, outcome: &v1::Outcome) {
        let Some(batch) = self.batches.get(&outcome.batch_id).cloned() else {
            return;
        };
        match &outcome.outcome {
            Some(outcome::Outcome::Done(done)) => self.done(&batch, outcome.operation, done),
            Some(outcome::Outcome::Failed(failed))
                if failed.failure_class() == v1::FailureClass::NotFound =>
            {
                let pod = pod_of(&batch, outcome.operation as usize);
                pod.iter()
                    .for_each(|uid| note(&mut self.pods, uid, u64::MAX, None));
            }
            Some(outcome::Outcome::Failed(_) | outcome::Outcome::NotStarted(_)) | None => {}
        }
        let set = set_uid(&batch);
        if let Some((in_flight, operations)) = self.in_flight.get_mut(set) {
            operations.remove(&outcome.operation);
            if *in_flight == batch.id && operations.is_empty() {
                self.in_flight.remove(set);
            }
        }
    }

    fn done(&mut self, batch: &v1::Batch, operation: u32, done: &v1::Done) {
        match &done.object {
            Some(done::Object::Pod(pod)) => self.learn_pod(pod),
            Some(done::Object::ReplicaSet(set)) => self.apply_set(set),
            Some(done::Object::Gone(true)) => {
                let version = newest(&done.resource_version);
                let pod = pod_of(batch, operation as usize);
                pod.iter()
                    .for_each(|uid| note(&mut self.pods, uid, version, None));
            }
            Some(done::Object::Gone(false)) | None => {
                let kind = match &batch.action {
                    Some(Action::WriteStatus(_)) => v1::Kind::ReplicaSet,
                    Some(
                        Action::Create(_)
                        | Action::Delete(_)
                        | Action::Claim(_)
                        | Action::Advise(_),
                    )
                    | None => v1::Kind::Pod,
                };
                let next = self.listing(kind).begun + 1;
                self.unseen.insert((set_uid(batch).to_owned(), kind), next);
            }
        }
    }

    /// Takes a pod from an outcome, unless a newer list did not contain it: then the pod is deleted already.
    fn learn_pod(&mut self, pod: &v1::Pod) {
        let listed = self.listing(v1::Kind::Pod).version;
        let is_news = newest(&pod.resource_version) > listed;
        if is_news || self.pods.contains_key(&pod.uid) {
            self.apply_pod(pod);
        }
    }

    fn show_pod(&mut self, pod: &v1::Pod) {
        if let Some(named) = &mut self.listing(v1::Kind::Pod).open {
            named.insert(pod.uid.clone());
        }
        self.apply_pod(pod);
    }

    fn apply_pod(&mut self, pod: &v1::Pod) {
        self.ready.note(pod);
        let version = oldest(&pod.resource_version);
        let namesake = |known: &&mut Known<v1::Pod>| {
            let other = known.state.as_ref().filter(|it| it.uid != pod.uid);
            other.is_some_and(|it| it.name == pod.name && it.namespace == pod.namespace)
        };
        // No two pods have one name at a time, so the older pod is deleted.
        match self.pods.values_mut().find(namesake) {
            Some(other) if other.version > version => return,
            Some(other) => other.state = None,
            None => {}
        }
        note(&mut self.pods, &pod.uid, version, Some(pod.clone()));
    }

    fn apply_set(&mut self, set: &v1::ReplicaSet) {
        if let Some(named) = &mut self.listing(v1::Kind::ReplicaSet).open {
            named.insert(set.uid.clone());
        }
        let version = oldest(&set.resource_version);
        note(&mut self.sets, &set.uid, version, Some(set.clone()));
    }

    fn end_list(&mut self, kind: v1::Kind, version: &str) {
        let listing = self.listing(kind);
        let begun = listing.begun;
        listing.complete = true;
        listing.version = oldest(version);
        let named = listing.open.take().unwrap_or_default();
        let version = newest(version);
        match kind {
            v1::Kind::ReplicaSet => drop_unnamed(&mut self.sets, &named, version),
            v1::Kind::Pod | v1::Kind::Unspecified => {
                drop_unnamed(&mut self.pods, &named, version);
            }
        }
        self.unseen
            .retain(|(_, of), list| *of != kind || *list > begun);
    }

    fn listing(&mut self, kind: v1::Kind) -> &mut Listing {
        self.lists.entry(kind).or_default()
    }
}

impl Oracle {
    /// Returns why a batch must not leave now. The session has read no later time than `latest`.
    ///
    /// # Errors
    /// The broken invariant, and how.
    pub fn judge(&self, latest: Timestamp, batch: &v1::Batch) -> Result<(), String> {
        if let Some((other, _)) = self.in_flight.get(set_uid(batch)) {
            return Err(format!(
                "i17_one_batch_in_flight: batch {} leaves beside {other}",
                batch.id
            ));
        }
        if !self.is_whole() {
            return Err(format!(
                "i6_no_decision_on_a_partial_view: {:?}",
                batch.action
            ));
        }
        let verdict = self.check(latest, batch);
        verdict.map_err(|text| format!("i6_no_decision_on_an_older_view: {text}"))
    }

    /// Whether both kinds are listed and no list is open.
    fn is_whole(&self) -> bool {
        [v1::Kind::Pod, v1::Kind::ReplicaSet].iter().all(|kind| {
            let listing = self.lists.get(kind);
            listing.is_some_and(|listing| listing.complete && listing.open.is_none())
        })
    }

    /// Checks a batch against the information of the session.
    fn check(&self, latest: Timestamp, batch: &v1::Batch) -> Result<(), String> {
        let known = self.sets.get(set_uid(batch));
        let set = known.and_then(|known| known.state.as_ref());
        let set = set.ok_or_else(|| format!("replica set {:?} is not known", batch.replica_set))?;
        let mut unseen = self.unseen.keys();
        ensure(unseen.all(|(set, _)| set != set_uid(batch)), || {
            "a write of it was not shown yet".to_owned()
        })?;
        let action = batch.action.as_ref().ok_or("it has no action")?;
        if !matches!(action, Action::WriteStatus(_)) {
            ensure(set.deletion_timestamp.is_none(), || {
                format!("replica set {} is being deleted", set.name)
            })?;
        }
        match action {
            Action::Create(create) => self.check_create(set, create),
            Action::Delete(delete) => self.check_delete(set, delete),
            Action::Claim(claim) => self.check_claim(set, claim),
            Action::WriteStatus(write) => self.ready.check(set, latest, write.status.as_ref()),
            Action::Advise(_) => Err("it advises an agent that acts".to_owned()),
        }
    }

    fn check_create(&self, set: &v1::ReplicaSet, create: &v1::Create) -> Result<(), String> {
        let (names, known) = (&create.names, self.replicas(set).count());
        let wanted = wanted(set);
        ensure(known + names.len() <= wanted, || {
            format!("creates {names:?} beside {known} known pods where {wanted} are wanted")
        })?;
        let there = |name: &&String| {
            let mut pods = self.known_pods();
            pods.any(|pod| pod.name == **name && pod.namespace == set.namespace)
        };
        let taken = names.iter().find(there);
        ensure(taken.is_none(), || {
            format!("creates {taken:?}, which is there")
        })
    }

    fn check_delete(&self, set: &v1::ReplicaSet, delete: &v1::Delete) -> Result<(), String> {
        let (gone, known) = (delete.victims.len(), self.replicas(set).count());
        let wanted = wanted(set);
        ensure(known >= wanted + gone, || {
            format!("deletes {gone} of {known} known pods where {wanted} are wanted")
        })?;
        let is_replica = |uid: &str| self.replicas(set).any(|pod| pod.uid == uid);
        let mut victims = delete.victims.iter().filter_map(|it| it.pod.as_ref());
        let strange = victims.find(|pod| !is_replica(&pod.uid));
        ensure(strange.is_none(), || {
            format!("deletes {strange:?}, which is not a replica")
        })
    }

    fn check_claim(&self, set: &v1::ReplicaSet, claim: &v1::Claim) -> Result<(), String> {
        let is = |uid: &str, holds: &dyn Fn(&v1::Pod) -> bool| {
            self.active_pods().any(|pod| pod.uid == uid && holds(pod))
        };
        let orphan = |pod: &v1::Pod| pod.controller.is_none() && matches(set, pod);
        let stray = |pod: &v1::Pod| is_controlled_by(pod, set) && !matches(set, pod);
        let mut adopts = claim.adopts.iter();
        let mut releases = claim.releases.iter();
        let wrong = adopts
            .find(|pod| !is(&pod.uid, &orphan))
            .or_else(|| releases.find(|pod| !is(&pod.uid, &stray)));
        ensure(wrong.is_none(), || {
            format!("claims {wrong:?} against what is known of it")
        })
    }

    fn known_pods(&self) -> impl Iterator<Item = &v1::Pod> {
        self.pods.values().filter_map(|known| known.state.as_ref())
    }

    fn active_pods(&self) -> impl Iterator<Item = &v1::Pod> {
        let has_ended =
            |pod: &v1::Pod| matches!(pod.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed);
        self.known_pods()
            .filter(move |pod| pod.deletion_timestamp.is_none() && !has_ended(pod))
    }

    fn replicas<'a>(&'a self, set: &'a v1::ReplicaSet) -> impl Iterator<Item = &'a v1::Pod> {
        self.active_pods()
            .filter(|pod| is_controlled_by(pod, set) && matches(set, pod))
    }
}

/// Returns the number of operations of a batch, and so of its outcomes.
pub fn operations(batch: &v1::Batch) -> usize {
    match &batch.action {
        Some(Action::Create(create)) => create.names.len(),
        Some(Action::Delete(delete)) => delete.victims.len(),
        Some(Action::Claim(claim)) => claim.adopts.len() + claim.releases.len(),
        Some(Action::WriteStatus(_)) => 1,
        Some(Action::Advise(advise)) => advise.advices.len(),
        None => 0,
    }
}

/// The uid of the pod of an operation on an existing pod.
fn pod_of(batch: &v1::Batch, operation: usize) -> Option<String> {
    let pod = match batch.action.as_ref()? {
        Action::Delete(delete) => delete.victims.get(operation)?.pod.as_ref()?,
        Action::Claim(claim) => claim.adopts.iter().chain(&claim.releases).nth(operation)?,
        Action::Advise(advise) => advise.advices.get(operation)?.pod.as_ref()?,
        Action::Create(_) | Action::WriteStatus(_) => return None,
    };
    Some(pod.uid.clone())
}

fn set_uid(batch: &v1::Batch) -> &str {
    batch.replica_set.as_ref().map_or("", |set| &set.uid)
}

/// Reads a version; a missing version is older than all.
fn oldest(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// Reads a version; a missing version is newer than all.
fn newest(version: &str) -> u64 {
    version.parse().unwrap_or(u64::MAX)
}

/// Notes a state of an object, or its deletion. Of the same version, the deletion is newer.
fn note<T: Default>(
    map: &mut BTreeMap<String, Known<T>>,
    uid: &str,
    version: u64,
    state: Option<T>,
) {
    let known = map.entry(uid.to_owned()).or_default();
    if version > known.version || version == known.version && state.is_none() {
        *known = Known { version, state };
    }
}

fn drop_unnamed<T>(map: &mut BTreeMap<String, Known<T>>, named: &BTreeSet<String>, version: u64) {
    for (uid, known) in map {
        if known.version <= version && !named.contains(uid) {
            known.state = None;
        }
    }
}

fn wanted(set: &v1::ReplicaSet) -> usize {
    usize::try_from(set.replicas.unwrap_or(1)).unwrap_or(0)
}

fn is_controlled_by(pod: &v1::Pod, set: &v1::ReplicaSet) -> bool {
    pod.controller
        .as_ref()
        .is_some_and(|owner| owner.uid == set.uid)
}

/// The workloads select by labels only.
fn matches(set: &v1::ReplicaSet, pod: &v1::Pod) -> bool {
    let Some(selector) = &set.selector else {
        return false;
    };
    assert!(
        selector.match_expressions.is_empty(),
        "the oracle reads no expressions"
    );
    let mut labels = selector.match_labels.iter();
    let selects = labels.all(|(key, value)| pod.labels.get(key) == Some(value));
    selects && pod.namespace == set.namespace
}

fn ensure(holds: bool, why_not: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why_not()) }
}

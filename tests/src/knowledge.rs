//! What a session has been told: an independent, plain account of the view that its decisions must rest on.
//!
//! It is fed the frames that the controller is fed and merges them by version, outcomes included. It is slow and simple on
//! purpose: the controller's index is judged by it, so it must not share its code.

use std::collections::{BTreeMap, BTreeSet};

use decree::v1;
use decree_server::wire::decode;
use server_core::{
    Action, After, Batch, Effect, Event, FailureClass, Kind, Outcome, Pod, ReplicaSet,
    ResourceVersion, Uid,
};

/// The account of one session.
#[derive(Debug, Default)]
pub struct Knowledge {
    pods: BTreeMap<Uid, Known<Pod>>,
    sets: BTreeMap<Uid, Known<ReplicaSet>>,
    lists: BTreeMap<Kind, Listing>,
    /// The batch in flight of each ReplicaSet, and the operations that have no outcome yet.
    in_flight: BTreeMap<Uid, (u64, BTreeSet<u32>)>,
    batches: BTreeMap<u64, (Uid, Action)>,
    /// ReplicaSets with a write of which no object was told, and the list of that kind that must be complete before the next batch.
    unseen: BTreeMap<(Uid, Kind), u64>,
}

/// An object in its newest state, or the fact that it is gone.
#[derive(Debug)]
struct Known<T> {
    version: u64,
    state: Option<T>,
}

/// How far a kind has been listed.
#[derive(Debug, Default)]
struct Listing {
    /// What the open list has named.
    open: Option<BTreeSet<Uid>>,
    complete: bool,
    /// How many lists have begun.
    begun: u64,
    /// The version of the newest complete list: what existed then was named then.
    version: u64,
}

// === impl Knowledge: what it is told ===

impl Knowledge {
    /// Takes an event.
    pub fn handle_event(&mut self, event: &Event) {
        match event {
            Event::SnapshotBegin(kind) => {
                let listing = self.listing(*kind);
                listing.begun += 1;
                listing.open = Some(BTreeSet::new());
            }
            Event::SnapshotEnd { kind, version } => {
                self.end_list(*kind, version.map_or(u64::MAX, |version| version.0));
            }
            Event::PodApplied(pod) => {
                if let Some(named) = &mut self.listing(Kind::Pod).open {
                    named.insert(pod.uid.clone());
                }
                self.apply_pod(pod);
            }
            Event::ReplicaSetApplied(set) => self.apply_set(set),
            Event::PodDeleted { uid, version, .. } => {
                forget(
                    &mut self.pods,
                    uid,
                    version.map_or(u64::MAX, |version| version.0),
                );
            }
            Event::ReplicaSetDeleted { key, version } => {
                forget(
                    &mut self.sets,
                    &key.uid,
                    version.map_or(u64::MAX, |version| version.0),
                );
            }
            Event::Bookmark { .. } => {}
        }
    }

    /// Takes an outcome, with what it says of its object.
    pub fn handle_outcome(&mut self, outcome: &Outcome) {
        let Some((set, action)) = self.batches.get(&outcome.batch.0).cloned() else {
            return;
        };
        match &outcome.result {
            Effect::Done {
                version,
                after: Some(after),
            } => {
                let pod = pod_of(&action, outcome.operation as usize);
                self.done(pod.as_ref(), *version, after);
            }
            Effect::Done { after: None, .. } => {
                let kind = match action {
                    Action::WriteStatus(_) => Kind::ReplicaSet,
                    Action::Create { .. } | Action::Delete(_) | Action::Claim { .. } => Kind::Pod,
                };
                let next = self.listing(kind).begun + 1;
                self.unseen.insert((set.clone(), kind), next);
            }
            Effect::Failed {
                class: FailureClass::NotFound,
                ..
            } => {
                let pod = pod_of(&action, outcome.operation as usize);
                pod.iter()
                    .for_each(|uid| forget(&mut self.pods, uid, u64::MAX));
            }
            Effect::Failed { .. } | Effect::NotStarted(_) => {}
        }
        if let Some((batch, operations)) = self.in_flight.get_mut(&set) {
            operations.remove(&outcome.operation);
            if *batch == outcome.batch.0 && operations.is_empty() {
                self.in_flight.remove(&set);
            }
        }
    }

    /// Takes a batch that leaves.
    pub fn note_batch(&mut self, batch: &Batch) {
        let operations = (0..).take(batch.action.operations()).collect();
        self.batches
            .insert(batch.id.0, (batch.key.uid.clone(), batch.action.clone()));
        self.in_flight
            .insert(batch.key.uid.clone(), (batch.id.0, operations));
    }

    fn done(&mut self, uid: Option<&Uid>, version: Option<ResourceVersion>, after: &After) {
        match after {
            After::Pod(pod) => self.learn_pod(pod),
            After::ReplicaSet(set) => self.apply_set(set),
            After::Gone => {
                let version = version.map_or(u64::MAX, |version| version.0);
                uid.iter()
                    .for_each(|uid| forget(&mut self.pods, uid, version));
            }
        }
    }

    /// Takes a pod as an outcome tells it, unless a list that is newer did not name it: then it came and went.
    fn learn_pod(&mut self, pod: &Pod) {
        let listed = self.listing(Kind::Pod).version;
        let is_news = pod.version.is_none_or(|version| version.0 > listed);
        if is_news || self.pods.contains_key(&pod.uid) {
            self.apply_pod(pod);
        }
    }

    fn apply_pod(&mut self, pod: &Pod) {
        let version = pod.version.map_or(0, |version| version.0);
        let namesake = |known: &&mut Known<Pod>| {
            let other = known.state.as_ref().filter(|it| it.uid != pod.uid);
            other.is_some_and(|it| it.name == pod.name && it.namespace == pod.namespace)
        };
        // Two pods never bear one name: the older is gone.
        match self.pods.values_mut().find(namesake) {
            Some(other) if other.version > version => return,
            Some(other) => other.state = None,
            None => {}
        }
        apply(&mut self.pods, &pod.uid, version, pod.clone());
    }

    fn apply_set(&mut self, set: &ReplicaSet) {
        if let Some(named) = &mut self.listing(Kind::ReplicaSet).open {
            named.insert(set.key.uid.clone());
        }
        let version = set.version.map_or(0, |version| version.0);
        apply(&mut self.sets, &set.key.uid, version, set.clone());
    }

    fn end_list(&mut self, kind: Kind, version: u64) {
        let listing = self.listing(kind);
        let begun = listing.begun;
        listing.complete = true;
        listing.version = version;
        let named = listing.open.take().unwrap_or_default();
        match kind {
            Kind::Pod => drop_unnamed(&mut self.pods, &named, version),
            Kind::ReplicaSet => drop_unnamed(&mut self.sets, &named, version),
        }
        self.unseen
            .retain(|(_, of), list| *of != kind || *list > begun);
    }

    fn listing(&mut self, kind: Kind) -> &mut Listing {
        self.lists.entry(kind).or_default()
    }
}

// === impl Knowledge: what it answers ===

impl Knowledge {
    /// Returns the batch in flight of a ReplicaSet.
    #[must_use]
    pub fn in_flight(&self, set: &Uid) -> Option<u64> {
        self.in_flight.get(set).map(|(batch, _)| *batch)
    }

    /// Returns whether both kinds are listed and no list is open.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        [Kind::Pod, Kind::ReplicaSet].iter().all(|kind| {
            self.lists
                .get(kind)
                .is_some_and(|listing| listing.complete && listing.open.is_none())
        })
    }

    /// Says why a batch contradicts what the session was told.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check(&self, batch: &Batch) -> Result<(), String> {
        let known = self
            .sets
            .get(&batch.key.uid)
            .and_then(|known| known.state.as_ref());
        let set = known.ok_or_else(|| format!("replica set {} is not known", batch.key))?;
        let mut unseen = self.unseen.keys();
        ensure(unseen.all(|(set, _)| *set != batch.key.uid), || {
            "a write of it was not shown yet".to_owned()
        })?;
        let wanted = usize::try_from(set.replicas).unwrap_or(0);
        let claimed: Vec<_> = self
            .live_pods()
            .filter(|pod| is_claimed(pod, set))
            .collect();
        if matches!(batch.action, Action::WriteStatus(_)) {
            return Ok(());
        }
        ensure(!set.deleting, || {
            format!("replica set {} is being deleted", batch.key)
        })?;
        match &batch.action {
            Action::Create { names, .. } => {
                let after = claimed.len() + names.len();
                ensure(after <= wanted, || {
                    let known = claimed.len();
                    format!("creates {names:?} beside {known} known pods where {wanted} are wanted")
                })?;
                let taken = names
                    .iter()
                    .find(|name| self.live_names().any(|it| it == name.as_ref()));
                ensure(taken.is_none(), || {
                    format!("creates {taken:?}, which is there")
                })
            }
            Action::Delete(victims) => {
                let left = claimed.len().checked_sub(victims.len());
                ensure(left.is_some_and(|left| left >= wanted), || {
                    let (gone, known) = (victims.len(), claimed.len());
                    format!("deletes {gone} of {known} known pods where {wanted} are wanted")
                })?;
                let strange = victims
                    .iter()
                    .find(|victim| claimed.iter().all(|pod| pod.uid != victim.pod.uid));
                ensure(strange.is_none(), || {
                    format!("deletes {strange:?}, which is not a replica")
                })
            }
            Action::Claim { adopts, releases } => {
                let find = |uid: &Uid| self.live_pods().find(|pod| pod.uid == *uid);
                let orphan = |pod: &Pod| pod.controller.is_none() && matches(set, pod);
                let stray = |pod: &Pod| controlled_by(pod, set) && !matches(set, pod);
                let wrong = adopts
                    .iter()
                    .find(|pod| !find(&pod.uid).is_some_and(orphan));
                let wrong = wrong.or_else(|| {
                    releases
                        .iter()
                        .find(|pod| !find(&pod.uid).is_some_and(stray))
                });
                ensure(wrong.is_none(), || {
                    format!("claims {wrong:?} against what is known of it")
                })
            }
            Action::WriteStatus(_) => Ok(()),
        }
    }

    fn live_pods(&self) -> impl Iterator<Item = &Pod> {
        let pods = self.pods.values().filter_map(|known| known.state.as_ref());
        pods.filter(|pod| pod.is_active())
    }

    fn live_names(&self) -> impl Iterator<Item = &str> {
        let pods = self.pods.values().filter_map(|known| known.state.as_ref());
        pods.map(|pod| pod.name.as_ref())
    }
}

/// Returns the pod that an operation on an existing pod is about.
fn pod_of(action: &Action, operation: usize) -> Option<Uid> {
    match action {
        Action::Delete(victims) => victims.get(operation).map(|victim| victim.pod.uid.clone()),
        Action::Claim { adopts, releases } => {
            let mut pods = adopts.iter().chain(releases);
            pods.nth(operation).map(|pod| pod.uid.clone())
        }
        Action::Create { .. } | Action::WriteStatus(_) => None,
    }
}

/// Reads a frame's objects as the session does.
///
/// # Errors
/// Names the object that the wire does not accept: a simulated agent never sends one.
pub fn read_objects(objects: v1::SnapshotObjects) -> Result<Vec<Event>, String> {
    let v1::SnapshotObjects { pods, replica_sets } = objects;
    let pods = pods
        .into_iter()
        .map(|pod| decode::pod(pod).map(Event::PodApplied));
    let sets = replica_sets
        .into_iter()
        .map(|set| decode::replica_set(set).map(|set| Event::ReplicaSetApplied(Box::new(set))));
    let events: Result<Vec<_>, _> = pods.chain(sets).collect();
    events.map_err(|violations| format!("the wire refuses an object: {violations:?}"))
}

fn apply<T>(map: &mut BTreeMap<Uid, Known<T>>, uid: &Uid, version: u64, state: T) {
    let known = map.entry(uid.clone()).or_insert(Known {
        version: 0,
        state: None,
    });
    if version > known.version {
        *known = Known {
            version,
            state: Some(state),
        };
    }
}

fn forget<T>(map: &mut BTreeMap<Uid, Known<T>>, uid: &Uid, version: u64) {
    let known = map.entry(uid.clone()).or_insert(Known {
        version: 0,
        state: None,
    });
    if version >= known.version {
        *known = Known {
            version,
            state: None,
        };
    }
}

fn drop_unnamed<T>(map: &mut BTreeMap<Uid, Known<T>>, named: &BTreeSet<Uid>, version: u64) {
    for (uid, known) in map {
        if known.version <= version && !named.contains(uid) {
            known.state = None;
        }
    }
}

fn is_claimed(pod: &Pod, set: &ReplicaSet) -> bool {
    controlled_by(pod, set) && matches(set, pod)
}

fn controlled_by(pod: &Pod, set: &ReplicaSet) -> bool {
    pod.controller
        .as_ref()
        .is_some_and(|owner| owner.uid == set.key.uid)
}

fn matches(set: &ReplicaSet, pod: &Pod) -> bool {
    let selects = set
        .selector
        .as_ref()
        .is_ok_and(|selector| selector.matches(&pod.labels));
    selects && pod.namespace == set.key.namespace
}

fn ensure(holds: bool, why_not: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why_not()) }
}

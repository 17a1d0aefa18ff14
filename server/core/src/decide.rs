//! One decision from a snapshot: the same state machine gets the snapshot once and runs until it is idle. There is no second algorithm.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, fmt::Debug, sync::Arc};

use crate::{
    batch::{Action, Batch},
    config::Config,
    controller::Controller,
    event::{After, Event, OperationResult, Outcome},
    held::HeldQueue,
    index::SetId,
    names::NameSeed,
    node::{Node, NodeChange},
    object::{Kind, OwnerReference, Pod, ReplicaSet, ResourceVersion, Timestamp},
    queue::Priority,
    reason::{Reason, Rule},
    report::{ControllerReport, Decision},
    sync::limits::blocking,
};

/// The version of the writes of such a decision: later than any version of the snapshot.
const LATER: ResourceVersion = ResourceVersion(u64::MAX);

/// The objects that a decision knows, in any order.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The ReplicaSets.
    pub replica_sets: Vec<ReplicaSet>,
    /// The pods.
    pub pods: Vec<Pod>,
    /// The nodes, which some preferences read.
    pub nodes: Vec<Node>,
    /// The numbers of active pods on these nodes that are not listed, by node.
    pub others: BTreeMap<Arc<str>, i32>,
}

/// The caller ended a computation before it had a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Decides for one ReplicaSet, if all operations succeed. `pods` are those of its namespace; the order does not matter. New pods get the
/// first free names, whatever the configuration says about names.
///
/// [`decide_while`] also knows other ReplicaSets, and can be interrupted.
pub fn decide(set: &ReplicaSet, pods: &[Pod], now: Timestamp, config: &Config) -> Decision {
    let objects = Objects {
        replica_sets: vec![set.clone()],
        pods: pods.to_vec(),
        ..Objects::default()
    };
    let place = (&*set.key.namespace, &*set.key.name);
    let decided = decide_while(now, config.clone(), place, objects, &|| true);
    let decided = decided.expect("nothing interrupts it");
    decided.expect("the ReplicaSet is listed")
}

/// Decides for one ReplicaSet from a snapshot, if all operations succeed, while `go_on` returns `true`. Calls `go_on` before each object and
/// each step.
///
/// Returns `None` if the ReplicaSet is not among the objects. The order of the input does not matter. New pods get the first free names,
/// whatever the configuration says about names.
///
/// # Errors
/// If `go_on` ended the computation.
pub fn decide_while(
    now: Timestamp,
    config: Config,
    (namespace, name): (&str, &str),
    objects: Objects,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Decision>, Interrupted> {
    let config = Config {
        names: NameSeed::default(),
        nodes: false,
        asks_costs: false,
        ..config
    };
    let mut controller = listed(now, config, objects, go_on)?;
    let Some(id) = controller.index.set_named(namespace, name) else {
        return Ok(None);
    };
    controller.queue.clear();
    controller.queue.add(id, Priority::Live);
    controller.reports = HeldQueue::default();
    run(now, &mut controller, id, go_on)
}

/// Creates a controller from complete lists of these objects, to look at them: nothing waits for a sync. The order of the input does not
/// matter.
pub fn controller_of(now: Timestamp, config: Config, objects: Objects) -> Controller {
    let listed = listed(now, config, objects, &|| true);
    let mut controller = listed.expect("nothing interrupts it");
    controller.queue.clear();
    let ids: Vec<_> = controller.index.sets.keys().copied().collect();
    ids.into_iter()
        .for_each(|id| controller.index.count_evictions(id));
    controller
}

fn listed(
    now: Timestamp,
    config: Config,
    objects: Objects,
    go_on: &dyn Fn() -> bool,
) -> Result<Controller, Interrupted> {
    let Objects {
        replica_sets: mut sets,
        mut pods,
        mut nodes,
        others,
    } = objects;
    sort(&mut sets, |a, b| {
        (&a.key, a.version).cmp(&(&b.key, b.version))
    });
    sort(&mut pods, |a, b| {
        let place = (&a.namespace, &a.name, a.version, &a.uid);
        place.cmp(&(&b.namespace, &b.name, b.version, &b.uid))
    });
    sort(&mut nodes, |a, b| a.name.cmp(&b.name));
    let mut controller = Controller::new(config);
    for node in nodes {
        check(go_on)?;
        controller.handle_node(now, NodeChange::Applied(node));
    }
    controller.changed_nodes.clear();
    let sets = sets.into_iter().map(Box::new);
    let sets = sets.map(Event::ReplicaSetApplied);
    list(now, &mut controller, Kind::ReplicaSet, sets, go_on)?;
    let pods = pods.into_iter().map(Event::PodApplied);
    list(now, &mut controller, Kind::Pod, pods, go_on)?;
    let nodes = &mut controller.index.nodes;
    for (node, pods) in others {
        if let Some(id) = nodes.find(&node) {
            nodes.count(id, pods.max(0));
        }
    }
    Ok(controller)
}

/// Sorts objects by their place, and objects listed twice by all their values, so that the order of the input does not decide which one
/// counts.
fn sort<T: Debug>(objects: &mut [T], by_place: impl Fn(&T, &T) -> Ordering) {
    objects.sort_by(&by_place);
    for twice in objects.chunk_by_mut(|a, b| by_place(a, b) == Ordering::Equal) {
        if twice.len() > 1 {
            twice.sort_by_cached_key(|object| format!("{object:?}"));
        }
    }
}

fn list(
    now: Timestamp,
    controller: &mut Controller,
    kind: Kind,
    events: impl Iterator<Item = Event>,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Interrupted> {
    controller.handle_event(now, Event::SnapshotBegin(kind));
    for event in events {
        check(go_on)?;
        controller.handle_event(now, event);
    }
    let version = None;
    controller.handle_event(now, Event::SnapshotEnd { kind, version });
    Ok(())
}

fn check(go_on: &dyn Fn() -> bool) -> Result<(), Interrupted> {
    if go_on() { Ok(()) } else { Err(Interrupted) }
}

/// Runs one sync to its end and collects its actions.
fn run(
    now: Timestamp,
    controller: &mut Controller,
    id: SetId,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Decision>, Interrupted> {
    let Some(set) = controller.index.set(id) else {
        return Ok(None);
    };
    let mut decision = Decision {
        key: set.object.key.clone(),
        ..Decision::default()
    };
    if set.object.deleting {
        decision.say(Rule::BeingDeleted, "its pods are left alone");
    }
    // The one step whose cost is a product of two numbers of objects.
    let related = controller.index.count_related(id, go_on);
    controller.index.related = Some(related.ok_or(Interrupted)?);
    while let Some(batch) = controller.poll_batch(now) {
        check(go_on)?;
        succeed(now, controller, &batch);
        decision.gather(batch);
        // The keys that its own operations queued belong to the next sync.
        controller.queue.clear();
    }
    decision.conclude(controller);
    let waits = blocking(&controller.index, &controller.config, id);
    let waits = waits.into_iter().map(|it| it.reason);
    let is_said = |it: &Reason| decision.reasons.iter().any(|said| said.rule == it.rule);
    let waits: Vec<_> = waits.filter(|it| !is_said(it)).collect();
    decision.reasons.extend(waits);
    if decision.reasons.is_empty() {
        decision.say(Rule::InSync, "nothing to do");
    }
    Ok(Some(decision))
}

fn succeed(now: Timestamp, controller: &mut Controller, batch: &Batch) {
    for operation in 0..u32::try_from(batch.action.operations()).unwrap_or(u32::MAX) {
        let result = OperationResult::Done {
            version: None,
            after: after(controller, batch, operation as usize),
        };
        let outcome = Outcome {
            batch: batch.id,
            operation,
            result,
        };
        controller.handle_outcome(now, outcome);
    }
}

fn after(controller: &Controller, batch: &Batch, operation: usize) -> Option<After> {
    let (index, key) = (&controller.index, &batch.key);
    let set = index.set(index.set_named(&key.namespace, &key.name)?)?;
    let pod = match &batch.action {
        Action::Create { names, .. } => created(names.get(operation)?, &set.object),
        Action::Delete(_) => return Some(After::Gone),
        Action::Claim { adopts, releases } => {
            let (pod, controller) = match adopts.get(operation) {
                Some(orphan) => (orphan, Some(OwnerReference::to_replica_set(key))),
                None => (releases.get(operation - adopts.len())?, None),
            };
            let (_, known) = index.pod_named(&key.namespace, &pod.name)?;
            Pod {
                version: Some(LATER),
                controller,
                ..index.pod_object(known)
            }
        }
        // People ask what the other controller decides.
        Action::Advise(_) => return None,
        Action::WriteStatus(status) => {
            let set = ReplicaSet {
                version: Some(LATER),
                status: (**status).clone(),
                ..set.object.clone()
            };
            return Some(After::ReplicaSet(Box::new(set)));
        }
    };
    Some(After::Pod(Box::new(pod)))
}

fn created(name: &Arc<str>, set: &ReplicaSet) -> Pod {
    Pod {
        version: Some(LATER),
        ..Pod::of(set, Arc::clone(name), format!("created-{name}"))
    }
}

impl Decision {
    fn say(&mut self, rule: Rule, detail: impl Into<Cow<'static, str>>) {
        self.reasons.push(Reason::new(rule, detail));
    }

    fn gather(&mut self, batch: Batch) {
        self.reasons.extend(batch.reasons);
        match batch.action {
            Action::Create { names, .. } => self.creates = names,
            Action::Delete(victims) => self.deletes = victims,
            Action::Claim { adopts, releases } => {
                self.adopts.extend(adopts);
                self.releases.extend(releases);
            }
            Action::WriteStatus(status) => self.status = Some(*status),
            Action::Advise(_) => {}
        }
    }

    fn conclude(&mut self, controller: &mut Controller) {
        while let Some(report) = controller.poll_report() {
            if let ControllerReport::Synced { requeue_after, .. } = report
                && requeue_after.is_some()
            {
                self.requeue_after = requeue_after;
                self.say(Rule::AvailabilityCheck, "ready pods are not available yet");
            } else if let ControllerReport::Quarantined { detail, .. } = report {
                self.say(Rule::Quarantined, detail.clone());
                self.quarantined = Some(detail);
            }
        }
    }
}

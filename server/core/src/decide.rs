//! One decision from a snapshot: the same machine, fed once and polled to rest. There is no second algorithm.

use crate::{
    batch::{Action, Batch},
    controller::{Config, Controller},
    event::{After, Effect, Event, Outcome},
    object::{Key, Kind, Pod, ReplicaSet, Timestamp, Uid},
    queue::Lane,
    report::{Decision, Reason, Report, Rule},
};

/// Decides for one ReplicaSet from a snapshot, all operations taken to succeed.
///
/// `None` if there is no such ReplicaSet in `replica_sets`. The order of the input does not matter.
#[must_use]
pub fn decide(
    now: Timestamp,
    config: Config,
    (namespace, name): (&str, &str),
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
) -> Option<Decision> {
    let mut controller = listed(now, config, replica_sets, pods);
    let id = controller.index.set_named(namespace, name)?;
    let key = controller.index.set(id)?.object.key.clone();
    controller.queue.clear();
    controller.queue.add(id, Lane::Live);
    controller.reports.clear();
    Some(run(now, &mut controller, key))
}

/// Returns a controller that has been listed these objects, in an order of their own.
pub(crate) fn listed(
    now: Timestamp,
    config: Config,
    mut sets: Vec<ReplicaSet>,
    mut pods: Vec<Pod>,
) -> Controller {
    sets.sort_by(|a, b| (&a.key, a.version).cmp(&(&b.key, b.version)));
    pods.sort_by(|a, b| {
        (&a.namespace, &a.name, a.version, &a.uid).cmp(&(&b.namespace, &b.name, b.version, &b.uid))
    });
    let mut controller = Controller::new(config);
    for kind in [Kind::ReplicaSet, Kind::Pod] {
        controller.handle_event(now, Event::SnapshotBegin(kind));
    }
    sets.into_iter()
        .for_each(|set| controller.handle_event(now, Event::ReplicaSetApplied(Box::new(set))));
    pods.into_iter()
        .for_each(|pod| controller.handle_event(now, Event::PodApplied(pod)));
    for kind in [Kind::ReplicaSet, Kind::Pod] {
        controller.handle_event(
            now,
            Event::SnapshotEnd {
                kind,
                version: None,
            },
        );
    }
    controller
}

/// Lets one sync run to its end and gathers what it wanted.
fn run(now: Timestamp, controller: &mut Controller, key: Key) -> Decision {
    let mut decision = Decision {
        key,
        creates: Vec::new(),
        deletes: Vec::new(),
        adopts: Vec::new(),
        releases: Vec::new(),
        status: None,
        requeue_after: None,
        quarantined: None,
        reasons: Vec::new(),
    };
    while let Some(batch) = controller.poll_batch(now) {
        succeed(now, controller, &batch);
        decision.gather(batch);
        // What its own operations woke belongs to the next sync.
        controller.queue.clear();
    }
    decision.conclude(controller);
    if decision.reasons.is_empty() {
        decision.reasons.push(Reason {
            rule: Rule::InSync,
            detail: "as wanted".to_owned(),
        });
    }
    decision
}

/// Reports every operation of a batch as done.
fn succeed(now: Timestamp, controller: &mut Controller, batch: &Batch) {
    for operation in 0..u32::try_from(batch.action.operations()).unwrap_or(u32::MAX) {
        let uid = match &batch.action {
            Action::Create { .. } => Some(Uid(format!("decided-{operation}").into())),
            Action::Delete(_) | Action::Claim { .. } | Action::WriteStatus(_) => None,
        };
        let result = Effect::Done {
            uid,
            version: None,
            after: After::Untold,
        };
        controller.handle_outcome(
            now,
            Outcome {
                batch: batch.id,
                operation,
                result,
            },
        );
    }
}

// === impl Decision ===

impl Decision {
    fn gather(&mut self, batch: Batch) {
        self.reasons.extend(batch.reasons);
        match batch.action {
            Action::Create { names, .. } => self.creates = names,
            Action::Delete(victims) => self.deletes = victims,
            Action::Claim { adopts, releases } => {
                self.adopts = adopts;
                self.releases = releases;
            }
            Action::WriteStatus(status) => self.status = Some(*status),
        }
    }

    /// Takes over what the reports say.
    fn conclude(&mut self, controller: &mut Controller) {
        while let Some(report) = controller.poll_report() {
            match report {
                Report::Synced { requeue_after, .. } => self.requeue_after = requeue_after,
                Report::Quarantined { detail, .. } => {
                    self.reasons.push(Reason {
                        rule: Rule::Quarantined,
                        detail: detail.clone(),
                    });
                    self.quarantined = Some(detail);
                }
                Report::StaleViewSkipped { .. }
                | Report::OrphanMatchesMany { .. }
                | Report::DeletionAgeRatio(_)
                | Report::ResyncNeeded { .. } => {}
            }
        }
    }
}

//! Faults of a session: the changes of a mutant to the frames that the session reads and writes. The oracle reads the true
//! frames.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use std::collections::BTreeMap;

use decree_api::v1::{
    self, batch::Action, done, event::Event, outcome::Outcome, reconcile_request as request,
    reconcile_response as response,
};

use super::Mutant;

/// The first frame of a session with a wrong number.
const NUMBERED_RIGHT: u64 = 4;

/// The state of a faulty session.
#[derive(Clone, Debug, Default)]
pub struct FaultySession {
    /// The first state of each pod and each ReplicaSet, by uid.
    pods: BTreeMap<String, v1::Pod>,
    sets: BTreeMap<String, v1::ReplicaSet>,
    /// The last decided status, by the uid of the ReplicaSet.
    statuses: BTreeMap<String, v1::ReplicaSetStatus>,
    /// The names of new pods, in the order of their decisions.
    names: Vec<String>,
    /// The names of deleted pods.
    retired: Vec<String>,
    listed: Vec<v1::Kind>,
    /// Whether each node has ever been cordoned, by name.
    cordoned: BTreeMap<String, bool>,
    /// The newest version of a list of each kind.
    newest: BTreeMap<i32, u64>,
    is_list_new: bool,
    left_out: i64,
}

impl FaultySession {
    /// Returns the frames that the session reads instead of this frame of the agent. They have no numbers, which is valid only
    /// for all frames of a session or none.
    pub fn read(&mut self, mutant: Mutant, frame: &request::Frame) -> Vec<request::Frame> {
        self.retired.extend(names_of_gone_pods(frame));
        let mut frame = frame.clone();
        match mutant {
            Mutant::DecideOnPartialView => return listed_at_once(frame),
            Mutant::MergeLists => return self.merged(frame),
            Mutant::LoseOutcomes if matches!(frame, request::Frame::Outcomes(_)) => {
                return Vec::new();
            }
            _ => {}
        }
        match &mut frame {
            request::Frame::Hello(_) | request::Frame::Heartbeat(_) | request::Frame::Costs(_) => {}
            request::Frame::Nodes(nodes) => {
                for node in &mut nodes.applied {
                    let is_cordoned = self.cordoned.entry(node.name.clone()).or_default();
                    *is_cordoned |= node.unschedulable;
                    if mutant == Mutant::IgnoreUncordons {
                        node.unschedulable = *is_cordoned;
                    }
                }
            }
            request::Frame::SnapshotBegin(_) => self.left_out = 0,
            request::Frame::SnapshotObjects(objects) => {
                if mutant == Mutant::TruncateLists && objects.pods.len() > 1 {
                    objects.pods.pop();
                    self.left_out += 1;
                }
                objects.pods.iter_mut().for_each(|it| self.pod(mutant, it));
                let sets = objects.replica_sets.iter_mut();
                sets.for_each(|it| self.set(mutant, it));
            }
            request::Frame::SnapshotEnd(end) => {
                if mutant == Mutant::IgnoreListsWithoutVersion && end.resource_version.is_empty() {
                    return Vec::new();
                }
                if mutant == Mutant::AcceptOlderLists {
                    self.raise(end);
                }
                if mutant == Mutant::TakeListsForNewest {
                    end.resource_version.clear();
                }
                end.count -= self.left_out;
                self.is_list_new = true;
            }
            request::Frame::Events(events) => {
                self.events(mutant, events);
                if events.events.is_empty() {
                    return Vec::new();
                }
            }
            request::Frame::Outcomes(outcomes) => {
                let outcomes = outcomes.outcomes.iter_mut();
                outcomes.for_each(|it| self.outcome(mutant, it));
            }
        }
        vec![frame]
    }

    /// Returns whether the session forgets the lost creates after this frame.
    pub fn forgets(mutant: Mutant, frame: &request::Frame) -> bool {
        let request::Frame::Events(events) = frame else {
            return false;
        };
        events.events.iter().any(|event| match &event.event {
            Some(Event::Deleted(gone)) => {
                mutant == Mutant::ForgetAtNewUid && gone.kind() == v1::Kind::ReplicaSet
            }
            Some(Event::ReplicaSetApplied(_)) => mutant == Mutant::ForgetAtNewSpec,
            Some(Event::PodApplied(_) | Event::Bookmark(_)) | None => false,
        })
    }

    fn events(&mut self, mutant: Mutant, events: &mut v1::Events) {
        if mutant == Mutant::DropFirstEventAfterList && std::mem::take(&mut self.is_list_new) {
            events.events.remove(0);
        }
        events.events.retain(|event| match (mutant, &event.event) {
            (Mutant::IgnoreTombstones, Some(Event::Deleted(gone))) => gone.kind() != v1::Kind::Pod,
            (Mutant::IgnoreReplicaSetTombstones, Some(Event::Deleted(gone))) => {
                gone.kind() != v1::Kind::ReplicaSet
            }
            (Mutant::IgnorePodEvents, Some(Event::PodApplied(_)))
            | (Mutant::IgnoreReplicaSetEvents, Some(Event::ReplicaSetApplied(_))) => false,
            _ => true,
        });
        for event in &mut events.events {
            match &mut event.event {
                Some(Event::PodApplied(pod)) => self.pod(mutant, pod),
                Some(Event::ReplicaSetApplied(set)) => self.set(mutant, set),
                Some(Event::Deleted(_) | Event::Bookmark(_)) | None => {}
            }
        }
    }

    fn outcome(&mut self, mutant: Mutant, outcome: &mut v1::Outcome) {
        match &mut outcome.outcome {
            Some(Outcome::Done(_)) if mutant == Mutant::ForgetOwnWrites => {
                outcome.outcome = Some(failed(v1::FailureClass::NotFound));
            }
            Some(Outcome::Done(done)) => match &mut done.object {
                Some(done::Object::Pod(pod)) => self.pod(mutant, pod),
                Some(done::Object::ReplicaSet(set)) => self.set(mutant, set),
                None if mutant == Mutant::TakeBareForGone => {
                    done.object = Some(done::Object::Gone(true));
                }
                Some(done::Object::Gone(_)) | None => {}
            },
            Some(Outcome::Failed(it)) if it.failure_class() == v1::FailureClass::Timeout => {
                match mutant {
                    Mutant::TakeTimeoutForRefusal | Mutant::ForgetUnanswered => {
                        it.set_failure_class(v1::FailureClass::Invalid)
                    }
                    Mutant::TakeTimeoutForGone => it.set_failure_class(v1::FailureClass::NotFound),
                    _ => {}
                }
            }
            Some(Outcome::Failed(_) | Outcome::NotStarted(_)) | None => {}
        }
    }

    fn pod(&mut self, mutant: Mutant, pod: &mut v1::Pod) {
        let first = self.pods.entry(pod.uid.clone());
        let first = first.or_insert_with(|| pod.clone()).clone();
        let ended = matches!(pod.phase(), v1::PodPhase::Failed | v1::PodPhase::Succeeded);
        match mutant {
            Mutant::FreezePods => {
                *pod = v1::Pod {
                    resource_version: pod.resource_version.clone(),
                    ..first
                };
            }
            Mutant::FreezeLabels => pod.labels = first.labels,
            Mutant::IgnoreDeletionTimestamps => pod.deletion_timestamp = None,
            Mutant::HideLostLabels if pod.labels.is_empty() => {
                pod.labels.insert("app".to_owned(), "web".to_owned());
            }
            Mutant::CountEndedPods | Mutant::HideFailures if ended => {
                pod.set_phase(v1::PodPhase::Running)
            }
            Mutant::ForgetOwners => pod.controller = None,
            Mutant::MisplacePods => "elsewhere".clone_into(&mut pod.namespace),
            Mutant::IdentifyByName => pod.uid.clone_from(&pod.name),
            Mutant::IgnoreReadiness => pod.ready = None,
            _ => {}
        }
    }

    fn set(&mut self, mutant: Mutant, set: &mut v1::ReplicaSet) {
        let first = self.sets.entry(set.uid.clone());
        let first = first.or_insert_with(|| set.clone());
        match mutant {
            Mutant::IgnoreMinReadySeconds => set.min_ready_seconds = 0,
            Mutant::FreezeReplicas => set.replicas = first.replicas,
            Mutant::IgnoreReplicaSetDeletion => set.deletion_timestamp = None,
            Mutant::HideIllTemplates => {
                if let Some(selector) = &set.selector {
                    set.template_labels.clone_from(&selector.match_labels);
                }
            }
            _ => {}
        }
    }

    /// Sets the version of a list to the highest version of a list of its kind.
    fn raise(&mut self, end: &mut v1::SnapshotEnd) {
        let version = end.resource_version.parse().unwrap_or(0);
        let newest = self.newest.entry(end.kind).or_default();
        *newest = version.max(*newest);
        end.resource_version = newest.to_string();
    }

    /// A later list of a kind only adds objects, and removes none.
    fn merged(&mut self, frame: request::Frame) -> Vec<request::Frame> {
        match &frame {
            request::Frame::SnapshotBegin(begin) if self.listed.contains(&begin.kind()) => {
                self.is_list_new = true;
                Vec::new()
            }
            request::Frame::SnapshotObjects(objects) if self.is_list_new => {
                applied(objects.clone()).into_iter().collect()
            }
            request::Frame::SnapshotEnd(_) if std::mem::take(&mut self.is_list_new) => Vec::new(),
            request::Frame::SnapshotEnd(end) => {
                self.listed.push(end.kind());
                vec![frame]
            }
            _ => vec![frame],
        }
    }
}

impl FaultySession {
    /// Changes an outgoing frame of the session. Returns whether the frame leaves at all.
    pub fn write(&mut self, mutant: Mutant, frame: &mut v1::ReconcileResponse) -> bool {
        match mutant {
            Mutant::ReuseSequence if frame.sequence > NUMBERED_RIGHT => frame.sequence -= 1,
            Mutant::SkipSequence if frame.sequence > NUMBERED_RIGHT => frame.sequence += 1,
            _ => {}
        }
        match &mut frame.frame {
            Some(response::Frame::Resync(_)) => mutant != Mutant::LoseResync,
            Some(response::Frame::Batches(batches)) => {
                let batches = batches.batches.iter_mut();
                batches.for_each(|it| self.batch(mutant, it));
                mutant != Mutant::LoseBatches
            }
            Some(
                response::Frame::Welcome(_)
                | response::Frame::Drain(_)
                | response::Frame::Heartbeat(_)
                | response::Frame::Rejection(_)
                | response::Frame::CostsWanted(_),
            )
            | None => true,
        }
    }

    fn batch(&mut self, mutant: Mutant, batch: &mut v1::Batch) {
        let set = batch.replica_set.clone().unwrap_or_default();
        if let Some(reference) = &mut batch.replica_set {
            match mutant {
                Mutant::MistakeReplicaSet => reference.uid.push('0'),
                Mutant::MistakeNamespace => "elsewhere".clone_into(&mut reference.namespace),
                _ => {}
            }
        }
        if let Some(guard) = &mut batch.guard {
            match mutant {
                Mutant::MistakeSession => "session-0".clone_into(&mut guard.session_id),
                Mutant::MistakeEpoch => guard.epoch -= 1,
                _ => {}
            }
        }
        match &mut batch.action {
            Some(Action::Create(create)) => self.create(mutant, create),
            Some(Action::Delete(delete)) => {
                if mutant == Mutant::DeleteUnknownPod
                    && let Some(pod) = delete.victims.first_mut().and_then(|it| it.pod.as_mut())
                {
                    pod.uid.push('0');
                }
                if mutant == Mutant::DeleteOneTwice {
                    delete.victims.extend(delete.victims.first().cloned());
                }
            }
            Some(Action::Claim(claim)) => match mutant {
                Mutant::SwapClaims => std::mem::swap(&mut claim.adopts, &mut claim.releases),
                Mutant::DropAdoptions => claim.adopts.clear(),
                Mutant::DropReleases => claim.releases.clear(),
                _ => {}
            },
            Some(Action::WriteStatus(write)) => {
                if let Some(status) = &mut write.status {
                    self.status(mutant, &set.uid, status);
                }
            }
            Some(Action::Advise(_)) | None => {}
        }
    }

    fn create(&mut self, mutant: Mutant, create: &mut v1::Create) {
        match mutant {
            Mutant::CreateOneMore => create.names.extend(
                create
                    .names
                    .first()
                    .map(|name| format!("{name}0"))
                    .into_iter()
                    .collect::<Vec<_>>(),
            ),
            Mutant::CreateUnderTakenName => {
                if let (Some(taken), Some(name)) = (self.names.first(), create.names.first_mut()) {
                    name.clone_from(taken);
                }
            }
            Mutant::ReuseNames => {
                for name in &mut create.names {
                    *name = self.retired.pop().unwrap_or_else(|| name.clone());
                }
            }
            _ => {}
        }
        self.names.extend(create.names.iter().cloned());
    }

    fn status(&mut self, mutant: Mutant, set: &str, status: &mut v1::ReplicaSetStatus) {
        let before = self.statuses.insert(set.to_owned(), status.clone());
        match mutant {
            Mutant::MiscountReplicas => status.replicas += 1,
            Mutant::WriteOldStatus => *status = before.unwrap_or_else(|| status.clone()),
            Mutant::ForgetObservedGeneration => status.observed_generation = 0,
            _ => {}
        }
    }
}

/// Returns the batches of a frame again, under other numbers.
pub fn repeated(frame: &v1::ReconcileResponse) -> v1::ReconcileResponse {
    let mut again = frame.clone();
    again.sequence += 1;
    if let Some(response::Frame::Batches(batches)) = &mut again.frame {
        batches
            .batches
            .iter_mut()
            .for_each(|batch| batch.id += 1_000_000);
    }
    again
}

/// Ends a list at its start, and turns its objects into changes.
fn listed_at_once(frame: request::Frame) -> Vec<request::Frame> {
    match frame {
        request::Frame::SnapshotBegin(begin) => {
            let end = v1::SnapshotEnd {
                kind: begin.kind,
                ..v1::SnapshotEnd::default()
            };
            vec![
                request::Frame::SnapshotBegin(begin),
                request::Frame::SnapshotEnd(end),
            ]
        }
        request::Frame::SnapshotObjects(objects) => applied(objects).into_iter().collect(),
        request::Frame::SnapshotEnd(_) => vec![],
        other @ (request::Frame::Hello(_)
        | request::Frame::Events(_)
        | request::Frame::Outcomes(_)
        | request::Frame::Heartbeat(_)
        | request::Frame::Nodes(_)
        | request::Frame::Costs(_)) => vec![other],
    }
}

/// Turns the objects of a list into changes.
fn applied(objects: v1::SnapshotObjects) -> Option<request::Frame> {
    let pods = objects.pods.into_iter().map(Event::PodApplied);
    let sets = objects.replica_sets.into_iter();
    let events = pods.chain(sets.map(Event::ReplicaSetApplied)).map(Some);
    let events: Vec<_> = events.map(|event| v1::Event { event }).collect();
    (!events.is_empty()).then_some(request::Frame::Events(v1::Events { events }))
}

fn names_of_gone_pods(frame: &request::Frame) -> Vec<String> {
    let request::Frame::Events(events) = frame else {
        return Vec::new();
    };
    let gone = events.events.iter().filter_map(|event| match &event.event {
        Some(Event::Deleted(gone)) if gone.kind() == v1::Kind::Pod => {
            gone.object.as_ref().map(|pod| pod.name.clone())
        }
        Some(_) | None => None,
    });
    gone.collect()
}

fn failed(class: v1::FailureClass) -> Outcome {
    Outcome::Failed(v1::Failed {
        failure_class: class.into(),
        ..v1::Failed::default()
    })
}

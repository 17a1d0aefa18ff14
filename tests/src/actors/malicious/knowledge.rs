//! The knowledge of a malicious server about the cluster, over all of its sessions: it forgets nothing, so it can name objects
//! that are long gone.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::v1::{
    self, done::Object, event::Event, outcome::Outcome, reconcile_request::Frame,
};

use crate::objects::pod_ref;

/// The last known objects, by uid.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    pub(super) pods: BTreeMap<String, v1::Pod>,
    pub(super) sets: BTreeMap<String, v1::ReplicaSet>,
    /// Pods that are gone.
    pub(super) gone: Vec<v1::ObjectRef>,
    /// The nodes whose pods may be evicted.
    pub(super) hinted: BTreeSet<String>,
    /// The pods of the open list.
    listed: Option<Vec<String>>,
}

impl Knowledge {
    pub(super) fn read(&mut self, frame: &Frame) {
        match frame {
            Frame::SnapshotBegin(begin) if begin.kind() == v1::Kind::Pod => {
                self.listed = Some(Vec::new());
            }
            Frame::SnapshotObjects(objects) => {
                let uids = objects.pods.iter().map(|pod| pod.uid.clone());
                self.listed
                    .iter_mut()
                    .for_each(|it| it.extend(uids.clone()));
                objects.pods.iter().for_each(|pod| self.apply_pod(pod));
                objects
                    .replica_sets
                    .iter()
                    .for_each(|set| self.apply_set(set));
            }
            Frame::SnapshotEnd(end) if end.kind() == v1::Kind::Pod => {
                let listed = self.listed.take().unwrap_or_default();
                let pods = std::mem::take(&mut self.pods);
                let (there, gone) = pods.into_iter().partition(|(uid, _)| listed.contains(uid));
                self.pods = there;
                let gone: BTreeMap<String, v1::Pod> = gone;
                self.gone.extend(gone.values().map(pod_ref));
            }
            Frame::Events(events) => {
                let events = events.events.iter().filter_map(|it| it.event.as_ref());
                events.for_each(|event| self.apply(event));
            }
            Frame::Outcomes(outcomes) => {
                for outcome in &outcomes.outcomes {
                    if let Some(Outcome::Done(done)) = &outcome.outcome
                        && let Some(Object::Pod(pod)) = &done.object
                    {
                        self.apply_pod(pod);
                    }
                }
            }
            Frame::Nodes(nodes) => {
                for node in &nodes.applied {
                    self.hinted.remove(&node.name);
                    let is_hinted = node.unschedulable || node.leaving;
                    self.hinted.extend(is_hinted.then(|| node.name.clone()));
                }
            }
            Frame::Hello(_)
            | Frame::Heartbeat(_)
            | Frame::Costs(_)
            | Frame::SnapshotBegin(_)
            | Frame::SnapshotEnd(_) => {}
        }
    }

    pub(super) fn replicas(&self, set: &v1::ReplicaSet) -> Vec<&v1::Pod> {
        let owned = self.pods.values().filter(|pod| controls(set, pod));
        owned.filter(|pod| is_active(pod)).collect()
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::PodApplied(pod) => self.apply_pod(pod),
            Event::ReplicaSetApplied(set) => self.apply_set(set),
            Event::Deleted(deleted) => {
                let object = deleted.object.clone().unwrap_or_default();
                self.sets.remove(&object.uid);
                if self.pods.remove(&object.uid).is_some() {
                    self.gone.push(object);
                }
            }
            Event::Bookmark(_) => {}
        }
    }

    fn apply_pod(&mut self, pod: &v1::Pod) {
        self.pods.insert(pod.uid.clone(), pod.clone());
    }

    fn apply_set(&mut self, set: &v1::ReplicaSet) {
        self.sets.insert(set.uid.clone(), set.clone());
    }
}

pub(super) fn controls(set: &v1::ReplicaSet, pod: &v1::Pod) -> bool {
    pod.controller.as_ref().is_some_and(|it| it.uid == set.uid)
}

pub(super) fn has_ended(pod: &v1::Pod) -> bool {
    matches!(pod.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed)
}

pub(super) fn is_active(pod: &v1::Pod) -> bool {
    !has_ended(pod) && pod.deletion_timestamp.is_none()
}

pub(super) fn selects(set: &v1::ReplicaSet, pod: &v1::Pod) -> bool {
    let mut labels = set.selector.iter().flat_map(|it| &it.match_labels);
    let has = |(key, value): (&String, &String)| pod.labels.get(key) == Some(value);
    set.namespace == pod.namespace && labels.all(has)
}

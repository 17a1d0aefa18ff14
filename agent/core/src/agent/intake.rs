//! Input from lists and watches, noted in the view and put into the outbox.

use decree_api::v1::{self, event::Event as EventKind};
use jiff::Timestamp;

use super::Agent;
use crate::{
    api::{Kind, Object},
    budget::PodOfOther,
    link::EVENTS_WAITING_MAX,
    nodes::NodeEvent,
    report::Report,
    watch::{Items, List, WatchEvent, packed_pods},
};

impl Agent {
    /// Handles news of the nodes.
    pub fn handle_nodes(&mut self, events: Vec<NodeEvent>) {
        let changes = self.view.pods.apply_nodes(events);
        if self.link.takes_work() {
            self.outbox.push_nodes(changes.nodes, changes.completes);
        }
    }

    /// Takes a question for costs. Without the capability, no preference names a source, and no pod is asked.
    pub(super) fn handle_question(&mut self, now: Timestamp, wanted: v1::CostsWanted) {
        if self.link.takes_work()
            && let Err(text) = self.asking.handle_question(now, &self.view, wanted)
        {
            self.handle_violation(now, &text);
        }
    }

    /// Takes all objects of a kind, or the next page; `count` objects have come so far.
    pub(super) fn take_list(&mut self, kind: Kind, list: List, count: usize) {
        let List {
            part,
            mut items,
            invalid,
            resource_version,
        } = list;
        match &mut items {
            Items::Pods(pods) => {
                if !self.guard.config.allows_all_namespaces() {
                    let namespace = |pod: &[u8]| packed_pods::decode(pod).namespace;
                    pods.0
                        .retain(|pod| self.guard.config.allows_namespace(&namespace(pod)));
                }
                self.view.pods.list(part, pods.len(), pods.iter());
            }
            Items::ReplicaSets(sets) => {
                sets.retain(|set| self.guard.allows_replica_set(&set.projected));
                for set in &mut *sets {
                    self.guard.apply_preferences(&mut set.projected);
                }
                self.view.list_replica_sets(part, sets);
            }
        }
        let skipped = invalid.into_iter().map(Report::Skipped);
        self.reports.extend(skipped);
        self.outbox.push_list(part, items, resource_version);
        if part.ends {
            self.reports.push_back(Report::Listed { kind, count });
        }
    }

    /// Takes an event. An object that cannot be read is left out, without harm to others. The last readable state of a ReplicaSet, or of an
    /// object that is gone, does not stay: pods would be created for a ReplicaSet that is gone, or that its owner deletes.
    pub(super) fn take_event(&mut self, now: Timestamp, kind: Kind, event: WatchEvent) {
        match event {
            WatchEvent::Applied(object) => self.apply_object(object),
            WatchEvent::MadeByOther { object, writer } => {
                self.note_other(now, &object, &writer);
                self.apply_object(object);
            }
            WatchEvent::Deleted(object) => self.delete_object(&object),
            WatchEvent::Invalid {
                error, left_out, ..
            } => {
                self.reports.push_back(Report::Skipped(error));
                if let Some(object) = left_out {
                    self.delete_object(&object);
                }
            }
            WatchEvent::Bookmark(resource_version) => {
                let bookmark = v1::Bookmark {
                    kind: kind.to_wire().into(),
                    resource_version,
                };
                self.outbox
                    .push_event(kind, String::new(), EventKind::Bookmark(bookmark));
            }
            WatchEvent::Error(_) => {}
        }
        self.check_events_waiting(now);
    }

    /// Leaves a server that does not read: the events of objects that are gone would wait without bound. The lists of the next session
    /// cover them.
    fn check_events_waiting(&mut self, now: Timestamp) {
        let waiting = self.outbox.events_waiting();
        if waiting > EVENTS_WAITING_MAX + 2 * self.view.objects() {
            self.handle_violation(now, &format!("{waiting} events are not read"));
        }
    }

    /// Takes a pod that another controller created, if this agent serves its ReplicaSet.
    fn note_other(&mut self, now: Timestamp, object: &Object, writer: &str) {
        if self.guard.config.mode == v1::Mode::Enforce
            && let Object::Pod(pod) = object
            && let Some(controller) = &pod.controller
            && let Some(set) = self.view.templates.newest(&controller.uid)
            && set.namespace == pod.namespace
        {
            let pod = PodOfOther::new(set, pod, writer);
            self.batches.budget.note_other(now, &pod);
            self.reports.push_back(Report::PodOfOther(pod));
        }
    }

    fn apply_object(&mut self, object: Object) {
        if !self.guard.allows(&object) {
            return;
        }
        match object {
            Object::Pod(pod) => {
                self.view.pods.apply(&pod);
                let uid = pod.uid.clone();
                self.outbox
                    .push_event(Kind::Pod, uid, EventKind::PodApplied(*pod));
            }
            Object::ReplicaSet(mut set) => {
                self.guard.apply_preferences(&mut set.projected);
                self.view.apply_replica_set(&set);
                let uid = set.projected.uid.clone();
                let event = EventKind::ReplicaSetApplied(set.projected);
                self.outbox.push_event(Kind::ReplicaSet, uid, event);
            }
        }
    }

    fn delete_object(&mut self, object: &Object) {
        let (kind, gone) = object.reference();
        match kind {
            Kind::Pod => self.view.pods.delete(&gone.uid),
            Kind::ReplicaSet => self.view.delete_replica_set(&gone),
        }
        if self.guard.allows(object) {
            let uid = gone.uid.clone();
            let deleted = v1::Deleted {
                kind: kind.to_wire().into(),
                object: Some(gone),
                resource_version: object.resource_version().to_owned(),
            };
            self.outbox
                .push_event(kind, uid, EventKind::Deleted(deleted));
        }
    }
}

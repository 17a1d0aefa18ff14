//! The view of an agent's frames, and what they break.

use std::collections::BTreeSet;

use decree_api::v1::{
    Kind, Outcome, Pod, ReplicaSet, SnapshotEnd, done, event, outcome, reconcile_request::Frame,
};

use super::ConnectedAgent;
use crate::{
    fields::check_fields,
    history::{Fault, check_created, check_form, check_versions, unselected},
    score::{HELLO, LABELS, LISTS, NOT_BACK, ONE_EACH, ORDER},
};

impl ConnectedAgent {
    /// Notes that an outcome has shown the end of a pod.
    pub(crate) fn end_pod(&mut self, uid: &str, outcomes: &[outcome::Outcome]) {
        if let [outcome::Outcome::Done(done)] = outcomes {
            self.history.end(uid, &done.resource_version);
        }
    }

    fn write(&mut self, pod: &Pod) {
        if pod.deletion_timestamp.is_none() {
            if !self.pods.contains_key(&pod.uid) {
                let list = self.last_lists.get(&Kind::Pod.into()).copied();
                self.note(check_created(pod, list));
            }
            self.history.make(pod);
        }
        self.show_pod(pod);
    }

    fn show_pod(&mut self, pod: &Pod) {
        self.note(check_form(&pod.resource_version));
        self.note(check_fields(
            [&pod.namespace, &pod.name, &pod.uid],
            &pod.labels,
        ));
        if let Some(mut before) = self.pods.insert(pod.uid.clone(), pod.clone()) {
            // Labels have their own rule.
            before.labels.clone_from(&pod.labels);
            let fault = check_versions(
                &pod.name,
                &before.resource_version,
                &pod.resource_version,
                before == *pod,
            );
            self.note(fault);
        }
    }

    fn show_set(&mut self, set: &ReplicaSet) {
        self.note(check_form(&set.resource_version));
        self.note(check_fields(
            [&set.namespace, &set.name, &set.uid],
            &set.template_labels,
        ));
        if let Some(before) = self.replica_sets.insert(set.uid.clone(), set.clone()) {
            let fault = check_versions(
                &set.name,
                &before.resource_version,
                &set.resource_version,
                before == *set,
            );
            self.note(fault);
        }
    }

    pub(super) fn note(&mut self, fault: Option<Fault>) {
        if let Some((rule, why)) = fault {
            self.note_fault(rule, why);
        }
    }

    pub(super) fn note_fault(&mut self, rule: &'static str, why: impl Into<String>) {
        self.faults.entry(rule).or_insert_with(|| why.into());
    }

    pub(super) fn take(&mut self, frame: &Frame) {
        match frame {
            Frame::Hello(_) if self.hello.is_some() => {
                self.note_fault(HELLO, "a second Hello");
            }
            Frame::Hello(_) | Frame::Heartbeat(_) | Frame::Nodes(_) | Frame::Costs(_) => {}
            Frame::SnapshotBegin(begin) => {
                self.open.insert(begin.kind, BTreeSet::new());
                if begin.kind() == Kind::Pod {
                    self.before_list = self.history.clone();
                }
            }
            Frame::SnapshotObjects(objects) => {
                for pod in &objects.pods {
                    self.listed(Kind::Pod, &pod.uid);
                    self.show_pod(pod);
                }
                for set in &objects.replica_sets {
                    self.listed(Kind::ReplicaSet, &set.uid);
                    self.show_set(set);
                }
            }
            Frame::SnapshotEnd(end) => self.close(end),
            Frame::Events(events) => {
                for event in &events.events {
                    match &event.event {
                        Some(event) => self.change(event),
                        None => self.note_fault(ORDER, "an event without content"),
                    }
                }
            }
            Frame::Outcomes(outcomes) => {
                self.reported.extend(self.open.keys());
                for one in &outcomes.outcomes {
                    self.outcome(one);
                }
            }
        }
    }

    fn listed(&mut self, kind: Kind, uid: &str) {
        if let Some(uids) = self.open.get_mut(&kind.into()) {
            uids.insert(uid.to_owned());
        } else {
            self.note_fault(LISTS, "objects without an open list");
        }
    }

    fn close(&mut self, end: &SnapshotEnd) {
        let Some(uids) = self.open.remove(&end.kind) else {
            return self.note_fault(LISTS, "an end without a begin");
        };
        if i64::try_from(uids.len()) != Ok(end.count) {
            let why = format!("a list of {} that counts {}", uids.len(), end.count);
            self.note_fault(LISTS, why);
        }
        if self.reported.remove(&end.kind) && end.resource_version.is_empty() {
            self.note_fault(LISTS, "an outcome inside a list without a version");
        }
        if end.kind() == Kind::Pod {
            let (before, version) = (&self.before_list, &end.resource_version);
            let fault = before.check_list(&self.history, version, &uids, &self.pods);
            self.note(fault);
            self.pods.retain(|uid, _| uids.contains(uid));
        } else {
            self.replica_sets.retain(|uid, _| uids.contains(uid));
        }
        *self.lists.entry(end.kind).or_default() += 1;
        self.note_version(end);
        let mut sets = self.replica_sets.values();
        if let Some(why) = sets.find_map(|set| unselected(set, self.pods.values())) {
            self.note_fault(LABELS, why);
        }
    }

    /// Notes a list that is older than the previous one of its kind. Events since a list may be repeated after it.
    fn note_version(&mut self, end: &SnapshotEnd) {
        self.note(check_form(&end.resource_version));
        let Ok(version) = end.resource_version.parse() else {
            return;
        };
        let last = self.last_lists.insert(end.kind, version);
        if let Some(last) = last.filter(|last| version < *last) {
            let why = format!("a list of version {version} after one of {last}");
            self.note_fault(NOT_BACK, why);
        }
        if let Some(newest) = self.newest.get_mut(&end.kind) {
            *newest = version.min(*newest);
        }
    }

    fn change(&mut self, event: &event::Event) {
        self.order(event);
        match event {
            event::Event::PodApplied(pod) => {
                let fault = self.history.check_state(pod);
                self.note(fault);
                self.show_pod(pod);
            }
            event::Event::ReplicaSetApplied(set) => self.show_set(set),
            event::Event::Deleted(deleted) => {
                let uid = deleted.object.as_ref().map_or("", |object| &object.uid);
                self.history.end(uid, &deleted.resource_version);
                self.pods.remove(uid);
                self.replica_sets.remove(uid);
            }
            event::Event::Bookmark(_) => {}
        }
    }

    /// Notes an event that precedes all lists of its kind, or is older than the newest event.
    fn order(&mut self, event: &event::Event) {
        let (kind, version) = match event {
            event::Event::PodApplied(pod) => (Kind::Pod.into(), &pod.resource_version),
            event::Event::ReplicaSetApplied(set) => {
                (Kind::ReplicaSet.into(), &set.resource_version)
            }
            event::Event::Deleted(deleted) => (deleted.kind, &deleted.resource_version),
            event::Event::Bookmark(bookmark) => (bookmark.kind, &bookmark.resource_version),
        };
        if !self.lists.contains_key(&kind) && !self.open.contains_key(&kind) {
            self.note_fault(ORDER, "an event before the first list of its kind");
        }
        self.note(check_form(version));
        let Ok(version) = version.parse() else { return };
        let newest = self.newest.entry(kind).or_insert(version);
        let before = std::mem::replace(newest, version.max(*newest));
        if version < before {
            let why = format!("an event of version {version} after one of {before}");
            self.note_fault(ORDER, why);
        }
    }

    fn outcome(&mut self, one: &Outcome) {
        if let Some(outcome::Outcome::Done(done)) = &one.outcome {
            self.note(check_form(&done.resource_version));
            match &done.object {
                Some(done::Object::Pod(pod)) => self.write(pod),
                Some(done::Object::ReplicaSet(set)) => self.show_set(set),
                Some(done::Object::Gone(_)) | None => {}
            }
        }
        if one.outcome.is_none() {
            self.note_fault(ONE_EACH, "an outcome without content");
        }
        let (batch, operation) = (one.batch_id, one.operation);
        let earlier = self.outcomes.insert((batch, operation), one.clone());
        if earlier.is_some() {
            let why = format!("operation {operation} of batch {batch} has two outcomes");
            self.note_fault(ONE_EACH, why);
        }
    }
}

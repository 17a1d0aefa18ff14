//! What lists and watches bring: projected, noted in the view, and put into the outbox.

use std::collections::HashSet;

use decree::v1::{self, event::Event as EventKind};

use super::Agent;
use crate::{
    api::{Kind, Object},
    outbox::Objects,
    project::ProjectError,
    report::Report,
    watch::Change,
};

impl Agent {
    /// Takes all objects of a kind.
    pub(super) fn intake_list(&mut self, kind: Kind, items: Vec<Object>, version: String) {
        let count = items.len();
        let objects = match kind {
            Kind::Pod => Objects::Pods(self.list_pods(items)),
            Kind::ReplicaSet => Objects::ReplicaSets(self.list_replica_sets(items)),
        };
        self.outbox.push_snapshot(objects, version);
        self.reports.push_back(Report::Listed { kind, count });
    }

    /// Takes a change. An object that cannot be projected is left out, and harms no other.
    pub(super) fn intake_change(&mut self, kind: Kind, change: Change) {
        let projected = match change {
            Change::Applied(object) => self.apply(kind, object),
            Change::Deleted(object) => self.delete(kind, object),
            Change::Bookmark(resource_version) => {
                let bookmark = v1::Bookmark {
                    kind: kind.to_wire().into(),
                    resource_version,
                };
                self.outbox
                    .push_event(kind, String::new(), EventKind::Bookmark(bookmark));
                Ok(())
            }
        };
        if let Err(error) = projected {
            self.reports.push_back(Report::Skipped(error));
        }
    }

    fn list_pods(&mut self, items: Vec<Object>) -> Vec<v1::Pod> {
        let mut pods = Vec::with_capacity(items.len());
        for item in items {
            match item.into_pod() {
                Ok(pod) if self.guard.allows_namespace(&pod.namespace) => pods.push(pod),
                Ok(_) => {}
                Err(error) => self.reports.push_back(Report::Skipped(error)),
            }
        }
        self.view.replace_pods(&pods);
        pods
    }

    fn list_replica_sets(&mut self, items: Vec<Object>) -> Vec<v1::ReplicaSet> {
        let mut replica_sets = Vec::with_capacity(items.len());
        for item in items {
            match item.into_replica_set() {
                Ok((projected, object)) if self.guard.allows_namespace(&projected.namespace) => {
                    self.view.apply_replica_set(&projected, object);
                    replica_sets.push(projected);
                }
                Ok(_) => {}
                Err(error) => self.reports.push_back(Report::Skipped(error)),
            }
        }
        let listed: HashSet<&str> = replica_sets.iter().map(|set| set.uid.as_str()).collect();
        self.view.templates.retain(|uid| listed.contains(uid));
        replica_sets
    }

    fn apply(&mut self, kind: Kind, object: Object) -> Result<(), ProjectError> {
        let (uid, event) = match kind {
            Kind::Pod => {
                let pod = object.into_pod()?;
                if !self.guard.allows_namespace(&pod.namespace) {
                    return Ok(());
                }
                self.view.apply_pod(&pod);
                (pod.uid.clone(), EventKind::PodApplied(pod))
            }
            Kind::ReplicaSet => {
                let (projected, object) = object.into_replica_set()?;
                if !self.guard.allows_namespace(&projected.namespace) {
                    return Ok(());
                }
                self.view.apply_replica_set(&projected, object);
                (
                    projected.uid.clone(),
                    EventKind::ReplicaSetApplied(projected),
                )
            }
        };
        self.outbox.push_event(kind, uid, event);
        Ok(())
    }

    fn delete(&mut self, kind: Kind, object: Object) -> Result<(), ProjectError> {
        let (gone, resource_version) = match kind {
            Kind::Pod => {
                let pod = object.into_pod()?;
                self.view.delete_pod(&pod.uid);
                let gone = v1::ObjectRef {
                    namespace: pod.namespace,
                    name: pod.name,
                    uid: pod.uid,
                };
                (gone, pod.resource_version)
            }
            Kind::ReplicaSet => {
                let (set, _) = object.into_replica_set()?;
                self.view.templates.delete(&set.uid);
                let gone = v1::ObjectRef {
                    namespace: set.namespace,
                    name: set.name,
                    uid: set.uid,
                };
                (gone, set.resource_version)
            }
        };
        if self.guard.allows_namespace(&gone.namespace) {
            let uid = gone.uid.clone();
            let deleted = v1::Deleted {
                kind: kind.to_wire().into(),
                object: Some(gone),
                resource_version,
            };
            self.outbox
                .push_event(kind, uid, EventKind::Deleted(deleted));
        }
        Ok(())
    }
}

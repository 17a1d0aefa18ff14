//! Faults of agents and of the API server: the changes of a mutant to the messages between them.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use agent_core::{
    api,
    watch::{Items, List, WatchEvent, packed_pods::PackedPods},
};
use agent_fake::{EventKind, Kind, Object};
use decree_agent::cluster::fake::calls;
use decree_api::v1::{self, reconcile_request as request};
use serde_json::{Value, json};

use super::state::World;
use crate::{mutants::Mutant, workloads::NAMESPACE};

/// The frequency per thousand of mutants that would otherwise break everything at once.
const NOW_AND_THEN: u64 = 200;

impl World {
    /// Changes the report of an agent.
    pub(super) fn mutate_frame(&self, frame: &mut v1::ReconcileRequest) {
        match (self.mutant, &mut frame.frame) {
            (Some(Mutant::AnswerTwice), Some(request::Frame::Outcomes(it))) => {
                it.outcomes.extend(it.outcomes.clone());
            }
            (Some(Mutant::AnswerForAnother), Some(request::Frame::Outcomes(it))) => {
                let outcomes = it.outcomes.iter_mut();
                outcomes.for_each(|outcome| outcome.batch_id += 1_000);
            }
            (Some(Mutant::ApplyTwice), Some(request::Frame::Events(it))) => {
                it.events.extend(it.events.clone());
            }
            _ => {}
        }
    }

    /// Changes a pod before its creation. Returns another pod to create as well.
    pub(super) fn mutate_create(&mut self, pod: &mut Value) -> Option<Value> {
        match self.mutant? {
            Mutant::ForgetOwnerReference => pod["metadata"]["ownerReferences"] = Value::Null,
            Mutant::CreateInOtherNamespace => pod["metadata"]["namespace"] = "elsewhere".into(),
            Mutant::ReplayCreate if self.rng.chance(NOW_AND_THEN) => {
                let mut replay = pod.clone();
                let name = pod["metadata"]["generateName"].as_str().unwrap_or_default();
                replay["metadata"]["name"] =
                    format!("{name}{:05}", self.rng.between(0, 99_999)).into();
                return Some(replay);
            }
            Mutant::RetryUnderAnotherName if self.rng.chance(NOW_AND_THEN) => {
                let mut retry = pod.clone();
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                retry["metadata"]["name"] = format!("{name}-0").into();
                return Some(retry);
            }
            _ => {}
        }
        None
    }

    /// The pod that a deletion hits instead of the victim.
    pub(super) fn neighbour(&self, name: &str) -> Option<String> {
        let pods = self.cluster.objects(Kind::Pod);
        let mut others = pods.filter(|pod| {
            pod["metadata"]["namespace"] == NAMESPACE
                && pod["metadata"]["name"] != name
                && pod["metadata"]["ownerReferences"].is_array()
        });
        let other = others
            .next()
            .filter(|_| self.is_mutant(Mutant::DeleteNeighbour));
        other?["metadata"]["name"].as_str().map(str::to_owned)
    }

    /// Changes a list: to the objects of the first list of the kind, or to none.
    pub(super) fn mutate_list(&mut self, life: u64, kind: api::Kind, list: &mut List) {
        if self.is_mutant(Mutant::ListStaleAfterRestart) && life > 1 && kind == api::Kind::Pod {
            list.items = Items::Pods(PackedPods::default());
        }
        if self.is_mutant(Mutant::ServeOldLists) {
            let first = self.first_lists.entry(kind);
            let first = first.or_insert_with(|| list.items.clone());
            list.items.clone_from(first);
        }
        let version = list.resource_version.parse().unwrap_or(0);
        let changed = if self.is_mutant(Mutant::RaiseVersions) {
            self.newest_version().max(version)
        } else if self.is_mutant(Mutant::BelieveLostLists) {
            self.cluster.version().min(version)
        } else {
            return;
        };
        list.resource_version = changed.to_string();
    }

    /// Changes the answer to a request for the newest version.
    pub(super) fn mutate_version(&self, version: u64) -> u64 {
        if self.is_mutant(Mutant::RaiseAskedVersions) || self.is_mutant(Mutant::RaiseVersions) {
            version.max(self.newest_version())
        } else {
            version
        }
    }

    /// Changes a pod in the answer to its create.
    pub(super) fn mutate_created(&mut self, pod: Object) -> Object {
        if !self.is_mutant(Mutant::RaiseVersions) {
            return pod;
        }
        let version = pod["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|it| it.parse().ok()).unwrap_or(0);
        let mut pod = Value::clone(&pod);
        pod["metadata"]["resourceVersion"] = self.raise_version(version).to_string().into();
        Object::new(pod)
    }

    pub(super) fn mutate_event(&self, event: &agent_fake::WatchEvent) -> WatchEvent {
        let is_set = event.object["kind"] == "ReplicaSet" && event.kind != EventKind::Bookmark;
        if self.is_mutant(Mutant::ForgetHolds) && is_set {
            let mut object = Value::clone(&event.object);
            let version = object["metadata"]["resourceVersion"].clone();
            object["metadata"]["annotations"] = json!({"decree.dev/resume": version});
            let object = Object::new(object);
            let kind = event.kind;
            return calls::event(&agent_fake::WatchEvent { kind, object });
        }
        match calls::event(event) {
            WatchEvent::MadeByOther { object, .. } if self.is_mutant(Mutant::ShowOthersAsOurs) => {
                WatchEvent::Applied(object)
            }
            told => told,
        }
    }

    /// The version from which a watch opens.
    pub(super) fn watched_from(&self, from: &str) -> u64 {
        match self.mutant {
            Some(Mutant::WatchFromNow) => self.cluster.version(),
            Some(_) | None => from.parse().unwrap_or(0),
        }
    }

    /// Whether an event of a watch never arrives.
    pub(super) fn is_swallowed(&mut self, watch: u64, kind: EventKind) -> bool {
        let is_first = watch > self.newest_told;
        self.newest_told = self.newest_told.max(watch);
        match self.mutant {
            Some(Mutant::LoseEvents) => self.rng.chance(300),
            Some(Mutant::DropFirstWatchEvent) => is_first,
            Some(Mutant::LoseDeletions) => kind == EventKind::Deleted,
            Some(_) | None => false,
        }
    }
}

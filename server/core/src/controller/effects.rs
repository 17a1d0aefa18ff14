//! What outcomes say enters the view at once; what they leave open is expected of the stream.

use std::sync::Arc;

use super::{Controller, flights::Operation};
use crate::{
    batch::PodRef,
    event::{After, Effect, FailureClass},
    expectations::{Expected, Write},
    index::{OWNER_KIND, PodChange, SetId},
    object::{Key, Kind, OwnerReference, Pod, ReplicaSet, ResourceVersion, Status, Timestamp, Uid},
    queue::Lane,
};

/// Who acted: the ReplicaSet, which may be gone by now.
type Actor<'a> = (SetId, &'a Key);

/// What an outcome tells of a write: the uid, the version, the object.
type Told = (Option<Uid>, Option<ResourceVersion>, After);

impl Controller {
    pub(super) fn take_effect(
        &mut self,
        now: Timestamp,
        actor: Actor<'_>,
        operation: Operation,
        effect: Effect,
    ) {
        let told = match effect {
            Effect::Done {
                uid,
                version,
                after,
            } => (uid, version, after),
            Effect::Failed { class, .. } => return self.failed(now, actor, operation, class),
            Effect::NotStarted(_) => {
                if let Operation::Create(name) = operation {
                    self.index.end_making(&actor.1.namespace, &name);
                }
                return;
            }
        };
        match operation {
            Operation::Create(name) => self.created(now, actor, &name, told),
            Operation::Delete(pod) => self.deleted(now, actor, &pod, told),
            Operation::Adopt(pod) => self.owned(now, actor, &pod, Some(reference(actor.1)), told),
            Operation::Release(pod) => self.owned(now, actor, &pod, None, told),
            Operation::WriteStatus(status) => self.status_written(now, actor, *status, told),
        }
    }

    fn failed(
        &mut self,
        now: Timestamp,
        (set, key): Actor<'_>,
        operation: Operation,
        class: FailureClass,
    ) {
        match operation {
            Operation::Create(name) => {
                if let Some(set) = self.index.set_mut(set) {
                    match class {
                        FailureClass::NameTaken => set.cursor.burn(&name),
                        FailureClass::Timeout => set.cursor.doubt(&name),
                        FailureClass::NotFound
                        | FailureClass::Precondition
                        | FailureClass::Forbidden
                        | FailureClass::Quota
                        | FailureClass::NamespaceTerminating
                        | FailureClass::Invalid
                        | FailureClass::Conflict
                        | FailureClass::Throttled
                        | FailureClass::Unavailable
                        | FailureClass::OwnerChanged => {}
                    }
                }
                self.index.end_making(&key.namespace, &name);
            }
            Operation::Delete(pod) | Operation::Adopt(pod) | Operation::Release(pod) => {
                if class == FailureClass::NotFound {
                    let gone = self.index.tell_gone(whose(key, &pod), None);
                    self.pods_changed(now, Lane::Live, gone);
                }
            }
            Operation::WriteStatus(_) => {}
        }
    }

    fn created(&mut self, now: Timestamp, (set, key): Actor<'_>, name: &Arc<str>, told: Told) {
        let (uid, version, after) = told;
        let (uid, version, pod) = match after {
            After::Pod(pod) if pod.namespace == key.namespace && pod.name == *name => {
                (Some(pod.uid.clone()), pod.version.max(version), Some(pod))
            }
            After::Pod(_) | After::ReplicaSet(_) | After::Gone | After::Untold => {
                (uid, version, None)
            }
        };
        self.consistency.wrote(now, Kind::Pod, version);
        let seen = self.consistency.seen(Kind::Pod);
        if let Some(pod) = pod {
            let change = self.index.tell_created(now, *pod, seen);
            self.pods_changed(now, Lane::Live, change);
        } else if !self.is_shown(key, name, uid.as_ref(), version) && self.index.set(set).is_some()
        {
            let list = self.index.pod_list();
            let pod = (Arc::clone(&key.namespace), Arc::clone(name));
            self.expectations.expect(
                now,
                pod,
                Expected {
                    set,
                    write: Write::Create,
                    uid,
                    version,
                    list,
                },
            );
            return;
        }
        if let Some(uid) = uid {
            self.index.forget_gone_pod(&uid);
        }
        self.index.end_making(&key.namespace, name);
        if !self.index.is_taken(&key.namespace, name) {
            // The pod came and went before its outcome: no change of the view tells the ReplicaSet.
            self.queue.add(set, Lane::Live);
        }
    }

    /// Returns whether the stream has shown a created pod, or gone beyond its creation.
    fn is_shown(
        &self,
        key: &Key,
        name: &str,
        uid: Option<&Uid>,
        version: Option<ResourceVersion>,
    ) -> bool {
        if version.is_some() && version <= self.consistency.seen(Kind::Pod) {
            return true;
        }
        let known = self
            .index
            .pod_named(&key.namespace, name)
            .map(|(_, pod)| &pod.uid);
        known.is_some_and(|known| uid.is_none_or(|uid| uid == known))
            || uid.is_some_and(|uid| self.index.is_gone_pod(uid))
    }

    fn deleted(&mut self, now: Timestamp, (set, key): Actor<'_>, pod: &PodRef, told: Told) {
        let (_, version, after) = told;
        let change = match after {
            After::Gone => self.index.tell_gone(whose(key, pod), version),
            After::Pod(after) if is_same(key, pod, &after) => {
                let version = after.version.max(version);
                let changed = self.tell_changed(now, *after);
                self.consistency.wrote(now, Kind::Pod, version);
                self.pods_changed(now, Lane::Live, changed);
                self.index.tell_deleting(now, whose(key, pod), version)
            }
            After::Pod(_) | After::ReplicaSet(_) | After::Untold => {
                let change = self.index.tell_deleting(now, whose(key, pod), version);
                if change.is_some() {
                    let list = self.index.pod_list();
                    let uid = Some(pod.uid.clone());
                    let name = (Arc::clone(&key.namespace), Arc::clone(&pod.name));
                    self.expectations.expect(
                        now,
                        name,
                        Expected {
                            set,
                            write: Write::Delete,
                            uid,
                            version,
                            list,
                        },
                    );
                }
                change
            }
        };
        self.consistency.wrote(now, Kind::Pod, version);
        self.pods_changed(now, Lane::Live, change);
    }

    fn owned(
        &mut self,
        now: Timestamp,
        (_, key): Actor<'_>,
        pod: &PodRef,
        owner: Option<OwnerReference>,
        told: Told,
    ) {
        let (_, version, after) = told;
        self.consistency.wrote(now, Kind::Pod, version);
        let change = match after {
            After::Pod(after) if is_same(key, pod, &after) => self.tell_changed(now, *after),
            After::Pod(_) | After::ReplicaSet(_) | After::Gone | After::Untold => {
                self.index.tell_owner(now, whose(key, pod), owner, version)
            }
        };
        self.pods_changed(now, Lane::Live, change);
    }

    fn tell_changed(&mut self, now: Timestamp, pod: Pod) -> Option<PodChange> {
        self.consistency.wrote(now, Kind::Pod, pod.version);
        self.index.tell_changed(now, pod)
    }

    fn status_written(
        &mut self,
        now: Timestamp,
        (set, key): Actor<'_>,
        status: Status,
        told: Told,
    ) {
        let (_, version, after) = told;
        match after {
            After::ReplicaSet(object) if object.key == *key => {
                self.take_written(now, set, *object, version)
            }
            After::Pod(_) | After::ReplicaSet(_) | After::Gone | After::Untold => {
                self.consistency.wrote(now, Kind::ReplicaSet, version);
                self.index.tell_status(set, status, version);
            }
        }
    }

    /// Takes a ReplicaSet as a status write returned it. Our own status wakes nobody; another spec does.
    fn take_written(
        &mut self,
        now: Timestamp,
        id: SetId,
        object: ReplicaSet,
        version: Option<ResourceVersion>,
    ) {
        self.consistency
            .wrote(now, Kind::ReplicaSet, object.version.max(version));
        let Some(known) = self.index.set(id) else {
            return;
        };
        let asks = |set: &ReplicaSet| (set.generation, set.deleting, set.replicas);
        let changed = asks(&known.object) != asks(&object);
        self.index.tell_set(now, id, object);
        if changed {
            self.queue.add(id, Lane::Live);
        }
    }
}

fn whose<'a>(key: &'a Key, pod: &'a PodRef) -> (&'a str, &'a str, &'a Uid) {
    (&key.namespace, &pod.name, &pod.uid)
}

fn is_same(key: &Key, asked: &PodRef, told: &Pod) -> bool {
    told.namespace == key.namespace && told.name == asked.name && told.uid == asked.uid
}

/// Returns the controller reference that an adopted pod bears (spec 5.3).
fn reference(key: &Key) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: OWNER_KIND.into(),
        name: Arc::clone(&key.name),
        uid: key.uid.clone(),
        block_owner_deletion: Some(true),
    }
}

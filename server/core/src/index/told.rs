//! What outcomes tell of pods. It counts at once, and an outcome that comes late takes back nothing that the stream has shown since.

use std::sync::Arc;

use super::{Index, PodChange, group::Step, overrides::Override, pods::is_newer};
use crate::object::{Kind, OwnerReference, Pod, ResourceVersion, Timestamp, Uid};

/// Names a pod: its namespace, name and uid.
pub(crate) type Whose<'a> = (&'a str, &'a str, &'a Uid);

impl Index {
    /// Takes a pod that a create made, unless the stream has gone beyond it: then a pod that is not known is gone already.
    pub(crate) fn tell_created(
        &mut self,
        now: Timestamp,
        pod: Pod,
        seen: Option<ResourceVersion>,
    ) -> Vec<PodChange> {
        let passed = pod.version.is_some() && pod.version <= seen;
        let gone = self.tombstones.buries(Kind::Pod, &pod.uid, pod.version);
        match self.pod_named(&pod.namespace, &pod.name) {
            Some((id, known)) if known.uid == pod.uid => {
                let newer = is_newer_told(pod.version, known.version);
                newer
                    .then(|| self.change_pod(now, id, pod))
                    .into_iter()
                    .collect()
            }
            // The stream has yet to show that the pod of this name before it is gone.
            Some((id, known))
                if !passed && !gone && known.version.is_some() && pod.version > known.version =>
            {
                vec![self.take_out_pod(id), self.add_pod(now, pod, 0)]
            }
            Some(_) => Vec::new(),
            None if passed || gone => Vec::new(),
            None => vec![self.add_pod(now, pod, 0)],
        }
    }

    /// Takes a known pod as a write returned it.
    pub(crate) fn tell_changed(&mut self, now: Timestamp, pod: Pod) -> Option<PodChange> {
        let (id, known) = self.pod_named(&pod.namespace, &pod.name)?;
        let newer = known.uid == pod.uid && is_newer_told(pod.version, known.version);
        newer.then(|| self.change_pod(now, id, pod))
    }

    /// Marks a pod whose deletion was accepted as on its way out: the API never takes that back.
    pub(crate) fn tell_deleting(
        &mut self,
        now: Timestamp,
        whose: Whose<'_>,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let deleting = Override {
            deleting: true,
            ..self.write(version)
        };
        self.override_pod(now, whose, deleting, |deleting, _| !deleting)
    }

    /// Sets the owner of a pod to what an adoption or release made it.
    pub(crate) fn tell_owner(
        &mut self,
        now: Timestamp,
        whose: Whose<'_>,
        owner: Option<OwnerReference>,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let owner = owner.map(Arc::new);
        let fresh = Override {
            controller: Some(owner.clone()),
            ..self.write(version)
        };
        self.override_pod(now, whose, fresh, |_, known| known != owner.as_ref())
    }

    /// Takes out a pod of which an outcome tells that it is gone, and remembers that until the stream has shown it.
    pub(crate) fn tell_gone(
        &mut self,
        (namespace, name, uid): Whose<'_>,
        version: Option<ResourceVersion>,
    ) -> Option<PodChange> {
        let (id, _) = self
            .pod_named(namespace, name)
            .filter(|(_, entry)| entry.uid == *uid)?;
        self.tombstones
            .insert(Kind::Pod, uid.clone(), version, self.pod_list);
        Some(self.take_out_pod(id))
    }

    fn write(&self, version: Option<ResourceVersion>) -> Override {
        Override {
            version,
            list: self.pod_list,
            ..Override::default()
        }
    }

    /// Overrides what is known of a pod, unless the stream has shown the write or something newer already.
    fn override_pod(
        &mut self,
        now: Timestamp,
        (namespace, name, uid): Whose<'_>,
        fresh: Override,
        differs: impl Fn(bool, Option<&Arc<OwnerReference>>) -> bool,
    ) -> Option<PodChange> {
        let (id, known) = self
            .pod_named(namespace, name)
            .filter(|(_, entry)| entry.uid == *uid)?;
        let shown = fresh.version.is_some() && fresh.version <= known.version;
        if shown || !differs(known.deleting, known.controller.as_ref()) {
            return None;
        }
        let controller = fresh.controller.clone();
        let before = known.controller.clone();
        self.overrides.add(id, Override { before, ..fresh });
        let mut entry = self.uncount_pod(id);
        let old = self.facts(&entry);
        self.count_on_node(&entry, Step::Out);
        if let Some(owner) = controller {
            self.change_owner(id, &mut entry, owner);
        }
        self.overrides.impose(id, &mut entry);
        self.count_on_node(&entry, Step::In);
        let new = self.facts(&entry);
        self.count_pod(now, id, entry);
        Some(PodChange {
            old: Some(old),
            new: Some(new),
        })
    }
}

/// Returns whether an outcome's object goes beyond the known one. Where only the known one has a version, the stream knows better.
fn is_newer_told(told: Option<ResourceVersion>, known: Option<ResourceVersion>) -> bool {
    is_newer(told, known) && (told.is_some() || known.is_none())
}

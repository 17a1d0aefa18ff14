//! Who is to look at an object after a change: tasks on the timeline, and nothing stored.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kind::Kind,
    object::{self, Object},
    state::State,
    store::Place,
    timeline::{PodRef, Task},
};

// === impl State: the scheduler and the kubelets ===

impl State {
    /// Sets the next step of a pod going, as far as it has come.
    pub(crate) fn attend(&mut self, pod: &Object) {
        let pace = self.config.kubelet.clone();
        let (delay, task): (_, fn(PodRef) -> Task) = match object::phase(pod) {
            _ if object::is_deleting(pod) => (self.grace(pod), Task::Stop),
            "Pending" if object::node(pod).is_empty() => (pace.schedule_after, Task::Bind),
            "Pending" => (pace.start_after, Task::Start),
            "Running" if !is_ready(pod) => (pace.ready_after, Task::Ready),
            _ => return,
        };
        let delay = self.jittered(delay);
        self.timeline.after(delay, task(pod_ref(pod)));
    }

    /// Lets the scheduler look again at what found no node.
    pub(crate) fn wake_unassigned(&mut self) {
        for place in self.store.pods_on("") {
            if let Some(pod) = self.store.find(Kind::Pod, &place).cloned() {
                let waits = pod["status"]["conditions"].is_array();
                if waits && object::phase(&pod) == "Pending" {
                    self.attend(&pod);
                }
            }
        }
    }

    fn grace(&self, pod: &Value) -> Duration {
        let own = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
        let own = Duration::from_secs(own.unwrap_or(0));
        if self.config.kubelet.grace == Duration::MAX {
            Duration::MAX
        } else {
            own.min(self.config.kubelet.grace)
        }
    }

    fn jittered(&mut self, delay: Duration) -> Duration {
        let jitter = u64::try_from(self.config.kubelet.jitter.as_nanos()).unwrap_or(u64::MAX);
        let extra = if jitter == 0 {
            0
        } else {
            self.chance.below(jitter)
        };
        delay.saturating_add(Duration::from_nanos(extra))
    }
}

// === impl State: the garbage collector and the namespace controller ===

impl State {
    pub(crate) fn asked_to_go(&mut self, kind: Kind, object: &Object) {
        if kind == Kind::Namespace {
            let name = object::name(object).to_owned();
            self.timeline
                .after(self.config.empty_namespace_after, Task::Empty(name));
        }
        if object::waits_for_dependents(object) {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(kind, Place::of(object)),
            );
        }
    }

    /// Looks after an object that has new owners: one may be gone, or going.
    pub(crate) fn owners_changed(&mut self, kind: Kind, object: &Object) {
        let (mut dangling, mut going) = (false, Vec::new());
        for owner in object::owners(object) {
            match self.store.by_uid(owner.uid) {
                None => dangling |= is_modelled(owner.kind),
                Some(it) if object::waits_for_dependents(it) => going.push(Place::of(it)),
                Some(_) => {}
            }
        }
        if dangling {
            self.timeline.after(
                self.config.collect_after,
                Task::Collect(kind, Place::of(object)),
            );
        }
        for place in going {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(Kind::ReplicaSet, place),
            );
        }
    }

    /// Looks after the owners that an object had: they may wait for it.
    pub(crate) fn freed(&mut self, object: &Object) {
        let owners = object::owners(object).filter_map(|owner| self.store.by_uid(owner.uid));
        let going = owners.filter(|owner| object::waits_for_dependents(owner));
        let going: Vec<_> = going.map(|owner| Place::of(owner)).collect();
        for place in going {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(Kind::ReplicaSet, place),
            );
        }
    }

    /// Looks after what an object that is gone leaves behind: its dependents, and a namespace that may be empty by now.
    pub(crate) fn left_behind(&mut self, last: &Object) {
        for (kind, place) in self.store.dependents(object::uid(last)) {
            self.timeline
                .after(self.config.collect_after, Task::Collect(kind, place));
        }
        let namespace = object::namespace(last);
        if self.is_terminating(namespace) {
            self.timeline.after(
                self.config.empty_namespace_after,
                Task::Empty(namespace.to_owned()),
            );
        }
    }
}

/// Returns whether an owner of this kind would be known here. Of others, such as Deployments, it is taken that they are there.
pub(crate) fn is_modelled(kind: &str) -> bool {
    matches!(kind, "Pod" | "ReplicaSet")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn pod_ref(pod: &Value) -> PodRef {
    PodRef {
        place: Place::of(pod),
        uid: object::uid(pod).to_owned(),
    }
}

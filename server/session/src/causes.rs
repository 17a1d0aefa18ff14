//! The traced event or outcome that led to the next batch of a ReplicaSet.

use std::collections::BTreeMap;

use decree::TraceContext;
use server_core::{Controller, Event, Held, OwnerReference, OwnerView, Span, Timestamp, Uid};

/// The maximum number of ReplicaSets with a cause at a time. Decisions on further ReplicaSets are outside of a trace.
const CAUSES_MAX: usize = 4_096;
/// The memory of a cause in bytes, with the UID as its key.
const CAUSE_BYTES: usize = 150;
/// How long a cause without a decision is remembered: later decisions have other causes.
const REMEMBERED: Span = Span(300 * 1_000_000_000);

/// The first traced event or outcome since the last batch of each ReplicaSet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(BTreeMap<Uid, Cause>);

#[derive(Clone, Copy, Debug)]
struct Cause {
    trace: TraceContext,
    noted: Timestamp,
}

// === impl Causes ===

impl Causes {
    /// Forgets a cause that led to no batch.
    pub(crate) fn forget(&mut self, set: &Uid) {
        self.0.remove(set);
    }

    /// Returns the cause of a batch, and forgets it.
    pub(crate) fn take(&mut self, now: Timestamp, set: &Uid) -> Option<TraceContext> {
        let Cause { trace, noted } = self.0.remove(set)?;
        (now.since(noted) <= REMEMBERED).then_some(trace)
    }

    /// Notes an event or an outcome that concerns this ReplicaSet, before the controller takes it.
    pub(crate) fn note(&mut self, now: Timestamp, set: Option<Uid>, trace: TraceContext) {
        let Some(set) = set else { return };
        if self.0.len() < CAUSES_MAX || self.0.contains_key(&set) {
            let cause = Cause { trace, noted: now };
            let held = self.0.entry(set).or_insert(cause);
            if now.since(held.noted) > REMEMBERED {
                *held = cause;
            }
        }
    }
}

impl Held for Causes {
    fn bytes(&self) -> usize {
        self.0.len() * CAUSE_BYTES
    }
}

/// Returns the UID of the ReplicaSet that an event concerns, if the ReplicaSet is known.
pub(crate) fn set_of(controller: &Controller, event: &Event) -> Option<Uid> {
    match event {
        Event::ReplicaSetApplied(set) => Some(set.key.uid.clone()),
        Event::PodApplied(pod) => {
            let owner = pod.controller.as_ref().map(OwnerReference::view);
            set_of_pod(controller, &pod.namespace, owner)
        }
        Event::PodDeleted {
            namespace, name, ..
        } => {
            let pod = controller.inspect().pod(namespace, name)?;
            let owner = pod.controller.as_ref().map(OwnerReference::view);
            set_of_pod(controller, namespace, owner)
        }
        Event::ReplicaSetDeleted { .. }
        | Event::SnapshotBegin(_)
        | Event::SnapshotEnd { .. }
        | Event::Bookmark { .. } => None,
    }
}

/// Returns the UID of the ReplicaSet that a pod of a namespace names as its controller, if the ReplicaSet is known.
pub(crate) fn set_of_pod(
    controller: &Controller,
    namespace: &str,
    owner: Option<OwnerView<'_>>,
) -> Option<Uid> {
    let set = controller.inspect().owner(namespace, owner?)?;
    Some(set.object().key.uid.clone())
}

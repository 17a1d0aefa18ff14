//! What is due when: the tasks of the cluster's own controllers, in order of time, then of asking.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::store::ObjectKey;

/// One step of a controller. Each looks at the world afresh when it runs, and does nothing if nothing calls for it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The scheduler looks at a pod.
    Bind(PodRef),
    /// A kubelet starts a pod.
    Start(PodRef),
    /// A kubelet finds a pod ready.
    Ready(PodRef),
    /// A kubelet has stopped a pod.
    Stop(PodRef),
    /// The garbage collector looks at an object whose owner may be gone.
    Collect(crate::Kind, ObjectKey),
    /// The garbage collector looks at the dependents of an owner that is being deleted.
    Propagate(crate::Kind, ObjectKey),
    /// The namespace controller empties a namespace.
    Empty(String),
    /// A node that does not answer comes to its next stage.
    LoseNode {
        node: String,
        /// The outage that this belongs to; another one makes it moot.
        outage: u64,
        stage: LossStage,
    },
}

/// How far the loss of a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossStage {
    Unknown,
    Evict,
    Remove,
}

/// A pod for its lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRef {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    now: Timestamp,
    asked: u64,
    due: BTreeMap<(Timestamp, u64), Task>,
}

// === impl Timeline ===

impl Timeline {
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self {
            now,
            asked: 0,
            due: BTreeMap::new(),
        }
    }

    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Puts a task off; one beyond the end of time never runs.
    pub(crate) fn after(&mut self, delay: Duration, task: Task) {
        if delay == Duration::MAX {
            return;
        }
        if let Ok(at) = self.now.checked_add(delay) {
            self.asked += 1;
            self.due.insert((at, self.asked), task);
        }
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next task that is due up to `to`, and moves the time to it.
    pub(crate) fn pop(&mut self, to: Timestamp) -> Option<Task> {
        let entry = self.due.first_entry()?;
        let (at, _) = *entry.key();
        if at > to {
            return None;
        }
        self.now = self.now.max(at);
        Some(entry.remove())
    }

    /// Puts back what was due at another moment; what is overdue by now is due at once. The time goes on.
    pub(crate) fn put_back(&mut self, backup: &Self) {
        self.due.clone_from(&backup.due);
    }

    pub(crate) fn arrive(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }
}

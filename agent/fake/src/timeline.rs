//! The tasks of the cluster's own controllers, in order of time, then of request.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::store::ObjectKey;

/// One step of a controller. Each step reads the current state when it runs, and does nothing if nothing is needed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The scheduler examines a pod.
    Bind(PodRef),
    /// A kubelet starts a pod.
    Start(PodRef),
    /// A kubelet finds a pod ready.
    Ready(PodRef),
    /// A kubelet has stopped a pod.
    Stop(PodRef),
    /// The garbage collector examines an object whose owner may be gone.
    Collect(crate::Kind, ObjectKey),
    /// The garbage collector examines the dependents of an owner under deletion.
    Propagate(crate::Kind, ObjectKey),
    /// The namespace controller empties a namespace.
    Empty(String),
    /// A node that does not respond reaches its next stage.
    LoseNode {
        node: String,
        /// The outage of this task; the task is void in another outage.
        outage: u64,
        stage: LossStage,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossStage {
    Unknown,
    Evict,
    Remove,
}

/// A pod during its lifetime.
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

    /// Schedules a task after a delay. A task beyond the end of time never runs.
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

    /// Takes the next task due up to `to`, and moves the time to it.
    pub(crate) fn pop(&mut self, to: Timestamp) -> Option<Task> {
        let entry = self.due.first_entry()?;
        let (at, _) = *entry.key();
        if at > to {
            return None;
        }
        self.now = self.now.max(at);
        Some(entry.remove())
    }

    /// Restores the tasks of another moment; overdue tasks run at once. The time continues.
    pub(crate) fn put_back(&mut self, backup: &Self) {
        self.due.clone_from(&backup.due);
    }

    pub(crate) fn arrive(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }
}

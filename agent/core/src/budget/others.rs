//! Pods of ReplicaSets that another controller creates: two controllers that act on one ReplicaSet undo what the other does.
//!
//! One such pod says little: a person may have made it, or it was on its way when the other controller was turned off. So its ReplicaSet is
//! left alone for a minute. Three within a minute mean that another controller is at work, and the ReplicaSet is held until a person says
//! otherwise. What others do with one ReplicaSet never concerns another one: a user who may create pods in a namespace can make it look so,
//! there and nowhere else.

use std::collections::{BTreeMap, VecDeque};

use decree::v1;
use jiff::Timestamp;

use super::window::SPAN;
use crate::{api::object_ref, backoff::since};

/// How many pods of others within a minute mean that another controller is at work.
pub(super) const PODS_MIN: usize = 3;

/// How long the name of a writer may be in Kubernetes; of a longer one the beginning is kept.
const WRITER_BYTES_MAX: usize = 128;

/// A pod of a ReplicaSet that another controller created while the agent executes decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOfOther {
    /// The ReplicaSet.
    pub replica_set: v1::ObjectRef,
    /// The name of the pod.
    pub pod: String,
    /// Who created it, as its managed fields name it.
    pub writer: String,
}

/// When pods of others came within the last minute, by the uid of their ReplicaSet. Owned and changed by one [`Budget`](super::Budget).
#[derive(Clone, Debug, Default)]
pub(super) struct Others(BTreeMap<String, Seen>);

#[derive(Clone, Debug, Default)]
struct Seen {
    times: VecDeque<Timestamp>,
    /// Who created the last one.
    writer: String,
    /// When people were told of it last.
    told: Option<Timestamp>,
}

// === impl PodOfOther ===

impl PodOfOther {
    pub(crate) fn new(set: &v1::ReplicaSet, pod: &v1::Pod, writer: &str) -> Self {
        Self {
            replica_set: object_ref(set),
            pod: pod.name.clone(),
            writer: writer[..writer.floor_char_boundary(WRITER_BYTES_MAX)].to_owned(),
        }
    }
}

// === impl Others ===

impl Others {
    /// Counts a pod that is there from now on. Returns whether another controller is at work.
    pub(super) fn count(&mut self, now: Timestamp, replica_set: &str, writer: &str) -> bool {
        let seen = self.0.entry(replica_set.to_owned()).or_default();
        writer.clone_into(&mut seen.writer);
        seen.times.push_back(now);
        seen.times.retain(|time| since(now, *time) < SPAN);
        if seen.times.len() > PODS_MIN {
            seen.times.pop_front();
        }
        seen.times.len() == PODS_MIN
    }

    /// Returns whether people are to be told of a ReplicaSet of which a pod was [counted](Self::count): once a minute.
    pub(super) fn tell(&mut self, now: Timestamp, replica_set: &str) -> bool {
        let Some(seen) = self.0.get_mut(replica_set) else {
            return false;
        };
        let is_news = seen.told.is_none_or(|told| since(now, told) >= SPAN);
        if is_news {
            seen.told = Some(now);
        }
        is_news
    }

    /// Returns who created a pod of a ReplicaSet within the last minute.
    pub(super) fn writer(&self, now: Timestamp, replica_set: &str) -> Option<&str> {
        let seen = self.0.get(replica_set)?;
        seen.is_recent(now).then_some(seen.writer.as_str())
    }

    /// Forgets what is older than a minute.
    pub(super) fn slide(&mut self, now: Timestamp) {
        self.0.retain(|_, seen| seen.is_recent(now));
    }

    /// Forgets what came for one ReplicaSet.
    pub(super) fn forget(&mut self, replica_set: &str) {
        self.0.remove(replica_set);
    }
}

// === impl Seen ===

impl Seen {
    fn is_recent(&self, now: Timestamp) -> bool {
        let last = self.times.back();
        last.is_some_and(|time| since(now, *time) < SPAN)
    }
}

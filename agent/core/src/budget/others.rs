//! Pods of ReplicaSets that another controller creates: two controllers that act on one ReplicaSet undo what the other does.
//!
//! One such pod proves little: a person may have made it, or it was in transit when the other controller was turned off. So the agent
//! leaves its ReplicaSet alone for a minute. Three within a minute mean that another controller is at work, and the agent holds the
//! ReplicaSet until a person resumes it. Pods of others in one ReplicaSet never affect another ReplicaSet. A user who may create pods in a
//! namespace can feign another controller there, and nowhere else.

use std::collections::{BTreeMap, VecDeque};

use decree::v1;
use jiff::Timestamp;

use super::window::SPAN;
use crate::{api::object_ref, backoff::since};

/// How many pods of others within a minute mean that another controller is at work.
pub(super) const PODS_MIN: usize = 3;

/// The longest name of a writer in Kubernetes; longer names are cut.
const WRITER_BYTES_MAX: usize = 128;

/// A pod of a ReplicaSet that another controller created while the agent executes decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOfOther {
    /// The ReplicaSet.
    pub replica_set: v1::ObjectRef,
    /// The name of the pod.
    pub pod: String,
    /// The pod's creator, as its managed fields name it.
    pub writer: String,
}

/// The times of others' pods within the last minute, by the UID of their ReplicaSet. Owned and changed by one [`Budget`](super::Budget).
#[derive(Clone, Debug, Default)]
pub(super) struct Others(BTreeMap<String, Seen>);

#[derive(Clone, Debug, Default)]
struct Seen {
    times: VecDeque<Timestamp>,
    /// The creator of the last pod.
    writer: String,
    /// The time of the last report to people.
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
    /// Counts a new pod. Returns whether people must be told that another controller is at work, once a minute; `None` if none is.
    pub(super) fn count(
        &mut self,
        now: Timestamp,
        replica_set: &str,
        writer: &str,
    ) -> Option<bool> {
        let seen = self.0.entry(replica_set.to_owned()).or_default();
        writer.clone_into(&mut seen.writer);
        seen.times.push_back(now);
        seen.times.retain(|time| since(now, *time) < SPAN);
        if seen.times.len() > PODS_MIN {
            seen.times.pop_front();
        }
        if seen.times.len() < PODS_MIN {
            return None;
        }
        let is_news = seen.told.is_none_or(|told| since(now, told) >= SPAN);
        if is_news {
            seen.told = Some(now);
        }
        Some(is_news)
    }

    /// The creator of a ReplicaSet's pod within the last minute.
    pub(super) fn writer(&self, now: Timestamp, replica_set: &str) -> Option<&str> {
        let seen = self.0.get(replica_set)?;
        seen.is_recent(now).then_some(seen.writer.as_str())
    }

    /// Forgets counts older than a minute.
    pub(super) fn slide(&mut self, now: Timestamp) {
        self.0.retain(|_, seen| seen.is_recent(now));
    }

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

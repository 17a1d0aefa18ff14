//! The history of a ReplicaSet, as far back as the limits need.

use std::collections::VecDeque;

use agent_fake::{Object, is_active, is_ready};
use jiff::Timestamp;

/// Counts at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) wanted: usize,
    /// The number of pods in advance of evictions.
    pub(super) allowed: usize,
    pub(super) active: usize,
    pub(super) ready: usize,
    pub(super) terminating: usize,
    pub(super) generation: usize,
}

/// The counts over time.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Each sample, with the time from which it is valid.
    samples: VecDeque<(Timestamp, Sample)>,
    /// The times at which others removed pods.
    lost: VecDeque<Timestamp>,
    /// The earliest time of the counts in a status.
    status_since: Timestamp,
    gone: Option<Timestamp>,
}

impl Sample {
    pub(super) fn of<'a>(set: &Object, pods: impl Iterator<Item = &'a Object>) -> Self {
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as usize;
        let mut sample = Self {
            wanted: number(&set["spec"]["replicas"]),
            generation: number(&set["metadata"]["generation"]),
            ..Self::default()
        };
        for pod in pods {
            let ready = is_ready(pod);
            sample.active += usize::from(is_active(pod));
            sample.ready += usize::from(is_active(pod) && ready);
            sample.terminating += usize::from(!pod["metadata"]["deletionTimestamp"].is_null());
        }
        sample
    }

    fn max(self, other: Self) -> Self {
        Self {
            wanted: self.wanted.max(other.wanted),
            allowed: self.allowed.max(other.allowed),
            active: self.active.max(other.active),
            ready: self.ready.max(other.ready),
            terminating: self.terminating.max(other.terminating),
            generation: self.generation.max(other.generation),
        }
    }
}

impl History {
    pub(super) fn note(&mut self, now: Timestamp, sample: Sample) {
        if self.samples.back().is_none_or(|(_, last)| *last != sample) {
            self.samples.push_back((now, sample));
        }
    }

    pub(super) fn lost(&mut self, now: Timestamp) {
        self.lost.push_back(now);
    }

    pub(super) fn gone(&mut self, now: Timestamp) {
        self.gone.get_or_insert(now);
    }

    /// Whether the ReplicaSet was deleted at or after a time.
    pub(super) fn is_gone_since(&self, since: Timestamp) -> bool {
        self.gone.is_some_and(|at| at >= since)
    }

    /// Notes a status write. The next status cannot contain counts from before `since`.
    pub(super) fn status_written(&mut self, since: Timestamp) {
        self.status_since = since;
        let starts = self.samples.iter().rposition(|(at, _)| *at <= since);
        self.samples.drain(..starts.unwrap_or(0));
        self.lost.retain(|at| *at >= since);
    }

    /// The number of pods that others have removed since a time.
    pub(super) fn lost_since(&self, since: Timestamp) -> usize {
        self.lost.iter().filter(|at| **at >= since).count()
    }

    /// The maximum of each count since the last status.
    pub(super) fn most(&self) -> Sample {
        let samples = self.since(self.status_since);
        samples.fold(Sample::default(), Sample::max)
    }

    /// All samples that were valid at some time since `since`.
    pub(super) fn since(&self, since: Timestamp) -> impl Iterator<Item = Sample> {
        let first = self.samples.iter().rposition(|(at, _)| *at <= since);
        let samples = self.samples.iter().skip(first.unwrap_or(0));
        samples.map(|(_, sample)| *sample)
    }
}

/// Whether a pod is ready, and has been since this time.
pub(super) fn was_ready(pod: &Object, at: Timestamp) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| {
        let since = it["lastTransitionTime"].as_str();
        let since = since.and_then(|since| since.parse::<Timestamp>().ok());
        it["type"] == "Ready" && it["status"] == "True" && since.is_some_and(|since| since <= at)
    })
}

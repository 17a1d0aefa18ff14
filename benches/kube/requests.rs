//! What an API server was asked for, as it counts itself.

use std::ops::Sub;

use tests::real::Api;

/// The resources that a ReplicaSet controller writes, with their subresource.
const WRITTEN: [(&str, &str); 3] = [("pods", ""), ("replicasets", "status"), ("events", "")];
const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// How many writes there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes {
    /// Pods that were created or changed, whether the API server did so or refused.
    pub(crate) pods: u64,
    /// Deletions of pods, likewise.
    pub(crate) deletions: u64,
    pub(crate) statuses: u64,
    pub(crate) events: u64,
    /// Of all these, what was answered 403.
    pub(crate) forbidden: u64,
    /// Of all these, what was answered otherwise than with a success.
    pub(crate) failed: u64,
}

// === impl Writes ===

impl Writes {
    /// Reads what an API server has counted since it started.
    pub(crate) async fn read(api: &Api) -> Self {
        let text = api.text("/metrics").await;
        Self::of(&text.expect("the API server has metrics"))
    }

    fn of(text: &str) -> Self {
        let mut writes = Self::default();
        let counters = text
            .lines()
            .filter_map(|line| line.strip_prefix("apiserver_request_total{"));
        for (labels, count) in counters.filter_map(|line| line.rsplit_once("} ")) {
            writes.add(labels, count.parse().expect("a count"));
        }
        writes
    }

    fn add(&mut self, labels: &str, count: u64) {
        let has = |label: &str, value: &str| labels.contains(&format!("{label}=\"{value}\""));
        let is_write = WRITES.iter().any(|verb| has("verb", verb));
        let of = WRITTEN
            .iter()
            .position(|(resource, part)| has("resource", resource) && has("subresource", part));
        let Some(of) = of.filter(|_| is_write) else {
            return;
        };
        let counted = match of {
            0 if has("verb", "DELETE") => &mut self.deletions,
            0 => &mut self.pods,
            1 => &mut self.statuses,
            _ => &mut self.events,
        };
        *counted += count;
        if has("code", "403") {
            self.forbidden += count;
        }
        if !labels.contains("code=\"2") {
            self.failed += count;
        }
    }

    /// Returns how many there were in all.
    pub(crate) const fn all(self) -> u64 {
        self.pods + self.deletions + self.statuses + self.events
    }
}

impl Sub for Writes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            pods: self.pods - before.pods,
            deletions: self.deletions - before.deletions,
            statuses: self.statuses - before.statuses,
            events: self.events - before.events,
            forbidden: self.forbidden - before.forbidden,
            failed: self.failed - before.failed,
        }
    }
}

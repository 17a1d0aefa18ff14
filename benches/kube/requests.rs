//! The requests to an API server, as it counts them.

use std::ops::Sub;

use tests::real::Api;

/// The resources that a ReplicaSet controller writes, with their subresource.
const WRITTEN: [(&str, &str); 3] = [("pods", ""), ("replicasets", "status"), ("events", "")];
const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes {
    /// Creates and changes of pods, successful or refused.
    pub(crate) pods: u64,
    /// Deletions of pods, successful or refused.
    pub(crate) deletions: u64,
    pub(crate) statuses: u64,
    pub(crate) events: u64,
    /// All these writes with answer 403.
    pub(crate) forbidden: u64,
    /// All these writes without success.
    pub(crate) failed: u64,
}

impl Writes {
    /// Reads the counts of an API server since its start.
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

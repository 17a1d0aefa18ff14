//! What a session of mode SHADOW finds: told as a log line and a metric, and remembered for inspection.

use std::{collections::VecDeque, sync::Arc};

use decree::v1;
use server_core::{Batch, Controller, Difference, Event, Shadow, Timestamp};

use super::hello::Identity;
use crate::{
    metrics::Metrics,
    wire::{self, encode},
};

/// How many differences a session remembers.
const REMEMBERED_MAX: usize = 500;

/// The comparison of a session, and what came of it.
#[derive(Debug)]
pub(crate) struct Mirror {
    shadow: Shadow,
    found: VecDeque<v1::Difference>,
    identity: Arc<Identity>,
    metrics: Metrics,
    /// How many comparisons the metric has counted.
    counted: u64,
}

// === impl Mirror ===

impl Mirror {
    /// Returns a comparison where the session is one of mode SHADOW.
    pub(super) fn of(identity: &Arc<Identity>, metrics: &Metrics) -> Option<Self> {
        (identity.mode == v1::Mode::Shadow).then(|| Self {
            shadow: Shadow::default(),
            found: VecDeque::new(),
            identity: Arc::clone(identity),
            metrics: metrics.clone(),
            counted: 0,
        })
    }

    /// Takes a decision as it leaves.
    pub(super) fn decided(&mut self, now: Timestamp, batch: &Batch) {
        self.shadow.handle_batch(now, batch);
    }

    /// Takes an event before the controller does.
    pub(super) fn event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        self.shadow.handle_event(now, controller, event);
    }

    /// Lets time pass, and tells what has been found.
    pub(super) fn handle_timeout(&mut self, now: Timestamp, controller: &Controller) {
        self.shadow.handle_timeout(now, controller);
        let compared = self.shadow.compared();
        self.metrics
            .comparisons
            .inc_by(compared.saturating_sub(self.counted));
        self.counted = compared;
        while let Some(difference) = self.shadow.poll_difference() {
            self.tell(now, difference);
        }
    }

    /// Returns when time should pass next.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.shadow.poll_timeout()
    }

    /// Returns what was found for a ReplicaSet, or for all with empty names, the newest first; and how much was compared.
    pub(super) fn found(&self, namespace: &str, name: &str) -> (Vec<v1::Difference>, u64) {
        let is = |wanted: &str, have: &str| wanted.is_empty() || wanted == have;
        let asked = |difference: &&v1::Difference| {
            let set = difference.replica_set.as_ref();
            set.is_some_and(|set| is(namespace, &set.namespace) && is(name, &set.name))
        };
        let found = self.found.iter().rev().filter(asked).cloned();
        (found.collect(), self.counted)
    }

    fn tell(&mut self, now: Timestamp, difference: Difference) {
        let subject = wire::subject(difference.subject);
        let departure = wire::departure(difference.departure);
        self.metrics
            .differences
            .get_or_create(&[("subject", subject), ("departure", departure)])
            .inc();
        let Difference {
            key, decided, done, ..
        } = &difference;
        tracing::warn!(replica_set = %key, subject, decided, done, departure, "the other controller differs");
        if self.found.len() == REMEMBERED_MAX {
            self.found.pop_front();
        }
        let found = encode::difference(now, self.identity.cluster(), difference);
        self.found.push_back(found);
    }
}

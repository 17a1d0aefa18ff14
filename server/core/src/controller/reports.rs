//! The reports that wait to be drained.

use std::collections::{BTreeMap, VecDeque};

use crate::{object::Kind, report::Report};

/// How many reports wait at most. A shell drains them after every step; who does not, loses the oldest.
const WAITING_MAX: usize = 65_536;

/// Reports, oldest first. What the agent must be asked for is never lost, and waits once a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    waiting: VecDeque<Report>,
    resyncs: BTreeMap<Kind, String>,
}

// === impl Reports ===

impl Reports {
    /// Adds a report.
    pub(crate) fn push(&mut self, report: Report) {
        if let Report::ResyncNeeded { kind, cause } = report {
            self.resyncs.insert(kind, cause);
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(report);
    }

    /// Returns the next report: requests first, then the others, oldest first.
    pub(crate) fn pop(&mut self) -> Option<Report> {
        let resync = self.resyncs.pop_first();
        resync
            .map(|(kind, cause)| Report::ResyncNeeded { kind, cause })
            .or_else(|| self.waiting.pop_front())
    }

    /// Takes a request for a list back that was not drained.
    pub(crate) fn withdraw_request(&mut self, kind: Kind) {
        self.resyncs.remove(&kind);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

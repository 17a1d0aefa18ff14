//! A bounded record of the calls that the cluster answered.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use crate::kind::Kind;

/// What a call wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read all objects of a kind.
    List,
    /// Open a watch.
    Watch,
    /// Create an object.
    Create,
    /// Delete an object.
    Delete,
    /// Change an object in part.
    Patch,
    /// Replace the status.
    UpdateStatus,
    /// Set the number of replicas.
    Scale,
}

/// One call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub at: Timestamp,
    /// What it wanted.
    pub verb: Verb,
    /// The kind.
    pub kind: Kind,
    /// The namespace; empty where there is none.
    pub namespace: String,
    /// The name; empty for lists and watches.
    pub name: String,
    /// The HTTP code that the caller got.
    pub code: u16,
}

/// The calls of a cluster: counts of all, and the latest in full.
#[derive(Clone, Debug)]
pub struct Requests {
    counts: BTreeMap<(Verb, Kind, u16), u64>,
    latest: VecDeque<Call>,
    latest_max: usize,
}

impl Requests {
    pub(crate) const fn new(latest_max: usize) -> Self {
        Self {
            counts: BTreeMap::new(),
            latest: VecDeque::new(),
            latest_max,
        }
    }

    pub(crate) fn record(&mut self, call: Call) {
        let count = self.counts.entry((call.verb, call.kind, call.code));
        *count.or_default() += 1;
        if self.latest.len() == self.latest_max {
            self.latest.pop_front();
        }
        self.latest.push_back(call);
        self.latest.truncate(self.latest_max);
    }

    /// Returns the latest calls, oldest first.
    pub fn latest(&self) -> impl Iterator<Item = &Call> {
        self.latest.iter()
    }

    /// Returns how many calls of this verb and kind there were, whatever their answer.
    #[must_use]
    pub fn count(&self, verb: Verb, kind: Kind) -> u64 {
        let range = (verb, kind, 0)..=(verb, kind, u16::MAX);
        self.counts.range(range).map(|(_, count)| count).sum()
    }

    /// Returns how many calls of this verb and kind were answered with this code.
    #[must_use]
    pub fn count_answered(&self, verb: Verb, kind: Kind, code: u16) -> u64 {
        self.counts.get(&(verb, kind, code)).copied().unwrap_or(0)
    }
}

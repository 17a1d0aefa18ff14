//! The number of calls that the cluster answered, and the answers.

use std::collections::BTreeMap;

use crate::kind::Kind;

/// The verb of a call.
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

/// The calls of a cluster, counted.
#[derive(Clone, Debug, Default)]
pub struct Requests(BTreeMap<(Verb, Kind, u16), u64>);

impl Requests {
    pub(crate) fn count_call(&mut self, verb: Verb, kind: Kind, code: u16) {
        *self.0.entry((verb, kind, code)).or_default() += 1;
    }

    /// Returns the number of calls with this verb and kind, with any answer.
    pub fn count(&self, verb: Verb, kind: Kind) -> u64 {
        let range = (verb, kind, 0)..=(verb, kind, u16::MAX);
        self.0.range(range).map(|(_, count)| count).sum()
    }

    /// Returns the number of calls with this verb and kind that were answered with this code.
    pub fn count_answered(&self, verb: Verb, kind: Kind, code: u16) -> u64 {
        self.0.get(&(verb, kind, code)).copied().unwrap_or(0)
    }
}

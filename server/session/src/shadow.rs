//! The findings of a shadow-mode session, remembered for inspection.

use decree::v1;
use server_core::{Held, HeldQueue, Timestamp};
use server_shadow::{Difference, Shadow};

use crate::{held_message::HeldMessage, wire::encode};

/// The maximum number of differences that a session remembers.
const REMEMBERED_MAX: usize = 500;

/// The comparison of a session, and its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowSession {
    /// It gets each decision as the decision leaves, and each event before the controller.
    pub(crate) shadow: Shadow,
    found: HeldQueue<HeldMessage<v1::Difference>>,
}

// === impl ShadowSession ===

impl ShadowSession {
    /// Returns the next difference, and remembers it as of `cluster` and `now`.
    pub(crate) fn poll_difference(
        &mut self,
        now: Timestamp,
        cluster: encode::ClusterRef<'_>,
    ) -> Option<Difference> {
        let difference = self.shadow.poll_difference()?;
        if self.found.len() == REMEMBERED_MAX {
            self.found.pop_front();
        }
        let found = encode::difference(now, cluster, difference.clone());
        self.found.push_back(HeldMessage(found));
        Some(difference)
    }

    /// Returns the results of all comparisons, and the differences of a ReplicaSet, or of all with empty names, the newest first.
    pub(crate) fn found(&self, namespace: &str, name: &str) -> v1::ListDifferencesResponse {
        let is = |wanted: &str, have: &str| wanted.is_empty() || wanted == have;
        let asked = |difference: &&v1::Difference| {
            let set = difference.replica_set.as_ref();
            set.is_some_and(|set| is(namespace, &set.namespace) && is(name, &set.name))
        };
        let found = self.found.iter().rev().map(|HeldMessage(found)| found);
        v1::ListDifferencesResponse {
            differences: found.filter(asked).cloned().collect(),
            shadows: 1,
            compared: self.shadow.agreements().compared(),
            agreements: encode::agreements(self.shadow.agreements()),
            deleted_by_others: self.shadow.deleted_by_others(),
            ..v1::ListDifferencesResponse::default()
        }
    }
}

impl Held for ShadowSession {
    fn bytes(&self) -> usize {
        let Self { shadow, found } = self;
        shadow.bytes() + found.bytes()
    }
}

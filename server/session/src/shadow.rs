//! The findings of a shadow-mode session, remembered for inspection.

use std::collections::VecDeque;

use decree::v1;
use prost::Message;
use server_core::Timestamp;
use server_shadow::{Difference, Shadow};

use crate::wire::encode;

/// The maximum number of differences that a session remembers.
const REMEMBERED_MAX: usize = 500;

/// The memory of a difference in bytes, without its texts.
const DIFFERENCE_BYTES: usize = 400;

/// The comparison of a session, and its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowSession {
    /// It gets each decision as the decision leaves, and each event before the controller.
    pub(crate) shadow: Shadow,
    found: VecDeque<v1::Difference>,
    /// The approximate memory of the differences, in bytes.
    found_bytes: usize,
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
            let oldest = self.found.pop_front();
            self.found_bytes -= oldest.as_ref().map_or(0, bytes);
        }
        let found = encode::difference(now, cluster, difference.clone());
        self.found_bytes += bytes(&found);
        self.found.push_back(found);
        Some(difference)
    }

    /// The approximate memory in bytes of differences, and of acts that are not judged yet.
    pub(crate) const fn bytes(&self) -> usize {
        self.shadow.bytes() + self.found_bytes
    }

    /// Returns the results of all comparisons, and the differences of a ReplicaSet, or of all with empty names, the newest first.
    pub(crate) fn found(&self, namespace: &str, name: &str) -> v1::ListDifferencesResponse {
        let is = |wanted: &str, have: &str| wanted.is_empty() || wanted == have;
        let asked = |difference: &&v1::Difference| {
            let set = difference.replica_set.as_ref();
            set.is_some_and(|set| is(namespace, &set.namespace) && is(name, &set.name))
        };
        v1::ListDifferencesResponse {
            differences: self.found.iter().rev().filter(asked).cloned().collect(),
            shadows: 1,
            compared: self.shadow.agreements().compared(),
            agreements: encode::agreements(self.shadow.agreements()),
            deleted_by_others: self.shadow.deleted_by_others(),
            ..v1::ListDifferencesResponse::default()
        }
    }
}

fn bytes(difference: &v1::Difference) -> usize {
    DIFFERENCE_BYTES + difference.encoded_len()
}

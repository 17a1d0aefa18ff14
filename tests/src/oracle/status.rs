//! Whether a status is consistent with the information of a session.

use std::collections::BTreeMap;

use decree_api::v1;
use jiff::{SignedDuration, Timestamp};

/// The pods that were ever reported as ready, by the uid of their controller and their own, with the earliest time.
///
/// Deleted pods stay: a status is decided before the deletions of the same decision, and leaves after them.
#[derive(Debug, Default)]
pub(super) struct Ready(BTreeMap<String, BTreeMap<String, Option<Timestamp>>>);

impl Ready {
    pub(super) fn note(&mut self, pod: &v1::Pod) {
        let ready = pod.ready.as_ref().filter(|ready| ready.ready);
        let (Some(ready), Some(controller)) = (ready, &pod.controller) else {
            return;
        };
        let since = ready.last_transition_time.as_ref();
        let since = since.and_then(|at| Timestamp::new(at.seconds, at.nanos).ok());
        let pods = self.0.entry(controller.uid.clone()).or_default();
        let known = pods.entry(pod.uid.clone()).or_insert(since);
        *known = (*known).into_iter().chain(since).min();
    }

    /// Returns why a status of a ReplicaSet counts too many pods as available. The session has read no later time than `latest`.
    ///
    /// # Errors
    /// The counted and the possible number.
    pub(super) fn check(
        &self,
        set: &v1::ReplicaSet,
        latest: Timestamp,
        status: Option<&v1::ReplicaSetStatus>,
    ) -> Result<(), String> {
        let counted = status.map_or(0, |status| status.available_replicas);
        let span = SignedDuration::from_secs(set.min_ready_seconds.into());
        let is_available = |since: &&Option<Timestamp>| {
            span.is_zero() || since.is_some_and(|since| since + span <= latest)
        };
        let pods = self.0.get(&set.uid).into_iter().flatten();
        let there = pods.map(|(_, since)| since).filter(is_available).count();
        match usize::try_from(counted) {
            Ok(counted) if counted <= there => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "counts {counted} pods as available where {there} are"
            )),
        }
    }
}

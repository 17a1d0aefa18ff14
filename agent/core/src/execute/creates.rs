//! Until when a create may take effect, and which creates with an unknown result are within that time.
//!
//! The session repeats an unanswered create under the same name. The next session does not know that name and uses others, so it must begin
//! only when such a create has taken effect or never will.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::operation::{PodWrite, Stage};
use crate::{
    api::{Answer, Reply, leaves_effect_open},
    pace::after,
};

/// How long etcd, the store of an API server, works on a request at most: its own 5 s and two election timeouts of 1 s.
const ETCD_REQUEST_TIMEOUT: Duration = Duration::from_secs(7);

/// The delay between the start of a request's timeout at the agent and at the API server, with the drift of their clocks meanwhile.
const TRANSIT: Duration = Duration::from_secs(1);

/// The times of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateLimits {
    /// How long the cluster may work on a create. Each create carries this timeout, after which the cluster gives up.
    pub timeout: Duration,
    /// How much later a create may still take effect: in transit, or in the cluster's store.
    pub margin: Duration,
}

/// An operation: its batch and its number in the batch.
type Operation = (u64, u32);

/// The creates whose answers do not tell their effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsettled {
    limits: CreateLimits,
    until: BTreeMap<Operation, Timestamp>,
}

impl CreateLimits {
    /// Returns the limits for a cluster whose store works on a request for at most `request_timeout`.
    pub const fn of_store(request_timeout: Duration) -> Self {
        Self {
            timeout: Duration::from_secs(20),
            margin: request_timeout.saturating_add(TRANSIT),
        }
    }
}

impl Default for CreateLimits {
    fn default() -> Self {
        Self::of_store(ETCD_REQUEST_TIMEOUT)
    }
}

impl Unsettled {
    pub(crate) const fn new(limits: CreateLimits) -> Self {
        Self {
            limits,
            until: BTreeMap::new(),
        }
    }

    /// Until when a write may take effect if its answer, received at `now`, does not tell its effect.
    pub(crate) fn end(&self, now: Timestamp) -> Timestamp {
        // The write left before now, at an unknown time.
        after(now, self.limits.timeout.saturating_add(self.limits.margin))
    }

    /// Takes the answer to a call, which may leave open whether a pod was created, or settle it.
    pub(crate) fn handle_answer(
        &mut self,
        now: Timestamp,
        operation: Operation,
        stage: &Stage,
        answer: &Answer,
    ) {
        match (stage, answer) {
            (Stage::Write(PodWrite::Create, _), Err(error)) if leaves_effect_open(error) => {
                self.until.retain(|_, until| *until > now);
                self.until.insert(operation, self.end(now));
            }
            (Stage::Read(PodWrite::Create, ..), Ok(Reply::Pod(_))) => {
                self.until.remove(&operation);
            }
            _ => {}
        }
    }

    /// Until when a create may still take effect; `None` if there never was one of unknown effect.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until.values().max().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::ApiError,
        tests::{at, pod_ref},
    };

    #[test]
    fn settled_creates_are_forgotten_with_the_next() {
        let mut unsettled = Unsettled::new(CreateLimits::default());
        let stage = Stage::Write(PodWrite::Create, pod_ref("a"));
        for batch in [1, 2] {
            let error = Err(ApiError::no_answer("reset"));
            unsettled.handle_answer(at(60 * batch), (batch, 0), &stage, &error);
        }
        assert_eq!(unsettled.until.len(), 1);
    }
}

//! Until when a create may take effect, and which creates of unknown effect are still within that time.
//!
//! A create that goes unanswered is repeated under its name, which the session knows. The next session knows nothing of it and
//! uses other names: it must not begin before such a create has taken effect or never will.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::{
    api::{Reply, leaves_effect_open},
    backoff::after,
    operation::{Answer, Stage},
};

/// How long the store of an API server, etcd, works on a request at most: its own 5 s and two election timeouts of 1 s.
pub const ETCD_REQUEST_TIMEOUT: Duration = Duration::from_secs(7);

/// What a request may take from the moment when its time is measured until the API server measures it, and by how much the
/// clocks of the two may differ meanwhile.
pub const TRANSIT: Duration = Duration::from_secs(1);

/// The times of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateLimits {
    /// How long the cluster may work on a create. Each create carries it, and the cluster gives the create up then.
    pub timeout: Duration,
    /// How long after that a create may still take effect: on its way to the cluster, or in the cluster's store.
    pub margin: Duration,
}

/// An operation: its batch, and its number in it.
type Operation = (u64, u32);

/// The creates that were answered by nothing that says what became of them.
#[derive(Clone, Debug)]
pub(crate) struct Unsettled {
    limits: CreateLimits,
    until: BTreeMap<Operation, Timestamp>,
}

// === impl CreateLimits ===

impl CreateLimits {
    /// Returns the limits for a cluster whose store works on a request for so long.
    #[must_use]
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

// === impl Unsettled ===

impl Unsettled {
    pub(crate) const fn new(limits: CreateLimits) -> Self {
        Self {
            limits,
            until: BTreeMap::new(),
        }
    }

    /// Returns how long the cluster may work on a create.
    pub(crate) const fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    /// Returns until when a write may take effect that was answered by now, and does not say what it did.
    pub(crate) fn end(&self, now: Timestamp) -> Timestamp {
        // It was sent before now, whenever that was.
        after(now, self.limits.timeout.saturating_add(self.limits.margin))
    }

    /// Takes the answer to a call, which may leave open whether a pod was created, or resolve it.
    pub(crate) fn handle_answer(
        &mut self,
        now: Timestamp,
        operation: Operation,
        step: &Stage,
        answer: &Answer,
    ) {
        match (step, answer) {
            (Stage::Create { .. }, Err(error)) if leaves_effect_open(error) => {
                self.until.retain(|_, until| *until > now);
                self.until.insert(operation, self.end(now));
            }
            (Stage::ReadCreated { .. }, Ok(Reply::Pod(_))) => drop(self.until.remove(&operation)),
            _ => {}
        }
    }

    /// Returns when all of them are settled; `None` if there never was one.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until.values().max().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::ApiError,
        builders::{refusal, replied},
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create() -> Stage {
        Stage::Create { name: "a".into() }
    }

    fn answered(error: ApiError) -> Unsettled {
        let mut unsettled = Unsettled::new(CreateLimits::default());
        unsettled.handle_answer(NOW, (1, 0), &create(), &Err(error));
        unsettled
    }

    #[test]
    fn create_of_unknown_effect_is_unsettled_for_its_timeout_and_the_margin() {
        let end = Some(after(NOW, Duration::from_secs(20 + 7 + 1)));
        let unknown = [
            ApiError::no_answer("reset"),
            refusal(504, "Timeout"),
            refusal(500, "InternalError"),
            refusal(503, "ServiceUnavailable"),
        ];
        for error in unknown {
            assert_eq!(answered(error.clone()).until(), end, "{error:?}");
        }
    }

    #[test]
    fn create_that_is_refused_for_good_is_settled() {
        for code in [400, 403, 404, 409, 422, 429] {
            assert_eq!(answered(refusal(code, "AlreadyExists")).until(), None);
        }
    }

    #[test]
    fn pod_that_is_found_settles_its_create_and_no_other() {
        let mut unsettled = answered(ApiError::no_answer("reset"));
        let later = after(NOW, Duration::from_secs(1));
        let error = Err(ApiError::no_answer("reset"));
        unsettled.handle_answer(later, (1, 1), &create(), &error);
        let read = Stage::ReadCreated {
            name: "a".into(),
            write_failure: crate::operation::failure(decree::v1::FailureClass::Timeout, "reset"),
        };
        let found = replied(decree::v1::Pod::default());
        unsettled.handle_answer(later, (1, 1), &read, &found);
        assert_eq!(unsettled.until(), Some(after(NOW, Duration::from_secs(28))));
        unsettled.handle_answer(later, (1, 0), &read, &found);
        assert_eq!(unsettled.until(), None);
    }

    #[test]
    fn settled_creates_are_forgotten_with_the_next() {
        let mut unsettled = answered(ApiError::no_answer("reset"));
        let later = after(NOW, Duration::from_secs(60));
        let error = Err(ApiError::no_answer("reset"));
        unsettled.handle_answer(later, (2, 0), &create(), &error);
        assert_eq!(unsettled.until.len(), 1);
    }
}

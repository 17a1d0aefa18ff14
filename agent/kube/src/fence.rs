//! The moment before a request leaves: whether this process still leads, and how long a create may take.

use std::{sync::Arc, time::Duration};

use agent_core::{
    api::Request,
    lease::{CREATE_TIMEOUT_MIN, Lead},
};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::clock::Clock;

/// Lets requests leave while this process leads; all of them where it needs no lease. Clones agree.
#[derive(Clone, Debug, Default)]
pub struct Fence(Option<Arc<Leased>>);

#[derive(Debug)]
struct Leased {
    lead: watch::Receiver<Option<Lead>>,
    clock: Clock,
}

// === impl Fence ===

impl Fence {
    /// Returns the fence of a lead that is sent whenever it is renewed, by this clock.
    #[must_use]
    pub fn of_lease(lead: watch::Receiver<Option<Lead>>, clock: Clock) -> Self {
        Self(Some(Arc::new(Leased { lead, clock })))
    }

    /// Returns the request when it may leave. A create then takes at most the time that the lease allows, and waits for the lease to be
    /// renewed where that is too short. Once the lead is over nothing leaves: the process ends, and an answer would only be
    /// reported as what became of the call.
    pub(crate) async fn admit(&self, mut request: Request) -> Request {
        let Some(leased) = &self.0 else {
            return request;
        };
        if let Request::CreatePod(create) = &mut request {
            create.timeout = leased.time_for_create().await.min(create.timeout);
        } else if leased.lead(leased.clock.now()).is_none() {
            return std::future::pending().await;
        }
        request
    }
}

// === impl Leased ===

impl Leased {
    async fn time_for_create(&self) -> Duration {
        let mut renewed = self.lead.clone();
        loop {
            renewed.mark_unchanged();
            let now = self.clock.now();
            let Some(lead) = self.lead(now) else {
                return std::future::pending().await;
            };
            let left = Duration::try_from(lead.creates_until.duration_since(now));
            if let Some(left) = left.ok().filter(|left| *left >= CREATE_TIMEOUT_MIN) {
                return left;
            }
            if renewed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns the lead, unless it is over. A process that was stopped for longer than its lease, and goes on, finds out here and
    /// not by a timer that may be late.
    fn lead(&self, now: Timestamp) -> Option<Lead> {
        self.lead.borrow().filter(|lead| now < lead.until)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use agent_core::api::{CreatePod, Template};
    use decree::v1;
    use tokio::time::{advance, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn create() -> Request {
        Request::CreatePod(CreatePod {
            namespace: "n".into(),
            name: "a".into(),
            generate_name: String::new(),
            controller: v1::OwnerReference::default(),
            template: Template::new(*b"{}"),
            timeout: 20 * SECOND,
        })
    }

    fn read() -> Request {
        Request::ReadPod {
            namespace: "n".into(),
            name: "a".into(),
        }
    }

    /// A lead that was renewed now: it lasts for 10 s, and creates for 7 s.
    fn renewed(clock: Clock) -> Option<Lead> {
        Some(Lead {
            epoch: 0,
            until: clock.now() + 10 * SECOND,
            creates_until: clock.now() + 7 * SECOND,
        })
    }

    fn fence() -> (watch::Sender<Option<Lead>>, Clock, Fence) {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let (sender, lead) = watch::channel(renewed(clock));
        (sender, clock, Fence::of_lease(lead, clock))
    }

    async fn time_of_create(fence: &Fence) -> Duration {
        let admitted = fence.admit(create()).await;
        let Request::CreatePod(CreatePod { timeout, .. }) = admitted else {
            panic!("{admitted:?}")
        };
        timeout
    }

    #[tokio::test(start_paused = true)]
    async fn create_takes_at_most_what_the_lease_allows() {
        let (_lease, _, fence) = fence();
        assert_eq!(time_of_create(&fence).await, 7 * SECOND);
        advance(4 * SECOND).await;
        assert_eq!(time_of_create(&fence).await, 3 * SECOND);
        let unfenced = Fence::default();
        assert_eq!(time_of_create(&unfenced).await, 20 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn create_that_would_have_no_time_waits_for_the_renewal() {
        let (lease, clock, fence) = fence();
        advance(Duration::from_millis(6_001)).await;
        let mut waiting = pin!(time_of_create(&fence));
        let early = timeout(SECOND, &mut waiting).await;
        assert!(early.is_err(), "it waits");
        assert_eq!(fence.admit(read()).await, read(), "others go on");
        lease.send_replace(renewed(clock));
        assert_eq!(waiting.await, 7 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_leaves_when_the_lead_is_over() {
        let (lease, _, fence) = fence();
        advance(10 * SECOND).await;
        for request in [create(), read()] {
            let left = timeout(SECOND, fence.admit(request)).await;
            assert!(left.is_err(), "{left:?}");
        }
        lease.send_replace(None);
        let left = timeout(SECOND, fence.admit(read())).await;
        assert!(left.is_err(), "{left:?}");
    }
}

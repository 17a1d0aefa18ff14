//! The moment before a request leaves: whether this process still leads, and the time limit of a create.

use std::{sync::Arc, time::Duration};

use agent_core::{
    api::Request,
    lease::{CREATE_TIMEOUT_MIN, Lead},
};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::{body::Departure, clock::Clock};

/// Lets requests leave while this process leads, by all leases that they need; without leases, always. Clones agree.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<[HeldLease]>);

#[derive(Clone, Debug)]
struct HeldLease {
    lead: watch::Receiver<Option<Lead>>,
    clock: Clock,
}

impl Fence {
    /// Creates the fence of a lead. `lead` gets each renewal, with times of this clock.
    pub fn new(lead: watch::Receiver<Option<Lead>>, clock: Clock) -> Self {
        Self([HeldLease { lead, clock }].into())
    }

    /// Returns the fence with the leases of both.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&*other.0).cloned().collect())
    }

    /// Waits until a request may leave. A create with too little time waits for the renewal of a lease. After the end of a lead, the wait
    /// is endless: the purpose of the request ends, and an answer would only be reported as the outcome of the call.
    pub(crate) async fn wait_until_allowed(&self, request: &Request) {
        if matches!(request, Request::CreatePod(_)) {
            // During the wait for one lease, another may become too short.
            while let Some(lease) = self.0.iter().find(|it| it.time_for_create().is_none()) {
                lease.renewed().await;
            }
        } else if !self.leads() {
            std::future::pending().await
        }
    }

    /// True if a request may leave now, without a [wait](Self::wait_until_allowed). Limits a create to the time that the leases allow.
    pub(crate) fn allow(&self, request: &mut Request) -> bool {
        let Request::CreatePod(create) = request else {
            return self.leads();
        };
        let time = self.time_for_create();
        if let Some(time) = time {
            create.timeout = time.min(create.timeout);
        }
        time.is_some()
    }

    /// The departure of a request that is [allowed](Self::allow) now; `None` without leases, when it may leave at any time.
    pub(crate) fn departure(&self) -> Option<Departure> {
        (!self.0.is_empty()).then(Departure::checked_now)
    }

    /// True while all leases are held.
    pub(crate) fn leads(&self) -> bool {
        let mut leases = self.0.iter();
        leases.all(|it| it.lead(it.clock.now()).is_some())
    }

    /// The shortest time for a create among the leases; `None` if a lease leaves too little.
    fn time_for_create(&self) -> Option<Duration> {
        let mut times = self.0.iter().map(HeldLease::time_for_create);
        times.try_fold(Duration::MAX, |least, time| Some(least.min(time?)))
    }
}

impl HeldLease {
    /// The time limit of a create; `None` if it is too short for any.
    fn time_for_create(&self) -> Option<Duration> {
        let now = self.clock.now();
        let left = self.lead(now)?.creates_until.duration_since(now);
        let left = Duration::try_from(left).ok();
        left.filter(|left| *left >= CREATE_TIMEOUT_MIN)
    }

    /// Waits until a create has time again; forever after the end of the lead.
    async fn renewed(&self) {
        let mut lead = self.lead.clone();
        loop {
            lead.mark_unchanged();
            if self.time_for_create().is_some() {
                return;
            }
            if self.lead(self.clock.now()).is_none() || lead.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The lead, unless it is over. A process that was stopped for longer than its lease notices here when it continues, and not by a
    /// timer, which may be late. On a suspended machine the clock stands still, so the process does not notice (decision 11).
    fn lead(&self, now: Timestamp) -> Option<Lead> {
        self.lead.borrow().filter(|lead| now < lead.until)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use agent_core::api::{CreatePod, Template};
    use decree_api::v1;
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
            responds: false,
            timeout: 20 * SECOND,
        })
    }

    fn read() -> Request {
        Request::ReadPod {
            namespace: "n".into(),
            name: "a".into(),
        }
    }

    /// A lead renewed now: it lasts for 10 s, and leaves creates 7 s.
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
        (sender, clock, Fence::new(lead, clock))
    }

    async fn admit(fence: &Fence, mut request: Request) -> Request {
        while !fence.allow(&mut request) {
            fence.wait_until_allowed(&request).await;
        }
        request
    }

    async fn time_of_create(fence: &Fence) -> Duration {
        let admitted = admit(fence, create()).await;
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
        assert_eq!(admit(&fence, read()).await, read(), "others go on");
        assert!(!fence.allow(&mut create()), "it may not leave");
        lease.send_replace(renewed(clock));
        assert_eq!(waiting.await, 7 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn both_leases_must_last() {
        let (one, clock, fence) = fence();
        let (other, lead) = watch::channel(renewed(clock));
        let both = fence.and(&Fence::new(lead, clock));
        advance(3 * SECOND).await;
        other.send_replace(renewed(clock));
        assert_eq!(time_of_create(&both).await, 4 * SECOND, "the shorter time");
        advance(Duration::from_millis(3_500)).await;
        let mut waiting = pin!(time_of_create(&both));
        let early = timeout(SECOND / 10, &mut waiting).await;
        assert!(early.is_err(), "it waits for the one that is short");
        one.send_replace(renewed(clock));
        assert_eq!(waiting.await, Duration::from_millis(3_400));
        other.send_replace(None);
        let left = timeout(SECOND, admit(&both, read())).await;
        assert!(left.is_err(), "one lead is over: {left:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_leaves_when_the_lead_is_over() {
        let (lease, _, fence) = fence();
        advance(10 * SECOND).await;
        for request in [create(), read()] {
            let left = timeout(SECOND, admit(&fence, request)).await;
            assert!(left.is_err(), "{left:?}");
        }
        lease.send_replace(None);
        let left = timeout(SECOND, admit(&fence, read())).await;
        assert!(left.is_err(), "{left:?}");
    }
}

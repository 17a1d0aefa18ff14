//! When a ReplicaSet whose pods do not last may create pods again.
//!
//! Upstream replaces a pod that is gone, failed or without its labels at once, however often that happens (kubernetes#72593). Only its rate
//! limits for requests slow it down. Decree has no such limits: a webhook that drops labels, or a kubelet that rejects pods, would get as
//! many pods as the API server can create. So creates back off, as in kubelet for containers that crash. They close for a delay that
//! doubles, then a trial creates a few pods. Creates open again once these pods have lasted as long as the delay.

use crate::{
    object::{Phase, Span, Timestamp},
    reason::{Reason, Rule},
    wording::count,
};

/// A pod that ends sooner than this after its creation has not lasted.
const LASTING: Span = Span::seconds(60);
/// Creates close after this number of pods have ended early, unless more pods last.
const ENDED_MAX: u32 = 10;
const TRIAL_PODS: usize = 5;
/// The first delay of the back-off; each further delay is twice as long.
const DELAY_FIRST: Span = Span::seconds(10);
const DELAY_MAX: Span = Span::seconds(300);

/// The time at which a create of this session made a pod: whole seconds since 1970, rounded down; 0 if no create did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Made(u32);

/// The end of a pod that was a replica, or was created to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The pod is gone.
    Gone,
    /// A client other than this controller has deleted it.
    Deleted,
    /// It failed or succeeded.
    Phase(Phase),
    /// Its owner or its labels are not the intended ones.
    NotSelected,
}

/// Whether a ReplicaSet may create pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// As many as are missing.
    Open,
    /// None before this moment.
    Closed { until: Timestamp },
    /// No more than the trial that began at this moment, until its latest pod has lasted. A trial that made no pod shows nothing, and
    /// another trial follows.
    Trial {
        since: Timestamp,
        /// The time of its latest create.
        made: Option<Timestamp>,
    },
}

/// The pods of a ReplicaSet that did not last. A change of the spec resets it.
#[derive(Clone, Debug)]
pub(crate) struct CreateBackOff {
    gate: Gate,
    /// How many pods have ended early since `since`.
    ended: u32,
    /// The latest end of a pod.
    latest: (Timestamp, Ending),
    /// The start of this period. Pods created earlier do not count.
    since: Timestamp,
    delay: Span,
}

// === impl Made ===

impl Made {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self(u32::try_from(now.0.div_euclid(1_000_000_000)).unwrap_or(0))
    }

    /// Returns whether a pod with this mark that ends at `now` has not lasted.
    pub(crate) fn is_recent(self, now: Timestamp) -> bool {
        self.0 != 0 && self.time().plus(LASTING) > now
    }

    /// Returns whether a pod with this mark was made at `since` or later and has lasted at `now`.
    fn has_lasted(self, since: Timestamp, now: Timestamp) -> bool {
        self.0 != 0 && self >= Self::at(since) && !self.is_recent(now)
    }

    fn time(self) -> Timestamp {
        Timestamp(i64::from(self.0) * 1_000_000_000)
    }
}

// === impl CreateBackOff ===

impl CreateBackOff {
    /// Begins with no pod that ended early. All pods that were created before count as created in the first period.
    pub(crate) const fn new(now: Timestamp, ending: Ending) -> Self {
        Self {
            gate: Gate::Open,
            ended: 0,
            latest: (now, ending),
            since: Timestamp(0),
            delay: Span(0),
        }
    }

    /// Records a pod that did not last. `lasting` counts the replicas whose marks pass its test. Returns whether creates close.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        (made, ending): (Made, Ending),
        lasting: impl FnOnce(&dyn Fn(Made) -> bool) -> usize,
    ) -> bool {
        let quiet = self.latest.0.plus(LASTING) < now;
        self.open_if_passed(now);
        if quiet && self.gate == Gate::Open {
            (self.ended, self.delay, self.since) = (0, Span(0), Timestamp(0));
        }
        self.ended = self.ended.saturating_add(1);
        self.latest = (now, ending);
        match self.gate {
            Gate::Closed { .. } => false,
            Gate::Trial { since, .. } => made >= Made::at(since) && self.close(now),
            Gate::Open if self.ended < ENDED_MAX => false,
            Gate::Open => {
                let since = self.since;
                if lasting(&|made| made.has_lasted(since, now)) > self.ended as usize {
                    (self.ended, self.since) = (0, now);
                    return false;
                }
                self.close(now)
            }
        }
    }

    pub(crate) const fn note_made(&mut self, now: Timestamp) {
        if let Gate::Trial { made, .. } = &mut self.gate {
            *made = Some(now);
        }
    }

    fn close(&mut self, now: Timestamp) -> bool {
        self.delay = match self.delay {
            Span(0) => DELAY_FIRST,
            Span(delay) => Span(delay.saturating_mul(2)).min(DELAY_MAX),
        };
        let until = now.plus(self.delay);
        self.gate = Gate::Closed { until };
        true
    }

    /// Opens after a trial whose pods have lasted.
    fn open_if_passed(&mut self, now: Timestamp) {
        if let Gate::Trial {
            since,
            made: Some(made),
        } = self.gate
            && made.plus(self.delay) <= now
        {
            self.gate = Gate::Open;
            (self.ended, self.since) = (0, since);
        }
    }

    /// Returns how many of the missing pods may be created at `now`. Begins a trial if one is due.
    pub(crate) fn admit(&mut self, now: Timestamp, lacking: usize) -> usize {
        self.open_if_passed(now);
        match self.gate {
            Gate::Open => lacking,
            Gate::Closed { .. } | Gate::Trial { .. } if self.closed_until(now).is_none() => {
                self.gate = Gate::Trial {
                    since: now,
                    made: None,
                };
                lacking.min(TRIAL_PODS)
            }
            Gate::Closed { .. } | Gate::Trial { .. } => 0,
        }
    }

    /// Returns the time until which creates are closed; `None` if they are open.
    pub(crate) fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = match self.gate {
            Gate::Open => return None,
            Gate::Closed { until } => until,
            Gate::Trial { since, made } => made.unwrap_or(since).plus(self.delay),
        };
        (until > now).then_some(until)
    }

    /// Gives the number of pods that did not last, and how the latest ended.
    pub(crate) fn reason(&self) -> Reason {
        let (pods, how) = (count(self.ended, "pod"), self.latest.1.words());
        let detail = format!("{pods} ended within a minute of being created; the latest {how}");
        Reason::new(Rule::PodsDoNotLast, detail)
    }
}

// === impl Ending ===

impl Ending {
    const fn words(self) -> &'static str {
        match self {
            Self::Gone => "is gone",
            Self::Deleted => "was deleted by somebody else",
            Self::Phase(Phase::Succeeded) => "has succeeded",
            Self::Phase(_) => "has failed",
            Self::NotSelected => {
                "has other labels or another owner than it was created with, as a webhook may set them"
            }
        }
    }
}

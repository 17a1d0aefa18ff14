//! Faults that can be switched on: refusals, and latency.

use std::time::Duration;

use crate::{error::ApiError, kind::Kind, requests::Verb};

/// One fault and the calls that it strikes: by default every call, forever.
#[derive(Clone, Debug)]
pub struct Fault {
    harm: Harm,
    verb: Option<Verb>,
    kind: Option<Kind>,
    left: Option<u64>,
}

/// The faults of a cluster; tests and the demo switch them on and off through [`crate::Cluster::faults_mut`].
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

/// The effect of a fault on a call.
#[derive(Clone, Debug)]
enum Harm {
    Refuse(ApiError),
    Delay(Duration),
}

impl Fault {
    /// Refuses calls with this answer; nothing is stored.
    pub const fn refuse(answer: ApiError) -> Self {
        Self::new(Harm::Refuse(answer))
    }

    /// Delays replies: the effect is immediate, and [`crate::Cluster::take_latency`] returns the delay. A create with a shorter timeout
    /// ([`crate::Cluster::create_within`]) has no effect.
    pub const fn delay(by: Duration) -> Self {
        Self::new(Harm::Delay(by))
    }

    const fn new(harm: Harm) -> Self {
        Self {
            harm,
            verb: None,
            kind: None,
            left: None,
        }
    }

    /// Strikes calls of this verb only.
    pub const fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Strikes calls on this kind only.
    pub const fn of(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Strikes this many calls, and then no more.
    pub const fn times(mut self, calls: u64) -> Self {
        self.left = Some(calls);
        self
    }

    fn strikes(&mut self, verb: Verb, kind: Kind) -> bool {
        let concerns =
            self.verb.is_none_or(|it| it == verb) && self.kind.is_none_or(|it| it == kind);
        if !concerns || self.left == Some(0) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}

impl Faults {
    /// Switches a fault on. If several faults strike one call, the earliest one counts; delays add up.
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Switches all faults off.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The effect of the faults on a call: the delay of the reply, and the refusal.
    pub(crate) fn strike(&mut self, verb: Verb, kind: Kind) -> (Duration, Option<ApiError>) {
        let mut delay = Duration::ZERO;
        let faults = self.0.iter_mut();
        for fault in faults.filter_map(|it| it.strikes(verb, kind).then_some(it)) {
            match &fault.harm {
                Harm::Delay(by) => delay += *by,
                Harm::Refuse(answer) => return (delay, Some(answer.clone())),
            }
        }
        (delay, None)
    }
}

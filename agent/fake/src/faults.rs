//! Faults that can be switched on: refusals, lost replies, and latency.

use std::time::Duration;

use crate::{error::ApiError, kind::Kind, random::Random, requests::Verb};

/// One fault and the calls that it strikes: by default every call, forever.
#[derive(Clone, Debug)]
pub struct Fault {
    harm: Harm,
    verb: Option<Verb>,
    kind: Option<Kind>,
    namespace: Option<String>,
    spared: u64,
    left: Option<u64>,
    per_mille: u16,
}

/// The faults of a cluster; tests and the demo switch them on and off through [`crate::Cluster::faults_mut`].
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

/// The effect of a fault on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    Refuse(ApiError),
    LoseReply,
    Delay(Duration),
}

// === impl Fault ===

impl Fault {
    /// Refuses calls with this answer; nothing is stored.
    #[must_use]
    pub const fn refuse(answer: ApiError) -> Self {
        Self::new(Harm::Refuse(answer))
    }

    /// Loses replies: a write is stored, and the caller gets [`ApiError::timeout`].
    #[must_use]
    pub const fn lose_reply() -> Self {
        Self::new(Harm::LoseReply)
    }

    /// Delays replies: the effect is immediate, and [`crate::Cluster::take_latency`] returns the delay. A create with a shorter timeout
    /// ([`crate::Cluster::create_within`]) has no effect.
    #[must_use]
    pub const fn delay(by: Duration) -> Self {
        Self::new(Harm::Delay(by))
    }

    const fn new(harm: Harm) -> Self {
        Self {
            harm,
            verb: None,
            kind: None,
            namespace: None,
            spared: 0,
            left: None,
            per_mille: 1000,
        }
    }

    /// Strikes calls of this verb only.
    #[must_use]
    pub const fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Strikes calls on this kind only.
    #[must_use]
    pub const fn of(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Strikes calls in this namespace only.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Spares the first `calls` calls that it would strike.
    #[must_use]
    pub const fn after(mut self, calls: u64) -> Self {
        self.spared = calls;
        self
    }

    /// Strikes this many calls, and then no more.
    #[must_use]
    pub const fn times(mut self, calls: u64) -> Self {
        self.left = Some(calls);
        self
    }

    /// Strikes this many calls of a thousand, drawn from the seed.
    #[must_use]
    pub const fn per_mille(mut self, per_mille: u16) -> Self {
        self.per_mille = per_mille;
        self
    }

    fn concerns(&self, verb: Verb, kind: Kind, namespace: &str) -> bool {
        self.verb.is_none_or(|it| it == verb)
            && self.kind.is_none_or(|it| it == kind)
            && self.namespace.as_deref().is_none_or(|it| it == namespace)
    }

    fn strikes(&mut self, random: &mut Random) -> bool {
        if self.left == Some(0) || !random.chance(self.per_mille) {
            return false;
        }
        if self.spared > 0 {
            self.spared -= 1;
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}

// === impl Faults ===

impl Faults {
    /// Switches a fault on. If several faults strike one call, the earliest one counts; delays add up.
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Switches all faults off.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The effect of the faults on a call: the delay of the reply, and the harm.
    pub(crate) fn strike(
        &mut self,
        random: &mut Random,
        verb: Verb,
        kind: Kind,
        namespace: &str,
    ) -> (Duration, Option<Harm>) {
        let (mut delay, mut harm) = (Duration::ZERO, None);
        for rule in &mut self.0 {
            if !rule.concerns(verb, kind, namespace) || !rule.strikes(random) {
                continue;
            }
            match &rule.harm {
                Harm::Delay(by) => delay += *by,
                other @ (Harm::Refuse(_) | Harm::LoseReply) => {
                    harm = Some(other.clone());
                    break;
                }
            }
        }
        (delay, harm)
    }
}

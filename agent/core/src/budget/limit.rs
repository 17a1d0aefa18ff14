//! The settings of the budget, and their notation.

use std::{fmt, num::NonZeroU16, str::FromStr};

use thiserror::Error;

/// The default of [`BudgetConfig::floor`].
const FLOOR: u32 = 20;

/// The default of [`BudgetConfig::creates`]. A ReplicaSet that is scaled up, down and up again creates twice its desired pods. One with
/// refused creates tries about fifteen times in the first minute. All of a cluster together try 700 times.
const CREATES: Limits = Limits {
    replica_set: Limit::Times(3, 20),
    namespace: Limit::Off,
    cluster: Limit::Times(3, 1_000),
};

/// What happens to an operation that would exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It starts, and is reported.
    #[default]
    Warn,
    /// It is refused, with all operations of its kind in that scope, until somebody resumes them.
    Hold,
}

/// How many operations may start in a minute, in one scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Any number.
    #[default]
    Off,
    /// This many, at least 1.
    Count(u32),
    /// This part of the pods in the scope, in percent, at least 1.
    Percent(u32),
    /// This many times the desired pods of the scope, at least 1 time, plus this many.
    Times(u32, u32),
}

/// The limits of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For each ReplicaSet.
    pub replica_set: Limit,
    /// For each namespace.
    pub namespace: Limit,
    /// For the cluster.
    pub cluster: Limit,
}

/// The budget of an agent. By default, it warns of deletes of more than half of the cluster's pods, and of creates of several times the
/// desired pods. It holds a ReplicaSet if another controller creates its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// What happens when a limit is exceeded.
    pub action: Action,
    /// The smallest number of operations that a percentage allows.
    pub floor: u32,
    /// The limits of creates.
    pub creates: Limits,
    /// The limits of deletes.
    pub deletes: Limits,
}

/// A text that is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "must be a number above 0, a percentage such as 50%, a multiple of what is wanted such as 3x+20, or off"
)]
pub struct LimitError;

// === impl Limit ===

impl Limit {
    /// How many operations may start for this many pods; `None` for any number. For [`Times`](Self::Times), `pods` is the desired number.
    pub(super) fn allowed(self, pods: u32, floor: u32) -> Option<u32> {
        match self {
            Self::Off => None,
            Self::Count(count) => Some(count),
            Self::Times(times, more) => Some(pods.saturating_mul(times).saturating_add(more)),
            Self::Percent(percent) => {
                let part = (u64::from(pods) * u64::from(percent)).div_ceil(100);
                Some(u32::try_from(part).unwrap_or(u32::MAX).max(floor))
            }
        }
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let limit = if let Some(percent) = text.strip_suffix('%') {
            above_zero(percent).map(Self::Percent)
        } else if let Some((times, more)) = text.split_once("x+") {
            let more = number(more);
            above_zero(times).and_then(|times| Some(Self::Times(times, more?)))
        } else if let Some(times) = text.strip_suffix('x') {
            above_zero(times).map(|times| Self::Times(times, 0))
        } else {
            above_zero(text).map(Self::Count)
        };
        limit.ok_or(LimitError)
    }
}

fn above_zero(text: &str) -> Option<u32> {
    number(text).filter(|number| *number > 0)
}

fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
            Self::Times(times, 0) => write!(formatter, "{times}x"),
            Self::Times(times, more) => write!(formatter, "{times}x+{more}"),
        }
    }
}

// === impl BudgetConfig ===

impl BudgetConfig {
    /// Returns the budget of one of `shards` shards. A number for the cluster is divided among them, rounded up. A percentage or a multiple
    /// applies to the shard's own pods.
    #[must_use]
    pub fn divided_among(self, shards: NonZeroU16) -> Self {
        let divide = |limits: Limits| Limits {
            cluster: match limits.cluster {
                Limit::Count(count) => Limit::Count(count.div_ceil(shards.get().into())),
                Limit::Percent(_) | Limit::Times(..) | Limit::Off => limits.cluster,
            },
            ..limits
        };
        Self {
            creates: divide(self.creates),
            deletes: divide(self.deletes),
            ..self
        }
    }
}

impl Default for BudgetConfig {
    fn default() -> Self {
        let deletes = Limits {
            cluster: Limit::Percent(50),
            ..Limits::default()
        };
        Self {
            action: Action::default(),
            floor: FLOOR,
            creates: CREATES,
            deletes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["off", "1", "4294967295", "50%", "250%", "3x+20", "1x"] {
            let limit = text.parse::<Limit>();
            assert_eq!(limit.map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let numbers = ["", "0", "-1", "+1", "1.5", "1e3", "4294967296", "Off"];
        let percentages = ["0%", "%", "50 %"];
        let multiples = ["x", "0x", "0x+1", "3x+", "3x-1", "3x+1%", "+3x", "3 x"];
        for text in [&numbers[..], &percentages, &multiples].concat() {
            assert_eq!(text.parse::<Limit>(), Err(LimitError), "{text:?}");
        }
    }

    #[test]
    fn number_for_the_cluster_is_divided_among_shards() {
        let budget = BudgetConfig {
            creates: Limits {
                replica_set: Limit::Count(10),
                namespace: Limit::Count(50),
                cluster: Limit::Count(101),
            },
            ..BudgetConfig::default()
        };
        let shard = budget.divided_among(NonZeroU16::new(4).expect("not 0"));
        let creates = Limits {
            cluster: Limit::Count(26),
            ..budget.creates
        };
        assert_eq!(shard, BudgetConfig { creates, ..budget });
    }

    #[test]
    fn percentage_is_rounded_up_and_never_below_the_floor() {
        for (limit, pods, floor, allowed) in [
            (Limit::Percent(50), 201, 20, Some(101)),
            (Limit::Percent(50), 10, 20, Some(20)),
            (Limit::Percent(50), u32::MAX, 0, Some(1 << 31)),
            (Limit::Percent(u32::MAX), u32::MAX, 0, Some(u32::MAX)),
            (Limit::Count(7), 1_000, 20, Some(7)),
            (Limit::Off, 1_000, 20, None),
            // A multiple has no floor but its own.
            (Limit::Times(3, 5), 10, 20, Some(35)),
            (Limit::Times(3, 0), 0, 20, Some(0)),
            (Limit::Times(u32::MAX, 1), 9, 0, Some(u32::MAX)),
        ] {
            assert_eq!(limit.allowed(pods, floor), allowed, "{limit} of {pods}");
        }
    }
}

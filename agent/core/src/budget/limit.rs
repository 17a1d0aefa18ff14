//! The settings of the budget, and their notation.

use std::{fmt, num::NonZeroU16, str::FromStr};

use thiserror::Error;

/// The names of the scopes in [`Limits`].
const REPLICA_SET: &str = "replicaset";
const CLUSTER: &str = "cluster";

/// What happens to an operation that would exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It starts, and is reported.
    #[default]
    Warn,
    /// It is refused, with all operations of its kind in that scope, until somebody resumes them.
    Hold,
}

/// How many operations may start in a minute, in one scope: a part of its pods, and a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// The part, in percent: for creates of the desired pods, for deletes of the active ones.
    pub percent: u32,
    /// The number that is added.
    pub more: u32,
}

/// The limits of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For each ReplicaSet.
    pub replica_set: Limit,
    /// For the cluster.
    pub cluster: Limit,
}

/// The budget of an agent. By default, it warns of deletes of more than half of the cluster's pods, and of creates of several times the
/// desired pods. It holds a ReplicaSet if another controller creates its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// What happens when a limit is exceeded.
    pub action: Action,
    /// The limits of creates.
    pub creates: Limits,
    /// The limits of deletes.
    pub deletes: Limits,
}

/// A text without limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "must be off, or name the limit of each scope, such as replicaset=300%+20,cluster=1000: a number, a percentage, or both"
)]
pub struct LimitError;

impl Limit {
    /// Any number may start.
    pub const OFF: Self = Self::count(0);

    /// Returns the limit of a number.
    pub const fn count(count: u32) -> Self {
        Self {
            percent: 0,
            more: count,
        }
    }

    /// How many operations may start for this many pods; `None` for any number.
    pub(super) fn allowed(self, pods: u32) -> Option<u32> {
        let part = (u64::from(pods) * u64::from(self.percent)).div_ceil(100);
        let part = u32::try_from(part).unwrap_or(u32::MAX);
        (self != Self::OFF).then_some(part.saturating_add(self.more))
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (percent, more) = match text.split_once('%') {
            Some((percent, "")) => (number(percent)?, 0),
            Some((percent, more)) => {
                let more = more.strip_prefix('+').ok_or(LimitError)?;
                (number(percent)?, number(more)?)
            }
            None => (0, number(text)?),
        };
        let is_above_zero = percent > 0 || (more > 0 && !text.contains('%'));
        is_above_zero
            .then_some(Self { percent, more })
            .ok_or(LimitError)
    }
}

fn number(text: &str) -> Result<u32, LimitError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or(LimitError)
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.percent, self.more) {
            (0, 0) => formatter.write_str("off"),
            (0, more) => write!(formatter, "{more}"),
            (percent, 0) => write!(formatter, "{percent}%"),
            (percent, more) => write!(formatter, "{percent}%+{more}"),
        }
    }
}

impl FromStr for Limits {
    type Err = LimitError;

    /// Reads `off`, or limits such as `replicaset=300%+20,cluster=1000`. A scope that is not named has no limit.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut limits = Self::default();
        if text == "off" {
            return Ok(limits);
        }
        for named in text.split(',') {
            let (scope, limit) = named.split_once('=').ok_or(LimitError)?;
            let of_scope = match scope {
                REPLICA_SET => &mut limits.replica_set,
                CLUSTER => &mut limits.cluster,
                _ => return Err(LimitError),
            };
            if *of_scope != Limit::OFF {
                return Err(LimitError);
            }
            *of_scope = limit.parse()?;
        }
        Ok(limits)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = [(REPLICA_SET, self.replica_set), (CLUSTER, self.cluster)]
            .into_iter()
            .filter(|(_, limit)| *limit != Limit::OFF)
            .map(|(scope, limit)| format!("{scope}={limit}"))
            .collect();
        match &named[..] {
            [] => formatter.write_str("off"),
            [..] => formatter.write_str(&named.join(",")),
        }
    }
}

impl BudgetConfig {
    /// Returns the budget of one of `shards` shards. The numbers of the cluster are divided among them, rounded up. A percentage applies to
    /// the shard's own pods.
    pub fn divided_among(self, shards: NonZeroU16) -> Self {
        let divide = |limits: Limits| Limits {
            cluster: Limit {
                more: limits.cluster.more.div_ceil(shards.get().into()),
                ..limits.cluster
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
    /// A ReplicaSet that is scaled up, down and up again creates twice its desired pods. One with refused creates tries about fifteen times
    /// in the first minute. All of a cluster together try 700 times.
    fn default() -> Self {
        let up_to = |percent, more| Limit { percent, more };
        Self {
            action: Action::default(),
            creates: Limits {
                replica_set: up_to(300, 20),
                cluster: up_to(300, 1_000),
            },
            deletes: Limits {
                replica_set: Limit::OFF,
                cluster: up_to(50, 20),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in [
            "off",
            "cluster=50%+20",
            "replicaset=1",
            "replicaset=300%,cluster=4294967295",
        ] {
            let limits = text.parse::<Limits>();
            assert_eq!(limits.map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let scopes = [
            "",
            "5",
            "cluster",
            "namespace=5",
            "cluster=1,cluster=2",
            "cluster=1,",
        ];
        let numbers = ["", "0", "-1", "+1", "1.5", "4294967296", "off", "3x"];
        let percentages = ["0%", "0%+1", "%", "50 %", "5%1", "5%+", "+3%", "5%+1%"];
        let numbers = [&numbers[..], &percentages].concat();
        let numbers: Vec<_> = numbers.iter().map(|it| format!("cluster={it}")).collect();
        for text in scopes.into_iter().chain(numbers.iter().map(String::as_str)) {
            assert_eq!(text.parse::<Limits>(), Err(LimitError), "{text:?}");
        }
    }

    #[test]
    fn number_for_the_cluster_is_divided_among_shards() {
        let shards = NonZeroU16::new(4).expect("not 0");
        let of_shard = BudgetConfig::default().divided_among(shards);
        let texts = [of_shard.creates, of_shard.deletes].map(|it| it.to_string());
        assert_eq!(
            texts,
            ["replicaset=300%+20,cluster=300%+250", "cluster=50%+5"]
        );
    }

    #[test]
    fn part_is_rounded_up_and_the_number_comes_on_top() {
        for (limit, pods, allowed) in [
            ("50%", 201, 101),
            ("50%+20", 0, 20),
            ("300%+5", 10, 35),
            ("7", 1_000, 7),
            ("4294967295%+1", u32::MAX, u32::MAX),
        ] {
            let limit = limit.parse::<Limit>().expect(limit);
            assert_eq!(limit.allowed(pods), Some(allowed), "{limit} of {pods}");
        }
        assert_eq!(Limit::OFF.allowed(9), None);
    }
}

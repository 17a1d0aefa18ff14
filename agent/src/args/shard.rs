//! The flag for the part of a cluster that an agent serves.

use std::str::FromStr;

use agent_core::lease::shard::{InvalidShard, Shard};

/// The part of a cluster that an agent serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardArg {
    /// The whole cluster, in a session and with a Lease of this name; empty for the only agent.
    Name(String),
    /// One of several shards.
    Shard(Shard),
}

impl ShardArg {
    /// Returns the name of the shard in Hello.
    pub fn name(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Shard(shard) => shard.index().to_string(),
        }
    }

    /// Returns the shard; `None` for the whole cluster.
    pub const fn shard(&self) -> Option<Shard> {
        match self {
            Self::Name(_) => None,
            Self::Shard(shard) => Some(*shard),
        }
    }

    /// Returns the name of the Lease, which is `given` if the flag for it is set; with shards, of the Lease with their number.
    pub fn lease_name(&self, given: Option<&str>) -> String {
        match (given, self) {
            (Some(given), _) => given.to_owned(),
            (None, Self::Name(name)) if !name.is_empty() => format!("decree-agent-{name}"),
            (None, Self::Name(_) | Self::Shard(_)) => "decree-agent".to_owned(),
        }
    }
}

impl FromStr for ShardArg {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        // A number alone would be the session and the Lease of a shard.
        let is_index = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if is_index || text.contains('/') {
            text.parse().map(Self::Shard)
        } else {
            Ok(Self::Name(text.to_owned()))
        }
    }
}

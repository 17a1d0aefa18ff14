//! The agent half: the real machine, with its connection and its open watches.

use std::time::Duration;

use agent_core::{
    agent::{Agent, Config},
    creates::CreateLimits,
    watch::WatchId,
};
use jiff::{SignedDuration, Timestamp};

use crate::mutants::Mutant;

/// How long a create of a simulated world may take, and how much later it may still take effect.
pub const CREATES: CreateLimits = CreateLimits {
    timeout: Duration::from_millis(1500),
    margin: Duration::from_millis(500),
};

/// One life of an agent. Another life is another agent.
#[derive(Debug)]
pub struct AgentActor {
    /// The machine.
    pub agent: Agent,
    /// Numbers the lives; answers to an older life reach nobody.
    pub life: u64,
    /// The connection, while there is one.
    pub connection: Option<u64>,
    /// How many frames are on their way to the server.
    pub frames_out: usize,
    /// The open watch of each kind, by [`agent_core::api::Kind`].
    pub watches: [Option<OpenWatch>; 2],
    /// The watch of each kind that the agent asked for last; an older one that opens late is nobody's.
    pub wanted: [Option<WatchId>; 2],
    /// How far its clock is ahead of that of the cluster.
    pub offset: SignedDuration,
    /// When a timeout was served last; it is not served twice at one time.
    pub served: Timestamp,
}

/// The process of an agent that begins to act.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// When it begins.
    pub now: Timestamp,
    /// Its number.
    pub life: u64,
    /// How far its clock is ahead of that of the cluster.
    pub offset: SignedDuration,
}

/// An open watch.
#[derive(Clone, Copy, Debug)]
pub struct OpenWatch {
    /// Its number in the agent.
    pub id: WatchId,
    /// Its number in the cluster.
    pub cluster: agent_fake::WatchId,
    /// Its number in the world.
    pub number: u64,
}

impl AgentActor {
    /// Returns an agent that begins to act in an epoch.
    #[must_use]
    pub fn new(process: Process, epoch: i64, seed: u64, mutant: Option<Mutant>) -> Self {
        let Process { now, life, offset } = process;
        let creates = if mutant == Some(Mutant::SkipBarrier) {
            CreateLimits {
                timeout: Duration::ZERO,
                margin: Duration::ZERO,
            }
        } else {
            CREATES
        };
        let config = Config {
            instance: format!("agent-{life}"),
            cluster_uid: "simulated".to_owned(),
            cluster_name: "simulated".to_owned(),
            epoch,
            calls_max: 64,
            creates,
            seed,
            ..Config::default()
        };
        Self {
            agent: Agent::new(config),
            life,
            connection: None,
            frames_out: 0,
            watches: [None, None],
            wanted: [None, None],
            offset,
            served: now,
        }
    }

    /// Returns what its clock shows at a time of the cluster.
    #[must_use]
    pub fn local(&self, now: Timestamp) -> Timestamp {
        now + self.offset
    }

    /// Returns when the machine wants to be woken, if that is not behind it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.agent.poll_timeout()?;
        let due = due.checked_sub(self.offset).unwrap_or(due);
        Some(due).filter(|at| *at > self.served)
    }
}

//! The agent half: a machine, with its connection and its open watches.

use std::time::Duration;

use agent_core::{
    agent::{Agent, AgentConfig},
    budget,
    creates::CreateLimits,
    link::hello,
    watch::WatchId,
};
use decree::v1;
use jiff::Timestamp;

use super::{
    clock::Clock,
    foreign::{Behaviour, ForeignAgent, Manner},
    machine::Machine,
    part::Part,
};
use crate::{mutants::Mutant, rng::Rng};

/// How long a create of a simulated world may take, and how much later it may still take effect.
pub const CREATES: CreateLimits = CreateLimits {
    timeout: Duration::from_millis(1500),
    margin: Duration::from_millis(500),
};

/// One life of an agent. Another life is another agent.
#[derive(Debug)]
pub struct AgentActor {
    /// The machine.
    pub agent: Machine,
    /// Numbers the lives; answers to an older life reach nobody.
    pub life: u64,
    /// The epoch in which it acts.
    pub epoch: i64,
    /// The connection, while there is one.
    pub connection: Option<u64>,
    /// How many frames are on their way to the server.
    pub frames_out: usize,
    /// The open watch of each kind, by [`agent_core::api::Kind`].
    pub watches: [Option<OpenWatch>; 2],
    /// The watch of each kind that the agent asked for last; an older one that opens late is nobody's.
    pub wanted: [Option<WatchId>; 2],
    /// Its clocks. It goes by the monotonic one.
    pub clock: Clock,
    /// When a timeout was served last; it is not served twice at one time.
    pub served: Timestamp,
    /// The part of the cluster that it acts for; all of it without.
    pub part: Option<Part>,
}

/// The process of an agent that begins to act.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// When it begins.
    pub now: Timestamp,
    /// The number of its cluster.
    pub cluster: u64,
    /// Its number.
    pub life: u64,
    /// Its clocks.
    pub clock: Clock,
    /// Whether it is an agent of another make.
    pub is_foreign: bool,
    /// What it does then that the protocol forbids.
    pub manner: Option<Manner>,
    /// How much it creates and deletes in a minute.
    pub budget: budget::BudgetConfig,
    /// Whether it does what it is asked without rules of its own.
    pub is_lenient: bool,
}

/// An open watch.
#[derive(Clone, Copy, Debug)]
pub struct OpenWatch {
    /// Its number in the agent.
    pub id: WatchId,
    /// Its number in the cluster.
    pub cluster: agent_fake::WatchId,
    /// The API server that serves it.
    pub server: usize,
    /// Its number in the world.
    pub number: u64,
}

// === impl AgentActor ===

impl AgentActor {
    /// Returns an agent that begins to act in an epoch.
    #[must_use]
    pub fn new(process: Process, epoch: i64, seed: u64, mutant: Option<Mutant>) -> Self {
        let Process {
            now,
            cluster,
            life,
            clock,
            is_foreign,
            manner,
            budget,
            is_lenient,
        } = process;
        let creates = if mutant == Some(Mutant::SkipBarrier) {
            CreateLimits {
                timeout: Duration::ZERO,
                margin: Duration::ZERO,
            }
        } else {
            CREATES
        };
        let hello = v1::Hello {
            agent_instance: format!("agent-{life}"),
            cluster_uid: format!("simulated-{cluster}"),
            cluster_name: "simulated".to_owned(),
            epoch,
            ..hello()
        };
        let agent = if is_foreign {
            Machine::Foreign(Box::new(foreign(
                clock.monotonic(now),
                hello,
                creates,
                seed,
                manner,
            )))
        } else {
            Machine::Ours(Box::new(ours(hello, creates, budget, seed, is_lenient)))
        };
        Self::begin(now, (life, epoch), clock, agent)
    }

    /// Returns an agent that begins to act for a part of the cluster.
    #[must_use]
    pub fn of_part(
        now: Timestamp,
        life: u64,
        clock: Clock,
        config: AgentConfig,
        part: Part,
    ) -> Self {
        let epoch = config.epoch;
        let agent = Machine::Ours(Box::new(Agent::new(config)));
        Self {
            part: Some(part),
            ..Self::begin(now, (life, epoch), clock, agent)
        }
    }

    const fn begin(
        now: Timestamp,
        (life, epoch): (u64, i64),
        clock: Clock,
        agent: Machine,
    ) -> Self {
        Self {
            agent,
            life,
            epoch,
            connection: None,
            frames_out: 0,
            watches: [None, None],
            wanted: [None, None],
            clock,
            served: now,
            part: None,
        }
    }

    /// Returns what its clock shows at a time of the cluster.
    #[must_use]
    pub fn local(&self, now: Timestamp) -> Timestamp {
        self.clock.monotonic(now)
    }

    /// Returns when the machine wants to be woken, if that is not behind it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.clock.when_monotonic(self.agent.poll_timeout()?);
        Some(due).filter(|at| *at > self.served)
    }
}

/// Returns an agent. In a broken world it refuses nothing: it would hide what the checkers are to see.
fn ours(
    hello: v1::Hello,
    creates: CreateLimits,
    budget: budget::BudgetConfig,
    seed: u64,
    lenient: bool,
) -> Agent {
    Agent::new(AgentConfig {
        instance: hello.agent_instance,
        cluster_uid: hello.cluster_uid,
        cluster_name: hello.cluster_name,
        epoch: hello.epoch,
        calls_max: 64,
        // The links of every second one are so slow that what waits is merged.
        events_max: if seed.is_multiple_of(2) {
            0
        } else {
            AgentConfig::default().events_max
        },
        creates,
        budget,
        seed,
        lenient,
        ..AgentConfig::default()
    })
}

fn foreign(
    now: Timestamp,
    hello: v1::Hello,
    creates: CreateLimits,
    seed: u64,
    manner: Option<Manner>,
) -> ForeignAgent {
    let mut rng = Rng::new(seed);
    let behaviour = Behaviour::draw(&mut rng).with(manner);
    ForeignAgent::new(now, hello, creates, behaviour, rng.next_u64())
}

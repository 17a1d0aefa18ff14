//! The agent of a world: a machine, with its connection and its open watches.

use std::time::Duration;

use agent_core::{
    agent::{Agent, AgentConfig},
    asking::CostKind,
    budget,
    execute::creates::CreateLimits,
    nodes::NodeFields,
    preferences::PreferencePolicy,
    watch::WatchId,
};
use decree_api::v1;
use jiff::Timestamp;

use super::clock::Clock;
use crate::mutants::Mutant;

/// The maximum duration of a create in a simulated world, and the maximum delay of its effect after that.
pub const CREATES: CreateLimits = CreateLimits {
    timeout: Duration::from_millis(1500),
    margin: Duration::from_millis(500),
};

/// One life of an agent. After a restart, a new value takes its place.
#[derive(Debug)]
pub struct AgentActor {
    /// The machine.
    pub agent: Box<Agent>,
    /// The number of this life; answers to an older life are dropped.
    pub life: u64,
    /// The epoch of the agent.
    pub epoch: i64,
    /// The connection, while there is one.
    pub connection: Option<u64>,
    /// The number of frames in flight to the server.
    pub frames_out: usize,
    /// The open watch of each kind, by [`agent_core::api::Kind`].
    pub watches: [Option<OpenWatch>; 2],
    /// The latest watch of each kind that the agent requested. A watch with an older id that opens late is ignored.
    pub wanted: [Option<WatchId>; 2],
    /// The number of nodes and their newest version when the agent read them last; `None` while it reads none.
    pub nodes: Option<(usize, u64)>,
    /// The clocks of the agent, which uses the monotonic clock.
    pub clock: Clock,
    /// The time of the last served timeout; the actor serves one timeout at a time.
    pub served: Timestamp,
}

/// The process of an agent at its start.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// The time of the start.
    pub now: Timestamp,
    /// The number of the cluster.
    pub cluster: u64,
    /// The number of the life.
    pub life: u64,
    /// The clocks of the process.
    pub clock: Clock,
    /// The budget of the agent.
    pub budget: budget::BudgetConfig,
    /// Whether the agent may ask pods for their costs.
    pub asks: bool,
    /// Whether the agent executes requests without its own rules.
    pub is_lenient: bool,
    /// Whether the agent reads nodes.
    pub reads_nodes: bool,
    /// Whether the agent advises another controller.
    pub advises: bool,
}

/// An open watch.
#[derive(Clone, Copy, Debug)]
pub struct OpenWatch {
    /// Its number in the agent.
    pub id: WatchId,
    /// Its number in the cluster.
    pub cluster: agent_fake::WatchId,
    /// The API server that serves the watch.
    pub server: usize,
    /// Its number in the world.
    pub number: u64,
}

impl AgentActor {
    /// Returns an agent that starts in an epoch.
    pub fn new(process: Process, epoch: i64, seed: u64, mutant: Option<Mutant>) -> Self {
        let Process {
            now,
            cluster,
            life,
            clock,
            budget,
            asks,
            is_lenient,
            reads_nodes,
            advises,
        } = process;
        let mut preferences = PreferencePolicy {
            cost_sources: asks.then_some(CostKind::Http).into_iter().collect(),
            ..PreferencePolicy::default()
        };
        let mut mode = v1::Mode::Enforce;
        if advises {
            (preferences, mode) = (preferences.for_advice(false), v1::Mode::Advise);
        }
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
            ..v1::Hello::default()
        };
        Self {
            agent: Box::new(Agent::new(AgentConfig {
                nodes: reads_nodes.then(NodeFields::default),
                mode,
                ..config(hello, creates, (budget, preferences), seed, is_lenient)
            })),
            life,
            epoch,
            connection: None,
            frames_out: 0,
            watches: [None, None],
            wanted: [None, None],
            nodes: None,
            clock,
            served: now,
        }
    }

    /// Returns the time on the clock of the agent at a time of the cluster.
    pub fn local(&self, now: Timestamp) -> Timestamp {
        self.clock.monotonic(now)
    }

    /// Returns the deadline of the machine, if it is in the future.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.clock.when_monotonic(self.agent.poll_timeout()?);
        Some(due).filter(|at| *at > self.served)
    }
}

/// In a broken world, the agent refuses nothing, because refusals would hide what the checkers must see.
fn config(
    hello: v1::Hello,
    creates: CreateLimits,
    (budget, preferences): (budget::BudgetConfig, PreferencePolicy),
    seed: u64,
    lenient: bool,
) -> AgentConfig {
    AgentConfig {
        instance: hello.agent_instance,
        cluster_uid: hello.cluster_uid,
        cluster_name: hello.cluster_name,
        epoch: hello.epoch,
        calls_max: 64,
        // Every second agent has such slow links that waiting changes are merged.
        events_max: if seed.is_multiple_of(2) {
            0
        } else {
            AgentConfig::default().events_max
        },
        creates,
        budget,
        preferences,
        seed,
        lenient,
        ..AgentConfig::default()
    }
}

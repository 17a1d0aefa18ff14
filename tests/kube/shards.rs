//! A sharded cluster with several agents, and servers behind a Service: no pod is created twice, whichever process dies.

use std::{path::PathBuf, time::Instant};

use tests::{
    real::{Agent, ApiServer, DecisionServer, LOOK_EVERY, Namespace, PATIENCE, Service, User},
    rng::Rng,
};
use tokio::time;

use crate::growth::{AMID, Growth};

/// The common flags of the agents. A ReplicaSet has so few creates in flight that an agent has room for others while they are
/// held.
const FLAGS: [&str; 4] = [
    "--lease-namespace",
    "decree",
    "--cluster=kubernetes",
    "--burst-replicas=4",
];
/// The number of strikes against an agent or a server, and of further pods of each ReplicaSet between them.
const STRIKES: usize = 8;
const STEP: usize = 25;

/// A cluster, the agents of its shards, and servers behind a Service.
struct Shared {
    cluster: ApiServer,
    kubeconfig: PathBuf,
    _leases: Namespace,
    service: Service,
    servers: Vec<DecisionServer>,
    agents: Vec<Agent>,
    shards: usize,
}

// === impl Shared ===

impl Shared {
    async fn new(shards: usize, servers: usize) -> Option<Self> {
        let cluster = ApiServer::start().await?;
        let leases = Namespace::create(cluster.admin().await, "decree").await;
        let mut shared = Self {
            kubeconfig: cluster.kubeconfig(User::Admin),
            cluster,
            _leases: leases,
            service: Service::start(1),
            servers: (0..servers).map(|_| new_server()).collect(),
            agents: Vec::new(),
            shards,
        };
        shared.publish();
        Some(shared)
    }

    /// Sets the endpoints of the Service to the current servers.
    fn publish(&mut self) {
        let addresses = self.servers.iter().map(|it| it.address().to_owned());
        self.service.set_endpoints(addresses.collect());
    }

    fn join(&mut self) {
        let shards = format!("--shards={}", self.shards);
        let flags = [&[shards.as_str()], FLAGS.as_slice()].concat();
        let agent = Agent::start_at(&self.service.url(), &self.kubeconfig, &flags);
        self.agents.push(agent);
    }

    /// Waits until the agents serve all shards evenly, and every shard has its session.
    async fn is_shared_out(&self) {
        let count = self.agents.len();
        let mut fair: Vec<_> = (0..count)
            .map(|rank| self.shards / count + usize::from(rank < self.shards % count))
            .collect();
        fair.sort_unstable();
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        loop {
            let mut served = self.served();
            let sessions = self.agents.iter();
            let sessions = sessions.map(|it| it.metric("decree_agent_session_open"));
            let open: u64 = sessions.sum();
            served.sort_unstable();
            if served == fair && open == self.shards as u64 {
                return;
            }
            assert!(
                Instant::now() < until,
                "{served:?} are served, {open} sessions are open"
            );
            looks.tick().await;
        }
    }

    /// The number of shards that each agent serves.
    fn served(&self) -> Vec<usize> {
        let agents = self.agents.iter();
        agents.map(|agent| leading(&agent.metrics())).collect()
    }

    /// Strikes an agent or a server, drawn by chance.
    fn strike(&mut self, rng: &mut Rng) {
        match rng.between(0, 3) {
            0 => {
                let agent = self.agents.remove(place(rng, self.agents.len()));
                agent.kill();
                self.join();
            }
            1 => {
                let agent = self.agents.remove(place(rng, self.agents.len()));
                self.join();
                assert_eq!(agent.terminate().code(), Some(0), "it drained");
            }
            2 => {
                let server = self.servers.remove(place(rng, self.servers.len()));
                self.publish();
                server.kill();
                self.servers.push(new_server());
            }
            _ => {
                let server = self.servers.remove(place(rng, self.servers.len()));
                self.publish();
                assert_eq!(server.terminate().code(), Some(0), "it drained");
                self.servers.push(new_server());
            }
        }
        self.publish();
    }

    /// Starts `count` growths, each in a separate namespace.
    async fn growths(&self, count: usize) -> Vec<Growth> {
        let mut growths = Vec::new();
        for number in 0..count {
            let growth = Growth::new(&self.cluster, &format!("team-{number}")).await;
            growth.begin().await;
            growths.push(growth);
        }
        growths
    }

    /// Ends all agents, which exit cleanly because their Leases lasted.
    fn drain(&mut self) {
        for agent in self.agents.drain(..) {
            assert_eq!(agent.terminate().code(), Some(0), "it drained");
        }
    }
}

/// All agents come from one address, with a connection for each shard.
fn new_server() -> DecisionServer {
    DecisionServer::start_with(&["--peer-share=100", "--sessions-max=512"])
}

/// The number of shards that an agent leads, by its metrics.
fn leading(metrics: &str) -> usize {
    let lines = metrics.lines();
    let lines = lines
        .filter_map(|it| it.strip_prefix("leader_election_master_status{name=\"decree-agent-"));
    let leads = lines.filter_map(|it| it.strip_suffix("\"} 1"));
    leads.filter(|shard| shard.parse::<u16>().is_ok()).count()
}

/// Admits all pods, in all namespaces at once, and waits until they exist.
async fn end_well(growths: &[Growth]) {
    growths.iter().for_each(Growth::goes_on);
    for growth in growths {
        growth.ends_well().await;
    }
}

fn place(rng: &mut Rng, count: usize) -> usize {
    let places: Vec<_> = (0..count).collect();
    *rng.pick(&places)
}

#[tokio::test]
async fn four_agents_and_two_servers_that_die_at_random_make_each_pod_once() {
    let mut shared = tests::or_skip!(Shared::new(8, 2).await);
    (0..4).for_each(|_| shared.join());
    shared.is_shared_out().await;
    let growths = shared.growths(6).await;
    let mut rng = Rng::new(20_261_123);
    for strike in 1..=STRIKES {
        let next = AMID + strike * STEP;
        for growth in &growths {
            growth.goes_on_to(next);
        }
        shared.strike(&mut rng);
        for growth in &growths {
            growth.is_held().await;
        }
    }
    end_well(&growths).await;
    shared.is_shared_out().await;
}

#[tokio::test]
async fn shards_of_an_agent_that_is_killed_are_served_by_the_others() {
    let mut shared = tests::or_skip!(Shared::new(6, 1).await);
    (0..3).for_each(|_| shared.join());
    shared.is_shared_out().await;
    shared.agents.remove(0).kill();
    shared.is_shared_out().await;
    shared.drain();
}

#[tokio::test]
async fn agent_serves_as_many_shards_as_there_can_be() {
    let mut shared = tests::or_skip!(Shared::new(256, 1).await);
    shared.join();
    shared.is_shared_out().await;
    let growths = shared.growths(3).await;
    end_well(&growths).await;
    shared.drain();
}

/// The survivor has twice the work at the moment of its takeover.
#[tokio::test]
async fn agent_that_is_left_with_all_of_many_shards_serves_them() {
    let mut shared = tests::or_skip!(Shared::new(256, 1).await);
    (0..2).for_each(|_| shared.join());
    shared.is_shared_out().await;
    shared.agents.remove(0).kill();
    shared.is_shared_out().await;
    end_well(&shared.growths(1).await).await;
    shared.drain();
}

#[tokio::test]
async fn agents_of_more_shards_begin_when_those_before_them_have_ended() {
    let mut shared = tests::or_skip!(Shared::new(2, 1).await);
    (0..2).for_each(|_| shared.join());
    shared.is_shared_out().await;
    let growths = shared.growths(3).await;
    let before: Vec<_> = shared.agents.drain(..).collect();
    shared.shards = 5;
    (0..2).for_each(|_| shared.join());
    for agent in &shared.agents {
        agent.says("waiting for the lease", 1).await;
        agent.becomes_ready().await;
    }
    assert_eq!(shared.served(), [0, 0], "those before them are there");
    for agent in &before {
        agent.ask_to_end();
    }
    for growth in &growths {
        growth.goes_on();
    }
    for agent in before {
        assert_eq!(agent.wait().code(), Some(0), "it drained");
    }
    shared.is_shared_out().await;
    end_well(&growths).await;
}

#[tokio::test]
async fn session_that_a_full_server_refuses_goes_to_another() {
    let mut shared = tests::or_skip!(Shared::new(4, 0).await);
    let full = || DecisionServer::start_with(&["--sessions-max=2"]);
    shared.servers = vec![full(), full()];
    shared.publish();
    shared.join();
    shared.is_shared_out().await;
    let sessions = shared.servers.iter();
    let sessions = sessions.map(|it| it.metric("decree_sessions"));
    assert_eq!(sessions.collect::<Vec<_>>(), [2, 2]);
}

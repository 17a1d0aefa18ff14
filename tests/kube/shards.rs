//! A sharded cluster, with rivals for each shard and servers behind a Service: no pod is created twice, whichever process dies.

use std::path::PathBuf;

use tests::{
    depth,
    real::{Agent, ApiServer, DecisionServer, Namespace, Service, User, found},
    rng::Rng,
};

use crate::growth::{AMID, Growth};

/// The common flags of the agents. A ReplicaSet has so few creates in flight that an agent has room for others while they are
/// held. The Lease is so long that a busy machine causes no loss.
const FLAGS: [&str; 5] = [
    "--lease-namespace",
    "decree",
    "--cluster=kubernetes",
    "--burst-replicas=4",
    "--lease-duration=20s",
];
/// The number of strikes against an agent or a server, in the gate and at full depth, and of further pods of each ReplicaSet between them.
const STRIKES: [usize; 2] = [4, 8];
const STEP: usize = 25;

/// A cluster, the agents of its shards, and servers behind a Service.
struct Sharded {
    cluster: ApiServer,
    kubeconfig: PathBuf,
    _leases: Namespace,
    service: Service,
    servers: Vec<DecisionServer>,
    /// With their ordinals.
    agents: Vec<(usize, Agent)>,
    shards: usize,
}

impl Sharded {
    async fn new(shards: usize, servers: Vec<DecisionServer>) -> Option<Self> {
        let cluster = ApiServer::start().await?;
        let leases = Namespace::create(cluster.admin().await, "decree").await;
        let mut sharded = Self {
            kubeconfig: cluster.kubeconfig(User::Admin),
            cluster,
            _leases: leases,
            service: Service::start(1),
            servers,
            agents: Vec::new(),
            shards,
        };
        sharded.publish();
        Some(sharded)
    }

    /// Sets the endpoints of the Service to the current servers.
    fn publish(&mut self) {
        let addresses = self.servers.iter().map(|it| it.address().to_owned());
        self.service.set_endpoints(addresses.collect());
    }

    /// Starts the agent of a pod of a StatefulSet.
    fn start(&mut self, ordinal: usize) {
        let shard = format!("--shard=decree-agent-{ordinal}/{}", self.shards);
        let flags = [&[shard.as_str()], FLAGS.as_slice()].concat();
        let agent = Agent::start_at(&self.service.url(), &self.kubeconfig, &flags);
        self.agents.push((ordinal, agent));
    }

    /// Starts `rivals` agents for each shard.
    fn start_all(&mut self, rivals: usize) {
        (0..rivals * self.shards).for_each(|ordinal| self.start(ordinal));
    }

    /// Waits until one agent serves each shard, with a session.
    async fn is_served(&self) {
        found(async || {
            let sessions = self.agents.iter();
            let sessions = sessions.map(|(_, it)| it.metric("decree_agent_session_open"));
            let (served, open) = (self.served(), sessions.sum::<u64>());
            let is_served = served.iter().all(|count| *count == 1) && open == self.shards as u64;
            let failure =
                || format!("{served:?} agents serve the shards, {open} sessions are open");
            is_served.then_some(()).ok_or_else(failure)
        })
        .await;
    }

    /// The number of agents that serve each shard.
    fn served(&self) -> Vec<u64> {
        let count = |shard: usize| {
            let leads = format!("leader_election_master_status{{name=\"decree-agent-{shard}\"}}");
            let rivals = self.agents.iter();
            let rivals = rivals.filter(|(ordinal, _)| ordinal % self.shards == shard);
            rivals.map(|(_, agent)| agent.metric(&leads)).sum()
        };
        (0..self.shards).map(count).collect()
    }

    /// Strikes an agent or a server, drawn by chance.
    fn strike(&mut self, rng: &mut Rng) {
        let (is_agent, is_killed) = (rng.chance(500), rng.chance(500));
        let count = if is_agent {
            self.agents.len()
        } else {
            self.servers.len()
        };
        let place = usize::try_from(rng.between(0, count as u64 - 1)).expect("it is small");
        if is_agent {
            let (ordinal, agent) = self.agents.remove(place);
            if is_killed {
                agent.kill();
            } else {
                assert_eq!(agent.terminate().code(), Some(0), "it drained");
            }
            return self.start(ordinal);
        }
        let server = self.servers.remove(place);
        self.publish();
        if is_killed {
            server.kill();
        } else {
            assert_eq!(server.terminate().code(), Some(0), "it drained");
        }
        self.servers.push(DecisionServer::start());
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
}

/// Admits all pods, in all namespaces at once, and waits until they exist.
async fn end_well(growths: &[Growth]) {
    growths.iter().for_each(Growth::goes_on);
    for growth in growths {
        growth.ends_well().await;
    }
}

#[tokio::test]
async fn two_agents_for_each_shard_and_two_servers_that_die_at_random_make_each_pod_once() {
    let servers = vec![DecisionServer::start(), DecisionServer::start()];
    let mut sharded = tests::or_skip!(Sharded::new(4, servers).await);
    sharded.start_all(2);
    sharded.is_served().await;
    let growths = sharded.growths(6).await;
    let mut rng = Rng::new(20_261_123);
    for strike in 1..=STRIKES[usize::from(depth::is_full())] {
        let next = AMID + strike * STEP;
        for growth in &growths {
            growth.goes_on_to(next);
        }
        sharded.strike(&mut rng);
        for growth in &growths {
            growth.is_held().await;
        }
    }
    end_well(&growths).await;
    sharded.is_served().await;
}

#[tokio::test]
async fn agents_of_more_shards_begin_when_those_before_them_have_ended() {
    let sizes: &[usize] = if depth::is_full() { &[4, 16, 64] } else { &[4] };
    for size in sizes {
        let mut sharded =
            tests::or_skip!(Sharded::new(size / 2, vec![DecisionServer::start()]).await);
        sharded.start_all(1);
        sharded.is_served().await;
        let growths = sharded.growths(3).await;
        let before = std::mem::take(&mut sharded.agents);
        sharded.shards = *size;
        sharded.start_all(1);
        for (_, agent) in &sharded.agents {
            agent.says("waiting for the lease", 1).await;
            agent.becomes_ready().await;
        }
        assert_eq!(
            sharded.served(),
            vec![0; *size],
            "those before them are there"
        );
        for (_, agent) in &before {
            agent.ask_to_end();
        }
        growths.iter().for_each(Growth::goes_on);
        for (_, agent) in before {
            assert_eq!(agent.wait().code(), Some(0), "it drained");
        }
        sharded.is_served().await;
        end_well(&growths).await;
        for (_, agent) in sharded.agents.drain(..) {
            assert_eq!(agent.terminate().code(), Some(0), "it drained");
        }
    }
}

#[tokio::test]
async fn session_that_a_full_server_refuses_goes_to_another() {
    let full = || DecisionServer::start_with(&["--sessions-max=2"]);
    let mut sharded = tests::or_skip!(Sharded::new(4, vec![full(), full()]).await);
    sharded.start_all(1);
    sharded.is_served().await;
    let sessions = sharded.servers.iter();
    let sessions = sessions.map(|it| it.metric("decree_sessions"));
    assert_eq!(sessions.collect::<Vec<_>>(), [2, 2]);
}

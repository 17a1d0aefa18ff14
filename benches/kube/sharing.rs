//! One agent and one server beside several agents with shards, on servers behind one address.

use std::time::Instant;

use serde_json::json;
use tests::{
    real::{Agent, Api, ApiServer, DecisionServer, LOOK_EVERY, Namespace, Patch, Service, User},
    table::{head, quantile_of, row},
};
use tokio::time;

use crate::{
    meter::{self, Cost},
    objects::replica_set,
    scaling::until_there_are_at,
};

const NAMESPACES: usize = 40;
/// The number of pods of the ReplicaSet of each namespace.
const PODS: usize = 125;
/// Each way has a turn in each round, and every other round reverses the order.
const ROUNDS: usize = 3;

/// The agents and servers of a cluster.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    agents: usize,
    servers: usize,
    /// `None` for a cluster without shards.
    shards: Option<usize>,
}

const WAYS: [Way; 4] = [
    Way {
        name: "1 agent, 1 server",
        agents: 1,
        servers: 1,
        shards: None,
    },
    Way {
        name: "1 agent, 4 shards, 1 server",
        agents: 1,
        servers: 1,
        shards: Some(4),
    },
    Way {
        name: "1 agent, 256 shards, 1 server",
        agents: 1,
        servers: 1,
        shards: Some(256),
    },
    Way {
        name: "4 agents, 4 shards, 2 servers",
        agents: 4,
        servers: 2,
        shards: Some(4),
    },
];

/// A cluster that is served in one of the ways. The agents end first.
struct Served {
    agents: Vec<Agent>,
    servers: Vec<DecisionServer>,
    _service: Service,
    namespaces: Vec<Namespace>,
    cluster: ApiServer,
    api: Api,
}

struct ThereAndBack {
    up: Cost,
    down: Cost,
    /// In megabytes, of all processes together.
    peak: f64,
}

pub(crate) async fn run() {
    let mut rounds: Vec<Vec<ThereAndBack>> = Vec::new();
    for at in 0..ROUNDS {
        let mut round: Vec<(usize, ThereAndBack)> = Vec::new();
        let mut order: Vec<_> = (0..WAYS.len()).collect();
        if at % 2 == 1 {
            order.reverse();
        }
        for way in order {
            round.push((way, there_and_back(WAYS[way]).await));
        }
        round.sort_by_key(|(way, _)| *way);
        rounds.push(round.into_iter().map(|(_, cost)| cost).collect());
    }
    let columns = [
        "served by",
        "up s",
        "relative to 1 agent",
        "CPU s",
        "relative to 1 agent",
        "the cluster's CPU s",
        "down s",
        "CPU s",
        "peak MB",
    ];
    let title = format!("Sharing out {NAMESPACES} namespaces of {PODS} pods");
    head(&title, &columns);
    for (at, way) in WAYS.iter().enumerate() {
        let of = |figure: fn(&ThereAndBack) -> f64| {
            let mut figures: Vec<_> = rounds.iter().map(|round| figure(&round[at])).collect();
            quantile_of(&mut figures, 0.5)
        };
        let ratio = |figure: fn(&ThereAndBack) -> f64| {
            let ratios = rounds.iter();
            let mut ratios: Vec<_> = ratios
                .map(|round| figure(&round[at]) / figure(&round[0]))
                .collect();
            format!("{:.2}", quantile_of(&mut ratios, 0.5))
        };
        row(&[
            way.name.to_owned(),
            format!("{:.2}", of(|it| it.up.seconds)),
            ratio(|it| it.up.seconds),
            format!("{:.2}", of(|it| it.up.processor)),
            ratio(|it| it.up.processor),
            format!("{:.2}", of(|it| it.up.cluster)),
            format!("{:.2}", of(|it| it.down.seconds)),
            format!("{:.2}", of(|it| it.down.processor)),
            format!("{:.0}", of(|it| it.peak)),
        ]);
    }
}

async fn there_and_back(way: Way) -> ThereAndBack {
    let served = Served::start(way).await;
    for namespace in &served.namespaces {
        let sets = namespace.replica_set("");
        let created = served.api.create(&sets, &replica_set("web", 0)).await;
        created.expect("it is valid");
    }
    meter::until_quiet(&served.cluster.pids()).await;
    ThereAndBack {
        up: served.scale(PODS).await,
        down: served.scale(0).await,
        peak: meter::peak_megabytes(&served.pids()),
    }
}

// === impl Served ===

impl Served {
    async fn start(way: Way) -> Self {
        let cluster = ApiServer::start().await.expect("there is an API server");
        let api = cluster.admin().await;
        let mut namespaces = Vec::new();
        for number in 0..NAMESPACES {
            let name = format!("team-{number}");
            namespaces.push(Namespace::create(cluster.admin().await, &name).await);
        }
        // All agents come from one address.
        let server = |_| DecisionServer::start_with(&["--peer-share=100", "--sessions-max=512"]);
        let servers: Vec<_> = (0..way.servers).map(server).collect();
        let service = Service::start(1);
        let addresses = servers.iter().map(|it| it.address().to_owned());
        service.set_endpoints(addresses.collect());
        let shards = way.shards.map(|shards| format!("--shards={shards}"));
        // No scheduler assigns nodes.
        let mut flags = vec!["--log-level", "info", "--unassigned-pods-max=0"];
        match &shards {
            Some(shards) => flags.push(shards),
            None => flags.push("--leader-elect=false"),
        }
        let kubeconfig = cluster.kubeconfig(User::Admin);
        let start = |_| Agent::start_at(&service.url(), &kubeconfig, &flags);
        let served = Self {
            agents: (0..way.agents).map(start).collect(),
            servers,
            _service: service,
            namespaces,
            cluster,
            api,
        };
        served.is_synced(way).await;
        served
    }

    /// Waits until every shard has its session, and each agent its share.
    async fn is_synced(&self, way: Way) {
        let wanted = way.shards.unwrap_or(1) / way.agents;
        let mut looks = time::interval(LOOK_EVERY);
        let open = |agent: &Agent| agent.metric("decree_agent_session_open") == wanted as u64;
        while !self.agents.iter().all(open) {
            looks.tick().await;
        }
    }

    fn pids(&self) -> Vec<u32> {
        let agents = self.agents.iter().map(Agent::pid);
        let servers = self.servers.iter().map(DecisionServer::pid);
        agents.chain(servers).collect()
    }

    async fn scale(&self, replicas: usize) -> Cost {
        let (own, cluster) = (self.pids(), self.cluster.pids());
        let spent = || [&own, &cluster].map(|pids| meter::processor_time(pids).as_secs_f64());
        let before = spent();
        let start = Instant::now();
        let patch = json!({"spec": {"replicas": replicas}});
        for namespace in &self.namespaces {
            let set = namespace.replica_set("web");
            let scaled = self.api.patch(&set, Patch::Merge, &patch).await;
            scaled.expect("it is there");
        }
        until_there_are_at(&self.api, "/api/v1/pods?limit=1", NAMESPACES * replicas).await;
        let seconds = start.elapsed().as_secs_f64();
        let after = spent();
        Cost {
            seconds,
            processor: after[0] - before[0],
            cluster: after[1] - before[1],
        }
    }
}

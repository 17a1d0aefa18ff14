//! What the demo runs on: a server that can be killed, with an agent and an embedded cluster, and others in shadow mode.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use agent_core::budget::{self, BudgetConfig, Limit};
use agent_fake::{Kind, Verb, is_active};
use decree_agent::{FakeCluster, Mode};
use service::ListenAddr;
use service::transport::Connector;
use tokio::{runtime::Runtime, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    exit::{Exit, Failure},
    sandbox::{
        self, AGAIN, Cluster, RunningAgent, RunningServer, ServerSettings,
        beginning::{self, NAMESPACE, OLD},
    },
};

const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The number of deletes of one ReplicaSet that the agent allows in a minute.
const DELETES_MAX: u32 = 10;
/// The pods that the other controller creates instead of one.
pub(super) const TWICE: [&str; 2] = ["3pvwd", "3pvwe"];

/// All running parts. The server has threads of its own, which end at once as in a killed process.
pub(super) struct Stage {
    pub(super) cluster: FakeCluster,
    deadline: Duration,
    /// The writes of the cluster before a step.
    pub(super) before: Writes,
    agent: RunningAgent,
    server: Option<(Runtime, RunningServer)>,
    settings: ServerSettings,
    shadow: Shadow,
    threads: Runtime,
    stop: CancellationToken,
}

/// A second cluster, with a server and an agent in shadow mode.
struct Shadow {
    cluster: FakeCluster,
    server: RunningServer,
    agent: RunningAgent,
}

/// The number of writes that a cluster executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    pub(super) creates: u64,
    /// Requests to delete a pod, including repeated ones.
    pub(super) deletes: u64,
    pub(super) changes: u64,
}

impl Stage {
    /// Starts everything, and lets the other controller create a pod twice, which the shadow reports after ten seconds.
    pub(super) fn open(deadline: Duration) -> Result<Self, Failure> {
        let threads = sandbox::threads(2)?;
        let stop = threads.block_on(async { sandbox::on_signal() })?;
        let settings = ServerSettings {
            listen: FREE,
            admin: FREE,
            seed: Some(0),
        };
        let shadow = threads.block_on(async {
            let cluster = cluster()?;
            let server = RunningServer::start(&settings, None).await?;
            let connector = server.connector.clone();
            let agent = agent(connector, Mode::Shadow, &cluster).await?;
            Ok::<_, Failure>(Shadow {
                cluster,
                server,
                agent,
            })
        })?;
        let cluster = threads.block_on(async { cluster() })?;
        let own = sandbox::threads(1)?;
        let server = own.block_on(RunningServer::start(&settings, Some(&cluster)))?;
        let settings = ServerSettings {
            listen: server.addresses.grpc.tcp().unwrap_or(FREE),
            admin: server.addresses.admin.unwrap_or(FREE),
            // Another process draws other names.
            seed: Some(1),
        };
        let connector = server.connector.clone();
        let agent = threads.block_on(agent(connector, Mode::Enforce, &cluster))?;
        let stage = Self {
            cluster,
            deadline,
            before: Writes::default(),
            agent,
            server: Some((own, server)),
            settings,
            shadow,
            threads,
            stop,
        };
        stage.create_twice()?;
        Ok(stage)
    }

    /// Acts on the second cluster as a controller that forgets its own requests.
    fn create_twice(&self) -> Result<(), Failure> {
        self.until(|| {
            let sessions = async { self.shadow.server.client().await?.sessions("").await };
            let sessions = self.threads.block_on(sessions);
            let sessions = sessions.map_err(|failure| failure.cause)?.sessions;
            let is_synced = sessions.iter().any(|it| it.synced);
            is_synced
                .then_some(())
                .ok_or_else(|| "the server does not know the second cluster".to_owned())
        })?;
        self.shadow.cluster.with(|cluster| {
            cluster.scale(NAMESPACE, OLD, 8)?;
            for suffix in TWICE {
                cluster.create(beginning::new_pod(suffix))?;
            }
            Ok(())
        })
    }

    pub(super) fn introduction(&self) -> String {
        let ServerSettings { listen, admin, .. } = &self.settings;
        format!(
            "A server, an agent and a cluster of three nodes, all in this process. Ctrl-C ends everything.\n  \
             export DECREE_SERVER=http://{listen}\n  export DECREE_ADMIN={admin}\n  \
             Console: http://{admin}/console/"
        )
    }

    /// A command line as shown, and the words of the whole command.
    pub(super) fn words(&self, line: &str) -> (String, Vec<String>) {
        let shown = line.replace("@SHADOW", &self.shadow.server.url());
        let mut words = format!("decree {shown}");
        let ServerSettings { listen, admin, .. } = &self.settings;
        if line.starts_with("demo ") {
            words += &format!(" --admin {admin}");
        } else if !line.contains(" --server ") {
            words += &format!(" --server http://{listen}");
        }
        (shown, words.split(' ').map(str::to_owned).collect())
    }

    /// Repeats a question until it is answered, and fails with its last refusal at the deadline.
    pub(super) fn until<T>(&self, question: impl Fn() -> Result<T, String>) -> Result<T, Failure> {
        let end = Instant::now() + self.deadline;
        loop {
            match question() {
                Ok(answer) => return Ok(answer),
                Err(cause) if Instant::now() >= end => {
                    let limit = self.deadline.as_secs_f64();
                    let failure = Failure::new(Exit::No, format!("after {limit} s, {cause}"));
                    return Err(failure.hint(
                        "allow more time with --deadline, or run again with --log-level info to see why",
                    ));
                }
                Err(_) => self.wait(AGAIN)?,
            }
        }
    }

    /// Waits for a time, or until a signal.
    pub(super) fn wait(&self, time: Duration) -> Result<(), Failure> {
        let waiting = async { self.stop.run_until_cancelled(sleep(time)).await };
        let interrupted = || Failure::new(Exit::No, "interrupted before the end");
        self.threads.block_on(waiting).ok_or_else(interrupted)
    }

    /// The number of active pods of a ReplicaSet.
    pub(super) fn pods_of(&self, set: &str) -> usize {
        self.cluster.with(|cluster| {
            let pods = cluster.objects(Kind::Pod).filter(|pod| is_active(pod));
            let owner =
                |pod: &agent_fake::Object| pod["metadata"]["ownerReferences"][0]["name"] == *set;
            pods.filter(|pod| owner(pod)).count()
        })
    }

    pub(super) fn writes(&self) -> Writes {
        Writes::of(&self.cluster)
    }

    pub(super) fn writes_in_shadow(&self) -> Writes {
        Writes::of(&self.shadow.cluster)
    }

    /// Kills the server: it does not drain, sends nothing, and loses its state.
    pub(super) fn kill_server(&mut self) {
        if let Some((threads, _)) = self.server.take() {
            threads.shutdown_background();
        }
    }

    /// Starts another server at the addresses of the killed one, once its sockets are closed.
    pub(super) fn start_server(&mut self) -> Result<(), Failure> {
        let threads = sandbox::threads(1)?;
        let server = self.until(|| {
            let start = RunningServer::start(&self.settings, Some(&self.cluster));
            threads.block_on(start).map_err(|failure| failure.cause)
        })?;
        self.server = Some((threads, server));
        Ok(())
    }

    /// Ends everything. If a part has failed, its end says why, and otherwise this returns `result`.
    pub(super) fn close(self, result: Result<(), Failure>) -> Result<(), Failure> {
        let shadow = self.shadow;
        let closing = sandbox::close(shadow.server, shadow.agent, result);
        let result = self.threads.block_on(closing);
        match self.server {
            Some((own, server)) => own.block_on(sandbox::close(server, self.agent, result)),
            None => result,
        }
    }
}

fn cluster() -> Result<FakeCluster, Failure> {
    let cluster = FakeCluster::start(sandbox::cluster_config(0), Vec::new())?;
    cluster.with(|it| beginning::install(it, false))?;
    Ok(cluster)
}

async fn agent(
    server: Connector,
    mode: Mode,
    cluster: &FakeCluster,
) -> Result<RunningAgent, Failure> {
    let mut budget = BudgetConfig {
        action: budget::Action::Hold,
        ..BudgetConfig::default()
    };
    budget.deletes.replica_set = Limit::count(DELETES_MAX);
    let config = sandbox::agent_config(mode, budget);
    let cluster = Cluster::Embedded(cluster.clone());
    RunningAgent::start(server, ListenAddr::Off, config, cluster).await
}

impl Writes {
    fn of(cluster: &FakeCluster) -> Self {
        const CREATED: u16 = 201;
        cluster.with(|cluster| {
            let requests = cluster.requests();
            let changes = [
                (Verb::Patch, Kind::Pod),
                (Verb::Patch, Kind::ReplicaSet),
                (Verb::UpdateStatus, Kind::ReplicaSet),
            ];
            let changes = changes.map(|(verb, kind)| requests.count(verb, kind));
            Self {
                creates: requests.count_answered(Verb::Create, Kind::Pod, CREATED),
                deletes: requests.count(Verb::Delete, Kind::Pod),
                changes: changes.iter().sum(),
            }
        })
    }
}

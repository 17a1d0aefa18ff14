//! The flags of `decree-agent`. Flags go before the environment, that before defaults.

use std::{path::PathBuf, str::FromStr, time::Duration};

use agent_core::{
    budget::{Action, BudgetConfig, Limits},
    execute::creates::CreateLimits,
    lease::{
        LeaseConfig,
        shard::{InvalidShard, Shard},
    },
    nodes::LABELS_MAX,
};
use clap::{Args, Parser, ValueEnum};
use decree_api::v1;
use service::transport::{ClientArgs, Connector, Endpoint, Metrics, TlsArgs};
use service::{Fault, ListenAddr, LogArgs};

pub use self::{
    nodes::NodeArgs,
    preferences::{PermittedSource, PreferenceArgs},
};

/// The number of pods created a second while many pods of a ReplicaSet have no node.
const UNASSIGNED_CREATES: i32 = 20;

const NO_CLUSTER: &str = "no cluster: there is no kubeconfig (--kubeconfig, --context, KUBECONFIG, ~/.kube/config) and no service account of a pod. \
     Name one, or take the embedded cluster with --cluster fake";

/// Executes the decisions of a server for the ReplicaSets of a cluster.
#[derive(Clone, Debug, Parser)]
#[command(name = "decree-agent", version = service::build_info::text())]
#[expect(missing_docs, reason = "a doc comment would become the help's heading")]
pub struct AgentArgs {
    /// The decision server: `https://HOST:PORT`, `unix:PATH`, or `http://HOST:PORT` for plain text. Plain text to other machines needs
    /// `--insecure`.
    #[arg(
        long,
        env = "DECREE_SERVER",
        default_value = "http://127.0.0.1:50051",
        value_name = "URL"
    )]
    pub server: Endpoint,

    /// A file with the token that authenticates the agent, such as a service account token for the audience of the servers. The agent reads
    /// a changed file again.
    #[arg(long, env = "DECREE_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Listen address for `/livez`, `/readyz` and `/metrics`, or `off`. With a trailing `?`, the agent uses a free port if this port is
    /// taken. Port 0 picks a free port and logs it.
    #[arg(
        long,
        env = "DECREE_ADMIN",
        default_value = "127.0.0.1:8081?",
        value_name = "ADDR"
    )]
    pub admin: ListenAddr,

    /// The kind of cluster. By default a real cluster, from the first of `--kubeconfig` or `--context`, `KUBECONFIG`, the service account
    /// of the pod, and `~/.kube/config`.
    #[arg(long, env = "DECREE_CLUSTER", value_enum)]
    pub cluster: Option<ClusterKind>,

    /// The display name of the cluster.
    #[arg(
        long,
        env = "DECREE_CLUSTER_NAME",
        default_value = "",
        value_name = "NAME"
    )]
    pub cluster_name: String,

    /// The shard of this agent, as `I/N` or `POD/N`: index I of N, from 0 on, or the ordinal of a StatefulSet's pod modulo N. Each
    /// namespace belongs to one shard. Agents with another N wait until all previous agents have ended. A name without `/` separates the
    /// session and the Lease of this agent from those of other agents.
    #[arg(long, env = "DECREE_SHARD", default_value = "", value_name = "I/N")]
    pub shard: ShardArg,

    /// A namespace that the agent manages; repeatable. By default, all namespaces.
    #[arg(
        long = "namespace",
        env = "DECREE_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub namespaces: Vec<String>,

    /// Execute decisions, compare them with another controller, only show them, or advise another controller.
    #[arg(long, env = "DECREE_MODE", value_enum, default_value_t = Mode::Enforce)]
    pub mode: Mode,

    /// The maximum number of creates or deletes per decision, 1 to 5000.
    #[arg(long, env = "DECREE_BURST_REPLICAS", default_value_t = 500, value_parser = clap::value_parser!(i32).range(1..=5000), value_name = "COUNT")]
    pub burst_replicas: i32,

    /// Whether creates back off for a ReplicaSet that loses pods within a minute of their creation.
    #[arg(long, env = "DECREE_CREATE_BACK_OFF", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub create_back_off: bool,

    /// The number of pods of a ReplicaSet without a node from which on its creates are slow, up to 1000000; 0 for no limit. The agent then
    /// creates 20 a second, so that a person can notice a mistake in the number of replicas.
    #[arg(long, env = "DECREE_UNASSIGNED_PODS_MAX", default_value_t = 1_000, value_parser = clap::value_parser!(i32).range(0..=1_000_000), value_name = "COUNT")]
    pub unassigned_pods_max: i32,

    #[command(flatten)]
    pub preferences: PreferenceArgs,

    /// The maximum number of concurrent calls to the cluster. The agent makes fewer calls if they queue in the API server.
    #[arg(long, env = "DECREE_CALLS_MAX", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..), value_name = "COUNT")]
    pub calls_max: u16,

    #[command(flatten)]
    pub nodes: NodeArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub kube: KubeArgs,
    #[command(flatten)]
    pub fake: FakeArgs,
    #[command(flatten)]
    pub tls: ClientArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Budget of creates and deletes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Budget")]
pub struct BudgetArgs {
    /// The action if a limit of the budget is exceeded.
    #[arg(long, env = "DECREE_BUDGET_ACTION", value_enum, default_value_t)]
    pub budget_action: BudgetAction,

    /// The maximum number of creates in a minute for a ReplicaSet and for the cluster. A limit is a number, a percentage of the desired
    /// pods, or both, such as `replicaset=300%+20,cluster=1000`. Leave out a scope without a limit; `off` sets no limit.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET",
        default_value_t = BudgetConfig::default().creates,
        value_name = "LIMITS"
    )]
    pub create_budget: Limits,

    /// The maximum number of deletes in a minute, as for `--create-budget`, with percentages of the active pods. A percentage of the
    /// cluster leaves out the ReplicaSet with the most deletes.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET",
        default_value_t = BudgetConfig::default().deletes,
        value_name = "LIMITS"
    )]
    pub delete_budget: Limits,
}

/// Connection to a real cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Real cluster")]
pub struct KubeArgs {
    /// The kubeconfig file. By default `KUBECONFIG`, the service account in a pod, or `~/.kube/config`.
    #[arg(long, env = "DECREE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use; by default, the current one.
    #[arg(long, env = "DECREE_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,

    /// The resource to reconcile: ReplicaSets of Kubernetes, or a custom resource of the same shape and kind.
    #[arg(
        long,
        env = "DECREE_RESOURCE",
        default_value_t,
        value_name = "PLURAL.VERSION.GROUP"
    )]
    pub resource: agent_kube::Resource,

    /// Whether the agents of a cluster and shard elect a leader by a Lease; the others stand by.
    #[arg(long, env = "DECREE_LEADER_ELECT", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub leader_elect: bool,

    /// Declare that the ReplicaSet controller of kube-controller-manager is off. An agent in enforce mode stands by until this declaration,
    /// here or with `decree take-over`. The record of `decree take-over` takes precedence; it is in the ReplicaSet `decree-probe` in the
    /// namespace of the Lease.
    #[arg(long, env = "DECREE_BUILT_IN_CONTROLLER", value_enum)]
    pub built_in_controller: Option<BuiltIn>,

    /// The namespace of the Lease; by default the namespace of this pod, or kube-system.
    #[arg(long, env = "DECREE_LEASE_NAMESPACE", value_name = "NAME")]
    pub lease_namespace: Option<String>,

    /// The name of the Lease; by default `decree-agent`, or `decree-agent-NAME` with `--shard NAME`. With `--shard I/N`, the Lease of the
    /// shard has this name, a hyphen and I.
    #[arg(long, env = "DECREE_LEASE_NAME", value_name = "NAME")]
    pub lease_name: Option<String>,

    /// The time after the last renewal of the Lease after which another agent takes over.
    #[arg(long, env = "DECREE_LEASE_DURATION", default_value = "15s", value_parser = lease_duration, value_name = "TIME")]
    pub lease_duration: Duration,

    /// The request timeout of the cluster's etcd: 5 s and two election timeouts. The Lease must last longer, so that no create of a failed
    /// agent takes effect after another agent took over.
    #[arg(long, env = "DECREE_ETCD_REQUEST_TIMEOUT", default_value = "7s", value_parser = service::config::duration, value_name = "TIME")]
    pub etcd_request_timeout: Duration,
}

/// Contents of an embedded cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Embedded cluster")]
pub struct FakeArgs {
    /// A file of ReplicaSets, pods and namespaces in the format of kubectl, YAML or JSON; repeatable.
    #[arg(
        long = "manifest",
        env = "DECREE_MANIFEST",
        value_delimiter = ',',
        value_name = "FILE"
    )]
    pub manifests: Vec<PathBuf>,

    /// The seed of UIDs and generated names; by default random.
    #[arg(long, env = "DECREE_FAKE_SEED", value_name = "SEED")]
    pub fake_seed: Option<u64>,
}

/// The action if a limit is exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BudgetAction {
    /// Continue, with a Kubernetes event, a log line and a metric.
    #[default]
    Warn,
    /// Start no further operation of that kind in that scope, until `decree resume` or an annotation.
    Hold,
}

/// The part of a cluster that an agent serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardArg {
    /// The whole cluster, in a session and with a Lease of this name; empty for the only agent.
    Name(String),
    /// One of several shards.
    Shard(Shard),
}

/// A declaration about the built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BuiltIn {
    /// It is off on each control-plane node.
    Off,
}

/// The kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClusterKind {
    /// A real cluster, by its API server.
    #[value(alias = "kube")]
    Kubernetes,
    /// An embedded cluster in this process, with the objects of the files.
    Fake,
}

/// The modes of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Execute decisions.
    Enforce,
    /// Change nothing, and compare decisions with another controller.
    Shadow,
    /// Change nothing, and show decisions.
    DryRun,
    /// Write deletion costs, so that another controller deletes pods in the preferred order.
    Advise,
    /// Take all advice away, and end.
    Withdraw,
}

impl AgentArgs {
    /// Returns the configuration of the agent.
    pub fn agent_config(&self, instance: String, seed: u64) -> agent_core::agent::AgentConfig {
        let namespaces = self.namespaces.iter().filter(|it| !it.is_empty());
        let (shard, budget) = (self.shard.shard(), self.budget.config());
        let mut preferences = self.preferences.policy();
        if matches!(self.mode, Mode::Advise | Mode::Withdraw) {
            preferences = preferences.for_advice(self.mode == Mode::Withdraw);
        }
        agent_core::agent::AgentConfig {
            instance,
            cluster_name: self.cluster_name.clone(),
            shard: self.shard.name(),
            namespaces_of: shard,
            mode: self.mode.into(),
            withdraw: self.mode == Mode::Withdraw,
            options: v1::Options {
                burst_replicas: Some(self.burst_replicas),
                create_back_off: Some(self.create_back_off),
                unassigned_pods_max: Some(self.unassigned_pods_max).filter(|max| *max > 0),
                unassigned_creates_per_second: Some(UNASSIGNED_CREATES),
                ..v1::Options::default()
            },
            preferences,
            nodes: self.nodes.fields(),
            namespaces: namespaces.cloned().collect(),
            calls_max: self.calls_max.into(),
            creates: self.create_limits(),
            budget: shard.map_or(budget, |it| budget.divided_among(it.count())),
            seed,
            ..agent_core::agent::AgentConfig::default()
        }
    }

    /// Returns the connectors to the decision server and to the service that ranks pods, if a flag names one. Both use the same TLS files;
    /// the name in the certificate is the decision server's.
    ///
    /// # Errors
    /// As for [`Connector::new`], and if a flag names several services.
    pub fn connectors(&self, metrics: &Metrics) -> Result<(Connector, Option<Connector>), Fault> {
        let ranker = self.preferences.ranker()?;
        let uses_tls = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Https(_));
        // Files have no effect if neither peer uses TLS, and are refused then.
        let is_any = uses_tls(&self.server) || ranker.is_some_and(uses_tls);
        let connect = |flag, endpoint: &Endpoint, tls_server_name| {
            let mut tls = ClientArgs {
                tls_server_name,
                ..self.tls.clone()
            };
            if is_any && !uses_tls(endpoint) {
                tls.files = TlsArgs::default();
            }
            Connector::by_flag(flag, endpoint.clone(), &tls, metrics.clone())
        };
        let server = connect("--server", &self.server, self.tls.tls_server_name.clone())?;
        let ranker = ranker.map(|endpoint| connect("--scale-in-costs", endpoint, None));
        Ok((server, ranker.transpose()?))
    }

    /// Returns the kind of cluster. An unnamed cluster is a real one, if its credentials are named or were `found`. An embedded cluster
    /// must be requested by name, so that nobody takes it for a real one.
    ///
    /// # Errors
    /// If there is no cluster, or if flags of the other kind of cluster are given, or shards of an embedded cluster, or too many labels of
    /// nodes.
    pub fn cluster_kind(&self, found: bool) -> Result<ClusterKind, &'static str> {
        let named = self.kube.kubeconfig.is_some() || self.kube.context.is_some();
        match self.cluster {
            Some(ClusterKind::Fake) if self.shard.shard().is_some() => Err(
                "--shard I/N needs Leases, which the embedded cluster does not have: leave --shard out",
            ),
            Some(ClusterKind::Fake) if named => Err(
                "--kubeconfig and --context name a real cluster: leave out --cluster fake, or leave them out",
            ),
            Some(ClusterKind::Fake) => Ok(ClusterKind::Fake),
            Some(ClusterKind::Kubernetes) | None if !self.fake.manifests.is_empty() => Err(
                "--manifest fills the embedded cluster: say --cluster fake as well, or kubectl apply the files to a real cluster",
            ),
            Some(ClusterKind::Kubernetes) | None if self.fake.fake_seed.is_some() => Err(
                "--fake-seed is for the embedded cluster: say --cluster fake as well, or leave it out",
            ),
            // A server refuses such nodes, so no session would last.
            Some(ClusterKind::Kubernetes) | None if self.nodes.node_labels.len() > LABELS_MAX => {
                Err("--node-label names too many labels: at most 8 are sent with a node")
            }
            Some(ClusterKind::Kubernetes) => Ok(ClusterKind::Kubernetes),
            None if named || found => Ok(ClusterKind::Kubernetes),
            None => Err(NO_CLUSTER),
        }
    }

    /// Returns the configuration of the lease; with shards, of the one with their number. `own_namespace` is the namespace of this
    /// process's pod, if any.
    pub fn lease_config(&self, identity: String, own_namespace: Option<&str>) -> LeaseConfig {
        let namespace = self.kube.lease_namespace.as_deref().or(own_namespace);
        LeaseConfig {
            identity,
            namespace: namespace.unwrap_or("kube-system").to_owned(),
            name: self.shard.lease_name(self.kube.lease_name.as_deref()),
            duration: self.kube.lease_duration,
            margin: self.create_limits().margin,
            shared: false,
        }
    }

    const fn create_limits(&self) -> CreateLimits {
        CreateLimits::of_store(self.kube.etcd_request_timeout)
    }

    /// Returns the configuration of the connection to a real cluster.
    pub fn kube_config(&self) -> agent_kube::KubeClusterConfig {
        let kube = self.kube.clone();
        let namespace = match self.namespaces.as_slice() {
            [one] if !one.is_empty() => Some(one.clone()),
            _ => None,
        };
        agent_kube::KubeClusterConfig {
            source: agent_kube::CredentialSource {
                kubeconfig: kube.kubeconfig,
                context: kube.context,
                impersonate: None,
            },
            namespace,
            resource: kube.resource,
            calls_max: self.calls_max,
        }
    }
}

impl BudgetArgs {
    /// Returns the configuration of the budget.
    pub const fn config(&self) -> BudgetConfig {
        BudgetConfig {
            action: match self.budget_action {
                BudgetAction::Warn => Action::Warn,
                BudgetAction::Hold => Action::Hold,
            },
            creates: self.create_budget,
            deletes: self.delete_budget,
        }
    }
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

impl FakeArgs {
    /// Returns the configuration of an embedded cluster whose time begins at `start`. `seed` applies if the flags name none.
    pub fn fake_config(&self, start: jiff::Timestamp, seed: u64) -> agent_fake::ClusterConfig {
        agent_fake::ClusterConfig {
            seed: self.fake_seed.unwrap_or(seed),
            start,
            ..agent_fake::ClusterConfig::default()
        }
    }
}

impl From<Mode> for v1::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Enforce => Self::Enforce,
            Mode::Shadow => Self::Shadow,
            Mode::DryRun => Self::DryRun,
            Mode::Advise | Mode::Withdraw => Self::Advise,
        }
    }
}

/// Parses the duration of a lease. A busy machine would lose a lease of less than a few seconds without reason.
fn lease_duration(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_secs(3);
    let duration = service::config::duration(text)?;
    let is_whole = duration.subsec_nanos() == 0 && duration >= LEAST;
    is_whole
        .then_some(duration)
        .ok_or_else(|| "not whole seconds, or fewer than 3".to_owned())
}

mod nodes;
mod preferences;
#[cfg(test)]
mod tests;

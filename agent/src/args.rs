//! The flags of `decree-agent`. Flags go before the environment, that before the file, that before defaults.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, ValueEnum};
use decree::v1;
use runtime::{LogArgs, config::ConfigArgs};

/// Executes in a cluster what a decision server decides for its ReplicaSets.
#[derive(Clone, Debug, Parser)]
#[command(name = "decree-agent", version)]
pub struct AgentArgs {
    /// The decision server.
    #[arg(
        long,
        env = "DECREE_SERVER",
        default_value = "http://127.0.0.1:50051",
        value_name = "URL"
    )]
    pub server: String,

    /// Where `/livez`, `/readyz` and `/metrics` are served. Port 0 takes a free one and logs it.
    #[arg(
        long,
        env = "DECREE_ADMIN",
        default_value = "127.0.0.1:8081",
        value_name = "ADDR"
    )]
    pub admin: SocketAddr,

    /// The kind of cluster: `fake` is an embedded one.
    #[arg(long, env = "DECREE_CLUSTER", value_enum, default_value_t = ClusterKind::Fake)]
    pub cluster: ClusterKind,

    /// The cluster's name for people.
    #[arg(
        long,
        env = "DECREE_CLUSTER_NAME",
        default_value = "",
        value_name = "NAME"
    )]
    pub cluster_name: String,

    /// The part of the cluster that this agent is for; empty for all of it.
    #[arg(long, env = "DECREE_SHARD", default_value = "", value_name = "NAME")]
    pub shard: String,

    /// A namespace in which the agent may act; give it once for each. Without it the agent acts in all.
    #[arg(
        long = "namespace",
        env = "DECREE_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub namespaces: Vec<String>,

    /// How far the agent goes: does what is decided, watches another controller do it, or does nothing.
    #[arg(long, env = "DECREE_MODE", value_enum, default_value_t = Mode::Enforce)]
    pub mode: Mode,

    /// How many creates or deletes one decision may hold, 1 to 5000.
    #[arg(long, env = "DECREE_BURST_REPLICAS", default_value_t = 500, value_parser = clap::value_parser!(i32).range(1..=5000), value_name = "COUNT")]
    pub burst_replicas: i32,

    /// How many calls to the cluster may be in flight.
    #[arg(long, env = "DECREE_CALLS_MAX", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..), value_name = "COUNT")]
    pub calls_max: u16,

    #[expect(missing_docs, reason = "a doc comment would become the help's heading")]
    #[command(flatten)]
    pub fake: FakeArgs,

    #[expect(missing_docs, reason = "a doc comment would become the help's heading")]
    #[command(flatten)]
    pub log: LogArgs,

    #[expect(missing_docs, reason = "a doc comment would become the help's heading")]
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// What an embedded cluster is made of.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Embedded cluster")]
pub struct FakeArgs {
    /// A file of ReplicaSets, pods and namespaces as kubectl writes them, YAML or JSON; give it once for each.
    #[arg(
        long = "manifest",
        env = "DECREE_MANIFEST",
        value_delimiter = ',',
        value_name = "FILE"
    )]
    pub manifests: Vec<PathBuf>,

    /// How many nodes there are.
    #[arg(
        long,
        env = "DECREE_FAKE_NODES",
        default_value_t = 3,
        value_name = "COUNT"
    )]
    pub fake_nodes: u16,

    /// How long a new pod waits for its node.
    #[arg(long, env = "DECREE_FAKE_SCHEDULE_AFTER", default_value = "20ms", value_parser = runtime::config::duration, value_name = "TIME")]
    pub fake_schedule_after: Duration,

    /// How long an assigned pod takes to run.
    #[arg(long, env = "DECREE_FAKE_START_AFTER", default_value = "200ms", value_parser = runtime::config::duration, value_name = "TIME")]
    pub fake_start_after: Duration,

    /// How long a running pod takes to be ready.
    #[arg(long, env = "DECREE_FAKE_READY_AFTER", default_value = "300ms", value_parser = runtime::config::duration, value_name = "TIME")]
    pub fake_ready_after: Duration,

    /// How long a pod takes to stop.
    #[arg(long, env = "DECREE_FAKE_GRACE", default_value = "500ms", value_parser = runtime::config::duration, value_name = "TIME")]
    pub fake_grace: Duration,

    /// Decides uids and generated names.
    #[arg(
        long,
        env = "DECREE_FAKE_SEED",
        default_value_t = 0,
        value_name = "SEED"
    )]
    pub fake_seed: u64,
}

/// The kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClusterKind {
    /// An embedded cluster, filled from manifests.
    Fake,
}

/// How far the agent goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Does what is decided.
    Enforce,
    /// Another controller acts; the agent only watches.
    Shadow,
    /// Does nothing.
    DryRun,
}

// === impl AgentArgs ===

impl AgentArgs {
    /// Returns what the flags make of the agent.
    #[must_use]
    pub fn agent_config(&self, instance: String, seed: u64) -> agent_core::agent::Config {
        agent_core::agent::Config {
            instance,
            cluster_name: self.cluster_name.clone(),
            shard: self.shard.clone(),
            mode: self.mode.into(),
            options: v1::Options {
                burst_replicas: Some(self.burst_replicas),
                ..v1::Options::default()
            },
            namespaces: self
                .namespaces
                .iter()
                .filter(|it| !it.is_empty())
                .cloned()
                .collect(),
            calls_max: self.calls_max.into(),
            seed,
            ..agent_core::agent::Config::default()
        }
    }
}

// === impl FakeArgs ===

impl FakeArgs {
    /// Returns what the flags make of an embedded cluster whose time begins at `start`.
    #[must_use]
    pub fn fake_config(&self, start: jiff::Timestamp) -> agent_fake::Config {
        agent_fake::Config {
            seed: self.fake_seed,
            start,
            nodes: (1..=self.fake_nodes)
                .map(|number| format!("node-{number}"))
                .collect(),
            kubelet: agent_fake::Kubelet {
                schedule_after: self.fake_schedule_after,
                start_after: self.fake_start_after,
                ready_after: self.fake_ready_after,
                grace: self.fake_grace,
                ..agent_fake::Kubelet::default()
            },
            ..agent_fake::Config::default()
        }
    }
}

impl From<Mode> for v1::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Enforce => Self::Enforce,
            Mode::Shadow => Self::Shadow,
            Mode::DryRun => Self::DryRun,
        }
    }
}

#[cfg(test)]
mod tests;

//! Where a command finds ReplicaSets: at a server, or in a snapshot of files or of a cluster. Both answer with the same messages.
//!
//! The order: files, the cluster of a flag, a named server, a server at the default address, the cluster of the kubeconfig.

use std::{collections::BTreeSet, time::Duration};

use agent_kube::KubeCluster;
use decree::v1::{self, simulate_cluster_request::Change};
use jiff::Timestamp;
use server_core::Timestamp as CoreTime;

use crate::{
    age,
    answers::Answers,
    args::{FileArgs, KubeArgs, Named, NamespaceArgs, Scope, SourceArgs},
    cluster,
    deployment::{Deployment, Member},
    exit::{Exit, Failure},
    not_found, pages, resume,
    server::Server,
    snapshot::Snapshot,
    streams::Io,
};

pub(crate) enum Source {
    Server {
        server: Server,
        /// The cluster to ask about; empty for the only one.
        cluster: String,
    },
    Snapshot {
        answers: Box<Answers>,
        /// The cluster that was read; `None` for files.
        cluster: Option<KubeCluster>,
    },
}

impl Source {
    /// Opens the source. Of a cluster, it has the namespaces that `wanted` returns; `None` stands for all. If a cluster is read, names
    /// without a namespace are in that of the context.
    pub(crate) async fn open(
        args: &SourceArgs,
        namespaces: &mut NamespaceArgs,
        wanted: impl FnOnce(&NamespaceArgs) -> Result<BTreeSet<Option<String>>, Failure>,
        io: &mut Io<'_>,
    ) -> Result<Self, Failure> {
        let of_server = &args.inspection;
        let reads = !args.input.files.is_empty() || args.kube.is_given();
        let is_named = of_server.server.server.is_some() || !of_server.cluster.is_empty();
        if reads || !is_named && of_server.server.gives_way_to_a_cluster() {
            let patience = of_server.server.timeout;
            let read = read((&args.input, &args.kube), namespaces, wanted, patience, io);
            let (snapshot, cluster) = read.await?;
            let now = age::core_time(Timestamp::now());
            return Ok(Self::of(snapshot, now, cluster));
        }
        let server = Server::connect(&of_server.server).await;
        let server = server.map_err(|failure| {
            if failure.exit == Exit::Unreachable && !is_named {
                failure.hint(OTHERS)
            } else {
                failure
            }
        })?;
        if !is_named {
            writeln!(io.stderr, "server {}, at the default address", server.url)?;
        }
        Ok(Self::Server {
            server,
            cluster: of_server.cluster.clone(),
        })
    }

    /// A snapshot at this time, of files or of this cluster.
    pub(crate) fn of(snapshot: Snapshot, now: CoreTime, cluster: Option<KubeCluster>) -> Self {
        let context = cluster.as_ref().and_then(|it| it.target().context.clone());
        let answers = Answers::new(snapshot, now, context.unwrap_or_default());
        Self::Snapshot {
            answers: Box::new(answers),
            cluster,
        }
    }

    /// A server, asked about a cluster; about the only one for the empty text.
    pub(crate) fn of_server(server: &Server, cluster: &str) -> Self {
        Self::Server {
            server: server.clone(),
            cluster: cluster.to_owned(),
        }
    }

    pub(crate) const fn is_snapshot(&self) -> bool {
        matches!(self, Self::Snapshot { .. })
    }

    /// The state of a ReplicaSet; `None` if it is missing.
    pub(crate) async fn state(
        &self,
        named: &Named,
    ) -> Result<Option<v1::GetReplicaSetResponse>, Failure> {
        match self {
            Self::Server { server, cluster } => {
                let request = named.request(cluster);
                not_found::found(server, server.inspection().get_replica_set(request).await)
            }
            Self::Snapshot { answers, .. } => Ok(answers.state(named)),
        }
    }

    /// The decisions on ReplicaSets for these numbers of replicas, or for their own; `None` for missing ones.
    pub(crate) async fn decisions(
        &self,
        assumed: &[(Named, Option<i32>)],
    ) -> Result<Vec<Option<v1::SimulateResponse>>, Failure> {
        let (server, cluster) = match self {
            Self::Server { server, cluster } => (server, cluster),
            Self::Snapshot { answers, .. } => return Ok(answers.decisions(assumed)),
        };
        let mut decisions = Vec::new();
        for (named, replicas) in assumed {
            let request = v1::SimulateRequest {
                cluster: cluster.clone(),
                namespace: named.namespace.clone(),
                name: named.name.clone(),
                replicas: *replicas,
            };
            let answer = server.decisions().simulate(request).await;
            decisions.push(not_found::found(server, answer)?);
        }
        Ok(decisions)
    }

    /// The ReplicaSets of a scope.
    pub(crate) async fn list(&self, scope: &Scope) -> Result<v1::ListReplicaSetsResponse, Failure> {
        match self {
            Self::Server { server, cluster } => pages::of_scope(server, cluster, scope).await,
            Self::Snapshot { answers, .. } => Ok(answers.list(scope)),
        }
    }

    /// The effect of a change of the cluster.
    pub(crate) async fn effect(
        &self,
        change: &Change,
    ) -> Result<v1::SimulateClusterResponse, Failure> {
        match self {
            Self::Server { server, cluster } => pages::effect(server, cluster, change).await,
            Self::Snapshot { answers, .. } => Ok(answers.effect(change)),
        }
    }

    /// Those of these ReplicaSets that do not exist.
    pub(crate) async fn missing_among(&self, sets: &[Named]) -> Result<Vec<Named>, Failure> {
        let mut missing = Vec::new();
        for named in sets {
            if self.state(named).await?.is_none() {
                missing.push(named.clone());
            }
        }
        Ok(missing)
    }

    /// Fails if ReplicaSets are missing, or if names have no meaning.
    pub(crate) async fn check_found(
        &self,
        missing: &[Named],
        mut unknown: Vec<Failure>,
    ) -> Result<Exit, Failure> {
        if !missing.is_empty() {
            unknown.insert(0, self.missing(missing).await);
        }
        not_found::together(unknown)
    }

    /// The failure for ReplicaSets that are missing.
    pub(crate) async fn missing(&self, missing: &[Named]) -> Failure {
        match self {
            Self::Server { server, cluster } => {
                not_found::on_server(server, cluster, missing).await
            }
            Self::Snapshot { answers, .. } => {
                let all = answers.list(&Scope::default()).replica_sets.into_iter();
                let known = all.filter_map(|set| set.replica_set).map(Named::from);
                not_found::failure(missing, &known.collect::<Vec<_>>())
            }
        }
    }

    /// A Deployment and these ReplicaSets of it, as far as the division of its replicas reads them. `None` if only a server is asked,
    /// or if the files lack the Deployment.
    pub(crate) async fn deployment(
        &self,
        named: &Named,
        sets: &[Named],
    ) -> Result<Option<(Deployment, Vec<Member>)>, Failure> {
        let Self::Snapshot { answers, cluster } = self else {
            return Ok(None);
        };
        let Some(cluster) = cluster else {
            let members = sets.iter().filter_map(|set| answers.members.get(set));
            let members = members.cloned().collect();
            let deployment = answers.deployments.get(named);
            return Ok(deployment.map(|deployment| (deployment.clone(), members)));
        };
        let read = async |resource, named: &Named| {
            let read = cluster.app(resource, &named.namespace, &named.name).await;
            let hint = format!("this takes the permission to get {resource}.apps");
            read.map_err(|error| resume::refused(error, &hint))
        };
        let deployment = Deployment::of(&read("deployments", named).await?);
        let mut members = Vec::new();
        for set in sets {
            members.push(Member::of(&read("replicasets", set).await?));
        }
        Ok(Some((deployment, members)))
    }
}

/// Reads files, or a cluster if none are named.
pub(crate) async fn read(
    (input, kube): (&FileArgs, &KubeArgs),
    namespaces: &mut NamespaceArgs,
    wanted: impl FnOnce(&NamespaceArgs) -> Result<BTreeSet<Option<String>>, Failure>,
    patience: Duration,
    io: &mut Io<'_>,
) -> Result<(Snapshot, Option<KubeCluster>), Failure> {
    if !input.files.is_empty() && kube.is_given() {
        let cause = "files and the cluster of a kubeconfig cannot be read together";
        return Err(Failure::new(Exit::Usage, cause).hint("leave out one of them"));
    }
    if !input.files.is_empty() || !kube.is_given() && !agent_kube::is_configured() {
        return Ok((Snapshot::read(input, io)?, None));
    }
    let cluster = cluster::connect(kube, patience, io).await?;
    namespaces.of_context = Some(cluster.target().namespace.clone());
    let wanted = wanted(namespaces)?;
    let snapshot = cluster::read(&cluster, wanted, patience, io).await?;
    Ok((snapshot, Some(cluster)))
}

/// The remedy if nothing is named and nothing listens at the default address.
const OTHERS: &str =
    "name a server with --server, a cluster with --kubeconfig or --context, or files with -f";
/// The command for what only a server knows.
pub(crate) const RECORDS: &str =
    "run one beside your controller, read-only: decree up --cluster kubernetes";

//! Where a command finds ReplicaSets: at a server, or in a snapshot of files or of a cluster. Both answer with the same messages.
//! It also finds the ReplicaSets that a written name means: a ReplicaSet itself, those of a Deployment, or that of a pod.
//!
//! The order: files, the cluster of a flag, a named server, a server at the default address, the cluster of the kubeconfig.

use std::{collections::BTreeSet, time::Duration};

use agent_core::api::Kind;
use agent_kube::KubeCluster;
use decree_api::v1::{self, simulate_cluster_request::Change};
use decree_core::Timestamp as CoreTime;
use jiff::Timestamp;

use crate::{
    age,
    args::{
        FileArgs, KubeArgs, NameArg, NameKind, Named, NamespaceArgs, Scope, ScopeArgs, SourceArgs,
    },
    cluster,
    deployment::{Deployment, Member},
    exit::{Exit, Failure},
    near, not_found,
    page::Io,
    pages, resume,
    server::Server,
    snapshot::{Answers, Snapshot},
    stale,
};

/// The remedy if nothing is named and nothing listens at the default address.
const OTHERS: &str =
    "name a server with --server, a cluster with --kubeconfig or --context, or files with -f";
/// The command for what only a server knows.
pub(crate) const RECORDS: &str =
    "run one beside your controller, read-only: decree up --cluster kubernetes";
/// The maximum number of existing ReplicaSets in a hint.
const SHOWN_MAX: usize = 5;
/// The kinds of owners that a plain name can mean.
const OWNERS: [&str; 2] = ["Deployment", "Rollout"];
/// The kinds of objects that decisions read, in the order of the requests.
pub(crate) const KINDS: [Kind; 2] = [Kind::ReplicaSet, Kind::Pod];
/// The number of characters that Kubernetes adds to the name of a ReplicaSet for a pod, and how much of that name it keeps.
const SUFFIX: usize = 5;
const BASE_MAX: usize = 58;

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

/// The ReplicaSets that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The ReplicaSets with pods; all if none has pods.
    pub(crate) sets: Vec<Named>,
    /// The kind and the name of their owner, if the name is that of an owner.
    pub(crate) owner: Option<(&'static str, Named)>,
}

impl Source {
    /// Opens the source. Of a cluster, it has objects of these kinds in the namespaces that `wanted` returns; `None` stands for all. If a
    /// cluster is read, names without a namespace are in that of the context.
    pub(crate) async fn open(
        args: &SourceArgs,
        namespaces: &mut NamespaceArgs,
        wanted: impl FnOnce(&NamespaceArgs) -> Result<BTreeSet<Option<String>>, Failure>,
        kinds: &[Kind],
        io: &mut Io<'_>,
    ) -> Result<Self, Failure> {
        let of_server = &args.inspection;
        let reads = !args.input.files.is_empty() || args.kube.is_given();
        let is_named = of_server.server.server.is_some() || !of_server.cluster.is_empty();
        if reads || !is_named && of_server.server.gives_way_to_a_cluster() {
            let patience = of_server.server.timeout;
            let inputs = (&args.input, &args.kube);
            let read = read(inputs, namespaces, wanted, kinds, patience, io);
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
                ..v1::SimulateRequest::default()
            };
            let answer = server.decisions().simulate(request).await;
            decisions.push(not_found::found(server, answer)?);
        }
        Ok(decisions)
    }

    pub(crate) async fn list(&self, scope: &Scope) -> Result<v1::ListReplicaSetsResponse, Failure> {
        match self {
            Self::Server { server, cluster } => {
                let namespace = &scope.namespace;
                let list = pages::replica_sets(server, cluster, namespace, usize::MAX);
                let mut list = list.await?;
                list.replica_sets
                    .retain(|set| scope.has(set.replica_set.as_ref()));
                Ok(list)
            }
            Self::Snapshot { answers, .. } => Ok(answers.list(scope)),
        }
    }

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
        not_found::together(unknown, || self.contents())
    }

    /// The hint for a name that is similar to no other: what the files contain, or how to list what exists.
    fn contents(&self) -> String {
        match self {
            Self::Snapshot {
                answers,
                cluster: None,
            } => {
                let all = answers.list(&Scope::default()).replica_sets;
                contents(&all.iter().filter_map(named).collect::<Vec<_>>())
            }
            Self::Server { .. } | Self::Snapshot { .. } => not_found::LIST.to_owned(),
        }
    }

    /// The failure for missing ReplicaSets. If a server does not list its other ones, the failure has no suggestion.
    pub(crate) async fn missing(&self, missing: &[Named]) -> Failure {
        let known = self.known("").await.unwrap_or_default();
        let known: Vec<_> = known.iter().filter_map(named).collect();
        not_found::failure(missing, &known, &self.contents())
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

    /// The ReplicaSets that names mean, each once, in the written order, and the failures of names without meaning.
    pub(crate) async fn replica_sets(
        &self,
        names: &[NameArg],
        namespaces: &NamespaceArgs,
    ) -> Result<(Vec<Named>, Vec<Failure>), Failure> {
        let (meanings, unknown) = self.meanings(names, namespaces).await?;
        let mut all = Vec::new();
        for named in meanings.into_iter().flat_map(|it| it.sets) {
            if !all.contains(&named) {
                all.push(named);
            }
        }
        Ok((all, unknown))
    }

    /// The meanings of names, and the failures of names without meaning. Fails if no name has a meaning.
    pub(crate) async fn meanings(
        &self,
        names: &[NameArg],
        namespaces: &NamespaceArgs,
    ) -> Result<(Vec<Meaning>, Vec<Failure>), Failure> {
        let (mut meanings, mut unknown) = (Vec::new(), Vec::new());
        for written in names {
            match self.meaning(written, namespaces).await {
                Ok(meaning) => meanings.push(meaning),
                Err(failure) if failure.exit == Exit::No => unknown.push(failure),
                Err(failure) => return Err(failure),
            }
        }
        if meanings.is_empty() {
            not_found::together(std::mem::take(&mut unknown), || self.contents())?;
        }
        Ok((meanings, unknown))
    }

    /// The meaning of a name. A plain name is that of a ReplicaSet, or else of an owner, or else of a pod.
    pub(crate) async fn meaning(
        &self,
        written: &NameArg,
        namespaces: &NamespaceArgs,
    ) -> Result<Meaning, Failure> {
        let named = namespaces.resolve_one(written)?;
        let plain = Meaning {
            sets: vec![named.clone()],
            owner: None,
        };
        match written.kind {
            NameKind::ReplicaSet => Ok(plain),
            NameKind::Owner(kind) => {
                let list = self.listed(&named.namespace).await?;
                let found = of_owner(kind, &named, &list.replica_sets);
                let found = found.ok_or_else(|| self.no_owner(kind, &named, &list.replica_sets));
                found.map_err(|failure| stale::missing(&list.stale_views).unwrap_or(failure))
            }
            NameKind::Pod => {
                let list = self.listed(&named.namespace).await?;
                let found = self.of_pod(&named, &list.replica_sets);
                found.map_err(|failure| stale::missing(&list.stale_views).unwrap_or(failure))
            }
            NameKind::Any => {
                // The command itself tells of other failures.
                if !matches!(self.state(&named).await, Ok(None)) {
                    return Ok(plain);
                }
                let known = self.known(&named.namespace).await?;
                let mut kinds = OWNERS.into_iter();
                let owned = kinds.find_map(|kind| of_owner(kind, &named, &known));
                let found = owned.or_else(|| self.of_pod(&named, &known).ok());
                Ok(found.unwrap_or(plain))
            }
        }
    }

    /// The ReplicaSets of a namespace, or of all for the empty text.
    pub(crate) async fn known(
        &self,
        namespace: &str,
    ) -> Result<Vec<v1::ReplicaSetSummary>, Failure> {
        Ok(self.listed(namespace).await?.replica_sets)
    }

    async fn listed(&self, namespace: &str) -> Result<v1::ListReplicaSetsResponse, Failure> {
        self.list(&Scope::of(Vec::new(), namespace.to_owned()))
            .await
    }

    fn no_owner(&self, kind: &str, owner: &Named, known: &[v1::ReplicaSetSummary]) -> Failure {
        let cause = format!("no ReplicaSet of {kind} {} found", owner.path());
        let near = near::nearest(&owner.name, owners(kind, known).map(|(name, _)| name));
        let hint = near.map(|name| format!("did you mean {name}?"));
        Failure::new(Exit::No, cause).hint(hint.unwrap_or_else(|| self.contents()))
    }

    /// The ReplicaSet of a pod. A server does not list pods, so the name of the pod tells it.
    fn of_pod(&self, pod: &Named, known: &[v1::ReplicaSetSummary]) -> Result<Meaning, Failure> {
        let path = pod.path();
        let failure = |cause: String| Err(Failure::new(Exit::No, cause));
        let mut names = known.iter().filter_map(named);
        let found = match self {
            Self::Server { .. } => names.find(|set| is_base(&set.name, &pod.name)),
            Self::Snapshot { answers, .. } => match answers.pods.get(pod) {
                None => None,
                Some(None) => return failure(format!("pod {path} has no controller")),
                Some(Some((kind, name))) if kind != "ReplicaSet" => {
                    let cause = format!("pod {path} belongs to {kind} {name}, not to a ReplicaSet");
                    return failure(cause);
                }
                Some(Some((_, name))) => names.find(|set| set.name == *name),
            },
        };
        match found {
            Some(set) => Ok(Meaning {
                sets: vec![set],
                owner: None,
            }),
            None => failure(format!("no ReplicaSet of pod {path} found")),
        }
    }
}

/// The ReplicaSets of a server that the flags select. Fails if a name has no meaning. The name of a ReplicaSet always has one, even if it
/// is missing.
pub(crate) async fn scope(args: &ScopeArgs, source: &Source) -> Result<Scope, Failure> {
    let (only, unknown) = source.replica_sets(&args.names, &args.namespace).await?;
    if !unknown.is_empty() {
        let missing = source.missing_among(&only).await?;
        source.check_found(&missing, unknown).await?;
    }
    Ok(Scope::of(only, args.namespace.filter()))
}

/// Reads files, or a cluster if none are named.
pub(crate) async fn read(
    (input, kube): (&FileArgs, &KubeArgs),
    namespaces: &mut NamespaceArgs,
    wanted: impl FnOnce(&NamespaceArgs) -> Result<BTreeSet<Option<String>>, Failure>,
    kinds: &[Kind],
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
    let snapshot = cluster::read(&cluster, wanted, kinds, patience, io).await?;
    Ok((snapshot, Some(cluster)))
}

pub(crate) fn named(set: &v1::ReplicaSetSummary) -> Option<Named> {
    set.replica_set.clone().map(Named::from)
}

/// The hint that names some of the ReplicaSets of an input.
pub(crate) fn contents(known: &[Named]) -> String {
    if known.is_empty() {
        return "the input contains no ReplicaSet".to_owned();
    }
    let paths: Vec<_> = known.iter().map(Named::path).collect();
    format!("the input contains {}", near::first_of(&paths, SHOWN_MAX))
}

fn owners<'a>(
    kind: &'a str,
    known: &'a [v1::ReplicaSetSummary],
) -> impl Iterator<Item = (&'a str, &'a v1::ReplicaSetSummary)> {
    let owned = known
        .iter()
        .filter_map(|set| Some((set.controller.as_ref()?, set)));
    let of_kind = owned.filter(move |(owner, _)| owner.kind == kind);
    of_kind.map(|(owner, set)| (owner.name.as_str(), set))
}

fn of_owner(kind: &'static str, owner: &Named, known: &[v1::ReplicaSetSummary]) -> Option<Meaning> {
    let owned = owners(kind, known).filter(|(name, _)| *name == owner.name);
    let owned: Vec<_> = owned.map(|(_, set)| set).collect();
    let has_pods = |set: &v1::ReplicaSetSummary| set.replicas > 0 || set.active > 0;
    let has_any = owned.iter().any(|set| has_pods(set));
    let sets = owned.iter().filter(|set| has_pods(set) || !has_any);
    let sets = sets.filter_map(|set| named(set)).collect();
    let owner = Some((kind, owner.clone()));
    (!owned.is_empty()).then_some(Meaning { sets, owner })
}

/// Whether Kubernetes can name a pod of a ReplicaSet so.
fn is_base(set: &str, pod: &str) -> bool {
    let base = format!("{set}-");
    let base = &base[..base.floor_char_boundary(BASE_MAX)];
    pod.strip_prefix(base)
        .is_some_and(|suffix| suffix.len() == SUFFIX)
}

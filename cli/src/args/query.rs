//! The flags of the commands that query a running server.

use clap::Args as Group;

use super::{
    kube::{FileArgs, KubeArgs},
    name::{KINDS, NameArg, Named, NamespaceArgs},
};
use crate::{
    exit::{Exit, Failure},
    format::{Format, PrintArgs},
    near,
    server::ServerArgs,
};

#[derive(Debug, Group)]
pub(crate) struct SimulateArgs {
    /// The ReplicaSets: NAME, deployment/NAME, rs/NAME, pod/NAME or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<NameArg>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
    /// The number of replicas to assume; by default, the current number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) replicas: Option<i32>,
    /// Instead of names: drain this node, and show the ReplicaSets that lose pods
    #[arg(long, value_name = "NODE", conflicts_with_all = ["names", "replicas", "quota"])]
    pub(crate) drain: Option<String>,
    /// Instead of names: limit the namespace to this number of pods, and show the refused creates
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["names", "replicas", "all_namespaces"], value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) quota: Option<i32>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Group)]
pub(crate) struct GetArgs {
    /// What to list: replicasets (rs) or sessions, and names of ReplicaSets, such as `rs web api` or `rs/web`
    #[arg(value_name = "RESOURCE", required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
    /// Print ReplicaSets again when they change, until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// What `get` lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Only these ReplicaSets; all if empty.
    ReplicaSets(Vec<NameArg>),
    Sessions,
}

#[derive(Debug, Group)]
pub(crate) struct ExplainArgs {
    /// The ReplicaSets: NAME, deployment/NAME, rs/NAME, pod/NAME or NAMESPACE/NAME
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<NameArg>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
    /// Show why this pod was deleted
    #[arg(long, value_name = "POD")]
    pub(crate) why: Option<String>,
    /// Also show status writes
    #[arg(long, conflicts_with = "why")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Group)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Exit after this many decisions
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

#[derive(Debug, Group)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Only unexplained differences, also for the exit code
    #[arg(long)]
    pub(crate) unexplained: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

/// Of which objects a command prints something.
#[derive(Debug, Group)]
pub(crate) struct ScopeArgs {
    /// Only those of these ReplicaSets: NAME, deployment/NAME, rs/NAME, pod/NAME or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<NameArg>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
}

/// The ReplicaSets that a question is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The namespace to ask for; empty for all.
    pub(crate) namespace: String,
    /// The name to ask for; empty for all.
    pub(crate) name: String,
    /// The ReplicaSets of the answer to print; empty for all.
    pub(crate) only: Vec<Named>,
}

/// What all commands have that look into a running server.
#[derive(Debug, Group)]
pub(crate) struct InspectionArgs {
    /// The cluster, by name or uid; optional if only one is connected
    #[arg(
        long,
        value_name = "CLUSTER",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cluster: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Where a command finds ReplicaSets: in files, in the cluster of a kubeconfig, or at a server.
#[derive(Debug, Group)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) input: FileArgs,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

impl GetArgs {
    /// Reads `rs`, `rs NAME…`, `rs/NAME…` or `sessions`.
    pub(crate) fn wanted(&self) -> Result<Wanted, Failure> {
        let Some((first, rest)) = self.words.split_first() else {
            return Err(unknown(""));
        };
        if KINDS.contains(&first.as_str()) {
            return replica_sets(rest);
        }
        let is_plain = rest.is_empty()
            && self.namespace.namespace.is_none()
            && !self.watch
            && self.source.input.files.is_empty()
            && !self.source.kube.is_given()
            && self.print.output != Format::Name;
        match first.as_str() {
            "sessions" | "session" if is_plain => Ok(Wanted::Sessions),
            "sessions" | "session" => {
                let cause = "sessions are those of a server, listed all at once, without names, -n, -w, -f, --context and -o name";
                let failure = Failure::new(Exit::Usage, cause);
                Err(failure.hint("select those of a cluster with --cluster"))
            }
            first if first.contains('/') => replica_sets(&self.words),
            first => Err(unknown(first)),
        }
    }
}

fn replica_sets(names: &[String]) -> Result<Wanted, Failure> {
    let names = names.iter().map(|name| {
        let written = name.parse::<NameArg>();
        written.map_err(|error| Failure::new(Exit::Usage, format!("{name:?} {error}")))
    });
    names.collect::<Result<_, _>>().map(Wanted::ReplicaSets)
}

/// The error for an unknown resource, with the known resources.
fn unknown(word: &str) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("unknown resource {word:?}"));
    let resources = KINDS.into_iter().chain(["sessions", "session"]);
    let known = "the resources are replicasets (rs) and sessions";
    failure.hint(match near::nearest(word, resources) {
        Some(meant) => format!("did you mean {meant}? {known}"),
        None => {
            format!("{known}; a ReplicaSet is: rs NAME; for others, use: kubectl get {word}")
        }
    })
}

impl Scope {
    /// The narrowest question whose answer has these ReplicaSets; if there are none, all of the namespace.
    pub(crate) fn of(only: Vec<Named>, namespace: String) -> Self {
        let (namespace, name) = match only.as_slice() {
            [] => (namespace, String::new()),
            [one] => (one.namespace.clone(), one.name.clone()),
            [first, rest @ ..] if rest.iter().all(|it| it.namespace == first.namespace) => {
                (first.namespace.clone(), String::new())
            }
            _ => (String::new(), String::new()),
        };
        Self {
            namespace,
            name,
            only,
        }
    }

    /// Whether to print something about a ReplicaSet.
    pub(crate) fn has(&self, object: Option<&decree_api::v1::ObjectRef>) -> bool {
        let is_it = |object: &decree_api::v1::ObjectRef| {
            let mut named = self.only.iter();
            named.any(|one| one.namespace == object.namespace && one.name == object.name)
        };
        self.only.is_empty() || object.is_some_and(is_it)
    }
}

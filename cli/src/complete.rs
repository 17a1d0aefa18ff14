//! Candidates for completion: names that the server of the environment knows, or else the cluster of the kubeconfig, requested while
//! the user waits.
//!
//! If the server or the cluster is away or slow, there are no candidates and no error: the shell has no place for errors.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    api::Kind,
    cluster::{Cluster as _, PageStream as _},
    watch::Items,
};
use agent_kube::KubeClusterConfig;
use clap::{Args as _, Command, FromArgMatches as _};
use clap_complete::{
    CompletionCandidate,
    engine::{self, ArgValueCompleter},
};
use decree::v1;

use crate::{
    args::{self, DEFAULT_NAMESPACE},
    exit::{Exit, Failure},
    get::cluster,
    pages,
    plain::is_plain,
    resume,
    server::{self, Server, ServerArgs},
};

/// The maximum number of candidates.
const OFFERED_MAX: usize = 500;
/// The timeout of all requests together.
const PATIENCE: Duration = Duration::from_secs(2);
/// Directives of cobra, which kubectl passes to the shell: the candidates are not files, and no space follows.
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// The flags on the command line for the cluster of a kubeconfig.
#[derive(Debug, Default)]
struct Flags {
    kubeconfig: Option<String>,
    context: Option<String>,
    namespace: Option<String>,
}

/// Writes candidates for the last of `words`, in the format that kubectl takes from a plugin. Each candidate has a line, with its
/// help after a tab, and the last line has the directive for the shell.
pub(crate) fn for_kubectl(words: Vec<OsString>, out: &mut dyn Write) -> io::Result<()> {
    let last = words.len();
    let mut command = command(&words);
    let words = [OsString::from("decree")].into_iter().chain(words);
    let folder = env::current_dir().ok();
    let found = engine::complete(&mut command, words.collect(), last, folder.as_deref())?;
    for candidate in &found {
        write!(out, "{}", candidate.get_value().to_string_lossy())?;
        let help = candidate.get_help().map(ToString::to_string);
        if let Some(line) = help.as_deref().and_then(|help| help.lines().next()) {
            write!(out, "\t{line}")?;
        }
        writeln!(out)?;
    }
    // A path continues after a folder.
    let is_folder = |it: &CompletionCandidate| it.get_value().to_string_lossy().ends_with('/');
    let directive = if found.iter().any(is_folder) {
        NO_FILES | NO_SPACE
    } else {
        NO_FILES
    };
    writeln!(out, ":{directive}")
}

/// The command with candidates for names that a server or a cluster knows. `words` are those of the command line.
pub(crate) fn command(words: &[OsString]) -> Command {
    with_candidates(args::command(), &Arc::new(Flags::of(words)))
}

fn with_candidates(command: Command, flags: &Arc<Flags>) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| {
            let flags = Arc::clone(flags);
            let has_owners = arg.get_id() == "names";
            let completer = match arg.get_id().as_str() {
                "replica_set" | "names" if name != "decide" => {
                    let offered = move |begun: &OsStr| flags.replica_sets(begun, has_owners);
                    ArgValueCompleter::new(offered)
                }
                "words" => ArgValueCompleter::new(move |begun: &OsStr| flags.resources(begun)),
                "namespace" => ArgValueCompleter::new(namespaces),
                "cluster" if name != "up" => ArgValueCompleter::new(clusters),
                _ => return arg,
            };
            arg.add(completer)
        })
        .mut_subcommands(|it| with_candidates(it, flags))
}

/// The namespaces with ReplicaSets.
fn namespaces(begun: &OsStr) -> Vec<CompletionCandidate> {
    listed(begun, |set| vec![set.namespace])
}

/// The connected clusters.
fn clusters(begun: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |server| {
        let sessions = server.sessions("").await?.sessions;
        Ok(sessions.iter().map(|it| cluster(it).to_owned()).collect())
    });
    candidates(begun, names)
}

/// The words for the ReplicaSets of a server that begin with `begun`, each once.
fn listed(begun: &OsStr, words: impl Fn(v1::ObjectRef) -> Vec<String>) -> Vec<CompletionCandidate> {
    let text = begun.to_str().unwrap_or_default();
    let names = ask(async |server| {
        let mut found = BTreeSet::new();
        let is_enough = |page: &[v1::ReplicaSetSummary]| {
            let sets = page.iter().filter_map(|set| set.replica_set.clone());
            found.extend(sets.flat_map(&words).filter(|it| it.starts_with(text)));
            found.len() >= OFFERED_MAX
        };
        pages::replica_sets_until(server, "", "", is_enough).await?;
        Ok(found.into_iter().collect())
    });
    candidates(begun, names)
}

/// Asks the server of the environment. Empty if the server is away, slow or refuses.
fn ask(question: impl AsyncFnOnce(&Server) -> Result<Vec<String>, Failure>) -> Vec<String> {
    let Some(args) = server_args() else {
        return Vec::new();
    };
    in_time(async { question(&Server::connect(&args).await?).await })
}

/// The server of the environment.
fn server_args() -> Option<ServerArgs> {
    let flags = ServerArgs::augment_args(Command::new("decree"));
    let matches = flags.try_get_matches_from(["decree"]).ok()?;
    ServerArgs::from_arg_matches(&matches).ok()
}

/// The answer to a question. Empty if it fails or takes too long.
fn in_time(question: impl Future<Output = Result<Vec<String>, Failure>>) -> Vec<String> {
    let asked = server::block_on(async {
        let asked = tokio::time::timeout(PATIENCE, question).await;
        asked.unwrap_or_else(|_| Ok(Vec::new()))
    });
    asked.unwrap_or_default()
}

/// Keeps the names that begin with `begun` and that a shell takes as they are: the answer of a server must not run as a command.
fn candidates(begun: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let names = names.into_iter().filter(|name| {
        let is_begun = begun.to_str().is_some_and(|begun| name.starts_with(begun));
        // No word that reads as a flag.
        is_begun
            && name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.chars().all(is_plain)
    });
    names
        .take(OFFERED_MAX)
        .map(CompletionCandidate::new)
        .collect()
}

impl Flags {
    fn of(words: &[OsString]) -> Self {
        let value = |flags: &[&str]| {
            let mut words = words.iter().filter_map(|it| it.to_str());
            while let Some(word) = words.next() {
                match word.split_once('=') {
                    Some((flag, value)) if flags.contains(&flag) => return Some(value.to_owned()),
                    None if flags.contains(&word) => return words.next().map(str::to_owned),
                    _ => {}
                }
            }
            None
        };
        Self {
            kubeconfig: value(&["--kubeconfig"]),
            context: value(&["--context"]),
            namespace: value(&["-n", "--namespace"]),
        }
    }

    /// ReplicaSets: of the namespace in the cluster of the kubeconfig, by name and with their Deployments, or those of the server, as
    /// NAMESPACE/NAME, and those of the namespace `default` also as NAME.
    fn replica_sets(&self, begun: &OsStr, has_owners: bool) -> Vec<CompletionCandidate> {
        if self.select_a_cluster() {
            let text = begun.to_str().unwrap_or_default();
            return candidates(begun, in_time(self.of_cluster(text, has_owners)));
        }
        listed(begun, |set| {
            let path = format!("{}/{}", set.namespace, set.name);
            let name = (set.namespace == DEFAULT_NAMESPACE).then_some(set.name);
            [Some(path), name].into_iter().flatten().collect()
        })
    }

    /// The resources of `get`, and ReplicaSets by name.
    fn resources(&self, begun: &OsStr) -> Vec<CompletionCandidate> {
        let kinds = ["replicasets", "sessions"].map(str::to_owned);
        let mut all = candidates(begun, kinds);
        all.extend(self.replica_sets(begun, true));
        all
    }

    /// Whether the commands read a cluster and no server.
    fn select_a_cluster(&self) -> bool {
        let is_given = self.kubeconfig.is_some() || self.context.is_some();
        is_given || server_args().is_some_and(|args| args.gives_way_to_a_cluster())
    }

    async fn of_cluster(&self, begun: &str, has_owners: bool) -> Result<Vec<String>, Failure> {
        let kubeconfig = self.kubeconfig.clone().map(Into::into);
        let config = KubeClusterConfig::of_person(kubeconfig, self.context.clone());
        let cluster = resume::connect(&config, PATIENCE).await?;
        let namespace = self
            .namespace
            .as_ref()
            .unwrap_or_else(|| &cluster.target().namespace);
        let cluster = cluster.in_namespace(Some(namespace));
        let cluster = cluster.map_err(|it| Failure::new(Exit::Usage, it.to_string()))?;
        let mut names = BTreeSet::new();
        let mut pages = cluster.list(Kind::ReplicaSet);
        while let Some(Ok(page)) = pages.next().await {
            let Items::ReplicaSets(sets) = page.items else {
                continue;
            };
            for set in sets.into_iter().map(|it| it.projected) {
                let owner = set.controller.filter(|it| it.kind == "Deployment");
                let owner = owner.filter(|_| has_owners);
                let owner = owner.map(|it| format!("deployment/{}", it.name));
                let both = [owner, Some(set.name)].into_iter().flatten();
                names.extend(both.filter(|it| it.starts_with(begun)));
            }
            if names.len() >= OFFERED_MAX {
                break;
            }
        }
        Ok(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_a_shell_would_read_is_not_offered() {
        let names = [
            "default/web-1",
            "arn:aws:eks:eu-1:7:cluster/a_b",
            "kubernetes-admin@kubernetes",
            "test-$(touch${IFS}/tmp/x)",
            "a b",
            "a;b",
            "a`b`",
            "a\u{1b}[2J",
            "--server=x",
            "~root",
            "größe",
            "",
        ];
        let offered = candidates(OsStr::new(""), names.map(str::to_owned));
        let offered: Vec<_> = offered.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(offered, names[..3]);
    }
}

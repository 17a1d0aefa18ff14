//! Candidates for completion: names that the server of the environment knows, requested while the user waits.
//!
//! If the server is away or slow, there are no candidates and no error: the shell has no place for errors.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    time::Duration,
};

use clap::{Args as _, Command, FromArgMatches as _};
use clap_complete::{
    CompletionCandidate,
    engine::{self, ArgValueCompleter},
};
use decree::v1;

use crate::{
    args::{self, DEFAULT_NAMESPACE},
    exit::Failure,
    get::cluster,
    pages,
    plain::is_plain,
    server::{self, Server, ServerArgs},
};

/// The maximum number of candidates.
const OFFERED_MAX: usize = 500;
/// The timeout of all requests together.
const PATIENCE: Duration = Duration::from_secs(2);
/// Directives of cobra, which kubectl passes to the shell: the candidates are not files, and no space follows.
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// Writes candidates for the last of `words`, in the format that kubectl takes from a plugin. Each candidate has a line, with its
/// help after a tab, and the last line has the directive for the shell.
pub(crate) fn for_kubectl(
    command: &mut Command,
    words: Vec<OsString>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let last = words.len();
    let words = [OsString::from("decree")].into_iter().chain(words);
    let folder = env::current_dir().ok();
    let found = engine::complete(command, words.collect(), last, folder.as_deref())?;
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

/// The command with candidates for names that a server knows.
pub(crate) fn command() -> Command {
    with_candidates(args::command())
}

fn with_candidates(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| {
            let completer = match arg.get_id().as_str() {
                "replica_set" if name != "decide" => ArgValueCompleter::new(replica_sets),
                "names" if name != "sysdump" => ArgValueCompleter::new(replica_sets),
                "words" => ArgValueCompleter::new(resources),
                "namespace" => ArgValueCompleter::new(namespaces),
                "cluster" if name != "up" => ArgValueCompleter::new(clusters),
                _ => return arg,
            };
            arg.add(completer)
        })
        .mut_subcommands(with_candidates)
}

/// The ReplicaSets as NAMESPACE/NAME; those of the namespace `default` also as NAME.
fn replica_sets(begun: &OsStr) -> Vec<CompletionCandidate> {
    listed(begun, |set| {
        let path = format!("{}/{}", set.namespace, set.name);
        let name = (set.namespace == DEFAULT_NAMESPACE).then_some(set.name);
        [Some(path), name].into_iter().flatten().collect()
    })
}

/// The resources of `get`, and ReplicaSets by name.
fn resources(begun: &OsStr) -> Vec<CompletionCandidate> {
    let kinds = ["replicasets", "sessions"].map(str::to_owned);
    let mut all = candidates(begun, kinds);
    all.extend(replica_sets(begun));
    all
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
    let flags = ServerArgs::augment_args(Command::new("decree"));
    let flags = flags.try_get_matches_from(["decree"]);
    let Ok(args) = flags.and_then(|matches| ServerArgs::from_arg_matches(&matches)) else {
        return Vec::new();
    };
    let asked = server::block_on(async {
        let asked = async { question(&Server::connect(&args).await?).await };
        let asked = tokio::time::timeout(PATIENCE, asked).await;
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

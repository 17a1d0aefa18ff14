//! Candidates for completion: the names that `decree get` would list, requested while the user waits.
//!
//! If the server or the cluster is away or slow, there are no candidates and no error: the shell has no place for errors.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io,
    time::Duration,
};

use agent_core::api::Kind;
use clap::Command;
use clap_complete::{CompletionCandidate, engine::ArgValueCompleter};

use crate::{
    args::{self, Args, DEFAULT_NAMESPACE, GetArgs, Named, NamespaceArgs},
    exit::Failure,
    get::cluster,
    near::is_plain,
    page::{Colors, Io},
    server::{self, Server},
    source::Source,
};

const OFFERED_MAX: usize = 500;
/// The timeout of all requests together.
const PATIENCE: Duration = Duration::from_secs(2);
/// The flags on the command line that select the cluster of a kubeconfig and a namespace.
const FLAGS: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];

/// The command with candidates for names that a server or a cluster knows. `words` are those of the command line.
pub(crate) fn command(words: &[OsString]) -> Command {
    with_candidates(args::command(), &flags(words))
}

fn with_candidates(command: Command, flags: &[[String; 2]]) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| {
            let of = arg.get_id().to_string();
            let is_known = match of.as_str() {
                "replica_set" | "names" => name != "decide",
                "cluster" => name != "up",
                of => ["words", "namespace"].contains(&of),
            };
            let flags = flags.to_owned();
            let names = move |begun: &OsStr| candidates(begun, words(&of, &flags));
            if is_known {
                arg.add(ArgValueCompleter::new(names))
            } else {
                arg
            }
        })
        .mut_subcommands(|it| with_candidates(it, flags))
}

/// The flags of a command line that select names, each with its value.
fn flags(words: &[OsString]) -> Vec<[String; 2]> {
    let mut flags = Vec::new();
    let mut words = words.iter().filter_map(|it| it.to_str());
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        if FLAGS.contains(&flag)
            && let Some(value) = value.or_else(|| words.next())
        {
            flags.push([flag, value].map(str::to_owned));
        }
    }
    flags
}

/// The words for an argument of this id: the resources of `get`, and names.
fn words(of: &str, flags: &[[String; 2]]) -> Vec<String> {
    let resources: &[&str] = match of {
        "words" => &["replicasets", "sessions"],
        _ => &[],
    };
    let resources = resources.iter().map(|&it| it.to_owned());
    resources.chain(names(of, flags)).collect()
}

/// The names for an argument of this id. Empty if the server or the cluster is away, slow or refuses.
fn names(of: &str, flags: &[[String; 2]]) -> BTreeSet<String> {
    let is_kept = |flag: &str| of != "namespace" || !FLAGS[2..].contains(&flag);
    let flags = flags.iter().filter(|[flag, _]| is_kept(flag));
    let flags = flags.flatten().map(String::as_str);
    let line = ["decree", "get", "rs"].into_iter().chain(flags);
    let Ok(Args {
        command: args::Command::Get(args),
    }) = args::parse(&line.map(OsString::from).collect::<Vec<_>>())
    else {
        return BTreeSet::new();
    };
    let found = server::block_on(async {
        let found = tokio::time::timeout(PATIENCE, ask(of, &args)).await;
        found.unwrap_or_else(|_| Ok(BTreeSet::new()))
    });
    found.unwrap_or_default()
}

/// Of the cluster of a kubeconfig: the ReplicaSets of the namespace by name, and their Deployments. Of a server: all ReplicaSets as
/// NAMESPACE/NAME, and those of the namespace `default` also as NAME.
async fn ask(of: &str, args: &GetArgs) -> Result<BTreeSet<String>, Failure> {
    if of == "cluster" {
        let server = Server::connect(&args.source.inspection.server).await?;
        let sessions = server.sessions("").await?.sessions;
        return Ok(sessions.iter().map(|it| cluster(it).to_owned()).collect());
    }
    let mut io = Io {
        stdin: &mut io::empty(),
        stdout: &mut io::sink(),
        stderr: &mut io::sink(),
        columns: || None,
        colors: Colors::default(),
    };
    let mut namespaces = args.namespace.clone();
    let wanted = |it: &NamespaceArgs| Ok([(of != "namespace").then(|| it.or_default())].into());
    let (source, kinds) = (&args.source, [Kind::ReplicaSet]);
    let source = Source::open(source, &mut namespaces, wanted, &kinds, &mut io).await?;
    let sets = source.known("").await?.into_iter();
    let names = sets.flat_map(|set| {
        let owner = set
            .controller
            .filter(|it| it.kind == "Deployment" && of != "replica_set");
        let set = Named::from(set.replica_set.unwrap_or_default());
        let (one, other) = if of == "namespace" {
            (set.namespace, None)
        } else if source.is_snapshot() {
            (set.name, owner.map(|it| format!("deployment/{}", it.name)))
        } else {
            let is_default = set.namespace == DEFAULT_NAMESPACE;
            (set.path(), is_default.then_some(set.name))
        };
        [Some(one), other].into_iter().flatten()
    });
    Ok(names.collect())
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
    let names = names.take(OFFERED_MAX);
    names.map(CompletionCandidate::new).collect()
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

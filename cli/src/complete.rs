//! Candidates for completion: names that a running server knows, requested while the user waits.
//!
//! If a server is away or slow, there are no candidates and no error: the shell has no place for errors.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
};

use clap::Command;
use clap_complete::{
    CompletionCandidate,
    engine::{self, ArgValueCompleter},
};
use decree::v1;

use crate::{
    args::{self, DEFAULT_NAMESPACE, KINDS, NameArg, NamespaceArgs},
    demo::remote,
    exit::Failure,
    get::cluster,
    pages,
    plain::is_plain,
    sandbox::missing::Names,
    server::{self, Server},
    simulate,
};

mod server_flags;

use server_flags::{PATIENCE, ServerFlags, ask, takes_value};

/// The maximum number of candidates.
const OFFERED_MAX: usize = 500;
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

/// Adds candidates for names that a server or an embedded cluster knows.
pub(crate) fn command() -> Command {
    with_candidates(args::command(), "")
}

fn with_candidates(command: Command, above: &str) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| match completer(above, &name, arg.get_id().as_str()) {
            Some(completer) => arg.add(completer),
            None => arg,
        })
        .mut_subcommands(|command| with_candidates(command, &name))
}

/// The completer for the values of an argument, if they are names. `above` is the parent command of `command`.
fn completer(above: &str, command: &str, argument: &str) -> Option<ArgValueCompleter> {
    let of_demo = above == "demo";
    Some(match argument {
        "replica_set" if of_demo => embedded(|names| names.replica_sets),
        "pod" if of_demo => embedded(|names| names.pods),
        "node" if of_demo => embedded(|names| names.nodes),
        "replica_set" if command == "resume" => ArgValueCompleter::new(replica_sets),
        "names" if command != "sysdump" => ArgValueCompleter::new(replica_sets),
        "words" => ArgValueCompleter::new(resources),
        "why" => ArgValueCompleter::new(pods),
        "namespace" => ArgValueCompleter::new(namespaces),
        "cluster" if command != "up" => ArgValueCompleter::new(clusters),
        _ => return None,
    })
}

/// The ReplicaSets of a server whose names begin with `current`.
fn replica_sets(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun(current);
    let names = ask(async |server, flags| {
        let asked = Asked::of(begun, flags.namespace.as_deref());
        let found = listed(server, flags, begun, &asked).await?;
        if !found.is_empty() || begun.is_empty() || begun.contains('/') || asked.before.is_some() {
            return Ok(found);
        }
        let asked = Asked::of(begun, Some(DEFAULT_NAMESPACE));
        listed(server, flags, begun, &asked).await
    });
    candidates(current, names)
}

/// The resources of `get`, and ReplicaSets by name.
fn resources(current: &OsStr) -> Vec<CompletionCandidate> {
    let kinds = ["replicasets", "sessions"].map(str::to_owned);
    let mut all = candidates(current, kinds);
    all.extend(replica_sets(current));
    all
}

/// The namespaces with ReplicaSets of a server that begin with `current`.
fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun(current);
    let names = ask(async |server, flags| {
        let mut found = BTreeSet::new();
        let is_enough = |page: &[v1::ReplicaSetSummary]| {
            let refs = page.iter().filter_map(|set| set.replica_set.as_ref());
            let of = refs
                .map(|it| &it.namespace)
                .filter(|it| it.starts_with(begun));
            found.extend(of.cloned());
            found.len() >= OFFERED_MAX
        };
        pages::replica_sets_until(server, &flags.cluster, "", is_enough).await?;
        Ok(found.into_iter().collect())
    });
    candidates(current, names)
}

/// The pods of the ReplicaSet that `explain` is about: the current ones, and the last deleted ones.
fn pods(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<_> = env::args().collect();
    let Some(written) = explained(&words) else {
        return Vec::new();
    };
    let names = ask(async |server, flags| {
        let named = NamespaceArgs::of(flags.namespace.clone()).resolve_one(&written)?;
        let all_go = simulate::ask(server, &flags.cluster, named.clone(), Some(0)).await?;
        let victims = all_go.decision.unwrap_or_default().deletes.into_iter();
        let pods = victims.filter_map(|victim| Some(victim.pod?.name));
        let mut names: BTreeSet<_> = pods.collect();
        let request = named.request(&flags.cluster);
        let answer = server.answer(server.inspection().get_replica_set(request).await)?;
        let decisions = answer.decisions.into_iter();
        let deletions = decisions.filter(|it| it.action == "delete");
        names.extend(deletions.flat_map(|it| it.targets).map(|it| it.name));
        Ok(names.into_iter().collect())
    });
    candidates(current, names)
}

/// The connected clusters whose names begin with `current`.
fn clusters(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |server, _| {
        let sessions = server.sessions("").await?.sessions;
        Ok(sessions.iter().map(|it| cluster(it).to_owned()).collect())
    });
    candidates(current, names)
}

/// The beginning of a word; if it is not UTF-8, a text with which no name begins.
fn begun(current: &OsStr) -> &str {
    current.to_str().unwrap_or("\0")
}

/// The namespace of a question for ReplicaSets, and the format of their names.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// The namespace; empty for all.
    namespace: String,
    /// The prefix of each name; `None` for names with their namespace.
    before: Option<String>,
}

/// The ReplicaSets in the format of the question that begin with `begun`.
async fn listed(
    server: &Server,
    flags: &ServerFlags,
    begun: &str,
    asked: &Asked,
) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let is_enough = |page: &[v1::ReplicaSetSummary]| {
        let refs = page.iter().filter_map(|set| set.replica_set.as_ref());
        let words = refs.map(|it| match &asked.before {
            Some(before) => format!("{before}{}", it.name),
            None => format!("{}/{}", it.namespace, it.name),
        });
        found.extend(words.filter(|it| it.starts_with(begun)));
        found.len() >= OFFERED_MAX
    };
    pages::replica_sets_until(server, &flags.cluster, &asked.namespace, is_enough).await?;
    Ok(found)
}

/// The first ReplicaSet that a half-written `explain` names.
fn explained(words: &[String]) -> Option<NameArg> {
    let command = args::command();
    let explain = command.find_subcommand("explain")?;
    let mut words = words.iter().skip_while(|word| *word != "explain").skip(1);
    while let Some(word) = words.next() {
        if takes_value(explain, word) == Some(true) {
            words.next();
        } else if !word.starts_with('-') {
            return word.parse().ok();
        }
    }
    None
}

/// The completer for names of one kind in an embedded cluster.
fn embedded(kind: fn(Names) -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        candidates(current, as_begun(current, kind(known(current))))
    })
}

/// The names in the embedded cluster of the half-written command that begin with `current`.
fn known(current: &OsStr) -> Names {
    let begun = begun(current);
    let words: Vec<_> = env::args().collect();
    let (true, Some(flags)) = (begun.chars().all(is_plain), ServerFlags::of(&words)) else {
        return Names::default();
    };
    let asked = async { Ok(remote::names(flags.admin, begun, PATIENCE).await) };
    server::block_on(asked).unwrap_or_default()
}

/// Formats names like the written prefix: with their namespace, or without it only the names of the default namespace.
fn as_begun(current: &OsStr, paths: Vec<String>) -> Vec<String> {
    let begun = begun(current);
    let words = paths.into_iter().filter_map(|path| {
        let name = path.strip_prefix("default/").map(str::to_owned);
        let mut words = [name, Some(path)].into_iter().flatten();
        words.find(|word| word.starts_with(begun))
    });
    words.collect()
}

/// Keeps the names that begin with `current` and that a shell takes as they are: the answer of a server must not run as a command.
fn candidates(
    current: &OsStr,
    names: impl IntoIterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let begun = begun(current);
    let names = names.into_iter();
    let names = names.filter(|name| name.starts_with(begun) && is_word(name));
    names
        .take(OFFERED_MAX)
        .map(CompletionCandidate::new)
        .collect()
}

/// Whether a name is plain, and does not read as a flag.
fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

// === impl Asked ===

impl Asked {
    /// Reads the beginning of a word. `namespace` is the value of the flag.
    fn of(begun: &str, namespace: Option<&str>) -> Self {
        let (namespace, before) = match (begun.split_once('/'), namespace) {
            (Some((kind, _)), _) if KINDS.contains(&kind) => {
                let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
                (namespace, Some(format!("{kind}/")))
            }
            (Some((own, _)), _) => (own, Some(format!("{own}/"))),
            (None, Some(flag)) => (flag, Some(String::new())),
            (None, None) => ("", None),
        };
        Self {
            namespace: namespace.to_owned(),
            before,
        }
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

    #[test]
    fn words_are_asked_for_as_they_are_begun() {
        for (begun, flag, namespace, before) in [
            ("", None, "", None),
            ("we", Some("shop"), "shop", Some("")),
            ("pay/le", None, "pay", Some("pay/")),
            ("rs/we", None, "default", Some("rs/")),
            ("rs/we", Some("shop"), "shop", Some("rs/")),
        ] {
            let expected = Asked {
                namespace: namespace.to_owned(),
                before: before.map(str::to_owned),
            };
            assert_eq!(Asked::of(begun, flag), expected);
        }
    }

    #[test]
    fn pods_are_those_of_the_replica_set_that_is_named() {
        let explained = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            explained(&words)
        };
        let web = "shop/web".parse().ok();
        assert_eq!(explained("decree -- decree explain shop/web --why w"), web);
        assert_eq!(explained("decree explain -n x --why w shop/web"), web);
        assert_eq!(explained("decree explain --why w"), None);
    }
}

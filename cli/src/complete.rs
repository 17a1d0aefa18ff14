//! Candidates for completion: names that a running server knows, requested while the user waits.
//!
//! If a server is away or slow, there are no candidates and no error: the shell has no place for errors.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    time::Duration,
};

use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use clap_complete::{
    CompletionCandidate,
    engine::{self, ArgValueCompleter},
};
use decree::v1;

use crate::{
    args::{self, DEFAULT_NAMESPACE, KINDS, NameArg, NamespaceArgs},
    exit::Failure,
    get::cluster,
    pages,
    plain::is_plain,
    server::{self, Server, ServerArgs},
    simulate,
};

/// The maximum number of candidates.
const OFFERED_MAX: usize = 500;
/// The timeout of each request, and of all requests together.
const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(2);
/// Directives of cobra, which kubectl passes to the shell: the candidates are not files, and no space follows.
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// What a half-written command says about its request.
#[derive(Debug)]
struct HalfWritten {
    server: ServerArgs,
    cluster: String,
    namespace: Option<String>,
    names: Vec<NameArg>,
}

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
        .mut_args(|arg| match completer(&name, arg.get_id().as_str()) {
            Some(completer) => arg.add(completer),
            None => arg,
        })
        .mut_subcommands(with_candidates)
}

/// The completer for the values of an argument, if they are names.
fn completer(command: &str, argument: &str) -> Option<ArgValueCompleter> {
    Some(match argument {
        "replica_set" if command != "decide" => ArgValueCompleter::new(replica_sets),
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
    let names = ask(async |server, written| {
        let asked = Asked::of(begun, written.namespace.as_deref());
        let found = listed(server, written, begun, &asked).await?;
        if !found.is_empty() || begun.is_empty() || begun.contains('/') || asked.before.is_some() {
            return Ok(found);
        }
        let asked = Asked::of(begun, Some(DEFAULT_NAMESPACE));
        listed(server, written, begun, &asked).await
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
    let names = ask(async |server, written| {
        let mut found = BTreeSet::new();
        let is_enough = |page: &[v1::ReplicaSetSummary]| {
            let refs = page.iter().filter_map(|set| set.replica_set.as_ref());
            let of = refs
                .map(|it| &it.namespace)
                .filter(|it| it.starts_with(begun));
            found.extend(of.cloned());
            found.len() >= OFFERED_MAX
        };
        pages::replica_sets_until(server, &written.cluster, "", is_enough).await?;
        Ok(found.into_iter().collect())
    });
    candidates(current, names)
}

/// The pods of the ReplicaSet that `explain` is about: the current ones, and the last deleted ones.
fn pods(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |server, written| {
        let Some(name) = written.names.first() else {
            return Ok(Vec::new());
        };
        let namespace = NamespaceArgs::of(written.namespace.clone());
        let named = namespace.resolve_one(name)?;
        let all_go = simulate::ask(server, &written.cluster, named.clone(), Some(0)).await?;
        let victims = all_go.decision.unwrap_or_default().deletes.into_iter();
        let pods = victims.filter_map(|victim| Some(victim.pod?.name));
        let mut names: BTreeSet<_> = pods.collect();
        let request = named.request(&written.cluster);
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

/// Asks the server of the half-written command. Empty if the server is away, slow or refuses.
fn ask(
    question: impl AsyncFnOnce(&Server, &HalfWritten) -> Result<Vec<String>, Failure>,
) -> Vec<String> {
    let words: Vec<_> = env::args_os().collect();
    let Some(mut written) = HalfWritten::of(&words) else {
        return Vec::new();
    };
    written.server.timeout = PATIENCE;
    let asked = server::block_on(async {
        let asked = async {
            let server = Server::connect(&written.server).await?;
            question(&server, &written).await
        };
        let asked = tokio::time::timeout(PATIENCE_FOR_ALL, asked).await;
        asked.unwrap_or_else(|_| Ok(Vec::new()))
    });
    asked.unwrap_or_default()
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
    written: &HalfWritten,
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
    pages::replica_sets_until(server, &written.cluster, &asked.namespace, is_enough).await?;
    Ok(found)
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

// === impl HalfWritten ===

impl HalfWritten {
    /// Reads the words of a shell: those after `--`, or all. `None` if the flags of the connection are invalid.
    fn of(words: &[OsString]) -> Option<Self> {
        let begin = words.iter().position(|word| word == "--");
        let words = &words[begin.map_or(0, |at| at + 1)..];
        // The last word may be no valid name yet.
        Self::read(words).or_else(|| Self::read(words.split_last()?.1))
    }

    fn read(words: &[OsString]) -> Option<Self> {
        let command = args::command().ignore_errors(true);
        let mut matches = command.try_get_matches_from(words).ok()?;
        while let Some((_, below)) = matches.remove_subcommand() {
            matches = below;
        }
        let text = |id: &str| matches.try_get_one::<String>(id).ok().flatten().cloned();
        let names = matches.try_get_many::<NameArg>("names").ok().flatten();
        Some(Self {
            server: Self::server(&matches)?,
            cluster: text("cluster").unwrap_or_default(),
            namespace: text("namespace"),
            names: names.unwrap_or_default().cloned().collect(),
        })
    }

    /// The flags of the connection; those of the environment for a command without them.
    fn server(matches: &ArgMatches) -> Option<ServerArgs> {
        if matches.try_contains_id("server").is_ok() {
            return ServerArgs::from_arg_matches(matches).ok();
        }
        let flags = ServerArgs::augment_args(Command::new("decree"));
        let matches = flags.try_get_matches_from(["decree"]).ok()?;
        ServerArgs::from_arg_matches(&matches).ok()
    }
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
    fn half_written_command_leads_to_its_server_and_its_replica_set() {
        for (line, server, namespace, cluster, name) in [
            (
                "decree -- decree explain --server http://a:1 -n x --cluster c --tls-ca=ca web --why w",
                "http://a:1",
                Some("x"),
                "c",
                Some("web"),
            ),
            (
                "decree explain --why w shop/web",
                "http://127.0.0.1:50051",
                None,
                "",
                Some("shop/web"),
            ),
            (
                "decree explain --server http://a:1 pay/",
                "http://a:1",
                None,
                "",
                None,
            ),
            (
                "decree get rs --server http://a:1 -n",
                "http://a:1",
                None,
                "",
                None,
            ),
            (
                "decree resume -n shop we",
                "http://127.0.0.1:50051",
                Some("shop"),
                "",
                None,
            ),
        ] {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            let written = HalfWritten::of(&words).expect(line);
            assert_eq!(written.server.server.to_string(), server, "{line}");
            assert_eq!(written.namespace.as_deref(), namespace, "{line}");
            assert_eq!(written.cluster, cluster, "{line}");
            let name = name.map(|name| vec![name.parse::<NameArg>().expect("a name")]);
            assert_eq!(written.names, name.unwrap_or_default(), "{line}");
        }
        let wrong = "decree get rs --server nowhere --cluster".split(' ');
        let wrong: Vec<_> = wrong.map(OsString::from).collect();
        assert!(HalfWritten::of(&wrong).is_none());
    }
}

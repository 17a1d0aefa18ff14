//! Candidates for completion: names that a running server knows, asked for while the user waits.
//!
//! A server that is away or slow completes to nothing, silently: the shell has no place for errors.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    time::Duration,
};

use clap::{Command, Parser};
use clap_complete::{CompletionCandidate, engine};
use decree::v1;

use crate::{
    exit::Failure,
    plain::is_plain,
    server::{self, Server, ServerArgs},
};

/// How long the server may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How many names are offered.
const OFFERED_MAX: i32 = 500;
/// The flags of the half-written command that lead to its server; those of the second list take no value.
const FLAGS: [&str; 5] = [
    "--server",
    "--token-file",
    "--tls-ca",
    "--tls-cert",
    "--tls-key",
];
const SWITCHES: [&str; 1] = ["--insecure"];

/// The way to the server of a half-written command.
#[derive(Debug, Parser)]
struct Way {
    #[command(flatten)]
    server: ServerArgs,
}

/// What kubectl tells the shell about candidates, as cobra numbers it: that they are no files, and that no space follows.
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// Writes candidates of a command for the last of `words`, behind those before it, as kubectl takes them from a plugin: a line each, with its help
/// behind a tab, and in the last line how the shell is to go on.
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
    // More may be written behind a folder.
    let is_folder = |it: &CompletionCandidate| it.get_value().to_string_lossy().ends_with('/');
    let directive = match found.iter().any(is_folder) {
        true => NO_FILES | NO_SPACE,
        false => NO_FILES,
    };
    writeln!(out, ":{directive}")
}

/// Returns the ReplicaSets, as `NAMESPACE/NAME`.
pub(crate) fn replica_sets() -> Vec<CompletionCandidate> {
    let names = ask(async |server: &Server| {
        let request = v1::ListReplicaSetsRequest {
            page_size: OFFERED_MAX,
            ..v1::ListReplicaSetsRequest::default()
        };
        let answer = server.inspection().list_replica_sets(request).await;
        let answer = answer.map_err(|status| server.failure(&status))?;
        let sets = answer.into_inner().replica_sets;
        let refs = sets.into_iter().filter_map(|set| set.replica_set);
        Ok(refs
            .map(|set| format!("{}/{}", set.namespace, set.name))
            .collect())
    });
    candidates(names)
}

/// Returns what `get` lists: the resources, and ReplicaSets by name.
pub(crate) fn resources() -> Vec<CompletionCandidate> {
    let mut all = candidates(["replicasets", "sessions"].map(str::to_owned));
    all.extend(replica_sets());
    all
}

/// Returns the clusters that are connected.
pub(crate) fn clusters() -> Vec<CompletionCandidate> {
    let names = ask(async |server: &Server| {
        let sessions = server.sessions().await?.sessions.into_iter();
        let name = |session: v1::SessionSummary| match session.cluster_name.as_str() {
            "" => session.cluster_uid,
            _ => session.cluster_name,
        };
        Ok(sessions.map(name).collect())
    });
    candidates(names)
}

/// Returns candidates for those of the names that a shell takes as they are: what a server answers must not run as a command.
fn candidates(names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let names = names.into_iter().filter(|name| is_word(name));
    names.map(CompletionCandidate::new).collect()
}

/// Returns whether a name is plain, and does not read as a flag.
fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

fn ask(question: impl AsyncFnOnce(&Server) -> Result<Vec<String>, Failure>) -> Vec<String> {
    let words: Vec<_> = env::args().collect();
    let Ok(Way { server: args }) = Way::try_parse_from(way(&words)) else {
        return Vec::new();
    };
    let args = ServerArgs {
        timeout: PATIENCE,
        ..args
    };
    let asked = server::block_on(async {
        let server = Server::connect(&args).await?;
        question(&server).await
    });
    asked.unwrap_or_default()
}

/// Returns a command line with those words of another that lead to its server.
fn way(words: &[String]) -> Vec<&str> {
    let mut way = vec!["decree"];
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or(word);
        if SWITCHES.contains(&word) {
            way.push(word);
        } else if FLAGS.contains(&flag) {
            way.push(word);
            if flag == word {
                way.extend(words.next());
            }
        }
    }
    way
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
        let offered = candidates(names.map(str::to_owned));
        let offered: Vec<_> = offered.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(offered, names[..3]);
    }

    #[test]
    fn half_written_command_leads_to_its_server() {
        let words = "decree -- decree get rs --server http://a:1 -n x --tls-ca=ca --insecure -o";
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let expected = [
            "decree",
            "--server",
            "http://a:1",
            "--tls-ca=ca",
            "--insecure",
        ];
        assert_eq!(way(&words), expected);
    }
}

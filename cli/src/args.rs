//! The commands and their flags; the comments are the help.

use std::{
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args as Group, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::{Shell, env::Shells};
use server_core::Timestamp;

use crate::{age, exit, format::PrintArgs, server::ServerArgs};

mod check;
mod examples;
mod help;
mod labels;
mod name;
mod number;
mod query;
mod resume;
mod suggest;
mod up;

pub(crate) use check::CheckArgs;
use help::{CHECK_HELP, DECIDE_HELP, DIFF_HELP, REPLAY_HELP};
pub(crate) use name::{DEFAULT_NAMESPACE, KINDS, NameArg, Named, NamespaceArgs};
pub(crate) use query::{
    DiffArgs, ExplainArgs, FailOn, GetArgs, Order, Output, Scope, SimulateArgs, SysdumpArgs,
    TopArgs, Wanted, WatchArgs,
};
pub(crate) use resume::ResumeArgs;
pub(crate) use up::{DemoArgs, DemoCommand, RunningArgs, UpArgs};

/// Shows which pods a ReplicaSet controller would create and delete, and why: from files or from a running server.
#[derive(Debug, Parser)]
#[command(name = "decree", version = build_info::text(), after_help = exit::HELP, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run server and agent in one process, on a demo or a real cluster
    ///
    /// They run until interrupted. To a real cluster nothing is written unless --mode enforce is given: decisions are compared with what its controller does, and
    /// the end is a report. On the embedded one `decree demo scale`, `delete`, `fail` and the like act from other terminals.
    #[command(after_help = exit::HELP)]
    Up(UpArgs),
    /// Show server and agent at work, or act on a running demo cluster
    ///
    /// The cluster is embedded in this process. Prints what it does, a line for each decision: the victims of a scale-down are named before they go, the server is killed during a
    /// scale-up, the agent stops a rogue server, a quota refuses, and a shadow finds what another controller did wrong. The exit
    /// code is 0 if all went as told. On a terminal, q ends it.
    #[command(after_help = exit::HELP)]
    Demo(DemoArgs),
    /// Decide for ReplicaSets and pods from files
    ///
    /// The files are in the format of `kubectl get rs,pods -o json`. Needs neither a cluster nor a server; all operations are assumed to succeed. The input is JSON or YAML, one document or
    /// several, lists or single objects; objects of other kinds are ignored with a notice. What is not in the input does not
    /// exist for the decision.
    #[command(after_help = DECIDE_HELP)]
    Decide(DecideArgs),
    /// Show what another size, a drain or a quota would do
    ///
    /// Changes nothing. The server decides on its current view. For a drain, all pods of the node are deleted; for a quota, ReplicaSets create
    /// what they lack.
    #[command(after_help = exit::HELP)]
    Simulate(SimulateArgs),
    /// List the ReplicaSets or sessions of a running server
    #[command(after_help = exit::HELP)]
    Get(GetArgs),
    /// Show the state of a ReplicaSet, what it is waiting for, and why
    #[command(after_help = exit::HELP)]
    Explain(ExplainArgs),
    /// Print decisions as they are made, until interrupted
    #[command(after_help = exit::HELP)]
    Watch(WatchArgs),
    /// Show the busiest ReplicaSets and sessions
    ///
    /// Shows decisions and operations a second, what is in flight, memory and its limit. On a terminal it is written anew after each interval until interrupted; with --once it is printed once.
    #[command(after_help = exit::HELP)]
    Top(TopArgs),
    /// Report what another controller did differently
    ///
    /// Needs an agent in mode shadow. A difference is reported when no view that the other controller can have had explains it any more, with what else explains
    /// it, if anything does. Differences from before the agent's last connection are only in the server's log and
    /// metrics.
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Write an archive for a bug report, without names
    #[command(after_help = exit::HELP)]
    Sysdump(SysdumpArgs),
    /// Replay a server's recordings, and print decisions that differ
    ///
    /// The session of this version receives the recorded frames at the recorded times, and what it sends is compared with what
    /// was sent then. Differences after the first may follow from it, because the agent executed what was sent then.
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Check server, cluster, permissions, leader, other controllers
    ///
    /// Changes nothing. Permissions are checked for the user of the kubeconfig: to check those of the agent, use its
    /// credentials. What is marked with a cross must be fixed; two exclamation marks may be as intended.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Resume creates or deletes that a budget or lost pods hold back
    ///
    /// Sets the annotation decree.dev/resume of a ReplicaSet, with the credentials of a kubeconfig; the agent sees it change and
    /// ends the holds that are meant. Holds that begin later are not affected. The server cancels the lost pods of the same
    /// ReplicaSets, so their missing pods are created at once, at most once a minute.
    #[command(after_help = resume::HELP)]
    Resume(ResumeArgs),
    /// Create certificates for trying TLS
    Pki {
        #[command(subcommand)]
        command: PkiCommand,
    },
    /// Print the completion script of a shell
    ///
    /// The script asks this program for candidates, so it knows the names that a running server has. To try it in this shell only:
    /// `source <(decree completion bash)`. To install it, write it to where the shell looks, as below, and start the shell anew; for
    /// zsh, that folder must be in `fpath`, and for PowerShell, the script is added to `$PROFILE`.
    #[command(after_help = exit::HELP)]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    #[command(after_help = exit::HELP)]
    Man {
        /// The folder to write to; it is created if it is missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the version
    Version,
    /// Flags of the commands that query a server
    ///
    /// They are flags of `check`, `diff`, `explain`, `get`, `simulate`, `sysdump`, `top` and `watch`.
    #[command(hide = true, override_usage = "decree COMMAND [CONNECTION FLAGS]")]
    Connection(ServerArgs),
}

#[derive(Debug, Group)]
pub(crate) struct DecideArgs {
    /// A file of objects; `-` is standard input. Repeatable
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The ReplicaSet to decide for, as NAME, rs/NAME or NAMESPACE/NAME; by default, every ReplicaSet of the input
    #[arg(long, value_name = "NAME")]
    pub(crate) replica_set: Option<NameArg>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
    /// The number of replicas to assume; by default, that of the ReplicaSet. Needs --replica-set if the input has more than one
    #[arg(long, value_name = "NUMBER", value_parser = number::at_least::<i32, 0>)]
    pub(crate) replicas: Option<i32>,
    /// The time of the decision, in RFC 3339; by default, the current time
    #[arg(long, value_name = "TIME", value_parser = age::rfc3339)]
    pub(crate) now: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Group)]
pub(crate) struct ReplayArgs {
    /// Recordings; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Show what came before each difference: the agent's frames with their objects, or that time passed
    #[arg(long)]
    pub(crate) explain: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PkiCommand {
    /// Make a CA and certificates for a server, an agent, a viewer and an admin, to try TLS with
    ///
    /// The key of the CA lies beside what it issued, and nothing can be revoked: do not use the set in production. The
    /// certificates name their owners by the SPIFFE ids spiffe://TRUST_DOMAIN/agent and so on. Prints the commands that use them.
    #[command(after_help = exit::HELP)]
    Dev(PkiDevArgs),
}

#[derive(Debug, Group)]
pub(crate) struct PkiDevArgs {
    /// The folder to write to; it is created, and must be empty
    #[arg(long, value_name = "DIR", default_value = "decree-pki")]
    pub(crate) out: PathBuf,
    /// A further DNS name or IP address of the server, beside localhost and those of the manifests' Service. Repeatable
    #[arg(long = "host", value_name = "HOST", value_parser = host)]
    pub(crate) hosts: Vec<String>,
    /// The trust domain of the SPIFFE ids
    #[arg(long, value_name = "NAME", default_value = "decree.local", value_parser = trust_domain)]
    pub(crate) trust_domain: String,
    /// How many days the certificates are valid
    #[arg(long, value_name = "NUMBER", default_value_t = 365, value_parser = number::days)]
    pub(crate) days: u16,
}

/// The name of this program as a plugin of kubectl, which also asks this name for completions.
const PLUGIN: &str = "kubectl-decree";
const PLUGIN_COMPLETION: &str = "kubectl_complete-decree";

/// If kubectl started this program as its plugin, help and errors say `kubectl decree`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let command = if is_called(PLUGIN, &arguments) {
        help::for_terminal(Args::command(), "kubectl decree").bin_name("kubectl decree")
    } else {
        command()
    };
    let matches = command.try_get_matches_from(arguments);
    Args::from_arg_matches(&matches.map_err(|error| suggest::command(error, &Args::command()))?)
}

pub(crate) fn command() -> clap::Command {
    help::for_terminal(Args::command(), "decree")
}

/// The page on the connection flags.
pub(crate) fn connection_help() -> Option<clap::Error> {
    let arguments = ["decree", "help", help::CONNECTION].map(OsString::from);
    parse(arguments).err()
}

pub(crate) fn is_completion_of_plugin(arguments: &[OsString]) -> bool {
    is_called(PLUGIN_COMPLETION, arguments)
}

fn is_called(name: &str, arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    program.is_some_and(|program| program == name)
}

/// Writes a manual page for each command, and creates the folder.
pub(crate) fn man(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(help::for_manual(Args::command()), folder)
}

/// The script asks this program for candidates.
pub(crate) fn completion(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| io::Error::other(format!("{name} is no shell that is known")))?;
    shell.write_registration("COMPLETE", "decree", "decree", "decree", out)
}

fn host(text: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-.:*".contains(letter);
    spelled(text, fits, "must be a DNS name or an IP address")
}

fn trust_domain(text: &str) -> Result<String, String> {
    let fits = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-._".contains(letter)
    };
    let rule = "must be lower-case letters, digits, '.', '-' and '_'";
    spelled(text, fits, rule)
}

/// A text of letters that fit, and not longer than any DNS name.
fn spelled(text: &str, fits: impl Fn(char) -> bool, rule: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 255 || !text.chars().all(fits) {
        return Err(rule.to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn demonstration_that_stays_is_found_where_the_other_commands_look() {
        for (line, listen) in [
            ("decree demo", "127.0.0.1:0"),
            ("decree demo --stay", "127.0.0.1:50051"),
            ("decree demo --stay --listen 127.0.0.1:1", "127.0.0.1:1"),
        ] {
            let args = Args::try_parse_from(line.split(' ')).expect("valid");
            let Command::Demo(args) = args.command else {
                unreachable!("`demo` was given")
            };
            assert_eq!(args.listen.to_string(), listen);
        }
    }
}

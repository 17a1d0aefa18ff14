//! The commands and their flags; the comments are the help.

use std::{
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use clap::{
    ArgMatches, Args as Group, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::ErrorKind, parser::ValueSource,
};
use clap_complete::{Shell, env::Shells};
use decree_core::{Costs, Timestamp};
use service::config;

use crate::{
    age,
    exit::{Exit, Failure},
    format::PrintArgs,
};

mod help;
mod kube;
mod name;
mod query;
mod up;

use help::DECIDE_HELP;
pub(crate) use kube::{CheckArgs, ConsoleArgs, DeclareArgs, FileArgs, KubeArgs, ResumeArgs};
pub(crate) use name::{DEFAULT_NAMESPACE, NameArg, NameKind, Named, NamespaceArgs};
pub(crate) use query::{
    DiffArgs, ExplainArgs, GetArgs, Scope, ScopeArgs, SimulateArgs, SourceArgs, Wanted, WatchArgs,
};
pub(crate) use up::{AdminArgs, DemoArgs, DemoCommand, PlaceArgs, UpArgs};

/// Shows which pods a ReplicaSet controller would create and delete, and why: from your cluster, from files or from a running server.
#[derive(Debug, Parser)]
#[command(name = "decree", version = service::build_info::text(), arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run server and agent in one process, on a demo or a real cluster
    ///
    /// Runs until interrupted. On a real cluster, writes nothing by default: compares its decisions with the built-in
    /// controller, and prints a report when you stop it. `decree demo scale`, `fail` and others change the embedded cluster from
    /// other terminals.
    Up(UpArgs),
    /// Show server and agent at work, or act on a running demo cluster
    ///
    /// The cluster is embedded in this process. Names the victims of a scale-down before their deletion, spares a busy pod, kills the
    /// server during a scale-up, and holds back a mistake. Then explains a quota, drains a node without losing a replica, and finds an
    /// error of another controller. The exit code is 0 if everything happened as expected.
    Demo(DemoArgs),
    /// Decide for ReplicaSets and pods from files or a cluster
    ///
    /// Reads the output of `kubectl get rs,pods -o json`, files that kubectl accepts, and dumps of clusters. Without files, reads the
    /// cluster of the kubeconfig. Needs no server, and assumes that all operations succeed. Other objects than those in the input do not
    /// exist for the decision.
    #[command(after_help = DECIDE_HELP)]
    Decide(DecideArgs),
    /// Show the effect of another size, a drain or a quota
    ///
    /// Changes nothing. A server decides on its current view; without a server, the command reads the cluster of the kubeconfig. A drain
    /// deletes all pods of the node; with a quota, ReplicaSets create their missing pods.
    Simulate(SimulateArgs),
    /// Open the console in the browser
    ///
    /// Opens the console of a server on this machine. If none answers, or if a flag names a cluster or a namespace, finds the pods of Decree
    /// in the cluster. `kubectl port-forward` then forwards the port of a server until interrupted. Everyone who may forward the port
    /// may read; nothing can be written there.
    Console(ConsoleArgs),
    /// List the ReplicaSets of a server or a cluster, or sessions
    ///
    /// Without a server, reads the ReplicaSets in the cluster of the kubeconfig.
    Get(GetArgs),
    /// Show the state of a ReplicaSet, with its cause and its decisions
    ///
    /// Without a server, reads the cluster of the kubeconfig. Only a server knows past decisions and refusals.
    Explain(ExplainArgs),
    /// Print decisions as the server makes them, until interrupted
    Watch(WatchArgs),
    /// Report differences between another controller and the decisions
    ///
    /// Needs an agent in shadow or advise mode. The server compares only acts on pods that both controllers have seen alike, and counts all
    /// others as not compared. Differences from before the agent's last connection are only in the server's log and metrics.
    Diff(DiffArgs),
    /// Replay a server's recordings, and print decisions that differ
    ///
    /// A session of this version receives the recorded frames at the recorded times, and its decisions are compared with the recorded
    /// ones. Differences after the first may follow from it, because the agent executed the recorded decisions.
    Replay(ReplayArgs),
    /// Check server, cluster, permissions, leader, other controllers
    ///
    /// Changes nothing. Permissions are checked for the user of the kubeconfig: to check those of the agent, use its
    /// credentials. × must be fixed; ‼ is a warning.
    Check(CheckArgs),
    /// Resume creates or deletes that a budget or lost pods hold back
    ///
    /// Sets the annotation decree.dev/resume of a ReplicaSet, with the credentials of a kubeconfig; the agent sees the change and ends the
    /// holds. Later holds are not affected. The server cancels the lost pods of the same ReplicaSets, so their missing pods are created at
    /// once, at most once a minute.
    Resume(ResumeArgs),
    /// Declare that the built-in ReplicaSet controller is off
    ///
    /// Agents in enforce mode stand by until then. Turn the built-in controller off first. Waits until an agent acts, or until it has found
    /// another controller and stopped. Records the declaration in the ReplicaSet `decree-probe` of the agents, with the credentials of a
    /// kubeconfig.
    TakeOver(DeclareArgs),
    /// Stop Decree, so that the built-in controller can be turned on
    ///
    /// Declares that the built-in controller is on, and waits until each agent has stopped and given its Lease back. The agents then stand by,
    /// also after a restart, until `decree take-over`.
    HandBack(DeclareArgs),
    /// Print the completion script of a shell
    ///
    /// The script asks this program for candidates, so it knows the names that the server at DECREE_SERVER has. To try it in this shell
    /// only: `source <(decree completion bash)`. To install it, write it to the folder of the shell, as below, and start a new shell. For
    /// zsh, that folder must be in `fpath`; for PowerShell, add the script to `$PROFILE`.
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// The folder to write to; it is created if it is missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Group)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    pub(crate) input: FileArgs,
    /// The ReplicaSet to decide for: NAME, deployment/NAME, rs/NAME, pod/NAME or NAMESPACE/NAME; by default, every ReplicaSet of the input
    #[arg(long, value_name = "NAME")]
    pub(crate) replica_set: Option<NameArg>,
    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
    /// The number of replicas to assume; by default, that of the ReplicaSet. Needs --replica-set if the input has more than one
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) replicas: Option<i32>,
    /// The deletion costs that pods would answer: a file with lines of POD COST
    #[arg(long, value_name = "FILE", value_parser = costs)]
    pub(crate) costs: Option<Costs>,
    /// The time of the decision, in RFC 3339; by default, the current time
    #[arg(long, value_name = "TIME", value_parser = age::rfc3339)]
    pub(crate) now: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
}

/// Reads the costs of pods.
fn costs(file: &str) -> Result<Costs, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let cost = |line: &str| {
        let (pod, cost) = line.split_once(char::is_whitespace)?;
        Some((pod.into(), cost.trim().parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let costs = lines.map(|line| cost(line).ok_or_else(|| format!("{line:?} is not POD COST")));
    costs.collect()
}

#[derive(Debug, Group)]
pub(crate) struct ReplayArgs {
    /// Recordings; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Show the steps of one recording in the browser until interrupted: input, answer, and the counts of each ReplicaSet
    #[arg(long)]
    pub(crate) console: bool,
    /// With --console, only print the address
    #[arg(long, requires = "console")]
    pub(crate) no_browser: bool,
}

/// The name of this program as a plugin of kubectl.
const PLUGIN: &str = "kubectl-decree";

/// Parses a command line. If kubectl started this program as its plugin, help and errors say `kubectl decree`.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Args, clap::Error> {
    let program = program(arguments);
    let mut command = help::complete(Args::command(), "", program).bin_name(program);
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.map_err(config::without_passwords)?;
    if let Some(flag) = without_effect(&command, &matches) {
        let cause = format!(
            "{flag} is for a server, and files or the cluster of a kubeconfig are read\n\n  tip: leave out one of them"
        );
        return Err(command.error(ErrorKind::ArgumentConflict, cause));
    }
    Args::from_arg_matches(&matches)
}

/// A flag for a server, if others say that no server is asked. Variables and defaults may be there for other commands.
fn without_effect(command: &clap::Command, matches: &ArgMatches) -> Option<String> {
    if let Some((name, below)) = matches.subcommand() {
        return without_effect(command.find_subcommand(name)?, below);
    }
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let given = matches.ids().map(clap::Id::as_str);
    let given = given.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    let given: Vec<_> = given.collect();
    let has_sources = has("files") && has("server");
    let is_console = command.get_name() == "console";
    let is_for_server = |id: &str| match id {
        "server" | "cluster" | "token_file" | "insecure" => has_sources,
        "admin" => is_console,
        id => id.starts_with("tls_") && has_sources,
    };
    let reads = ["files", "kubeconfig", "context", "impersonate"];
    let reads = |id: &&str| reads.contains(id) || is_console && *id == "namespace";
    let reads = given.iter().any(reads);
    let flag = given.into_iter().find(|&id| reads && is_for_server(id))?;
    Some(format!("--{}", flag.replace('_', "-")))
}

/// The cause and the remedy of an error of clap.
pub(crate) fn failure(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cause = joined(paragraphs.next().unwrap_or_default());
    let cause = cause.strip_prefix("error: ").unwrap_or(&cause);
    let tip = paragraphs.find_map(|it| it.trim_start().strip_prefix("tip: "));
    // How to pass a word with a dash as a value is of no use for a mistyped flag.
    let tip = tip.filter(|tips| !tips.starts_with("to pass "));
    let tip = tip.and_then(|tips| tips.lines().next()).map(str::to_owned);
    Failure::new(Exit::Usage, cause).hint(tip.unwrap_or_else(|| {
        let (mut command, mut path) = (&Args::command(), program(arguments).to_owned());
        for word in arguments.iter().skip(1) {
            let Some(below) = command.find_subcommand(word) else {
                break;
            };
            command = below;
            path.push_str(&format!(" {}", command.get_name()));
        }
        format!("list its arguments with: {path} --help")
    }))
}

fn program(arguments: &[OsString]) -> &'static str {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|program| program == PLUGIN) {
        "kubectl decree"
    } else {
        "decree"
    }
}

/// The commands of the program, with their help.
pub fn command() -> clap::Command {
    help::complete(Args::command(), "", "decree")
}

/// Writes a manual page for each command, and creates the folder.
pub(crate) fn man(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command(), folder)
}

/// The script asks this program for candidates.
pub(crate) fn completion(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| io::Error::other(format!("{name} is not a known shell")))?;
    shell.write_registration("COMPLETE", "decree", "decree", "decree", out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }
}

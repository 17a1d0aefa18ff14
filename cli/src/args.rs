//! The commands and their flags; the comments are the help.

use std::{io, io::Write, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as Group, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use server_core::Timestamp;
use transport::{ClientArgs, Endpoint};

use self::named::named;
pub(crate) use self::{named::Named, resume::ResumeArgs};
use crate::{age, exit};

/// Shows which pods a ReplicaSet controller would create and delete, and why: from files or from a running server.
#[derive(Debug, Parser)]
#[command(name = "decree", version, after_help = exit::HELP, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a server, an agent and an embedded cluster in this process and show them at work
    ///
    /// Server and agent talk gRPC over the loopback interface, as two processes would. Without files the demo tells a story:
    /// the ReplicaSets of a Deployment are scaled down, with the reason for each pod that goes, and up; they lose pods, lose a
    /// node, and run into a quota. The output is plain text, a line for each decision. The exit code is 0 if every step
    /// reached its goal.
    #[command(after_help = exit::HELP)]
    Demo(DemoArgs),
    /// Decide for ReplicaSets and pods from files, in the format of `kubectl get rs,pods -o json`
    ///
    /// Needs neither a cluster nor a server; all operations are assumed to succeed. The input is JSON or YAML, one document or
    /// several, lists or single objects; objects of other kinds are ignored with a notice. What is not in the input does not
    /// exist for the decision.
    #[command(after_help = DECIDE_HELP)]
    Decide(DecideArgs),
    /// Ask a running server what would happen with another number of replicas, without changing anything
    #[command(after_help = exit::HELP)]
    Simulate(SimulateArgs),
    /// List the ReplicaSets or sessions of a running server
    #[command(after_help = exit::HELP)]
    Get(GetArgs),
    /// Show the state of a ReplicaSet, what it is waiting for, and why
    #[command(after_help = exit::HELP)]
    Explain(ExplainArgs),
    /// Print the decisions of a running server as they are made, until interrupted
    #[command(after_help = exit::HELP)]
    Watch(WatchArgs),
    /// List what another controller did differently, while an agent in mode shadow watches
    ///
    /// A difference is listed once the other controller has settled. DEPARTURE names the documented difference from upstream
    /// that explains it, if there is one. Differences from before the agent's last connection are only in the server's log and
    /// metrics.
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Decide again what a server recorded with --record, and print every decision that differs
    ///
    /// The session of this version receives the recorded frames at the recorded times, and what it sends is compared with what
    /// was sent then. Differences after the first may follow from it, because the agent executed what was sent then.
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Check that Decree can work: server, cluster, permissions, leader, other controllers
    ///
    /// Changes nothing. Permissions are checked for the user of the kubeconfig: to check those of the agent, use its
    /// credentials. FAIL must be fixed; WARN may be intended.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Let an agent go on whose budget holds creates or deletes
    ///
    /// Sets the annotation decree.dev/resume of a ReplicaSet, with the credentials of a kubeconfig; the agent sees it change and
    /// ends the holds that are meant. Holds that begin later are not affected.
    #[command(after_help = resume::HELP)]
    Resume(ResumeArgs),
    /// Make certificates for TLS
    Pki(PkiArgs),
    /// Print the completion script of a shell
    Completion {
        /// The shell.
        shell: Shell,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Group)]
pub(crate) struct DemoArgs {
    /// Start with the objects in this file instead of the story's and bring them to size; `-` is standard input. Repeatable
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Keep everything running afterwards, for grpcurl and the other commands, until SIGINT or SIGTERM
    #[arg(long)]
    pub(crate) stay: bool,
    /// Address for gRPC; port 0 picks a free port. With --stay, the default is 127.0.0.1:50051
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:0",
        default_value_if("stay", "true", "127.0.0.1:50051")
    )]
    pub(crate) listen: SocketAddr,
    /// Address for /livez, /readyz and /metrics; port 0 picks a free port. With --stay, the default is 127.0.0.1:8080
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:0",
        default_value_if("stay", "true", "127.0.0.1:8080")
    )]
    pub(crate) admin: SocketAddr,
    /// How long a step may take to reach its goal
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = runtime::config::duration)]
    pub(crate) deadline: Duration,
    /// Do not pause between lines; without it the text pauses where standard output is a terminal
    #[arg(long)]
    pub(crate) fast: bool,
    /// Log the server and the agent to standard error: a level such as `info`, or filters by target
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<runtime::Filter>,
}

#[derive(Debug, Group)]
pub(crate) struct DecideArgs {
    /// A file of objects; `-` is standard input. Repeatable
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The ReplicaSet to decide for; by default, every ReplicaSet of the input
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = named)]
    pub(crate) replica_set: Option<Named>,
    /// The time of the decision, in RFC 3339; by default, the current time
    #[arg(long, value_name = "TIME", value_parser = age::rfc3339)]
    pub(crate) now: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Group)]
pub(crate) struct SimulateArgs {
    /// The ReplicaSet
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named)]
    pub(crate) replica_set: Named,
    /// The number of replicas to assume; by default, that of the ReplicaSet
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) replicas: Option<i32>,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

#[derive(Debug, Group)]
pub(crate) struct GetArgs {
    /// What to list
    #[arg(value_enum)]
    pub(crate) resource: Resource,
    /// Only those of this namespace
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

#[derive(Debug, Group)]
pub(crate) struct ExplainArgs {
    /// The ReplicaSet
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named)]
    pub(crate) replica_set: Named,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

#[derive(Debug, Group)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Exit after this many decisions
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

#[derive(Debug, Group)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Only those that no documented departure explains
    #[arg(long)]
    pub(crate) unexplained: bool,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
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

#[derive(Debug, Group)]
pub(crate) struct CheckArgs {
    /// A kubeconfig; without it `KUBECONFIG`, `~/.kube/config`, and in a pod what the pod is given
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The mode in which the agent will run: `shadow` and `dry-run` need fewer permissions
    #[arg(long, value_enum, default_value_t = decree_agent::Mode::Enforce)]
    pub(crate) mode: decree_agent::Mode,
    /// The namespace in which the agent will act; by default, all namespaces
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The namespace of the agents' Lease
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub(crate) lease_namespace: String,
    /// The name of the agents' Lease
    #[arg(long, value_name = "NAME", default_value = "decree-agent")]
    pub(crate) lease_name: String,
    /// The admin address of the agent, http://HOST:PORT, or `off`: what its budget holds is a failure
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub(crate) agent: String,
    /// Output format; JSON is an array of objects with check, result, detail and hint
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Group)]
pub(crate) struct PkiArgs {
    #[command(subcommand)]
    pub(crate) command: PkiCommand,
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
    #[arg(long, value_name = "NUMBER", default_value_t = 365, value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub(crate) days: u16,
}

/// Of which objects a command prints something.
#[derive(Debug, Group)]
pub(crate) struct ScopeArgs {
    /// Only those of this ReplicaSet
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named, conflicts_with = "namespace")]
    pub(crate) replica_set: Option<Named>,
    /// Only those of this namespace
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) namespace: String,
}

impl ScopeArgs {
    /// The namespace and the name to ask for; empty where any will do.
    pub(crate) fn names(&self) -> (String, String) {
        match self.replica_set.clone() {
            Some(Named { namespace, name }) => (namespace, name),
            None => (self.namespace.clone(), String::new()),
        }
    }
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
    /// Output format; the shape of JSON is in docs/cli.md
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Group)]
pub(crate) struct ServerArgs {
    /// The server: https://HOST:PORT, unix:PATH, or http://HOST:PORT for plain text, which beyond this machine needs --insecure
    #[arg(
        long,
        env = "DECREE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:50051"
    )]
    pub(crate) server: Endpoint,
    /// A file with the token that proves to the server who asks
    #[arg(long, env = "DECREE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How long to wait for an answer of the server
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = runtime::config::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) tls: ClientArgs,
}

/// How a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resource {
    #[value(name = "replicasets", aliases = ["replicaset", "rs"])]
    ReplicaSets,
    #[value(name = "sessions", alias = "session")]
    Sessions,
}

const DECIDE_HELP: &str = "\
Output:
  table  a line for each operation: what, which pod, by which rule, and why
  json   an object on a line of its own for each ReplicaSet, by namespace and name:
         replicaSet, creates{count,names}, deletes[{name,reason{rule,detail}}],
         adopts, releases, status (as Kubernetes writes it, null if no write is
         needed), requeueAfterSeconds, quarantined.
         `deletes` are in the order of choice, all other lists in that of names.

Rules of `deletes`, the first that tells a victim from the next pod:
  ALL_GO UNASSIGNED PHASE NOT_READY DELETION_COST CROWDED_NODE READY_RECENTLY
  RESTARTS CREATED_RECENTLY UID

Exit codes:
  0  decided, including the decision to quarantine
  1  the ReplicaSet is not in the input, or the output cannot be written
  2  invalid command line or input; the message names file, document and field";

const DIFF_HELP: &str = "\
Exit codes:
  0  no differences
  1  there are some, or the output cannot be written
  2  invalid command line, or no agent in mode shadow is connected
  3  the server cannot be reached, or stopped responding
  4  the server refused";

const REPLAY_HELP: &str = "\
Output:
  table  for each difference the time, the ReplicaSet, what was recorded, and what
         this version decides
  json   an object on a line of its own for each difference, and one for each
         file behind its differences:
         difference{file,time,recorded,decided,after[{time,input,frame}]}
         summary{file,cluster,session,serverVersion,differences,decisions{
         batches,creates,deletes,adopts,releases,statusWrites},framesIn,
         framesOut,ending,tornAt}
         Frames are canonical proto3 JSON of the contract; `after` is empty
         without --explain.

Exit codes:
  0  all decisions agree, up to the tear where a recording is torn
  1  some differ, or the output cannot be written
  2  a file cannot be read, is no recording, or is damaged";

const CHECK_HELP: &str = "\
Exit codes:
  0  no check failed
  1  a check failed, or the output cannot be written
  2  invalid command line";

/// Writes the completion script of a shell.
pub(crate) fn completion(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generator panics where it cannot write; a vector takes all.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "decree", &mut script);
    out.write_all(&script)
}

/// Reads a host for `--host`.
fn host(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-.:*".contains(letter));
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "must be a DNS name or an IP address".to_owned())
}

/// Reads a trust domain, as SPIFFE writes it.
fn trust_domain(text: &str) -> Result<String, String> {
    let fits = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-._".contains(letter)
    };
    let is_domain = !text.is_empty() && text.len() <= 255 && text.chars().all(fits);
    is_domain
        .then(|| text.to_owned())
        .ok_or_else(|| "must be lower-case letters, digits, '.', '-' and '_'".to_owned())
}

mod named;
mod resume;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn demonstration_that_stays_is_found_where_the_other_commands_look() {
        let listen = |arguments: &[&str]| {
            let args = Args::try_parse_from(["decree", "demo"].iter().chain(arguments));
            let Command::Demo(args) = args.expect("valid").command else {
                unreachable!("`demo` was given")
            };
            args.listen.to_string()
        };
        assert_eq!(listen(&[]), "127.0.0.1:0");
        assert_eq!(listen(&["--stay"]), "127.0.0.1:50051");
        assert_eq!(
            listen(&["--stay", "--listen", "127.0.0.1:1"]),
            "127.0.0.1:1"
        );
    }
}

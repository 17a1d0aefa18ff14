//! The flags of `decree conformance`.

use clap::{Args as Group, Subcommand};
use transport::{ClientArgs, Endpoint};

use super::{help::CONFORMANCE_HELP, query::Output};

#[derive(Debug, Group)]
pub(crate) struct ConformanceArgs {
    #[command(subcommand)]
    pub(crate) command: ConformanceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConformanceCommand {
    /// Test a server
    ///
    /// Opens about ninety sessions at the same time, each for a cluster of its own, and sends what an agent may and may not send. It
    /// takes six heartbeat intervals, 30 seconds with the defaults of decree-server. The server must accept agents without a token.
    #[command(after_help = CONFORMANCE_HELP)]
    Server(ConformanceServerArgs),
    /// Test an agent
    ///
    /// Starts the agent, plays a server to it that cuts, pauses, refuses and repeats itself, ends the agent with SIGKILL and
    /// with SIGTERM, and starts it again. Its cluster must have one ReplicaSet, which wants {replicas} pods and has none at first, and must outlive
    /// the agent. What the agent prints is not shown.
    #[command(after_help = CONFORMANCE_HELP)]
    Agent(ConformanceAgentArgs),
}

#[derive(Debug, Group)]
pub(crate) struct ConformanceServerArgs {
    /// The server: https://HOST:PORT, unix:PATH, or http://HOST:PORT for plain text, which beyond this machine needs --insecure
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:50051")]
    pub(crate) target: Endpoint,
    /// A command of the shell that stops the server, such as "kill 1234". It is run last; without it, what a server does that is
    /// stopped is not tested
    #[arg(long, value_name = "COMMAND")]
    pub(crate) stop: Option<String>,
    /// Test only rules that contain this text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) only: String,
    /// Output format; JSON is an array of objects with rule, link, kept, fault and skipped
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) tls: ClientArgs,
}

#[derive(Debug, Group)]
pub(crate) struct ConformanceAgentArgs {
    /// The program that is the agent
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) target: String,
    /// Its arguments, in which {address} stands for HOST:PORT of the server, and {replicas} for the number of pods
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    /// Show only rules that contain this text. The whole test is run, because its steps build on each other
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) only: String,
    /// Output format; JSON is an array of objects with rule, link, kept, fault and skipped
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

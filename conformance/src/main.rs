//! `decree-conformance`: the score of a server or an agent, on standard output; the exit code is 0 if it is full and 1 if it is not.
#![expect(clippy::print_stdout, reason = "the score is what this prints")]

use std::{error::Error, process::ExitCode};

use clap::{Parser, Subcommand};
use conformance::Subject;
use tonic::transport::{Endpoint, Uri};

/// Tests servers and agents against the rules of docs/protocol.md.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Test a server
    ///
    /// Opens about forty sessions, each for a cluster of its own, at the same time. It takes four heartbeat intervals, 20 seconds with the defaults of
    /// `decree-server`. The server must accept agents without credentials.
    Server {
        /// The server, such as http://127.0.0.1:50051
        #[arg(long, value_name = "URL")]
        target: Uri,
    },
    /// Test an agent
    ///
    /// Starts the agent, plays a server to it, kills it with SIGKILL, and starts it again. Its cluster must have one ReplicaSet,
    /// which wants {replicas} pods and has none at first. What the agent prints is not shown.
    Agent {
        /// The command that starts the agent; {address} stands for where the server is, {replicas} for the number of pods
        #[arg(last = true, required = true, value_name = "COMMAND")]
        target: Vec<String>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let score = match Args::parse().command {
        Command::Server { target } => {
            conformance::run(Endpoint::from(target).connect().await?).await
        }
        Command::Agent { target } => conformance::run_agent(&Subject { command: target }).await?,
    };
    println!("{score}");
    let code = if score.is_full() { 0 } else { 1 };
    Ok(ExitCode::from(code))
}

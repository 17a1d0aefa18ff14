//! `decree-conformance`: the score of a server, on standard output; the exit code is 0 if it is full and 1 if it is not.
#![expect(clippy::print_stdout, reason = "the score is what this prints")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tonic::transport::{Endpoint, Error};

/// Tests servers against the rules of docs/protocol.md.
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
        target: Endpoint,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Error> {
    let Args {
        command: Command::Server { target },
    } = Args::parse();
    let score = conformance::run(target.connect().await?).await;
    println!("{score}");
    let code = if score.is_full() { 0 } else { 1 };
    Ok(ExitCode::from(code))
}

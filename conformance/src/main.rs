//! The program `decree-conformance`: the score of any agent, rule by rule.

use std::{
    io::{self, Write as _, stderr, stdout},
    process::ExitCode,
};

use clap::Parser;
use conformance::Program;

const HELP: &str = "\
Exit codes:
  0  each rule is kept
  1  a rule is broken, no port is free, or the output cannot be written
  2  invalid command line";

/// Tests any agent against the rules of Decree's protocol, from outside.
///
/// Starts the agent, and acts as a server that disconnects, pauses, refuses and repeats frames. Ends the agent with SIGKILL and with
/// SIGTERM, and starts it again. Its cluster must have one ReplicaSet with {replicas} desired pods and none at first, and must outlive
/// the agent. The output of the agent is not shown.
#[derive(Debug, Parser)]
#[command(name = "decree-conformance", version = service::build_info::text(), arg_required_else_help = true, after_help = HELP)]
struct Arguments {
    /// Test a controller that calls Decide on a timer, by the rules for decisions without a session
    #[arg(long)]
    unary: bool,
    /// The program of the agent
    #[arg(long, value_name = "PROGRAM")]
    target: String,
    /// Its arguments, in which {address} stands for HOST:PORT of the server, and {replicas} for the number of pods
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // There is no better place to report that standard error is closed.
    let tell = |text: &str| drop(writeln!(stderr(), "{text}"));
    let mut command = vec![arguments.target];
    command.extend(arguments.arguments);
    let subject = Program { command };
    let score = if arguments.unary {
        conformance::run_unary(&subject).await
    } else {
        conformance::run_agent(&subject).await
    };
    let score = match score {
        Ok(score) => score,
        Err(error) => {
            tell(&format!("error: cannot listen for the agent: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match writeln!(stdout(), "{score}") {
        // A reader may close the pipe on purpose; the score stays what it is.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            tell(&format!("error: output cannot be written: {error}"));
            ExitCode::FAILURE
        }
        Ok(()) | Err(_) if score.is_full() => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}

//! The program `decree-conformance`: the score of any server or agent, rule by rule.

use std::{
    io::{self, Write as _, stderr, stdout},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use conformance::{Program, Row, Rule, Score, Target, Verdict};
use serde_json::json;
use service::transport::{ClientArgs, Connector, Endpoint};
use service::{config, escaped, escaped_json, failure::chain};

const HELP: &str = "\
Exit codes:
  0  each rule is kept
  1  a rule is broken, or the output cannot be written
  2  invalid command line
  3  the server cannot be reached";

/// Tests any server or agent against the rules of Decree's protocol, from outside.
#[derive(Debug, Parser)]
#[command(name = "decree-conformance", version = service::build_info::text(), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Test a server
    ///
    /// Opens about ninety sessions at the same time, each for a separate cluster, and sends valid and invalid frames. It takes nine
    /// heartbeat intervals, 45 seconds with the defaults of decree-server. The server must accept agents without a token.
    #[command(after_help = HELP)]
    Server(ServerArgs),
    /// Test an agent
    ///
    /// Starts the agent, and acts as a server that disconnects, pauses, refuses and repeats frames. Ends the agent with SIGKILL and with
    /// SIGTERM, and starts it again. Its cluster must have one ReplicaSet with {replicas} desired pods and none at first, and must outlive
    /// the agent. The output of the agent is not shown.
    #[command(after_help = HELP)]
    Agent(AgentArgs),
}

#[derive(Debug, Args)]
struct ServerArgs {
    /// The server: https://HOST:PORT, unix:PATH, or http://HOST:PORT for plain text. Plain text to other machines needs --insecure
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:50051")]
    target: Endpoint,
    /// A shell command that stops the server, such as "kill 1234", for the last tests. Without it, the stop of a server is not tested
    #[arg(long, value_name = "COMMAND")]
    stop: Option<String>,
    /// Test only rules that contain this text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    only: String,
    /// Output format; JSON is an array of objects with rule, link, kept, fault and skipped
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    tls: ClientArgs,
}

#[derive(Debug, Args)]
struct AgentArgs {
    /// The program of the agent
    #[arg(long, value_name = "PROGRAM")]
    target: String,
    /// Its arguments, in which {address} stands for HOST:PORT of the server, and {replicas} for the number of pods
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Show only rules that contain this text. The whole test runs, because its steps build on each other
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    only: String,
    /// Output format; JSON is an array of objects with rule, link, kept, fault and skipped
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// Why a run has no score.
struct Failure {
    code: u8,
    cause: String,
    hint: &'static str,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::try_parse();
    let arguments = arguments.unwrap_or_else(|error| config::without_passwords(error).exit());
    // There is no better place to report that standard error is closed.
    let tell = |text: &str| drop(writeln!(stderr(), "{text}"));
    for misspelt in service::environment::misspelt::<Arguments>() {
        tell(&format!("warning: {misspelt}"));
    }
    let tested = match arguments.command {
        Command::Server(args) => (args.output, test_server(args).await),
        Command::Agent(args) => (args.output, test_agent(args).await),
    };
    let (output, score) = match tested {
        (output, Ok(score)) => (output, score),
        (_, Err(Failure { code, cause, hint })) => {
            tell(&format!("error: {}\nhint: {hint}", escaped(&cause)));
            return code.into();
        }
    };
    let written = match output {
        Output::Table => writeln!(stdout(), "{score}"),
        Output::Json => writeln!(stdout(), "{}", escaped_json(&json(&score).to_string())),
    };
    match written {
        Ok(()) if score.is_full() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        // The reader has closed the pipe on purpose.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: output cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn test_server(args: ServerArgs) -> Result<Score, Failure> {
    find(&args.only, &conformance::server_rules())?;
    let connector = Connector::new(
        args.target,
        &args.tls,
        service::transport::Metrics::default(),
    );
    let connector = connector.map_err(|error| Failure {
        code: 2,
        cause: chain(&error),
        hint: "see --help for the flags of TLS",
    })?;
    let url = connector.endpoint().to_string();
    let endpoint = tonic::transport::Endpoint::from(connector.endpoint().uri());
    let endpoint = conformance::narrow(endpoint);
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|error| Failure {
        code: 3,
        cause: format!("{url}: {}", chain(&error)),
        hint: "check that the server is running there and, if it asks for certificates, that it takes that of --tls-cert",
    })?;
    let target = Target {
        channel,
        stop: args.stop,
        only: args.only,
    };
    Ok(conformance::run_server(&target).await)
}

async fn test_agent(args: AgentArgs) -> Result<Score, Failure> {
    find(&args.only, &conformance::agent_rules())?;
    let command = std::iter::once(args.target).chain(args.arguments);
    let program = Program {
        command: command.collect(),
    };
    let score = conformance::run_agent(&program).await;
    let score = score.map_err(|error| Failure {
        code: 1,
        cause: format!("cannot listen for the agent: {error}"),
        hint: "free a port of 127.0.0.1",
    })?;
    Ok(score.only(&args.only))
}

/// Rejects a filter text that no rule contains.
fn find(only: &str, rules: &[Rule]) -> Result<(), Failure> {
    if rules.iter().any(|rule| rule.rule.contains(only)) {
        return Ok(());
    }
    Err(Failure {
        code: 2,
        cause: format!("--only {only:?}: no rule contains this"),
        hint: "docs/internals/conformance.md lists the names of the rules",
    })
}

fn json(score: &Score) -> serde_json::Value {
    let row = |row: &Row| {
        let (fault, skipped) = match &row.verdict {
            Verdict::Kept => (None, None),
            Verdict::Broken(fault) => (Some(fault), None),
            Verdict::Skipped(why) => (None, Some(why)),
        };
        json!({
            "rule": row.rule, "link": row.link(), "kept": row.is_kept(), "fault": fault,
            "skipped": skipped,
        })
    };
    score.rows().iter().map(row).collect()
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

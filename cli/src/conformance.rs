//! `decree conformance`: the score of a server or an agent of any make, rule by rule.

use std::io;

use conformance::{Program, Rule, Score, Target, Verdict};
use runtime::failure::chain;
use serde_json::json;
use tonic::transport::Endpoint;

use crate::{
    args::{
        ConformanceAgentArgs, ConformanceArgs, ConformanceCommand, ConformanceServerArgs, Output,
    },
    exit::{Exit, Failure},
    server,
    streams::Io,
};

pub(crate) fn run(args: ConformanceArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (score, output) = match args.command {
        ConformanceCommand::Server(args) => {
            find(&args.only, &conformance::server_rules())?;
            let output = args.output;
            (server::block_on(test_server(args))?, output)
        }
        ConformanceCommand::Agent(args) => {
            find(&args.only, &conformance::agent_rules())?;
            let output = args.output;
            (server::block_on(test_agent(args))?, output)
        }
    };
    match output {
        Output::Table => writeln!(io.stdout, "{score}")?,
        Output::Json => writeln!(io.stdout, "{}", json(&score))?,
    }
    Ok(if score.is_full() {
        Exit::Done
    } else {
        Exit::No
    })
}

/// Refuses a text that no rule contains.
fn find(only: &str, rules: &[Rule]) -> Result<(), Failure> {
    if rules.iter().any(|rule| rule.rule.contains(only)) {
        return Ok(());
    }
    let failure = Failure::new(
        Exit::Usage,
        format!("--only {only:?}: no rule contains this"),
    );
    Err(failure.hint("docs/conformance.md lists the rules, in these words"))
}

async fn test_server(args: ConformanceServerArgs) -> Result<Score, Failure> {
    let connector = server::connector(&args.target, &args.tls)?;
    let url = connector.endpoint().to_string();
    let endpoint = Endpoint::from(connector.endpoint().uri());
    let endpoint = conformance::narrow(endpoint);
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|error| server::unreachable(&url, &chain(&error)))?;
    let target = Target {
        channel,
        stop: args.stop,
        only: args.only,
    };
    Ok(conformance::run_server(&target).await)
}

async fn test_agent(args: ConformanceAgentArgs) -> Result<Score, Failure> {
    let ConformanceAgentArgs {
        target,
        arguments,
        only,
        ..
    } = args;
    let program = Program {
        command: std::iter::once(target).chain(arguments).collect(),
    };
    let score = conformance::run_agent(&program).await;
    let score = score.map_err(|error| no_port(&error))?;
    Ok(score.only(&only))
}

fn no_port(error: &io::Error) -> Failure {
    Failure::new(Exit::No, format!("cannot listen for the agent: {error}"))
        .hint("free a port of 127.0.0.1")
}

fn json(score: &Score) -> serde_json::Value {
    let row = |row: &conformance::Row| {
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

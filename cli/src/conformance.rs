//! `decree conformance`: the score of a server or an agent of any make, rule by rule.

use std::io;

use conformance::{Program, Score};
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
        ConformanceCommand::Server(args) => (server::block_on(test_server(&args))?, args.output),
        ConformanceCommand::Agent(args) => {
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

async fn test_server(args: &ConformanceServerArgs) -> Result<Score, Failure> {
    let connector = server::connector(&args.target, &args.tls)?;
    let url = connector.endpoint().to_string();
    let endpoint = Endpoint::from(connector.endpoint().uri());
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|error| server::unreachable(&url, &chain(&error)))?;
    Ok(conformance::run_server(channel).await)
}

async fn test_agent(args: ConformanceAgentArgs) -> Result<Score, Failure> {
    let ConformanceAgentArgs {
        target, arguments, ..
    } = args;
    let program = Program {
        command: std::iter::once(target).chain(arguments).collect(),
    };
    let score = conformance::run_agent(&program).await;
    score.map_err(|error| no_port(&error))
}

fn no_port(error: &io::Error) -> Failure {
    Failure::new(Exit::No, format!("cannot listen for the agent: {error}"))
        .hint("free a port of 127.0.0.1")
}

fn json(score: &Score) -> serde_json::Value {
    let row = |row: &conformance::Row| {
        json!({
            "rule": row.rule, "link": row.link(), "kept": row.fault.is_none(), "fault": row.fault,
        })
    };
    score.rows().iter().map(row).collect()
}

//! `decree simulate`: what a running server would do with another number of replicas.

use decree::v1;

use crate::{
    args::{Named, Output, SimulateArgs},
    decision,
    exit::{Exit, Failure},
    server::{self, Server},
    streams::Io,
};

pub(crate) fn run(args: &SimulateArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let decision = server::block_on(ask(args))?;
    match args.inspection.output {
        Output::Json => decision::write_json(io.stdout, decision)?,
        Output::Table => decision::write_table(io.stdout, decision)?,
    }
    Ok(Exit::Done)
}

async fn ask(args: &SimulateArgs) -> Result<Option<v1::Decision>, Failure> {
    let Named { namespace, name } = args.replica_set.clone();
    let server = Server::connect(&args.inspection.server).await?;
    let request = v1::SimulateRequest {
        cluster: args.inspection.cluster.clone(),
        namespace,
        name,
        replicas: args.replicas,
    };
    let answer = server.decisions().simulate(request).await;
    Ok(answer
        .map_err(|status| server.failure(&status))?
        .into_inner()
        .decision)
}

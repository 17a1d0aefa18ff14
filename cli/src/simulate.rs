//! `decree simulate`: what a running server would do with another number of replicas.

use decree::v1;

use crate::{
    args::{Named, SimulateArgs},
    decision,
    exit::{Exit, Failure},
    not_found,
    server::{self, Server},
    streams::Io,
};

pub(crate) fn run(args: &SimulateArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let names = args.namespace.resolve(&args.names)?;
    let decisions = server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        let mut decisions = Vec::new();
        for named in names {
            let cluster = &args.inspection.cluster;
            decisions.extend(ask(&server, cluster, named, args.replicas).await?);
        }
        Ok(decisions)
    })?;
    decision::write(&args.print, io, decisions)?;
    Ok(Exit::Done)
}

/// Asks what would be decided for a ReplicaSet.
pub(crate) async fn ask(
    server: &Server,
    cluster: &str,
    named: Named,
    replicas: Option<i32>,
) -> Result<Option<v1::Decision>, Failure> {
    let request = v1::SimulateRequest {
        cluster: cluster.to_owned(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        replicas,
    };
    let answer = server.decisions().simulate(request).await;
    match answer {
        Ok(answer) => Ok(answer.into_inner().decision),
        Err(status) => Err(not_found::or_refusal(server, cluster, &named, &status).await),
    }
}

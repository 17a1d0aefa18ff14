//! `decree simulate`: what a running server would do with a different number of replicas, or after a change of the cluster.

use decree::v1::{self, simulate_cluster_request::Change};

use crate::{
    args::{Named, SimulateArgs},
    decision,
    exit::{Exit, Failure},
    not_found,
    server::{self, Server},
    stale,
    streams::Io,
};

mod cluster;

pub(crate) fn run(args: &SimulateArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if let Some(change) = change(args) {
        return cluster::run(args, &change, io);
    }
    let names = args.namespace.resolve(&args.names)?;
    let decisions = server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        let mut decisions = Vec::new();
        for named in names {
            let cluster = &args.inspection.cluster;
            let answer = ask(&server, cluster, named, args.replicas).await?;
            stale::notice(&answer.stale_view, io)?;
            decisions.extend(answer.decision);
        }
        Ok::<_, Failure>(decisions)
    })?;
    decision::write(&args.print, io, decisions)?;
    Ok(Exit::Done)
}

/// The change of the cluster in the flags, if there is one.
fn change(args: &SimulateArgs) -> Option<Change> {
    let drain = args.drain.clone().map(|node| v1::NodeDrain { node });
    let quota = args.quota.map(|pods| v1::PodQuota {
        namespace: args.namespace.or_default(),
        pods,
    });
    drain
        .map(Change::NodeDrain)
        .or_else(|| quota.map(Change::PodQuota))
}

/// Requests the decision on a ReplicaSet.
pub(crate) async fn ask(
    server: &Server,
    cluster: &str,
    named: Named,
    replicas: Option<i32>,
) -> Result<v1::SimulateResponse, Failure> {
    let request = v1::SimulateRequest {
        cluster: cluster.to_owned(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        replicas,
    };
    let answer = server.decisions().simulate(request).await;
    not_found::answer(server, cluster, &named, answer).await
}

//! `decree simulate`: what a running server would do with a different number of replicas, or after a change of the cluster.

use decree::v1::{self, simulate_cluster_request::Change};
use tonic::{Response, Status};

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
    if names.is_empty() {
        let failure = Failure::new(Exit::Usage, "nothing is assumed");
        return Err(failure.hint("name ReplicaSets, or use --drain NODE or --quota PODS"));
    }
    let cluster = &args.inspection.cluster;
    let (decisions, missing) = server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        let (mut decisions, mut missing) = (Vec::new(), Vec::new());
        for named in names {
            let answer = request(&server, cluster, &named, args.replicas).await;
            match not_found::found(&server, answer)? {
                Some(answer) => {
                    stale::notice(&answer.stale_view, io)?;
                    decisions.extend(answer.decision);
                }
                None => missing.push(named),
            }
        }
        let missing = match missing.as_slice() {
            [] => None,
            missing => Some(not_found::on_server(&server, cluster, missing).await),
        };
        Ok((decisions, missing))
    })?;
    if !decisions.is_empty() {
        decision::write(&args.print, io, decisions)?;
    }
    missing.map_or(Ok(Exit::Done), Err)
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
    let answer = request(server, cluster, &named, replicas).await;
    not_found::answer(server, cluster, &named, answer).await
}

async fn request(
    server: &Server,
    cluster: &str,
    named: &Named,
    replicas: Option<i32>,
) -> Result<Response<v1::SimulateResponse>, Status> {
    let request = v1::SimulateRequest {
        cluster: cluster.to_owned(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        replicas,
    };
    server.decisions().simulate(request).await
}

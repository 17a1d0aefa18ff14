//! A server as a process, and its state.

use std::process::Command;

use decree_api::v1::{
    ListReplicaSetsRequest, ReplicaSetState, inspection_service_client::InspectionServiceClient,
};
use tests::{
    binaries,
    running::{Running, Voice, until_found},
};
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

/// Starts a server with only a gRPC listen address.
pub(crate) fn server(listen: &str) -> Running {
    let mut command = Command::new(binaries::folder().join("decree-server"));
    command.args(["--listen", listen, "--admin", "off"]);
    Running::start(command, Voice::Stderr)
}

/// Waits until the server has one ReplicaSet with this many desired and current pods, and no operation in flight.
pub(crate) fn wait_until_converged(server: &str, replicas: u32) {
    let runtime = runtime();
    until_found("what is wanted", || {
        let known = runtime.block_on(counts(server)).unwrap_or_default();
        let is_rest = known == [(i64::from(replicas), i64::from(replicas))];
        is_rest.then_some(()).ok_or(known)
    });
}

fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime")
}

async fn client(server: &str) -> Option<InspectionServiceClient<Channel>> {
    let endpoint = Endpoint::from_shared(format!("http://{server}"));
    let channel = endpoint.expect("it is an address").connect().await.ok()?;
    Some(InspectionServiceClient::new(channel))
}

/// Returns the desired and available pods of each ReplicaSet, with -1 for the available pods of a ReplicaSet that is not in sync.
async fn counts(server: &str) -> Option<Vec<(i64, i64)>> {
    let request = ListReplicaSetsRequest::default();
    let answer = client(server)
        .await?
        .list_replica_sets(request)
        .await
        .ok()?;
    let known = answer.into_inner().replica_sets.into_iter().map(|one| {
        let is_in_sync = one.state() == ReplicaSetState::InSync;
        let available = if is_in_sync { one.available } else { -1 };
        (i64::from(one.replicas), i64::from(available))
    });
    Some(known.collect())
}

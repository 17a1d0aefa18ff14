//! The first request of all explanations.

use decree::v1;

use crate::{
    args::{ExplainArgs, Named},
    exit::Failure,
    not_found,
    server::Server,
};

/// Asks for the state of a ReplicaSet and its last decisions.
pub(super) async fn ask(
    server: &Server,
    args: &ExplainArgs,
    named: &Named,
) -> Result<v1::GetReplicaSetResponse, Failure> {
    let request = v1::GetReplicaSetRequest {
        cluster: args.inspection.cluster.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
    };
    let answer = server.inspection().get_replica_set(request).await;
    match answer {
        Ok(answer) => Ok(answer.into_inner()),
        Err(status) => {
            let cluster = &args.inspection.cluster;
            Err(not_found::or_refusal(server, cluster, named, &status).await)
        }
    }
}

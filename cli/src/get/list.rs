//! The ReplicaSets of all pages.

use decree::v1;

use crate::{
    args::{GetArgs, Scope},
    exit::Failure,
    server::Server,
};

/// How many ReplicaSets are asked for at a time.
const PAGE_SIZE: i32 = 1_000;

/// Asks for all pages, joined as one answer, and keeps what is wanted of it.
pub(super) async fn list(
    server: &Server,
    args: &GetArgs,
    scope: &Scope,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut all = pages(server, &args.inspection.cluster, scope).await?;
    let has_labels = |set: &v1::ReplicaSetSummary| {
        let filter = args.selector.as_ref();
        filter
            .is_none_or(|filter| filter.matches(&set.template_labels.clone().into_iter().collect()))
    };
    all.replica_sets.retain(has_labels);
    Ok(all)
}

/// Asks for all pages, joined as one answer, of the ReplicaSets of a scope.
pub(crate) async fn pages(
    server: &Server,
    cluster: &str,
    scope: &Scope,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut client = server.inspection();
    let mut all = v1::ListReplicaSetsResponse::default();
    loop {
        let request = v1::ListReplicaSetsRequest {
            cluster: cluster.to_owned(),
            namespace: scope.namespace.clone(),
            page_size: PAGE_SIZE,
            page_token: all.next_page_token,
        };
        let answer = client.list_replica_sets(request).await;
        let page = answer
            .map_err(|status| server.failure(&status))?
            .into_inner();
        all.replica_sets.extend(page.replica_sets);
        all.next_page_token = page.next_page_token;
        if all.next_page_token.is_empty() {
            break;
        }
    }
    all.replica_sets
        .retain(|set| scope.has(set.replica_set.as_ref()));
    Ok(all)
}

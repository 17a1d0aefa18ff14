//! The ReplicaSets of all pages.

use decree::v1;

use crate::{
    args::{GetArgs, Scope},
    exit::Failure,
    server::Server,
};

/// Requests all pages, joined as one answer, and filters them by the flags.
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

/// Requests all pages of the ReplicaSets of a scope, joined as one answer.
pub(crate) async fn pages(
    server: &Server,
    cluster: &str,
    scope: &Scope,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut all = crate::pages::replica_sets(server, cluster, &scope.namespace).await?;
    all.replica_sets
        .retain(|set| scope.has(set.replica_set.as_ref()));
    Ok(all)
}

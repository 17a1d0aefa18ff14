//! The sessions that answer a query: those of the clusters that the caller may see.

use std::collections::BTreeSet;

use decree_api::v1;
use server_session::wire::{Fault, Violation};

use crate::{access::Caller, error::Refusal, registry::LiveSession, shared::Shared};

/// The sessions, one for each shard, of the cluster for a query about one ReplicaSet.
pub(crate) fn find(
    shared: &Shared,
    caller: &Caller,
    subject: &v1::GetReplicaSetRequest,
) -> Result<Vec<LiveSession>, Refusal> {
    let absent = [("namespace", &subject.namespace), ("name", &subject.name)]
        .into_iter()
        .filter(|(_, text)| text.is_empty())
        .map(|(field, _)| Violation::new(field, Fault::Required, "is absent"));
    let absent: Vec<_> = absent.collect();
    if !absent.is_empty() {
        return Err(Refusal::invalid(absent));
    }
    let sessions = find_cluster(shared, caller, &subject.cluster)?;
    Ok(of_shard(sessions, &subject.shard))
}

/// The sessions of a shard, or all for the empty text.
pub(crate) fn of_shard(mut sessions: Vec<LiveSession>, shard: &str) -> Vec<LiveSession> {
    sessions.retain(|session| shard.is_empty() || session.identity.shard == shard);
    sessions
}

/// The sessions, one for each shard, of the cluster for a query.
pub(crate) fn find_cluster(
    shared: &Shared,
    caller: &Caller,
    cluster: &str,
) -> Result<Vec<LiveSession>, Refusal> {
    let sessions = visible_of(shared, caller, cluster)?;
    if sessions.is_empty() {
        return Err(Refusal::ClusterUnknown(cluster.to_owned()));
    }
    if uids(&sessions).len() > 1 {
        return Err(Refusal::ClusterRequired);
    }
    Ok(sessions)
}

/// The visible sessions of a cluster, by uid or name, or of all clusters for the empty text.
///
/// # Errors
/// If the text is the uid or name of two clusters. Choosing one of them would be a guess.
pub(crate) fn visible_of(
    shared: &Shared,
    caller: &Caller,
    cluster: &str,
) -> Result<Vec<LiveSession>, Refusal> {
    let sessions = visible(shared, caller, cluster);
    let uids = uids(&sessions);
    if !cluster.is_empty() && uids.len() > 1 {
        let word = cluster.to_owned();
        let uids = uids.into_iter().map(str::to_owned).collect();
        return Err(Refusal::ClusterAmbiguous { word, uids });
    }
    Ok(sessions)
}

/// The sessions of a cluster, or of all clusters, that the caller may see. Other sessions do not exist for the caller.
pub(crate) fn visible(shared: &Shared, caller: &Caller, cluster: &str) -> Vec<LiveSession> {
    let mut sessions = shared.registry.of(cluster);
    sessions.retain(|session| caller.may_view(&session.identity));
    sessions
}

fn uids(sessions: &[LiveSession]) -> BTreeSet<&str> {
    let identities = sessions.iter().map(|session| &session.identity);
    identities.map(|it| it.cluster_uid.as_str()).collect()
}

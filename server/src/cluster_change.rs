//! `SimulateCluster`: which ReplicaSets a change of the cluster affects. The sessions look at one ReplicaSet after the other, between their
//! own steps.

use decree_api::v1::{self, simulate_cluster_request::Change};
use decree_core::{Impact, ImpactWalk, Need, NeedWalk, Timestamp};
use server_session::{
    Session,
    wire::{Fault, decode, encode},
};

use crate::{
    access::Caller,
    error::Refusal,
    page::{self, Page},
    questions::{ask_all, stale_views},
    registry::LiveSession,
    shared::Shared,
    visible::{find_cluster, of_shard},
};

/// One page of the ReplicaSets that a change would affect.
pub(crate) async fn simulate(
    shared: &Shared,
    caller: &Caller,
    request: v1::SimulateClusterRequest,
) -> Result<v1::SimulateClusterResponse, Refusal> {
    let change = checked(request.change)?;
    let limit = page::size(request.page_size)?;
    let start = Page::parse(&request.page_token)?;
    let shards = find_cluster(shared, caller, &request.cluster)?;
    let shards = of_shard(shards, &request.shard);
    let first = shards.first().map(|one| &one.identity);
    let Some((namespace, name)) = first.and_then(|identity| start.after_in(identity)) else {
        return Ok(v1::SimulateClusterResponse::default());
    };
    let after = (&*namespace, &*name);
    let (found, quota) = match change {
        Change::NodeDrain(v1::NodeDrain { node }) => {
            let step = affected(ImpactWalk::drain(&node, after), limit);
            (ask_all(&shards, caller, step).await, None)
        }
        Change::PodQuota(v1::PodQuota { namespace, pods }) => {
            let mut walk = NeedWalk::new(&namespace);
            let needs = ask_all(&shards, caller, move |session, _| {
                walk.step(session.controller())
            });
            let (mut need, needs) = (Need::default(), needs.await);
            needs.given.into_iter().for_each(|(_, it)| need.add(it));
            let walk = ImpactWalk::quota(&namespace, need.under(pods), after);
            let mut found = ask_all(&shards, caller, affected(walk, limit)).await;
            found.missing.extend(needs.missing);
            (found, Some(encode::quota(need, pods)))
        }
    };
    let stale_views = stale_views(shared, &shards, &found.missing);
    let mut rows = Vec::new();
    for (LiveSession { identity, .. }, impacts) in found.given {
        rows.extend(impacts.into_iter().map(|impact| {
            let effect = encode::impact(identity.cluster_ref(), impact);
            (Page::of(identity, effect.replica_set.as_ref()), effect)
        }));
    }
    let max = shared.config.limits.frame_bytes_max;
    let (replica_sets, next_page_token) = page::cut(rows, limit, max);
    Ok(v1::SimulateClusterResponse {
        replica_sets,
        next_page_token,
        quota,
        stale_views,
    })
}

/// The first impacts of a walk: one more than `limit`, which tells whether there is another page.
fn affected(
    mut walk: ImpactWalk,
    limit: usize,
) -> impl FnMut(&Session, Timestamp) -> Option<Vec<Impact>> + Clone + Send + 'static {
    let mut found = Vec::new();
    move |session, _| {
        let next = walk.step(session.controller());
        let is_last = next.is_none();
        found.extend(next.flatten());
        (is_last || found.len() > limit).then(|| std::mem::take(&mut found))
    }
}

fn checked(change: Option<Change>) -> Result<Change, Refusal> {
    let absent = |field| Refusal::field(field, Fault::Required, "is absent");
    let change = change.ok_or_else(|| absent("change"))?;
    let (field, name) = match &change {
        Change::NodeDrain(v1::NodeDrain { node }) => ("node_drain.node", node),
        Change::PodQuota(v1::PodQuota { namespace, .. }) => ("pod_quota.namespace", namespace),
    };
    if name.is_empty() {
        return Err(absent(field));
    }
    let wrong = |violation| Refusal::invalid(vec![violation]);
    decode::text(field, name, decode::NAME_MAX).map_err(wrong)?;
    if let Change::PodQuota(v1::PodQuota {
        pods: pods @ ..0, ..
    }) = &change
    {
        let description = format!("{pods} must be 0 or more");
        return Err(Refusal::field("pod_quota.pods", Fault::Range, description));
    }
    Ok(change)
}

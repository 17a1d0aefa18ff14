//! `SimulateCluster`: which ReplicaSets a change of the cluster affects. The sessions only copy the concerned ReplicaSets; the rest runs
//! outside the threads that serve sessions.

use decree::v1::{self, simulate_cluster_request::Change};
use server_core::{Impact, ReplicaSetsCopy};
use server_session::{
    Registered,
    wire::{Fault, decode, encode},
};
use tokio::time::Instant;

use crate::{
    access::Caller,
    args::Limits,
    error::{Limit, Refusal},
    page::{self, Page},
    service::{COPY_WITHIN, Decisions},
    session::SessionHandle,
    visible::find_cluster,
};

/// The sessions of the requested cluster, one for each shard.
type Shards = [Registered<SessionHandle>];

/// The requested page.
struct Wanted {
    /// The namespace and name after which the page begins.
    after: (String, String),
    limit: usize,
    until: Instant,
}

// === impl Decisions ===

impl Decisions {
    /// One page of the ReplicaSets that a change would affect.
    pub(crate) async fn simulate_change(
        &self,
        caller: &Caller,
        request: v1::SimulateClusterRequest,
        until: Instant,
    ) -> Result<v1::SimulateClusterResponse, Refusal> {
        let v1::SimulateClusterRequest {
            cluster,
            change,
            page_size,
            page_token,
        } = request;
        let change = checked(change)?;
        let limit = page::size(page_size)?;
        let start = Page::parse(&page_token)?;
        let shards = find_cluster(&self.0, caller, &cluster)?;
        let first = shards.first().map(|one| &one.identity);
        let Some(after) = first.and_then(|identity| start.after_in(identity)) else {
            return Ok(v1::SimulateClusterResponse::default());
        };
        let wanted = Wanted {
            after,
            limit,
            until,
        };
        match change {
            Change::NodeDrain(v1::NodeDrain { node }) => {
                self.drain(caller, &shards, &node, &wanted).await
            }
            Change::PodQuota(quota) => self.limit_pods(caller, &shards, &quota, &wanted).await,
        }
    }

    async fn drain(
        &self,
        caller: &Caller,
        shards: &Shards,
        node: &str,
        wanted: &Wanted,
    ) -> Result<v1::SimulateClusterResponse, Refusal> {
        let Limits {
            decide_objects_max: objects_max,
            frame_bytes_max,
            ..
        } = self.0.config.limits;
        // One more than requested tells whether there is another page.
        let bounds = (wanted.limit + 1, objects_max);
        let mut found = Vec::new();
        let mut complete_to: Option<Page> = None;
        for one in shards {
            let permit = self.permit(caller).await;
            let (of_node, after) = (node.to_owned(), wanted.after.clone());
            let copy = one.handle.ask_within(COPY_WITHIN, move |session, now| {
                let after = (&*after.0, &*after.1);
                ReplicaSetsCopy::on_node(session.controller(), now, &of_node, after, bounds)
            });
            let copy = fitting(copy.await?, objects_max)?;
            if let Some(key) = &copy.cut_after {
                let last = Page::at(&one.identity, &key.namespace, &key.name);
                complete_to = complete_to.into_iter().chain([last]).min();
            }
            let node = node.to_owned();
            let impacts = self.in_background(permit, wanted.until, move |go_on| {
                Ok(copy.drain(&node, go_on)?)
            });
            found.extend(effects(one, impacts.await?));
        }
        if let Some(to) = &complete_to {
            found.retain(|(page, _)| page <= to);
        }
        let (replica_sets, next_page_token) = page::cut(found, wanted.limit, frame_bytes_max);
        let rest = complete_to.filter(|_| next_page_token.is_empty());
        Ok(v1::SimulateClusterResponse {
            replica_sets,
            next_page_token: rest.map_or(next_page_token, |to| to.to_string()),
            quota: None,
        })
    }

    async fn limit_pods(
        &self,
        caller: &Caller,
        shards: &Shards,
        quota: &v1::PodQuota,
        wanted: &Wanted,
    ) -> Result<v1::SimulateClusterResponse, Refusal> {
        let Limits {
            decide_objects_max: objects_max,
            frame_bytes_max,
            ..
        } = self.0.config.limits;
        let mut need = Need::default();
        let mut found = Vec::new();
        for one in shards {
            let permit = self.permit(caller).await;
            let namespace = quota.namespace.clone();
            let copied = one.handle.ask_within(COPY_WITHIN, move |session, now| {
                ReplicaSetsCopy::unsettled_in(session.controller(), now, &namespace, objects_max)
            });
            let (copy, pods) = copied.await?;
            let copy = fitting(copy, objects_max)?;
            if copy.cut_after.is_some() {
                return Err(Limit::DecideObjects.refusal(objects_max));
            }
            let impacts =
                self.in_background(permit, wanted.until, move |go_on| Ok(copy.settle(go_on)?));
            let impacts = impacts.await?;
            need.add(pods, &impacts);
            found.extend(effects(one, impacts));
        }
        let room = need.room(quota.pods);
        let refused = need.creates.saturating_sub(room);
        for (_, effect) in &mut found {
            let creates = i64::from(effect.creates);
            effect.refused_min = int32(creates.saturating_sub(room));
            effect.refused_max = int32(creates.min(refused));
        }
        let after = (wanted.after.0.as_str(), wanted.after.1.as_str());
        found.retain(|(page, effect)| effect.refused_max > 0 && page.place() > after);
        let (replica_sets, next_page_token) = page::cut(found, wanted.limit, frame_bytes_max);
        let quota = v1::QuotaEffect {
            pods: need.pods,
            creates: need.creates,
            refused: refused.max(0),
        };
        Ok(v1::SimulateClusterResponse {
            replica_sets,
            next_page_token,
            quota: Some(quota),
        })
    }
}

/// Refuses a copy from which a ReplicaSet was left out because of its size.
fn fitting(copy: ReplicaSetsCopy, objects_max: usize) -> Result<ReplicaSetsCopy, Refusal> {
    if copy.is_too_large {
        return Err(Limit::DecideObjects.refusal(objects_max));
    }
    Ok(copy)
}

/// The needs of the ReplicaSets of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    /// The number of pods that the quota counts.
    pods: i64,
    creates: i64,
    /// The number of surplus pods, which are deleted.
    surplus: i64,
}

// === impl Need ===

impl Need {
    fn add(&mut self, pods: usize, impacts: &[Impact]) {
        self.pods += i64::try_from(pods).unwrap_or(i64::MAX);
        for impact in impacts {
            self.creates += impact.creates;
            self.surplus += impact.surplus;
        }
    }

    /// The number of pods that a quota allows to create after the surplus pods are gone.
    fn room(&self, quota: i32) -> i64 {
        (i64::from(quota) - (self.pods - self.surplus)).max(0)
    }
}

fn int32(number: i64) -> i32 {
    i32::try_from(number.max(0)).unwrap_or(i32::MAX)
}

fn effects(
    of: &Registered<SessionHandle>,
    impacts: Vec<Impact>,
) -> impl Iterator<Item = (Page, v1::ReplicaSetEffect)> {
    let identity = &of.identity;
    impacts.into_iter().map(move |impact| {
        let page = Page::at(identity, &impact.key.namespace, &impact.key.name);
        (page, encode::impact(identity.cluster_ref(), impact))
    })
}

/// Validates the change of a request.
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

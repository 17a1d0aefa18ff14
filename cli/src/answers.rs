//! Answers from a snapshot, as a server would give them: the same core, the same messages. A snapshot has no history.

use std::{collections::BTreeMap, iter};

use decree::v1::{self, simulate_cluster_request::Change};
use server_core::{
    Config, Controller, ImpactWalk, NeedWalk, OwnerReference, SurroundingsIndex, Timestamp, View,
    controller_of,
};
use server_session::{
    summary_without_session,
    wire::encode::{self, ClusterRef},
};

use crate::{
    args::{Named, Scope},
    deployment::{Deployment, Member},
    snapshot::Snapshot,
};

/// The kind and the name of a controller.
type Owner = (String, String);

/// A snapshot that answers questions.
#[derive(Debug)]
pub(crate) struct Answers {
    controller: Controller,
    now: Timestamp,
    /// The name of the cluster; empty for files.
    cluster: String,
    /// The controllers of pods.
    pub(crate) pods: BTreeMap<Named, Option<Owner>>,
    pub(crate) deployments: BTreeMap<Named, Deployment>,
    pub(crate) members: BTreeMap<Named, Member>,
}

impl Answers {
    pub(crate) fn new(snapshot: Snapshot, now: Timestamp, cluster: String) -> Self {
        let Snapshot {
            replica_sets,
            pods,
            deployments,
            members,
            ..
        } = snapshot;
        let owner = |owner: &OwnerReference| (owner.kind.to_string(), owner.name.to_string());
        let of_pods = pods.iter().map(|pod| {
            let named = Named::new(&pod.namespace, &pod.name);
            (named, pod.controller.as_ref().map(owner))
        });
        let of_pods = of_pods.collect();
        Self {
            controller: controller_of(now, Config::default(), replica_sets, pods),
            now,
            cluster,
            pods: of_pods,
            deployments,
            members,
        }
    }

    /// The decisions on ReplicaSets, each alone, for these numbers of replicas or for their own; `None` for missing ones.
    pub(crate) fn decisions(
        &self,
        assumed: &[(Named, Option<i32>)],
    ) -> Vec<Option<v1::SimulateResponse>> {
        let index = SurroundingsIndex::new(&self.controller);
        let decisions = assumed.iter().map(|(named, replicas)| {
            let around = index.of(self.now, &named.namespace, &named.name);
            let decided = around.decide(*replicas, &|| true).ok().flatten();
            decided.map(|decision| v1::SimulateResponse {
                decision: Some(encode::decision(decision)),
                ..v1::SimulateResponse::default()
            })
        });
        decisions.collect()
    }

    pub(crate) fn state(&self, named: &Named) -> Option<v1::GetReplicaSetResponse> {
        let Named { namespace, name } = named;
        let view = self.controller.inspect().view(self.now, namespace, name)?;
        Some(v1::GetReplicaSetResponse {
            summary: Some(self.summary(view)),
            ..v1::GetReplicaSetResponse::default()
        })
    }

    pub(crate) fn list(&self, scope: &Scope) -> v1::ListReplicaSetsResponse {
        let views = self.controller.inspect().views(self.now, None, usize::MAX);
        let mut replica_sets: Vec<_> = views.into_iter().map(|view| self.summary(view)).collect();
        replica_sets.retain(|set| {
            let object = set.replica_set.as_ref();
            let of = object.map_or("", |object| &object.namespace);
            (scope.namespace.is_empty() || scope.namespace == of) && scope.has(object)
        });
        v1::ListReplicaSetsResponse {
            replica_sets,
            ..v1::ListReplicaSetsResponse::default()
        }
    }

    /// The effect of a change of the cluster.
    pub(crate) fn effect(&self, change: &Change) -> v1::SimulateClusterResponse {
        let (mut walk, quota) = match change {
            Change::NodeDrain(v1::NodeDrain { node }) => (ImpactWalk::drain(node, ("", "")), None),
            Change::PodQuota(v1::PodQuota { namespace, pods }) => {
                let mut walk = NeedWalk::new(namespace);
                let need = iter::repeat_with(|| walk.step(&self.controller)).find_map(|it| it);
                let need = need.unwrap_or_default();
                let walk = ImpactWalk::quota(namespace, need.under(*pods), ("", ""));
                (walk, Some(encode::quota(need, *pods)))
            }
        };
        let impacts = iter::from_fn(|| walk.step(&self.controller)).flatten();
        v1::SimulateClusterResponse {
            replica_sets: impacts
                .map(|impact| encode::impact(self.cluster(), impact))
                .collect(),
            quota,
            ..v1::SimulateClusterResponse::default()
        }
    }

    fn summary(&self, view: View) -> v1::ReplicaSetSummary {
        summary_without_session(self.cluster(), self.now, view)
    }

    fn cluster(&self) -> ClusterRef<'_> {
        ClusterRef {
            name: &self.cluster,
            uid: "",
        }
    }
}

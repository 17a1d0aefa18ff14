//! A view of a cluster from objects of files or of its API server, projected and converted exactly as an agent and a server would, and
//! answers from it, as a server would give them: the same core, the same messages. A snapshot has no history.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Display,
    iter,
};

use agent_core::{api::Kind, nodes::NodeFields, watch::Items};
use agent_fake::manifest::{Document, Location};
use agent_kube::objects;
use decree_api::v1::{self, simulate_cluster_request::Change};
use decree_core::{
    Config, Controller, Costs, ImpactWalk, NeedWalk, Node, Objects, OwnerReference, Pod,
    ReplicaSet, ResourceVersion, SurroundingsIndex, Timestamp, View, controller_of,
};
use decree_server::wire::{Violation, decode};
use server_session::{
    summary_without_session,
    wire::encode::{self, ClusterRef},
};

use crate::{
    args::{FileArgs, Named, Scope},
    deployment::{Deployment, Member},
    exit::{Exit, Failure},
    input::{self, KUBECTL},
    near,
    page::Io,
};

/// The kinds that a snapshot is made of.
const KINDS: [&str; 4] = ["ReplicaSet", "Pod", "Deployment", "Node"];
/// The maximum number of namespaces in a notice.
const NAMED_MAX: usize = 3;

/// The ReplicaSets and pods of the input, and the ignored kinds.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) replica_sets: Vec<ReplicaSet>,
    pub(crate) pods: Vec<Pod>,
    /// The nodes of files, for preferences.
    nodes: Vec<Node>,
    /// The Deployments of files, and what their ReplicaSets tell of them.
    deployments: Vec<Deployment>,
    members: BTreeMap<Named, Member>,
    /// The number of ignored objects by kind.
    pub(crate) ignored: BTreeMap<String, usize>,
    /// The costs that pods would answer.
    pub(crate) costs: Costs,
    /// Why objects of a cluster are left out.
    pub(crate) left_out: Vec<String>,
    /// Whether only some namespaces of a cluster are read.
    pub(crate) is_partial: bool,
    seen: Seen,
}

/// The objects of a view by their names.
#[derive(Debug, Default)]
struct Seen {
    /// The position of each among those of its kind, its version, and its place in the input.
    places: BTreeMap<Key, (usize, Option<ResourceVersion>, Location)>,
    /// The number of states that another state of the same object replaces.
    outdated: usize,
}

/// The kind of an object, as messages name it, with its namespace and name.
type Key = (&'static str, Named);

impl Snapshot {
    /// Reads the view from the input. Names the ignored kinds, the number of outdated states, and the namespaces whose pods are missing, on
    /// stderr.
    pub(crate) fn read(input: &FileArgs, io: &mut Io<'_>) -> Result<Self, Failure> {
        let mut snapshot = Self::default();
        input::read(input, &KINDS, io, &mut |object| snapshot.add(&object))?;
        for (kind, count) in &snapshot.ignored {
            io.notice(&format!("{count} of kind {kind} ignored"))?;
        }
        let objects = match snapshot.seen.outdated {
            1 => "1 object has".to_owned(),
            many => format!("{many} objects have"),
        };
        if snapshot.seen.outdated > 0 {
            io.notice(&format!("{objects} two states; the newer counts"))?;
        }
        let without_pods: Vec<_> = snapshot.without_pods().into_iter().collect();
        if !without_pods.is_empty() {
            let namespaces = near::first_of(&without_pods, NAMED_MAX);
            io.notice(&format!(
                "the input has no pods in {namespaces}, but ReplicaSets there have pods by their status; {KUBECTL}"
            ))?;
        }
        Ok(snapshot)
    }

    /// The namespaces without a pod whose ReplicaSets have pods by their status.
    fn without_pods(&self) -> BTreeSet<&str> {
        let sets = self.replica_sets.iter();
        let sets = sets.filter(|set| set.status.replicas > 0);
        let mut namespaces: BTreeSet<_> = sets.map(|set| &*set.key.namespace).collect();
        for pod in &self.pods {
            namespaces.remove(&*pod.namespace);
        }
        namespaces
    }

    /// Adds an object to the view. Of several states of one object, the newest counts.
    pub(crate) fn add(&mut self, document: &Document) -> Result<(), Failure> {
        let Document { place, object } = document;
        let version = object["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(ResourceVersion::parse);
        match document.kind()? {
            "ReplicaSet" => {
                let set = objects::replica_set(object).map_err(|it| invalid(place, it))?;
                let set = set.projected;
                let named = Named::new(&set.namespace, &set.name);
                let key = ("replica set", named.clone());
                let set = decode::replica_set(&set);
                let set = set.map_err(|it| bad_field(place, &key, &it))?;
                let all = &mut self.replica_sets;
                if self.seen.put(all, key, place, set, version)? {
                    self.members.insert(named, Member::of(object));
                }
            }
            "Pod" => {
                let pod = objects::pod(object).map_err(|it| invalid(place, it))?;
                let key = ("pod", Named::new(&pod.namespace, &pod.name));
                let pod = decode::pod(&pod);
                let pod = pod.map_err(|it| bad_field(place, &key, &it))?;
                self.seen.put(&mut self.pods, key, place, pod, version)?;
            }
            "Node" => {
                let node = objects::node(object, &NodeFields::default());
                let node = node.map_err(|it| invalid(place, it))?;
                let key = ("node", Named::of(object));
                let labels = object["metadata"]["labels"].as_object();
                let labels = labels.into_iter().flatten();
                let node = Node {
                    name: node.name.into(),
                    cordoned: node.unschedulable,
                    leaving: node.leaving,
                    labels: labels
                        .filter_map(|(key, value)| {
                            Some((key.as_str().into(), value.as_str()?.into()))
                        })
                        .collect(),
                };
                self.seen.put(&mut self.nodes, key, place, node, version)?;
            }
            "Deployment" => {
                let deployment = Deployment::of(object);
                let key = ("deployment", deployment.named.clone());
                let all = &mut self.deployments;
                self.seen.put(all, key, place, deployment, version)?;
            }
            other => *self.ignored.entry(other.to_owned()).or_insert(0) += 1,
        }
        Ok(())
    }

    /// Adds a page of a list of a cluster. Objects that break the contract are left out.
    pub(crate) fn take(&mut self, items: Items) {
        let left_out = |noun: &str, named: Named, violations: &[Violation]| {
            let why = violations.first();
            let why = why.map_or_else(String::new, Violation::to_string);
            format!("{noun} {}: {why}", named.path())
        };
        match items {
            Items::ReplicaSets(sets) => {
                for set in sets.into_iter().map(|set| set.projected) {
                    let named = Named::new(&set.namespace, &set.name);
                    match decode::replica_set(&set) {
                        Ok(set) => self.replica_sets.push(set),
                        Err(why) => self.left_out.push(left_out("replica set", named, &why)),
                    }
                }
            }
            Items::Pods(pods) => {
                for pod in pods.into_pods() {
                    let named = Named::new(&pod.namespace, &pod.name);
                    match decode::pod(&pod) {
                        Ok(pod) => self.pods.push(pod),
                        Err(why) => self.left_out.push(left_out("pod", named, &why)),
                    }
                }
            }
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::ReplicaSet => self.replica_sets.len(),
            Kind::Pod => self.pods.len(),
        }
    }

    pub(crate) fn truncate(&mut self, kind: Kind, length: usize) {
        match kind {
            Kind::ReplicaSet => self.replica_sets.truncate(length),
            Kind::Pod => self.pods.truncate(length),
        }
    }
}

impl Seen {
    /// Puts an object into those of its kind, unless the same or a newer state of it is there. Returns whether it did.
    fn put<T: PartialEq>(
        &mut self,
        all: &mut Vec<T>,
        key: Key,
        place: &Location,
        object: T,
        version: Option<ResourceVersion>,
    ) -> Result<bool, Failure> {
        let mut entry = match self.places.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((all.len(), version, place.clone()));
                all.push(object);
                return Ok(true);
            }
            Entry::Occupied(entry) => entry,
        };
        let (at, known, _) = entry.get_mut();
        let at = *at;
        if all[at] == object {
            // Two states can be alike in what is read.
            *known = version.max(*known);
            return Ok(false);
        }
        let versions = known.zip(version);
        let Some((one, other)) = versions.filter(|(one, other)| one != other) else {
            let ((noun, name), (_, _, first)) = (entry.key(), entry.get());
            let path = name.path();
            let path = path.trim_start_matches('/');
            let cause = format!(
                "{place}: {noun} {path} is in the input twice, and differs from the one at {first}"
            );
            let hint = "the input must be one state of the cluster, with each object once";
            return Err(Failure::new(Exit::Usage, cause).hint(hint));
        };
        self.outdated += 1;
        let is_newer = one < other;
        if is_newer {
            all[at] = object;
            entry.insert((at, version, place.clone()));
        }
        Ok(is_newer)
    }
}

fn invalid(place: &Location, detail: impl Display) -> Failure {
    Failure::new(Exit::Usage, format!("{place}: {detail}")).hint(KUBECTL)
}

fn bad_field(place: &Location, (noun, name): &Key, violations: &[Violation]) -> Failure {
    let first = violations.first();
    let field = first.map(|violation| kubernetes_path(&violation.field));
    let description = first.map_or("", |violation| &violation.description);
    let (path, field) = (name.path(), field.unwrap_or_default());
    invalid(place, format!("{noun} {path}: {field}: {description}"))
}

/// The path in Kubernetes for a field of a projected object of the contract.
fn kubernetes_path(field: &str) -> String {
    let head_ends = field.find(['.', '[']).unwrap_or(field.len());
    let (head, rest) = field.split_at(head_ends);
    let path = match head {
        "namespace" | "name" | "uid" | "labels" | "generation" => format!("metadata.{head}"),
        "resource_version" => "metadata.resourceVersion".to_owned(),
        "creation_timestamp" => "metadata.creationTimestamp".to_owned(),
        "deletion_timestamp" => "metadata.deletionTimestamp".to_owned(),
        "controller" => "metadata.ownerReferences".to_owned(),
        "ready" | "disruption_target" => "status.conditions".to_owned(),
        "max_regular_restarts" => "status.containerStatuses".to_owned(),
        "max_sidecar_restarts" => "status.initContainerStatuses".to_owned(),
        other => other.to_owned(),
    };
    path + rest
}

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
    /// Whether only some namespaces of a cluster are read.
    pub(crate) is_partial: bool,
}

impl Answers {
    pub(crate) fn new(snapshot: Snapshot, now: Timestamp, cluster: String) -> Self {
        let owner = |owner: &OwnerReference| (owner.kind.to_string(), owner.name.to_string());
        let of_pods = snapshot.pods.iter().map(|pod| {
            let named = Named::new(&pod.namespace, &pod.name);
            (named, pod.controller.as_ref().map(owner))
        });
        let of_pods = of_pods.collect();
        let config = Config {
            costs: snapshot.costs,
            ..Config::default()
        };
        let objects = Objects {
            replica_sets: snapshot.replica_sets,
            pods: snapshot.pods,
            nodes: snapshot.nodes,
            ..Objects::default()
        };
        Self {
            controller: controller_of(now, config, objects),
            now,
            cluster,
            pods: of_pods,
            deployments: snapshot
                .deployments
                .into_iter()
                .map(|it| (it.named.clone(), it))
                .collect(),
            members: snapshot.members,
            is_partial: snapshot.is_partial,
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
            shard: "",
        }
    }
}

//! A view of a cluster from objects of files or of its API server, projected and converted exactly as an agent and a server would.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Display,
};

use agent_core::{api::Kind, watch::Items};
use agent_fake::manifest::{Document, Location};
use agent_kube::objects;
use decree_server::wire::{Violation, decode};
use server_core::{Pod, ReplicaSet, ResourceVersion};

use crate::{
    args::{FileArgs, Named},
    deployment::{Deployment, Member},
    exit::{Exit, Failure},
    input::{self, KUBECTL},
    near,
    page::Io,
    table::one_line,
};

/// The kinds that a snapshot is made of.
const KINDS: [&str; 3] = ["ReplicaSet", "Pod", "Deployment"];
/// The maximum number of namespaces in a notice.
const NAMED_MAX: usize = 3;

/// The ReplicaSets and pods of the input, and the ignored kinds.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) replica_sets: Vec<ReplicaSet>,
    pub(crate) pods: Vec<Pod>,
    /// The Deployments of files, and what their ReplicaSets tell of them.
    pub(crate) deployments: BTreeMap<Named, Deployment>,
    pub(crate) members: BTreeMap<Named, Member>,
    /// The number of ignored objects by kind.
    pub(crate) ignored: BTreeMap<String, usize>,
    /// Why objects of a cluster are left out.
    pub(crate) left_out: Vec<String>,
    seen: Seen,
}

/// The objects of a view by their names.
#[derive(Debug, Default)]
struct Seen {
    /// The position of each among those of its kind, and its place in the input.
    places: BTreeMap<Key, (usize, Location)>,
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
            let kind = one_line(kind);
            writeln!(io.stderr, "notice: {count} of kind {kind} ignored")?;
        }
        match snapshot.seen.outdated {
            0 => {}
            1 => writeln!(
                io.stderr,
                "notice: 1 object has two states; the newer counts"
            )?,
            many => writeln!(
                io.stderr,
                "notice: {many} objects have two states; the newer counts"
            )?,
        }
        let without_pods: Vec<_> = snapshot.without_pods().into_iter().collect();
        if !without_pods.is_empty() {
            let namespaces = one_line(&near::first_of(&without_pods, NAMED_MAX));
            let notice = "but ReplicaSets there have pods by their status";
            writeln!(
                io.stderr,
                "notice: the input has no pods in {namespaces}, {notice}; {KUBECTL}"
            )?;
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
        match document.kind()? {
            "ReplicaSet" => {
                let set = objects::replica_set(object).map_err(|it| invalid(place, it))?;
                let set = set.projected;
                let key = ("replica set", Named::new(&set.namespace, &set.name));
                self.members.insert(key.1.clone(), Member::of(object));
                let set = decode::replica_set(&set);
                let set = set.map_err(|it| bad_field(place, &key, &it))?;
                self.seen
                    .put(&mut self.replica_sets, key, place, set, |it| it.version)?;
            }
            "Pod" => {
                let pod = objects::pod(object).map_err(|it| invalid(place, it))?;
                let key = ("pod", Named::new(&pod.namespace, &pod.name));
                let pod = decode::pod(&pod);
                let pod = pod.map_err(|it| bad_field(place, &key, &it))?;
                self.seen
                    .put(&mut self.pods, key, place, pod, |it| it.version)?;
            }
            "Deployment" => {
                let deployment = Deployment::of(object);
                self.deployments
                    .insert(deployment.named.clone(), deployment);
            }
            other => *self.ignored.entry(other.to_owned()).or_insert(0) += 1,
        }
        Ok(())
    }

    /// Adds a page of a list of a cluster. Objects that break the contract are left out.
    pub(crate) fn take(&mut self, items: Items) {
        let left_out = |noun: &str, namespace: &str, name: &str, violations: &[Violation]| {
            let why = violations
                .first()
                .map_or(String::new(), Violation::to_string);
            format!("{noun} {namespace}/{name}: {why}")
        };
        match items {
            Items::ReplicaSets(sets) => {
                for set in sets.into_iter().map(|set| set.projected) {
                    match decode::replica_set(&set) {
                        Ok(set) => self.replica_sets.push(set),
                        Err(why) => {
                            let why = left_out("replica set", &set.namespace, &set.name, &why);
                            self.left_out.push(why);
                        }
                    }
                }
            }
            Items::Pods(pods) => {
                for pod in pods.into_pods() {
                    match decode::pod(&pod) {
                        Ok(pod) => self.pods.push(pod),
                        Err(why) => {
                            let why = left_out("pod", &pod.namespace, &pod.name, &why);
                            self.left_out.push(why);
                        }
                    }
                }
            }
        }
    }

    /// The number of objects of a kind.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::ReplicaSet => self.replica_sets.len(),
            Kind::Pod => self.pods.len(),
        }
    }

    /// Keeps the first objects of a kind.
    pub(crate) fn truncate(&mut self, kind: Kind, length: usize) {
        match kind {
            Kind::ReplicaSet => self.replica_sets.truncate(length),
            Kind::Pod => self.pods.truncate(length),
        }
    }
}

impl Seen {
    /// Puts an object into those of its kind, unless a newer state of it is there.
    fn put<T: PartialEq>(
        &mut self,
        all: &mut Vec<T>,
        key: Key,
        place: &Location,
        object: T,
        version: fn(&T) -> Option<ResourceVersion>,
    ) -> Result<(), Failure> {
        let entry = match self.places.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((all.len(), place.clone()));
                all.push(object);
                return Ok(());
            }
            Entry::Occupied(entry) => entry,
        };
        let known = &mut all[entry.get().0];
        if *known == object {
            return Ok(());
        }
        let versions = version(known).zip(version(&object));
        let Some((one, other)) = versions.filter(|(one, other)| one != other) else {
            let ((noun, name), (_, first)) = (entry.key(), entry.get());
            let path = name.path();
            let cause = format!(
                "{place}: {noun} {path} is in the input twice, and differs from the one at {first}"
            );
            let hint = "the input must be one state of the cluster, with each object once";
            return Err(Failure::new(Exit::Usage, cause).hint(hint));
        };
        self.outdated += 1;
        if one < other {
            *known = object;
            entry.into_mut().1 = place.clone();
        }
        Ok(())
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
        "created" => "metadata.creationTimestamp".to_owned(),
        "deleted" => "metadata.deletionTimestamp".to_owned(),
        "controller" => "metadata.ownerReferences".to_owned(),
        "ready" | "disruption_target" => "status.conditions".to_owned(),
        "max_regular_restarts" => "status.containerStatuses".to_owned(),
        "max_sidecar_restarts" => "status.initContainerStatuses".to_owned(),
        other => other.to_owned(),
    };
    path + rest
}

//! ReplicaSets of typical pods at rest, of which the first lacks one pod, so one decision follows its list.

use decree_api::v1::{self, reconcile_request::Frame};
use tests::objects;

/// The number of objects in a frame of a list.
const PAGE: usize = 500;
/// The number of nodes of the pods.
const NODES: usize = 1_000;

/// The number of ReplicaSets, and of pods of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) replica_sets: usize,
    pub(crate) pods: usize,
}

impl Shape {
    /// The number of pods: one fewer than desired.
    pub(crate) const fn total(self) -> usize {
        self.replica_sets * self.pods - 1
    }

    /// A ReplicaSet with a status at rest.
    pub(crate) fn replica_set(self, number: usize) -> v1::ReplicaSet {
        let wanted = i32::try_from(self.pods).expect("ReplicaSets are small");
        let there = wanted - i32::from(number == 0);
        let set = objects::replica_set(&name_of(number)).replicas(wanted);
        let mut set = set.ready(there).build();
        set.uid = uid(0, number);
        set
    }

    /// A pod of a ReplicaSet, ready: two labels, a node, an owner.
    pub(crate) fn pod(self, set: usize, at: usize) -> v1::Pod {
        let number = set * self.pods + at;
        let pod = format!(
            "{}-{:05x}",
            name_of(set),
            at.wrapping_mul(0x9e377) & 0xf_ffff
        );
        named_pod(&pod, set, number, 50)
    }

    /// A pod of the list. The first pod of the first ReplicaSet is missing.
    pub(crate) fn listed(self, at: usize) -> v1::Pod {
        self.pod((at + 1) / self.pods, (at + 1) % self.pods)
    }

    /// The frames of both lists, from the first begin to the last end.
    pub(crate) fn frames(self) -> impl Iterator<Item = Frame> {
        let begin = |kind: v1::Kind| Frame::SnapshotBegin(v1::SnapshotBegin { kind: kind.into() });
        let end = |kind: v1::Kind, count: usize| {
            Frame::SnapshotEnd(v1::SnapshotEnd {
                kind: kind.into(),
                resource_version: "100".to_owned(),
                count: i64::try_from(count).expect("it is a size"),
            })
        };
        let sets = pages(self.replica_sets).map(move |page| {
            Frame::SnapshotObjects(v1::SnapshotObjects {
                replica_sets: page.map(|number| self.replica_set(number)).collect(),
                pods: Vec::new(),
            })
        });
        let pods = pages(self.total()).map(move |page| {
            let pods = page.map(|at| self.listed(at));
            Frame::SnapshotObjects(v1::SnapshotObjects {
                pods: pods.collect(),
                replica_sets: Vec::new(),
            })
        });
        [begin(v1::Kind::ReplicaSet), begin(v1::Kind::Pod)]
            .into_iter()
            .chain(sets)
            .chain(pods)
            .chain([
                end(v1::Kind::ReplicaSet, self.replica_sets),
                end(v1::Kind::Pod, self.total()),
            ])
    }
}

/// A pod with a name from a decision.
pub(crate) fn named_pod(name: &str, set: usize, number: usize, version: u64) -> v1::Pod {
    let owner = name_of(set);
    let mut pod = objects::pod(name, &owner).version(version).build();
    pod.uid = uid(1, number);
    pod.node_name = format!("node-{:04}", number % NODES);
    if let Some(controller) = &mut pod.controller {
        controller.uid = uid(0, set);
    }
    pod.labels
        .insert("pod-template-hash".to_owned(), format!("6b7c{set:06x}"));
    pod
}

/// The number of the ReplicaSet of this name.
pub(crate) fn number_of(name: &str) -> usize {
    let number = name.strip_prefix("web-").and_then(|it| it.parse().ok());
    number.expect("it was named here")
}

pub(crate) fn name_of(number: usize) -> String {
    format!("web-{number}")
}

fn uid(kind: usize, number: usize) -> String {
    format!("0b5ae02a-3fd9-4d6e-b7d{kind}-{number:012x}")
}

/// Cuts `count` objects into pages.
fn pages(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..count)
        .step_by(PAGE)
        .map(move |from| from..(from + PAGE).min(count))
}

//! The canonical workloads: Sieve's twelve, for ReplicaSets, and two more. The objects, and the acts of people on them.

use std::time::Duration;

use agent_fake::{ClusterConfig, Kubelet, NodeLoss, Propagation};
use serde_json::{Value, json};

use crate::{
    builders::{ReplicaSetBuilder, pod, replica_set},
    rng::Rng,
};

/// The namespace of all objects.
pub const NAMESPACE: &str = "default";
/// The name of an unrelated pod, which must outlive every world.
pub const BYSTANDER: &str = "bystander";

/// The name of a pod without an owner that has a field in violation of the contract.
pub const MISFIT: &str = "misfit";

/// The time after which a ready pod counts as available, in workloads with such a delay.
const MIN_READY_SECONDS: i32 = 2;

listed! {
    /// One of the canonical workloads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Workload {
        /// All workloads.
        ALL: [
            /// A ReplicaSet is created.
            Create,
            /// It is scaled up.
            Up,
            /// It is scaled down.
            Down,
            /// It is scaled up and down again.
            UpThenDown,
            /// It is deleted, in one of the three ways.
            Delete,
            /// Pods are killed or deleted by hand.
            PodKilled,
            /// Pods fail and stay.
            PodFailed,
            /// A node is lost.
            NodeLost,
            /// Pods are relabelled out of the selector.
            RelabelOut,
            /// Matching orphans exist, or appear.
            AdoptOrphan,
            /// The template changes during a scale-up.
            TemplateChange,
            /// Two ReplicaSets select the same pods.
            OverlappingSelectors,
            /// Pods are replaced by others of the same name during a scale-down (W11).
            PodReplaced,
            /// Pods count as available a while after they are ready, during a kill and scaling.
            MinReadySeconds,
        ]
    }
}

/// An act of a person.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Creates an object.
    Create(Value),
    /// Scales a ReplicaSet.
    Scale {
        /// Its name.
        set: String,
        /// The desired replicas.
        replicas: i32,
    },
    /// Patches a ReplicaSet.
    Patch {
        /// Its name.
        set: String,
        /// The patch.
        patch: Value,
    },
    /// Deletes a ReplicaSet.
    Delete {
        /// Its name.
        set: String,
        /// The fate of its pods.
        propagation: Propagation,
    },
    /// Removes a pod without grace.
    KillPod,
    /// Deletes a pod with its grace period.
    DeletePod,
    /// Makes a pod fail.
    FailPod,
    /// Gives a pod another value of the label `app`.
    Relabel {
        /// The value.
        value: String,
    },
    /// Removes a pod and creates another under its name, without an owner.
    ReplacePod,
    /// Stops a node with pods.
    FailNode,
    /// Cordons and taints a node, or not.
    ChangeNode {
        /// Whether it is cordoned.
        cordoned: bool,
        /// Whether a taint says that it leaves.
        leaving: bool,
    },
    /// Takes all cordons and taints back.
    FreeNodes,
}

impl Act {
    /// Returns the act of creating a ReplicaSet at the beginning.
    pub fn begin(set: ReplicaSetBuilder) -> (Duration, Self) {
        (Duration::ZERO, Self::Create(set.build()))
    }

    /// Returns the act of scaling a ReplicaSet.
    pub fn scale(set: &str, replicas: i32) -> Self {
        let set = set.to_owned();
        Self::Scale { set, replicas }
    }
}

/// The cluster of all workloads, with short delays, so that a world soon rests.
pub fn cluster() -> ClusterConfig {
    let millis = Duration::from_millis;
    ClusterConfig {
        kubelet: Kubelet {
            schedule_after: millis(10),
            start_after: millis(50),
            ready_after: millis(100),
            grace: millis(300),
            jitter: millis(200),
        },
        node_loss: NodeLoss {
            unknown_after: millis(500),
            evict_after: millis(1500),
            remove_after: millis(3000),
        },
        bookmark_every: Duration::from_secs(30),
        ..ClusterConfig::default()
    }
}

impl Workload {
    /// Returns the maximum difference between clocks: if availability depends on time, small enough for the world to reach the
    /// desired state.
    pub const fn clock_skew_max(self) -> Duration {
        if matches!(self, Self::MinReadySeconds) {
            Duration::from_secs(1)
        } else {
            Duration::MAX
        }
    }

    /// Draws the acts with their times: counts, order and pauses vary by seed.
    #[must_use]
    pub fn plan(self, rng: &mut Rng) -> Vec<(Duration, Act)> {
        let (few, many) = (rng.between(1, 3) as i32, rng.between(4, 7) as i32);
        let begin = |replicas| Act::Create(web(replicas).build());
        let acts = match self {
            Self::Create => vec![begin(many)],
            Self::Up => vec![begin(few), scale(many)],
            Self::Down => vec![begin(many), scale(rng.between(0, 3) as i32)],
            Self::UpThenDown => vec![begin(few), scale(many), scale(few)],
            Self::Delete => vec![begin(many), delete(rng)],
            Self::PodKilled => vec![begin(many), Act::KillPod, Act::DeletePod, Act::KillPod],
            Self::PodFailed => vec![begin(many), Act::FailPod, Act::FailPod],
            Self::NodeLost => vec![begin(many), Act::FailNode],
            Self::RelabelOut => vec![begin(many), relabel("elsewhere"), relabel("nowhere")],
            Self::AdoptOrphan => {
                let mut acts = vec![begin(many)];
                let orphan = |number: u64| {
                    Act::Create(
                        pod(&format!("orphan-{number}"))
                            .labelled("app", "web")
                            .build(),
                    )
                };
                acts.extend((0..rng.between(1, 3)).map(orphan));
                let first = rng.between(0, 1) as usize;
                acts.swap(0, first);
                acts
            }
            Self::TemplateChange => {
                vec![begin(few), scale(many), change_template(), scale(many + 1)]
            }
            Self::OverlappingSelectors => {
                let twin = replica_set("twin")
                    .selecting("app", "web")
                    .replicas(few)
                    .build();
                vec![begin(many), Act::Create(twin), Act::KillPod, scale(few)]
            }
            Self::PodReplaced => {
                let mut acts = vec![begin(many), scale(0)];
                acts.extend((0..few).map(|_| Act::ReplacePod));
                acts
            }
            Self::MinReadySeconds => {
                let set = web(many).min_ready_seconds(MIN_READY_SECONDS).build();
                vec![Act::Create(set), Act::KillPod, scale(few), scale(many)]
            }
        };
        spread(rng, acts)
    }
}

fn web(replicas: i32) -> ReplicaSetBuilder {
    replica_set("web").replicas(replicas)
}

fn scale(replicas: i32) -> Act {
    Act::scale("web", replicas)
}

fn relabel(value: &str) -> Act {
    Act::Relabel {
        value: value.to_owned(),
    }
}

fn delete(rng: &mut Rng) -> Act {
    let ways = [
        Propagation::Background,
        Propagation::Foreground,
        Propagation::Orphan,
    ];
    Act::Delete {
        set: "web".to_owned(),
        propagation: *rng.pick(&ways),
    }
}

fn change_template() -> Act {
    let patch = json!({"spec": {"template": {"metadata": {"labels": {"release": "2"}}}}});
    Act::Patch {
        set: "web".to_owned(),
        patch,
    }
}

/// Adds pauses between the acts: none, short ones within the work before, or long ones.
fn spread(rng: &mut Rng, acts: Vec<Act>) -> Vec<(Duration, Act)> {
    let mut at = Duration::ZERO;
    let pauses = [1, 50, 400, 3000].map(Duration::from_millis);
    let timed = acts.into_iter().map(|act| {
        let pause = *rng.pick(&pauses);
        at += rng.delay(pause);
        (at, act)
    });
    timed.collect()
}

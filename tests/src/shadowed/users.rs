//! The acts of people and of other controllers: Deployments roll, ReplicaSets scale, people delete pods, pods fail and are
//! evicted, nodes are lost.

use server_core::{Phase, Pod, Ready, Timestamp};

use super::cluster::{Cluster, Done, NODES, PodName, Step, labels};
use crate::rng::Rng;

/// The ReplicaSets without a Deployment, and the two of each Deployment.
const ALONE: [&str; 3] = ["web", "api", "queue"];
const DEPLOYMENTS: [[&str; 2]; 2] = [["shop-1", "shop-2"], ["cart-1", "cart-2"]];

#[derive(Clone, Debug)]
pub(super) enum Act {
    Scale(&'static str, i32),
    Delete(PodName),
    Fail(PodName),
    /// The container of a pod ends and restarts.
    Restart(PodName),
    Price(PodName, i32),
    /// A pod without an owner, with the labels of a ReplicaSet.
    Orphan(&'static str),
    LabelAway(PodName),
    Evict(PodName),
    LoseNode(&'static str),
}

// === impl Act ===

impl Act {
    /// Draws the next acts, each after a delay in milliseconds.
    pub(super) fn think(cluster: &Cluster, rng: &mut Rng) -> Vec<(u64, Self)> {
        let pods: Vec<&Pod> = cluster.pods().filter(|pod| pod.state.is_active()).collect();
        let pod = match pods.as_slice() {
            [] => None,
            pods => Some(PodName::of(rng.pick::<&Pod>(pods))),
        };
        let act = match rng.between(0, 99) {
            0..=19 => Some(Self::Scale(one_of(rng, &ALONE), number(rng, 0, 9))),
            20..=44 => {
                let [from, _] = in_turn(cluster, rng);
                Some(Self::Scale(from, number(rng, 1, 9)))
            }
            45..=54 => return roll(cluster, rng),
            55..=57 => pod.map(Self::Delete),
            58..=60 => pod.map(Self::Fail),
            61..=76 => pod.map(Self::Restart),
            77..=82 => {
                let cost = number(rng, 0, 20) - 10;
                pod.map(|pod| Self::Price(pod, cost))
            }
            83..=87 => Some(Self::Orphan(one_of(rng, &ALONE))),
            88..=92 => pod.map(Self::LabelAway),
            93..=97 => pod.map(Self::Evict),
            _ => Some(Self::LoseNode(one_of(rng, &NODES))),
        };
        act.into_iter().map(|act| (0, act)).collect()
    }

    pub(super) fn take_place(&self, now: Timestamp, cluster: &mut Cluster, rng: &mut Rng) -> Done {
        match self {
            Self::Scale(set, replicas) => scale(cluster, set, *replicas),
            Self::Delete(pod) => cluster.delete(pod, rng),
            Self::Fail(pod) => cluster.change(pod, |pod| {
                pod.state.phase = Phase::Failed;
                pod.state.ready = Ready::default();
            }),
            Self::Restart(pod) => {
                let mut done = cluster.change(pod, |pod| {
                    pod.state.restarts += 1;
                    pod.state.ready = Ready::default();
                });
                let wait = rng.between(500, 30_000);
                done.steps.push((wait, pod.clone(), Step::BecomeReady));
                done
            }
            Self::Price(pod, cost) => cluster.change(pod, |pod| pod.state.deletion_cost = *cost),
            Self::Orphan(app) => cluster.create(now, (app, None), rng),
            Self::LabelAway(pod) => cluster.change(pod, |pod| pod.labels = labels("away")),
            Self::Evict(pod) => evict(cluster, pod, rng.between(1, 300)),
            Self::LoseNode(node) => lose_node(cluster, node, rng),
        }
    }
}

/// Moves the pods of a Deployment from one of its ReplicaSets to the other, a few at a time.
fn roll(cluster: &Cluster, rng: &mut Rng) -> Vec<(u64, Act)> {
    let [from, to] = in_turn(cluster, rng);
    let total = number(rng, 3, 8);
    let (mut old, mut new, mut wait) = (cluster.replicas(from), cluster.replicas(to), 0);
    let mut acts = Vec::new();
    while old > 0 || new < total {
        let step = number(rng, 1, 2);
        new = total.min(new + step);
        acts.push((wait, Act::Scale(to, new)));
        wait += rng.between(100, 1_500);
        old = 0.max(old - step);
        acts.push((wait, Act::Scale(from, old)));
        wait += rng.between(100, 1_500);
    }
    acts
}

/// The ReplicaSets of a Deployment, the larger one first.
fn in_turn(cluster: &Cluster, rng: &mut Rng) -> [&'static str; 2] {
    let [first, second] = *rng.pick(&DEPLOYMENTS);
    if cluster.replicas(first) >= cluster.replicas(second) {
        [first, second]
    } else {
        [second, first]
    }
}

fn one_of(rng: &mut Rng, names: &[&'static str]) -> &'static str {
    rng.pick::<&'static str>(names)
}

fn number(rng: &mut Rng, low: u64, high: u64) -> i32 {
    i32::try_from(rng.between(low, high)).unwrap_or(i32::MAX)
}

fn scale(cluster: &mut Cluster, set: &str, replicas: i32) -> Done {
    if cluster.replicas(set) == replicas {
        return Done::default();
    }
    cluster.change_set(set, |set| {
        set.replicas = replicas;
        set.generation += 1;
    })
}

/// Marks a pod as disrupted, and deletes it a moment later.
fn evict(cluster: &mut Cluster, pod: &PodName, wait: u64) -> Done {
    let mut done = cluster.change(pod, |pod| pod.state.disruption_target = true);
    done.steps.push((wait, pod.clone(), Step::Delete));
    done
}

/// Makes all pods of a node not ready, and then deletes them.
fn lose_node(cluster: &mut Cluster, node: &str, rng: &mut Rng) -> Done {
    let lost = cluster
        .pods()
        .filter(|pod| pod.node.as_deref() == Some(node));
    let lost: Vec<_> = lost.map(PodName::of).collect();
    let mut done = Done::default();
    for pod in lost {
        done.and(cluster.change(&pod, |pod| pod.state.ready = Ready::default()));
        done.and(evict(cluster, &pod, rng.between(500, 2_500)));
    }
    done
}

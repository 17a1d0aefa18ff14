//! The requests of a malicious server: one batch at a time, for a ReplicaSet that the agent knows, or a similar one.

use decree_api::v1::{self, batch::Action};

use super::knowledge::{Knowledge, controls, has_ended, is_active, selects};
use crate::{
    objects::{pod_ref, set_ref},
    rng::Rng,
};

/// The characters that the API server uses for the suffix of a generated name.
const SUFFIXES: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// More names than an agent accepts.
const NAMES_MAX: u64 = 20_000;

listed! {
    /// One kind of wrong request. Each kind tests a limit of the agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Attack {
        /// All attacks.
        ALL: [
            /// An honest request, so that there are pods, and trust.
            None,
            /// Creates pods above the desired replicas.
            CreateUnwanted,
            /// Creates pods under names of other pods, or invalid names.
            CreateUnderBadName,
            /// Creates thousands of pods.
            CreateThousands,
            /// Deletes pods that are not surplus.
            DeleteWanted,
            /// Creates pods in advance of evictions, and deletes others for them.
            TurnOver,
            /// Deletes pods that the ReplicaSet does not control.
            DeleteOthers,
            /// Deletes pods that have ended.
            DeleteEnded,
            /// Deletes pods that are gone, or deletes them again.
            DeleteGone,
            /// Adopts pods that have a controller, do not match, or are in another namespace.
            AdoptOthers,
            /// Adopts pods, and deletes them as surplus.
            AdoptToDelete,
            /// Releases pods that match.
            ReleaseMatching,
            /// Releases pods that others control.
            ReleaseOthers,
            /// Writes a status far from the truth.
            LieInStatus,
            /// Writes deletion costs of any pods, for any ReplicaSet.
            AdviseOthers,
            /// Requests a valid action for another ReplicaSet, or for one that does not exist.
            MistakeReplicaSet,
            /// Uses the guard of another session or epoch.
            MistakeGuard,
        ]
    }
}

/// The source of random attacks.
pub(super) struct Attacker<'a> {
    pub(super) known: &'a Knowledge,
    pub(super) rng: &'a mut Rng,
}

impl Attacker<'_> {
    /// A batch for one of the ReplicaSets, without number and guard; `None` without a target.
    pub(super) fn batch(&mut self, attack: Attack) -> Option<v1::Batch> {
        let set = self.pick_set()?;
        let action = self.action(attack, &set)?;
        let mut reference = set_ref(&set);
        if attack == Attack::MistakeReplicaSet {
            reference = self.mistaken(reference);
        }
        Some(v1::Batch {
            replica_set: Some(reference),
            generation: set.generation,
            replica_set_version: set.resource_version,
            action: Some(action),
            ..v1::Batch::default()
        })
    }

    fn action(&mut self, attack: Attack, set: &v1::ReplicaSet) -> Option<Action> {
        match attack {
            Attack::None | Attack::MistakeReplicaSet | Attack::MistakeGuard => self.honest(set),
            Attack::CreateUnwanted => {
                let count = self.rng.between(1, 12);
                Some(create(set, self.names(set, count)))
            }
            Attack::CreateUnderBadName => Some(create(set, self.bad_names(set))),
            Attack::CreateThousands => {
                let count = self.rng.between(4_990, NAMES_MAX);
                let names = (0..count).map(|number| format!("{}-{number}", set.name));
                Some(create(set, names.collect()))
            }
            Attack::DeleteWanted => self.delete(|pod| controls(set, pod) && is_active(pod)),
            Attack::TurnOver => self.turn_over(set),
            Attack::DeleteOthers => self.delete(|pod| !controls(set, pod)),
            Attack::DeleteEnded => self.delete(|pod| controls(set, pod) && has_ended(pod)),
            Attack::DeleteGone => {
                let gone = self.some(self.known.gone.clone());
                (!gone.is_empty()).then(|| delete(gone))
            }
            Attack::AdoptOthers => {
                let right = |pod: &v1::Pod| pod.controller.is_none() && selects(set, pod);
                let pods = self.some_pods(|pod| !controls(set, pod) && !right(pod));
                claim(pods, Vec::new())
            }
            Attack::AdoptToDelete => {
                let orphans = |pod: &v1::Pod| pod.controller.is_none() && selects(set, pod);
                let adopts = self.some_pods(orphans);
                if adopts.is_empty() {
                    self.delete(|pod| controls(set, pod) && is_active(pod))
                } else {
                    claim(adopts, Vec::new())
                }
            }
            Attack::ReleaseMatching => {
                let pods = self.some_pods(|pod| controls(set, pod) && selects(set, pod));
                claim(Vec::new(), pods)
            }
            Attack::ReleaseOthers => {
                let pods = self.some_pods(|pod| !controls(set, pod));
                claim(Vec::new(), pods)
            }
            Attack::LieInStatus => Some(write(self.lie(set))),
            Attack::AdviseOthers => {
                let pods = self.some_pods(|_| true).into_iter();
                let advices = pods.map(|pod| v1::Advice {
                    pod: Some(pod),
                    cost: *self.rng.pick(&[0, -1_000, 7, i32::MIN]),
                });
                let advices: Vec<_> = advices.collect();
                (!advices.is_empty()).then_some(Action::Advise(v1::Advise { advices }))
            }
        }
    }

    fn turn_over(&mut self, set: &v1::ReplicaSet) -> Option<Action> {
        let there = self.known.replicas(set);
        let is_hinted = |pod: &&v1::Pod| self.known.hinted.contains(&pod.node_name);
        let wanted = usize::try_from(set.replicas.unwrap_or(1)).unwrap_or(0);
        if there.len() == wanted && set.preferences.is_some() && there.iter().any(is_hinted) {
            return Some(create(set, self.names(set, 1)));
        }
        self.honest(set)
    }

    /// The first request of an honest server.
    fn honest(&mut self, set: &v1::ReplicaSet) -> Option<Action> {
        let orphan = |pod: &&v1::Pod| pod.controller.is_none() && selects(set, pod);
        let stray = |pod: &&v1::Pod| controls(set, pod) && !selects(set, pod);
        let active = || self.known.pods.values().filter(|pod| is_active(pod));
        let adopts: Vec<_> = active().filter(orphan).map(pod_ref).collect();
        let releases: Vec<_> = active().filter(stray).map(pod_ref).collect();
        if !adopts.is_empty() || !releases.is_empty() {
            return claim(adopts, releases);
        }
        let there = self.known.replicas(set);
        let wanted = usize::try_from(set.replicas.unwrap_or(1)).unwrap_or(0);
        if there.len() > wanted {
            let surplus = there[wanted..].iter().map(|pod| pod_ref(pod));
            return Some(delete(surplus.collect()));
        }
        let lacking = (wanted - there.len()) as u64;
        if lacking > 0 {
            return Some(create(set, self.names(set, lacking)));
        }
        Some(write(v1::ReplicaSetStatus {
            replicas: i32::try_from(there.len()).unwrap_or(0),
            observed_generation: set.generation,
            ..v1::ReplicaSetStatus::default()
        }))
    }

    fn names(&mut self, set: &v1::ReplicaSet, count: u64) -> Vec<String> {
        let names = (0..count).map(|_| {
            let suffix = (0..5).map(|_| char::from(*self.rng.pick(SUFFIXES)));
            format!("{}-{}", set.name, suffix.collect::<String>())
        });
        names.collect()
    }

    fn bad_names(&mut self, set: &v1::ReplicaSet) -> Vec<String> {
        let taken = self.known.pods.values().map(|pod| pod.name.clone());
        let taken = taken.chain(self.known.gone.iter().map(|pod| pod.name.clone()));
        let taken: Vec<_> = taken.collect();
        let new = format!("{}-{}", set.name, self.rng.next_u64());
        let bad = [
            String::new(),
            "kube-apiserver".to_owned(),
            format!("../{new}"),
            format!("{new}/status"),
            format!("{new}?dryRun=All"),
            format!("{new}\u{202e}\u{7}"),
            new.to_uppercase(),
            format!("{new}-{}", "x".repeat(300)),
            "x".repeat(100_000),
        ];
        let count = self.rng.between(1, 4);
        let mut names: Vec<_> = (0..count).map(|_| self.rng.pick(&bad).clone()).collect();
        if !taken.is_empty() && self.rng.chance(500) {
            names.push(self.rng.pick(&taken).clone());
        }
        // The same name twice.
        names.extend(names.first().cloned());
        names
    }

    fn lie(&mut self, set: &v1::ReplicaSet) -> v1::ReplicaSetStatus {
        let numbers = [0, 1, 3, 7, 1_000, i32::MAX, -1, i32::MIN];
        let mut number = || *self.rng.pick(&numbers);
        let mut status = v1::ReplicaSetStatus {
            replicas: number(),
            fully_labeled_replicas: number(),
            ready_replicas: number(),
            available_replicas: number(),
            terminating_replicas: Some(number()),
            ..v1::ReplicaSetStatus::default()
        };
        let later = *self.rng.pick(&[0, 0, 1, 1_000_000]);
        status.observed_generation = set.generation + later;
        if self.rng.chance(500) {
            let length = *self.rng.pick(&[10, 1_000, 200_000]);
            status.conditions.push(v1::ReplicaSetCondition {
                r#type: "ReplicaFailure".to_owned(),
                status: "True".to_owned(),
                reason: "\u{1b}[2J\u{202e}".repeat(length / 10),
                message: "\u{1b}[31mall is well\n".repeat(length / 10),
                ..v1::ReplicaSetCondition::default()
            });
        }
        status
    }

    fn mistaken(&mut self, right: v1::ObjectRef) -> v1::ObjectRef {
        let other = self.pick_set().map(|set| set_ref(&set)).unwrap_or_default();
        let mut mistaken = right;
        match self.rng.between(0, 4) {
            0 => mistaken.uid = other.uid,
            1 => mistaken.name = other.name,
            2 => mistaken.namespace = other.namespace,
            3 => "kube-system".clone_into(&mut mistaken.namespace),
            _ => mistaken = other,
        }
        mistaken
    }

    fn delete(&mut self, which: impl Fn(&v1::Pod) -> bool) -> Option<Action> {
        let pods = self.some_pods(which);
        (!pods.is_empty()).then(|| delete(pods))
    }

    fn some_pods(&mut self, which: impl Fn(&v1::Pod) -> bool) -> Vec<v1::ObjectRef> {
        let pods = self.known.pods.values().filter(|pod| which(pod));
        let mut pods = self.some(pods.map(pod_ref).collect());
        if self.rng.chance(100) {
            // A wrong reference: another uid, name or namespace.
            pods = pods.into_iter().map(|pod| self.mistaken(pod)).collect();
        }
        pods
    }

    /// Some of these, with one of them twice now and then.
    fn some(&mut self, from: Vec<v1::ObjectRef>) -> Vec<v1::ObjectRef> {
        if from.is_empty() {
            return from;
        }
        let count = self.rng.between(1, 4);
        (0..count).map(|_| self.rng.pick(&from).clone()).collect()
    }

    fn pick_set(&mut self) -> Option<v1::ReplicaSet> {
        let sets: Vec<_> = self.known.sets.values().cloned().collect();
        (!sets.is_empty()).then(|| self.rng.pick(&sets).clone())
    }
}

fn create(set: &v1::ReplicaSet, names: Vec<String>) -> Action {
    Action::Create(v1::Create {
        names,
        generate_name: format!("{}-", set.name),
        slow_start_initial: 1,
    })
}

fn delete(pods: Vec<v1::ObjectRef>) -> Action {
    let victims = pods.into_iter().map(|pod| v1::Victim {
        pod: Some(pod),
        ..v1::Victim::default()
    });
    Action::Delete(v1::Delete {
        victims: victims.collect(),
    })
}

fn claim(adopts: Vec<v1::ObjectRef>, releases: Vec<v1::ObjectRef>) -> Option<Action> {
    let is_empty = adopts.is_empty() && releases.is_empty();
    (!is_empty).then_some(Action::Claim(v1::Claim { adopts, releases }))
}

const fn write(status: v1::ReplicaSetStatus) -> Action {
    Action::WriteStatus(v1::WriteStatus {
        status: Some(status),
    })
}

//! A cluster whose answers and pods are not as they should be. It counts the creates that take effect.

use std::collections::{BTreeMap, BTreeSet};

use decree_core::{
    Action, Batch, Config, Event, FailureClass, Kind, Labels, Phase, Pod, ReplicaSet, Span,
    Timestamp,
};

use crate::{
    objects::{START, owner, pod, unready, with},
    rig::{BARE, Rig, deleting, done, failed, uid},
};

/// The answer to a create that takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, with the pod.
    Done,
    /// Done, without the pod.
    Bare,
    /// Done, without the pod, which no list ever shows.
    Ghost,
    /// TIMEOUT.
    Timeout,
    /// TIMEOUT, and a repeat is answered with NAME_TAKEN.
    TimeoutThenTaken,
}

/// How a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Never,
    Fails,
    Vanishes,
    /// Somebody else deletes it.
    IsDeleted,
    LosesLabels,
    LosesOwner,
}

/// The fate of each create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    pub(crate) answer: Answer,
    /// How the pod ends, and after how many seconds; it can end before the answer.
    pub(crate) end: End,
    pub(crate) after: i64,
    /// Whether an adoption gives no owner to a pod, as with a webhook that removes it.
    pub(crate) keeps_orphans: bool,
    /// Whether new pods have a node.
    pub(crate) has_node: bool,
}

/// Pods last, and all answers are as they should be.
pub(crate) const GOOD: Fate = Fate {
    answer: Answer::Done,
    end: End::Never,
    after: 0,
    keeps_orphans: false,
    has_node: true,
};

pub(crate) struct Hostile {
    pub(crate) rig: Rig,
    pub(crate) fate: Fate,
    pods: BTreeMap<String, Pod>,
    ends: BTreeSet<(Timestamp, String)>,
    /// The times at which creates took effect, in seconds from the start.
    pub(crate) made: Vec<i64>,
    pub(crate) batches: Vec<Batch>,
    uids: u64,
}

impl Hostile {
    pub(crate) fn of(sets: Vec<ReplicaSet>, fate: Fate) -> Self {
        Self::with(Config::default(), sets, fate)
    }

    pub(crate) fn with(config: Config, sets: Vec<ReplicaSet>, fate: Fate) -> Self {
        Self {
            rig: Rig::with(config).listed(sets, vec![]),
            fate,
            pods: BTreeMap::new(),
            ends: BTreeSet::new(),
            made: Vec::new(),
            batches: Vec::new(),
            uids: 0,
        }
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.rig.now.since(START).0 / 1_000_000_000
    }

    /// Lets time pass until a second from the start.
    pub(crate) fn live(&mut self, until: i64) {
        let until = START.plus(Span::seconds(until));
        loop {
            self.act();
            let due = self.rig.controller.poll_timeout();
            let ends = self.ends.first().map(|(at, _)| *at);
            let next = due.into_iter().chain(ends).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.rig.wait(until.since(self.rig.now));
                return self.act();
            };
            self.rig.wait(next.since(self.rig.now).max(Span(0)));
        }
    }

    /// Acts until nothing is left to do at this time.
    fn act(&mut self) {
        for round in 0.. {
            assert!(round < 20_000, "it runs away: {:?}", self.fate);
            while let Some((at, _)) = self.ends.first()
                && *at <= self.rig.now
            {
                let (_, name) = self.ends.pop_first().expect("it is the first");
                self.end(&name);
            }
            if self.rig.requests().contains(&Kind::Pod) {
                self.list_pods();
            }
            let Some(batch) = self.rig.poll() else {
                return;
            };
            self.execute(&batch);
            self.batches.push(batch);
        }
    }

    fn execute(&mut self, batch: &Batch) {
        for operation in 0..batch.action.operations() as u32 {
            match &batch.action {
                Action::Create { names, .. } => {
                    self.create(batch, operation, &names[operation as usize])
                }
                Action::Delete(victims) => {
                    self.pods.remove(&*victims[operation as usize].pod.name);
                    self.rig.succeed_one(batch, operation as usize);
                }
                Action::Claim { adopts, .. } if self.fate.keeps_orphans => {
                    let orphan = &self.pods[&*adopts[operation as usize].name];
                    let result = done(orphan.clone());
                    self.rig.answer(batch, operation, result);
                }
                Action::WriteStatus(_) | Action::Advise(_) => {
                    self.rig.succeed_one(batch, operation as usize);
                }
                Action::Claim { .. } => {
                    self.rig.succeed_one(batch, operation as usize);
                    let known = self.rig.controller.inspect();
                    for (name, pod) in &mut self.pods {
                        *pod = known.pod("default", name).unwrap_or_else(|| pod.clone());
                    }
                }
            }
        }
    }

    fn create(&mut self, batch: &Batch, operation: u32, name: &str) {
        let Fate { answer, after, .. } = self.fate;
        if self.pods.contains_key(name) {
            let result = failed(FailureClass::NameTaken, "taken");
            return self.rig.answer(batch, operation, result);
        }
        self.made.push(self.seconds());
        self.uids += 1;
        let created = Pod {
            version: Some(self.rig.next_version()),
            uid: uid(&format!("made-{}", self.uids)),
            controller: (!self.fate.keeps_orphans).then(|| {
                let uid = batch.key.uid.clone();
                decree_core::OwnerReference {
                    uid,
                    ..owner("web")
                }
            }),
            node: self.fate.has_node.then(|| "node-a".into()),
            ..unready(pod(name, "web"))
        };
        if answer != Answer::Ghost {
            self.pods.insert(name.to_owned(), created.clone());
        }
        let result = match answer {
            Answer::Done => done(created.clone()),
            Answer::Bare | Answer::Ghost => BARE,
            Answer::Timeout | Answer::TimeoutThenTaken => failed(FailureClass::Timeout, "late"),
        };
        let is_shown = !matches!(answer, Answer::Ghost | Answer::TimeoutThenTaken);
        if is_shown && (answer == Answer::Timeout || operation.is_multiple_of(2)) {
            // The stream may be faster than the answer.
            self.rig.observe(Event::PodApplied(created));
        }
        if self.fate.end != End::Never {
            let at = self.rig.now.plus(Span::seconds(after));
            self.ends.insert((at, name.to_owned()));
        }
        self.rig.answer(batch, operation, result);
    }

    fn end(&mut self, name: &str) {
        let Some(pod) = self.pods.remove(name) else {
            return;
        };
        let changed = match self.fate.end {
            End::Never => return,
            End::Vanishes => return self.rig.delete_pod(&pod),
            End::IsDeleted => deleting(pod),
            End::Fails => with(pod, |state| state.phase = Phase::Failed),
            End::LosesLabels => Pod {
                labels: Labels::default(),
                ..pod
            },
            End::LosesOwner => Pod {
                labels: Labels::default(),
                controller: None,
                ..pod
            },
        };
        self.rig.apply_pod(changed);
    }

    /// The number of creates that the session would leave to the next one as lost, young pods included.
    pub(crate) fn lost(&self) -> u32 {
        self.rig.lost()
    }

    /// The ReplicaSet as the controller knows it.
    fn web(&self) -> ReplicaSet {
        let key = self.rig.view("web").key;
        let known = self.rig.controller.inspect().replica_set(&key);
        known.expect("it is known").object().clone()
    }

    /// Sends a list of the pods.
    pub(crate) fn list_pods(&mut self) {
        self.rig.list_pods(self.pods.values().cloned().collect());
    }

    /// Gives all pods a node.
    pub(crate) fn assign_all(&mut self) {
        for pod in self.pods.values().cloned() {
            let node = Some("node-a".into());
            self.rig.apply_pod(Pod { node, ..pod });
        }
    }

    /// The number of pods that exist.
    pub(crate) fn count(&self) -> usize {
        self.pods.len()
    }

    /// Replaces the ReplicaSet by one with another UID, whose pods are gone.
    pub(crate) fn recreate(&mut self) {
        let next = self.delete_set();
        self.delete_all();
        self.rig.apply_replica_set(next);
    }

    /// Deletes the ReplicaSet, and leaves its pods. Returns another of its name.
    pub(crate) fn delete_set(&mut self) -> ReplicaSet {
        let mut next = self.web();
        let (key, version) = (next.key.clone(), Some(self.rig.next_version()));
        self.rig.observe(Event::ReplicaSetDeleted { key, version });
        next.key.uid = uid(&format!("web-{}", self.seconds()));
        next
    }

    /// Ends all pods, as if somebody deleted them.
    pub(crate) fn delete_all(&mut self) {
        for pod in std::mem::take(&mut self.pods).into_values() {
            self.rig.delete_pod(&pod);
        }
    }

    /// Changes the ReplicaSet.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut ReplicaSet)) {
        let mut changed = self.web();
        changed.generation += 1;
        change(&mut changed);
        self.rig.apply_replica_set(changed);
    }
}

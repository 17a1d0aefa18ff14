//! Pods that end soon after their creation: a kubelet rejects them, a webhook drops their labels, or a client deletes them.

use server_core::{
    Action, After, Batch, Config, ControllerReport, FailureClass, Kind, Labels, OperationResult,
    Phase, Pod, Rule, Span, State, Timestamp,
};

use crate::{
    objects::{START, pod, set, unready, with},
    rig::{BARE, Rig, created, deleting},
};

/// The fate of each pod that is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lasts,
    /// Fails after it was created.
    Fails,
    /// Had failed by the time of the outcome.
    HasFailed,
    Vanishes,
    IsDeleted,
    /// Has lost its intended labels.
    LosesLabels,
    /// Has lost its labels and its owner.
    LosesOwner,
    /// No outcome carries it, and no list shows it.
    IsNeverSeen,
}

const SHORT_LIVED: [Fate; 7] = [
    Fate::Fails,
    Fate::HasFailed,
    Fate::Vanishes,
    Fate::IsDeleted,
    Fate::LosesLabels,
    Fate::LosesOwner,
    Fate::IsNeverSeen,
];

impl Rig {
    /// Lets a create take effect; its pod meets its fate at once.
    fn create_one(&mut self, batch: &Batch, operation: u32, fate: Fate) {
        let version = Some(self.next_version());
        let name = &created(batch)[operation as usize];
        let pod = Pod {
            version,
            ..unready(pod(name, &batch.key.name))
        };
        let failed = |pod: Pod| with(pod, |state| state.phase = Phase::Failed);
        let made = match fate {
            Fate::HasFailed => failed(pod.clone()),
            Fate::LosesLabels | Fate::LosesOwner => Pod {
                labels: Labels::default(),
                controller: pod.controller.clone().filter(|_| fate == Fate::LosesLabels),
                ..pod.clone()
            },
            Fate::IsNeverSeen => return self.answer(batch, operation, BARE),
            Fate::Lasts | Fate::Fails | Fate::Vanishes | Fate::IsDeleted => pod.clone(),
        };
        let after = Some(After::Pod(Box::new(made)));
        self.answer(batch, operation, OperationResult::Done { version, after });
        match fate {
            Fate::Fails => self.apply_pod(failed(pod)),
            Fate::Vanishes => self.delete_pod(&pod),
            Fate::IsDeleted => self.apply_pod(deleting(pod)),
            Fate::Lasts
            | Fate::HasFailed
            | Fate::LosesLabels
            | Fate::LosesOwner
            | Fate::IsNeverSeen => {}
        }
    }

    /// Advances the time to `end`; all pods that are created meanwhile meet the same fate. Returns the times and numbers of creates.
    fn live(&mut self, end: Timestamp, fate: Fate) -> Vec<(i64, usize)> {
        let mut creates = Vec::new();
        loop {
            while let Some(batch) = self.poll() {
                if let Action::Create { names, .. } = &batch.action {
                    creates.push((self.now.since(START).0 / 1_000_000_000, names.len()));
                    (0..names.len()).for_each(|at| self.create_one(&batch, at as u32, fate));
                } else {
                    self.succeed(&batch);
                }
                assert!(creates.len() < 1_000, "it runs away: {fate:?}");
                self.list_on_request();
            }
            self.list_on_request();
            let due = self.controller.poll_timeout().filter(|due| *due <= end);
            self.now = due.unwrap_or(end).max(self.now);
            self.controller.handle_timeout(self.now);
            if due.is_none() && self.controller.poll_timeout().is_none_or(|due| due > end) {
                return creates;
            }
        }
    }

    /// Answers a request for a list with no pods.
    fn list_on_request(&mut self) {
        // Earlier reports are of no interest.
        self.reports();
        if self.requests().contains(&Kind::Pod) {
            self.list_pods(Vec::new());
        }
    }
}

/// Returns the detail of a report of pods that do not last, and the time for which creates are closed.
fn told(report: ControllerReport) -> Option<(String, Span)> {
    if let ControllerReport::PodsDoNotLast { detail, closed, .. } = report {
        return Some((detail, closed));
    }
    None
}

fn after(seconds: i64) -> Timestamp {
    START.plus(Span::seconds(seconds))
}

fn sum(creates: &[(i64, usize)]) -> usize {
    creates.iter().map(|(_, count)| count).sum()
}

#[test]
fn however_pods_end_their_number_is_bounded() {
    for fate in SHORT_LIVED {
        for wanted in [1, 3, 12, 100, 700] {
            let mut rig = Rig::of(vec![set("web", wanted)], vec![]);
            let wanted = wanted as usize;
            let first = rig.live(after(60), fate);
            assert!(sum(&first) <= 20 + wanted, "{fate:?} {wanted}: {first:?}");
            let hour = rig.live(after(3_600), fate);
            let attempts = [
                70, 150, 310, 610, 910, 1_210, 1_510, 1_810, 2_110, 2_410, 2_710,
            ];
            let attempts = attempts.into_iter().chain([3_010, 3_310]);
            let expected: Vec<_> = attempts.map(|at| (at, wanted.min(5))).collect();
            assert_eq!(hour, expected, "{fate:?} {wanted}");
        }
    }
}

#[test]
fn trial_that_lasts_ends_the_back_off() {
    let mut rig = Rig::of(vec![set("web", 40)], vec![]);
    rig.live(after(9), Fate::Fails);
    assert_eq!(rig.live(after(60), Fate::Lasts), [(10, 5), (20, 35)]);
    assert_eq!(rig.view("web").state, State::InSync);
}

#[test]
fn trial_without_a_pod_is_followed_by_another_trial() {
    for class in [FailureClass::Throttled, FailureClass::Unavailable] {
        let mut rig = Rig::of(vec![set("web", 40)], vec![]);
        rig.live(after(9), Fate::Fails);
        rig.wait(Span::seconds(1));
        let trial = rig.batch();
        assert_eq!(created(&trial).len(), 5, "{class:?}");
        rig.fail_all(&trial, class);
        // No pod has lasted, so creates do not open. A pod that fails closes them for twice as long.
        let creates = rig.live(after(69), Fate::Fails);
        assert_eq!(creates, [(20, 5), (40, 5)], "{class:?}");
    }
}

#[test]
fn pod_of_a_trial_lasts_from_its_creation_on() {
    let mut rig = Rig::of(vec![set("web", 40)], vec![]);
    rig.live(after(9), Fate::Fails);
    rig.wait(Span::seconds(1));
    let trial = rig.batch();
    rig.wait(Span::seconds(8));
    (0..5).for_each(|at| rig.create_one(&trial, at, Fate::Lasts));
    assert_eq!(rig.live(after(60), Fate::Lasts), [(28, 35)]);
}

#[test]
fn back_off_goes_on_where_it_was_unless_pods_last_a_minute() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    rig.live(after(5), Fate::Fails);
    // Creates open at 20 s, as the trial lasts for the delay; its pod fails before a minute is over.
    let trial = rig.live(after(40), Fate::Lasts);
    assert_eq!(trial, [(10, 1)]);
    let name = rig.controller.inspect().views(rig.now, None, 1);
    assert_eq!(name[0].status.replicas, 1);
    let closed = |rig: &mut Rig| {
        let reports = rig.reports();
        reports.into_iter().find_map(told).map(|(_, closed)| closed)
    };
    let failing = |rig: &mut Rig, seconds| {
        let mut found = None;
        for second in 0..seconds {
            let until = rig.now.plus(Span::seconds(i64::from(second > 0)));
            let pods = owned_pods(rig);
            pods.into_iter()
                .for_each(|pod| rig.apply_pod(with(pod, |it| it.phase = Phase::Failed)));
            while let Some(batch) = rig.poll() {
                rig.succeed(&batch);
            }
            found = found.or_else(|| closed(rig));
            rig.wait(until.since(rig.now));
        }
        found
    };
    assert_eq!(failing(&mut rig, 12), Some(Span::seconds(20)));
}

fn owned_pods(rig: &Rig) -> Vec<Pod> {
    let key = rig.view("web").key;
    let set = rig
        .controller
        .inspect()
        .replica_set(&key)
        .expect("it is known");
    let all = set.deletable(usize::MAX, [START; 2], &mut { usize::MAX });
    let all = all.expect("there is no limit").chosen.into_iter();
    let mut names: Vec<_> = all.map(|(name, _)| name).collect();
    names.sort_unstable();
    let pods = names
        .iter()
        .map(|name| rig.controller.inspect().pod("default", name));
    pods.map(|pod| pod.expect("it is known")).collect()
}

#[test]
fn more_pods_that_last_than_end_keep_creates_open() {
    let mut rig = Rig::of(vec![set("web", 100)], vec![]);
    rig.live(after(120), Fate::Lasts);
    // A node is lost, and once more the replacements of its pods.
    for round in 0..2 {
        let pods: Vec<_> = owned_pods(&rig).into_iter().take(8).collect();
        pods.iter().for_each(|pod| rig.delete_pod(pod));
        let creates = rig.live(after(121 + round), Fate::Lasts);
        assert_eq!(sum(&creates), 8, "round {round}");
    }
}

#[test]
fn pods_that_we_delete_ourselves_do_not_count() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![]);
    for round in 0..20 {
        rig.apply_replica_set(set("web", 30));
        assert_eq!(sum(&rig.live(after(2 * round + 1), Fate::Lasts)), 30);
        rig.apply_replica_set(set("web", 0));
        rig.live(after(2 * round + 2), Fate::Lasts);
    }
}

#[test]
fn another_spec_is_tried_at_once() {
    let mut rig = Rig::of(vec![set("web", 3)], vec![]);
    rig.live(after(5), Fate::LosesLabels);
    let mut other = set("web", 3);
    other.generation += 1;
    rig.apply_replica_set(other);
    assert_eq!(rig.live(after(6), Fate::Lasts), [(5, 3)]);
}

#[test]
fn without_the_back_off_pods_are_replaced_at_once() {
    let config = Config {
        create_back_off: false,
        ..Config::default()
    };
    let mut rig = Rig::with(config).listed(vec![set("web", 1)], vec![]);
    for _ in 0..100 {
        let batch = rig.batch();
        if let Action::Create { .. } = batch.action {
            rig.create_one(&batch, 0, Fate::Fails);
        } else {
            rig.succeed(&batch);
        }
    }
}

#[test]
fn back_off_is_the_first_reason_and_says_how_pods_ended() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let mut said = Vec::new();
    while let Some(batch) = rig.poll() {
        if let Action::Create { .. } = batch.action {
            rig.create_one(&batch, 0, Fate::LosesLabels);
        } else {
            rig.succeed(&batch);
        }
        said.extend(rig.reports().into_iter().filter_map(told));
    }
    let ended = "10 pods ended within a minute of being created; the latest has other labels or \
                 another owner than it was created with, as a webhook may set them";
    assert_eq!(said, [(ended.to_owned(), Span::seconds(10))]);
    let view = rig.view("web");
    let first = &view.reasons[0];
    assert_eq!(
        (view.state, first.rule),
        (State::Waiting, Rule::PodsDoNotLast)
    );
    assert_eq!(first.detail, format!("{ended}; next try in 10s"));
    rig.wait(Span::seconds(10));
    let trial = rig.batch();
    let reasons: Vec<_> = trial.reasons.iter().map(|reason| reason.rule).collect();
    assert_eq!(reasons, [Rule::TooFewReplicas, Rule::PodsDoNotLast]);
}

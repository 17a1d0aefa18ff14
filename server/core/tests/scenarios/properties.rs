//! Properties of any scenario.

use std::collections::BTreeMap;

use decree_core::{
    Config, Decision, Event, FailureClass, Key, Kind, NotStarted, OperationResult, Phase, Pod,
    PodState, Ready, ReplicaSet, ResourceVersion, Span,
};
use proptest::{collection::vec, prelude::*};

use crate::{
    objects::{START, labels, orphan, owner, set},
    rig::{BARE, Rig, counts, failed, uid},
};

pub(crate) const NAMES: [&str; 3] = ["web", "db", "twin"];

pub(crate) fn any_pod() -> impl Strategy<Value = Pod> {
    let identity = (0..8_usize, 0..3_u8, 0..4_usize, 0..4_usize, 0..40_u64);
    let state = (
        any::<bool>(),
        0..6_usize,
        any::<bool>(),
        proptest::option::of(-100..100_i64),
        any::<i32>(),
        any::<i32>(),
    );
    (identity, state).prop_map(
        |(
            (name, uid_at, app, owner_at, version),
            (deleting, phase, ready, since, cost, restarts),
        )| {
            let phases = [
                Phase::Pending,
                Phase::Other,
                Phase::Unknown,
                Phase::Running,
                Phase::Succeeded,
                Phase::Failed,
            ];
            let base = orphan(&format!("pod-{name}"), "none");
            Pod {
                uid: uid(&format!("{name}-{uid_at}")),
                version: (version > 0).then_some(ResourceVersion(version)),
                labels: NAMES
                    .get(app)
                    .map_or_else(|| labels(&[]), |app| labels(&[("app", app)])),
                controller: NAMES.get(owner_at).map(|name| owner(name)),
                state: PodState {
                    deleting,
                    phase: phases[phase],
                    ready: Ready {
                        ready,
                        since: since.map(|at| START.plus(Span::seconds(at))),
                    },
                    deletion_cost: cost,
                    restarts,
                    ..base.state
                },
                ..base
            }
        },
    )
}

fn any_set() -> impl Strategy<Value = ReplicaSet> {
    (
        0..3_usize,
        0..2_u8,
        0..40_u64,
        prop_oneof![0..6_i32, any::<i32>()],
        prop_oneof![Just(0), 0..50_i32, any::<i32>()],
        any::<bool>(),
        0..5_u8,
    )
        .prop_map(
            |(name, generation, version, replicas, min_ready_seconds, deleting, odd)| {
                let base = set(NAMES[name], replicas);
                let mut key = base.key.clone();
                if generation > 0 {
                    key.uid = uid("another");
                }
                let selector = if odd == 0 {
                    Err(crate::rig::invalid())
                } else {
                    base.selector.clone()
                };
                let version = (version > 0).then_some(ResourceVersion(version));
                ReplicaSet {
                    key,
                    version,
                    min_ready_seconds,
                    deleting,
                    selector,
                    ..base
                }
            },
        )
}

#[derive(Clone, Debug)]
enum Step {
    Tell(Box<Event>),
    Wait(i64),
    Poll,
    Answer(usize, u32, u8),
}

fn tell(event: Event) -> Step {
    Step::Tell(Box::new(event))
}

fn any_step() -> impl Strategy<Value = Step> {
    let kind = any::<bool>().prop_map(|pods| if pods { Kind::Pod } else { Kind::ReplicaSet });
    let version =
        || (0..60_u64).prop_map(|version| (version > 0).then_some(ResourceVersion(version)));
    prop_oneof![
        6 => any_pod().prop_map(|pod| tell(Event::PodApplied(pod))),
        3 => any_set().prop_map(|set| tell(Event::ReplicaSetApplied(Box::new(set)))),
        2 => (any_pod(), version()).prop_map(|(pod, version)| {
            tell(Event::PodDeleted { namespace: pod.namespace, name: pod.name, uid: pod.uid, version })
        }),
        1 => (any_set(), version()).prop_map(|(set, version)| tell(Event::ReplicaSetDeleted { key: set.key, version })),
        1 => kind.clone().prop_map(|kind| tell(Event::SnapshotBegin(kind))),
        2 => (kind.clone(), version()).prop_map(|(kind, version)| tell(Event::SnapshotEnd { kind, version })),
        1 => (kind, 1..60_u64).prop_map(|(kind, version)| tell(Event::Bookmark { kind, version: ResourceVersion(version) })),
        1 => (-5..100_i64).prop_map(Step::Wait),
        6 => Just(Step::Poll),
        6 => (0..8_usize, 0..6_u32, 0..8_u8).prop_map(|(batch, operation, effect)| Step::Answer(batch, operation, effect)),
    ]
}

fn effect(rig: &Rig, at: u8, batch: &decree_core::Batch, operation: u32) -> OperationResult {
    let failed = |class| failed(class, "no");
    match at {
        0 => BARE,
        1..=3 => {
            let version = ResourceVersion(batch.id.0 % 60 + 1);
            OperationResult::Done {
                version: Some(version),
                after: rig.after(batch, operation as usize, version),
            }
        }
        4 => failed(FailureClass::NotFound),
        5 => failed(FailureClass::NameTaken),
        6 => failed(FailureClass::Timeout),
        _ => OperationResult::NotStarted(NotStarted::SlowStart),
    }
}

fn play(steps: &[Step]) -> Rig {
    let mut rig = Rig::with(Config {
        operations_in_flight_max: 50,
        burst_replicas: 20,
        ..Config::default()
    });
    let mut batches = Vec::new();
    for kind in [Kind::Pod, Kind::ReplicaSet] {
        rig.observe(Event::SnapshotBegin(kind));
        rig.observe(Event::SnapshotEnd {
            kind,
            version: None,
        });
    }
    for step in steps {
        match step {
            Step::Tell(event) => rig.observe((**event).clone()),
            Step::Wait(millis) => rig.wait(Span::millis(*millis)),
            Step::Poll => batches.extend(rig.poll()),
            Step::Answer(at, operation, result) => {
                if let Some(batch) = batches.get(*at).cloned() {
                    let result = effect(&rig, *result, &batch, *operation);
                    rig.answer(&batch, *operation, result);
                }
            }
        }
    }
    rig
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_kept_incrementally_equal_counts_taken_anew(steps in vec(any_step(), 0..120)) {
        let rig = play(&steps);
        for view in rig.controller.inspect().views(rig.now, None, 10) {
            let Key { namespace, name, .. } = &view.key;
            let known = rig.surroundings(namespace, name, usize::MAX);
            let sets = known.replica_sets()[..1].to_vec();
            let anew = Rig::of(sets, known.owned().cloned().collect());
            let anew = anew.controller.inspect().view(rig.now, namespace, name);
            prop_assert_eq!(Some(counts(&view.status)), anew.map(|view| counts(&view.status)), "{:?}", view.key);
        }
    }
}

/// One change of a pod: its state afterwards, whether it is gone then, and whether the change is delivered separately.
type Change = (Pod, bool, bool);

fn any_history() -> impl Strategy<Value = Vec<Change>> {
    let change = (any_pod(), prop::bool::weighted(0.2), any::<bool>());
    vec(change, 1..20).prop_map(|mut changes| {
        let mut known = BTreeMap::new();
        for (at, (pod, gone, _)) in changes.iter_mut().enumerate() {
            live_on(known.remove(&pod.name), at, pod);
            if !*gone {
                known.insert(pod.name.clone(), pod.clone());
            }
        }
        changes
    })
}

/// A pod keeps its UID until it is gone, and neither a deletion nor an end is undone.
fn live_on(known: Option<Pod>, at: usize, pod: &mut Pod) {
    let Some(known) = known else {
        pod.uid = uid(&format!("{}-{at}", pod.name));
        return;
    };
    pod.uid = known.uid;
    pod.state.deleting |= known.state.deleting;
    if known.state.phase.has_ended() {
        pod.state.phase = known.state.phase;
    }
}

/// Applies a history to an idle rig, and runs the rig until it is idle again. If `merged`, a pod's change is left out if a later one
/// follows.
fn rest_after(rig: &mut Rig, history: &[Change], merged: bool) {
    for (at, (pod, gone, alone)) in history.iter().enumerate() {
        let is_last = history[at + 1..].iter().all(|(it, ..)| it.uid != pod.uid);
        if *gone {
            rig.delete_pod(pod);
        } else if is_last || *alone || !merged {
            rig.apply_pod(pod.clone());
        }
    }
    rig.settle();
}

/// The number of pods of each ReplicaSet, and of its terminating pods. The order of syncs decides which pods remain.
fn sizes(rig: &Rig) -> Vec<(i32, Option<i32>)> {
    let views = rig
        .controller
        .inspect()
        .views(rig.now, None, 10)
        .into_iter();
    let sizes = views.map(|it| (it.status.replicas, it.status.terminating_replicas));
    sizes.collect()
}

/// The decisions that are still open: none, if every ReplicaSet that a change affects was queued.
fn left_undone(rig: &Rig) -> Vec<Decision> {
    let views = rig.controller.inspect().views(rig.now, None, 10);
    let decisions = views.iter().filter_map(|view| {
        let Key {
            namespace, name, ..
        } = &view.key;
        rig.decision(namespace, name, None)
    });
    let is_due = |it: &Decision| {
        let claims = it.adopts.len() + it.releases.len();
        claims + it.creates.len() + it.deletes.len() > 0 || it.status.is_some()
    };
    decisions.filter(is_due).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_that_come_as_one_lead_where_they_lead_one_by_one(
        history in any_history(), seen in 0..10_usize, replicas in vec(0..4_i32, 3)
    ) {
        let rest = |merged| {
            let sets = NAMES.iter().zip(&replicas).map(|(name, replicas)| set(name, *replicas));
            let mut rig = Rig::of(sets.collect(), vec![]);
            let (before, amid) = history.split_at(seen.min(history.len()));
            rest_after(&mut rig, before, false);
            rest_after(&mut rig, amid, merged);
            rig
        };
        let (one_by_one, merged) = (rest(false), rest(true));
        prop_assert_eq!(left_undone(&one_by_one), vec![]);
        prop_assert_eq!(left_undone(&merged), vec![]);
        prop_assert_eq!(sizes(&one_by_one), sizes(&merged));
    }
}

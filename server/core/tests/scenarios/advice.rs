//! Advice: once it is written, the order of the other controller is the one that the ReplicaSet prefers.

use std::collections::{BTreeMap, VecDeque};

use decree_core::{
    Action, Batch, Candidate, Config, Labels, OperationResult, Phase, Pod, PodState, Preferences,
    Preferred, Ready, ReplicaSet, ScaleIn, ScaleInCost, Span, Uid, deletion_positions,
};
use proptest::prelude::*;

use crate::{
    objects::{START, labels, pod, set, with},
    rig::Rig,
};

const MINUTE: Span = Span::seconds(60);

/// What pods have answered last.
type Answers = BTreeMap<Uid, i32>;

/// A pod by number: its node, readiness and labels change, its cost is of others if it is given.
fn any_pod() -> impl Strategy<Value = Pod> {
    let place = (0..12_u32, 0..4_usize, 0..4_u8, any::<bool>(), 0..9_i64);
    (place, 0..4_i32, proptest::option::weighted(0.1, -3..3_i32)).prop_map(
        |((name, node, readiness, idle, age), restarts, foreign)| {
            let name = format!("pod-{name}");
            let since = Some(START.plus(Span::seconds(-age)));
            let ready = Ready {
                ready: readiness != 0,
                since,
            };
            let base = pod(&name, "web");
            let idle = if idle { "idle" } else { "busy" };
            Pod {
                labels: labels(&[("app", "web"), ("state", idle)]),
                node: ["a", "b", "c"].get(node).map(|node| (*node).into()),
                state: PodState {
                    created: since,
                    ready,
                    phase: if readiness == 1 {
                        Phase::Unknown
                    } else {
                        Phase::Running
                    },
                    deletion_cost: foreign.unwrap_or(0),
                    foreign_cost: foreign.is_some(),
                    restarts,
                    ..base.state
                },
                ..base
            }
        },
    )
}

fn any_preference() -> impl Strategy<Value = ScaleIn> {
    prop_oneof![
        Just(ScaleIn::First("state".into(), "idle".into())),
        Just(ScaleIn::EmptiestNode),
        Just(ScaleIn::Youngest),
    ]
}

/// The pods as an agent would list them now.
fn known(rig: &Rig) -> Vec<Pod> {
    let names = (0..12).map(|name| format!("pod-{name}"));
    let inspect = rig.controller.inspect();
    names
        .filter_map(|name| inspect.pod("default", &name))
        .collect()
}

/// Whether and how a ReplicaSet asks its pods.
fn scale_in_cost(asks: bool) -> Option<ScaleInCost> {
    let (source, waits) = ("http://:8080/busy".into(), true);
    asks.then_some(ScaleInCost { source, waits })
}

/// A session that advises, and may ask pods.
fn rig(sets: Vec<ReplicaSet>, pods: Vec<Pod>) -> Rig {
    let config = Config {
        advises: true,
        asks_costs: true,
        ..Config::default()
    };
    Rig::with(config).listed(sets, pods)
}

/// The pods in the order of deletion, with a change of each.
fn order(
    rig: &Rig,
    (preferences, answers): (Option<&Preferences>, &Answers),
    change: impl Fn(&mut PodState),
) -> Vec<String> {
    let pods = known(rig);
    let states: Vec<_> = pods
        .iter()
        .map(|pod| {
            let mut state = pod.state;
            change(&mut state);
            state
        })
        .collect();
    let beside = |node: &Pod| {
        pods.iter()
            .filter(|it| it.node.is_some() && it.node == node.node)
            .count()
    };
    let beside: Vec<_> = pods
        .iter()
        .map(|pod| u32::try_from(beside(pod)).expect("few"))
        .collect();
    let labels: Vec<Labels> = pods.iter().map(|pod| pod.labels.clone()).collect();
    let candidates: Vec<_> = pods
        .iter()
        .enumerate()
        .map(|(at, pod)| Candidate {
            id: (),
            node: pod.node.as_deref(),
            state: &states[at],
            rank: beside[at],
            uid: &pod.uid,
            preferred: Some(Box::new(Preferred {
                preferences,
                labels: Some(&labels[at]),
                on_node: beside[at],
                asked: answers.get(&pod.uid).copied(),
                ..Preferred::default()
            })),
        })
        .collect();
    let places = deletion_positions(rig.now, &candidates);
    let mut named: Vec<_> = places
        .iter()
        .zip(&pods)
        .map(|(place, pod)| (place.own, pod.name.to_string()))
        .collect();
    named.sort();
    named.into_iter().map(|(_, name)| name).collect()
}

/// Lets pods answer by the number of their restarts, or stay silent.
fn answer(rig: &mut Rig, answers: &mut Answers) {
    while let Some(question) = rig.controller.poll_question() {
        for asked in &question.pods {
            let pod = rig.controller.inspect().pod("default", &asked.name);
            let pod = pod.expect("it is known");
            answers.remove(&pod.uid);
            if let Some(cost) = [Some(3), Some(-1), None, Some(9)][pod.state.restarts as usize] {
                answers.insert(pod.uid, cost);
            }
        }
        let asked = question.pods.iter();
        let costs = asked.filter_map(|pod| Some((pod.uid.clone(), Ok(*answers.get(&pod.uid)?))));
        rig.controller
            .handle_costs(rig.now, question.id, costs.collect());
    }
}

/// Lets all advice succeed, while minutes pass. Returns the number of writes.
fn advise(rig: &mut Rig, answers: &mut Answers) -> usize {
    let mut writes = 0;
    for _ in 0..9 {
        let mut batches = rig.settle();
        answer(rig, answers);
        batches.extend(rig.settle());
        for batch in batches {
            assert!(matches!(batch.action, Action::Advise(_)), "{batch:?}");
            writes += batch.action.operations();
        }
        rig.wait(MINUTE);
    }
    writes
}

proptest! {
    #[test]
    fn order_of_the_other_controller_becomes_the_preferred_one(
        pods in proptest::collection::vec(any_pod(), 0..24),
        scale_in in proptest::collection::vec(any_preference(), 0..3),
        asks in any::<bool>(),
    ) {
        let scale_in_cost = scale_in_cost(asks || scale_in.is_empty());
        let preferences = Preferences { scale_in, scale_in_cost, ..Preferences::default() };
        let web = ReplicaSet { preferences: Some(Box::new(preferences.clone())), ..set("web", 3) };
        let (mut rig, mut answers) = (rig(vec![web.clone()], Vec::new()), Answers::new());
        for pod in pods {
            let foreign = pod.state.foreign_cost.then_some((pod.name.clone(), pod.state.deletion_cost));
            // What was advised stays, if nobody else has set a cost.
            let before = rig.controller.inspect().pod("default", &pod.name);
            let before = before.filter(|it| foreign.is_none() && !it.state.foreign_cost);
            let cost = before.map_or(pod.state.deletion_cost, |it| it.state.deletion_cost);
            rig.apply_pod(Pod { state: PodState { deletion_cost: cost, ..pod.state }, ..pod });
            advise(&mut rig, &mut answers);
            if let Some((name, cost)) = foreign {
                let now = rig.controller.inspect().pod("default", &name).expect("it is known");
                prop_assert_eq!(now.state.deletion_cost, cost, "others' costs stay");
            }
            let of_others = known(&rig).iter().any(|pod| pod.state.foreign_cost);
            if !of_others && known(&rig).len() > 1 {
                let preferred = order(&rig, (Some(&preferences), &answers), |state| state.deletion_cost = 0);
                prop_assert_eq!(order(&rig, (None, &Answers::new()), |_| {}), preferred);
            }
            prop_assert_eq!(advise(&mut rig, &mut answers), 0, "nothing is left to say");
        }
        // Without the annotation, all that was advised is taken away.
        rig.apply_replica_set(ReplicaSet { preferences: None, ..web });
        advise(&mut rig, &mut answers);
        let left = known(&rig).iter().any(|pod| !pod.state.foreign_cost && pod.state.deletion_cost != 0);
        prop_assert!(!left);
    }
}

fn asks(name: &str, replicas: i32) -> ReplicaSet {
    let preferences = Preferences {
        scale_in_cost: scale_in_cost(true),
        ..Preferences::default()
    };
    ReplicaSet {
        preferences: Some(Box::new(preferences)),
        ..set(name, replicas)
    }
}

#[test]
fn pods_beyond_a_hundred_are_asked_once_the_first_have_answered() {
    let pods = (0..150).map(|at| pod(&format!("p{at:03}"), "web"));
    let mut rig = rig(vec![asks("web", 150)], pods.collect());
    for (wait, last) in [(0, "p099"), (5, "p049"), (60, "p049"), (60, "p099")] {
        rig.wait(Span::seconds(wait));
        rig.settle();
        let question = rig.controller.poll_question().expect("it is time");
        assert_eq!(&*question.pods[99].name, last);
        // The first pod is idle.
        let cost = |name: &str| Ok(i32::from(name != "p000"));
        let costs = question.pods.into_iter();
        let costs = costs.map(|pod| (pod.uid, cost(&pod.name))).collect();
        rig.controller.handle_costs(rig.now, question.id, costs);
        rig.settle();
    }
    let inspect = rig.controller.inspect();
    let pods = (0..150).filter_map(|at| inspect.pod("default", &format!("p{at:03}")));
    let costs: Vec<_> = pods.map(|pod| pod.state.deletion_cost).collect();
    let zero = costs.iter().filter(|cost| **cost == 0).count();
    assert_eq!((costs[0], zero), (-1_000, 149));
}

#[test]
fn at_most_a_hundred_replica_sets_wait_for_answers() {
    let names = (0..101).map(|at| format!("web-{at}"));
    let sets = names.clone().map(|name| asks(&name, 2));
    let pods = names.flat_map(|name| ["a", "b"].map(|it| pod(&format!("{name}-{it}"), &name)));
    let mut rig = rig(sets.collect(), pods.collect());
    let asked = |rig: &mut Rig| {
        rig.settle();
        std::iter::from_fn(|| rig.controller.poll_question()).count()
    };
    assert_eq!(asked(&mut rig), 100);
    rig.controller.handle_costs(rig.now, 7, Vec::new());
    rig.wait(Span::seconds(1));
    assert_eq!(asked(&mut rig), 1);
}

/// Advice that waits for long is old when it is written.
#[test]
fn no_more_is_in_flight_than_an_agent_writes_in_a_second() {
    let names = ["a", "b", "c"];
    let prefers = Preferences {
        scale_in: vec![ScaleIn::Youngest],
        ..Preferences::default()
    };
    let sets = names.map(|name| ReplicaSet {
        preferences: Some(Box::new(prefers.clone())),
        ..set(name, 30)
    });
    let aged = |name: &str, at: i64| {
        with(pod(&format!("{name}-{at}"), name), |state| {
            state.created = Some(START.plus(Span::seconds(at)));
        })
    };
    let pods = names.into_iter();
    let pods = pods.flat_map(|name| (0..30).map(move |at| aged(name, at)));
    let mut rig = rig(sets.into(), pods.collect());
    let (mut open, mut turns) = (VecDeque::new(), String::new());
    loop {
        open.extend(std::iter::from_fn(|| rig.poll()));
        let in_flight = open.iter().map(|batch: &Batch| batch.action.operations());
        assert!(in_flight.sum::<usize>() <= 20, "{open:?}");
        let Some(batch) = open.pop_front() else { break };
        turns += &batch.key.name;
        rig.succeed(&batch);
    }
    assert_eq!(turns, "abcabcabc");
}

#[test]
fn costs_of_people_that_come_in_between_are_not_lost() {
    let web = ReplicaSet {
        preferences: Some(Box::new(Preferences {
            scale_in: vec![ScaleIn::Youngest],
            ..Preferences::default()
        })),
        ..set("web", 3)
    };
    let young = pod("b", "web");
    let mut rig = rig(
        vec![web],
        vec![
            pod("a", "web"),
            Pod {
                state: PodState {
                    created: Some(START.plus(MINUTE)),
                    ..young.state
                },
                ..young
            },
        ],
    );
    let batch = rig.batch();
    let Action::Advise(advices) = &batch.action else {
        panic!("{batch:?}")
    };
    // The agent answers with a pod that does not show the cost: a list must say what is so.
    let shown = rig
        .controller
        .inspect()
        .pod("default", &advices[0].pod.name);
    let after = shown.map(|pod| decree_core::After::Pod(Box::new(pod)));
    rig.answer(
        &batch,
        0,
        OperationResult::Done {
            version: None,
            after,
        },
    );
    assert_eq!(rig.requests(), [decree_core::Kind::Pod]);
}

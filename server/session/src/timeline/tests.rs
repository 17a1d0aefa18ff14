//! The history that is kept, and for how long.

use decree_core::{
    Action, FailureClass, Key, OutcomeCounts, PodRef, PodState, RankedPod, Reason, Rule, Victim,
};

use super::*;
use crate::cause::Flapping;

const SECOND: Timestamp = Timestamp::from_seconds(1);

fn key(name: &str) -> Key {
    Key {
        namespace: "default".into(),
        name: name.into(),
        uid: uid(name),
    }
}

fn uid(name: &str) -> Uid {
    Uid(name.into())
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_seconds(second.cast_signed())
}

fn create() -> Action {
    Action::Create {
        names: vec![Arc::from("web-1"), Arc::from("web-2")],
        generate_name: "web-".into(),
        slow_start_initial: 1,
    }
}

fn status() -> Action {
    Action::WriteStatus(Box::default())
}

fn delete() -> Action {
    let victim = |number| Victim {
        pod: PodRef {
            name: format!("{number:0>250}").into(),
            uid: Uid("u".into()),
        },
        version: None,
        reason: Reason {
            rule: Rule::Uid,
            detail: "".into(),
        },
    };
    Action::Delete((0..20).map(victim).collect())
}

impl Timeline {
    /// Adds a decision of a batch, at the second of its number.
    fn decide(&mut self, name: &str, id: u64, action: Action) {
        let batch = Batch {
            id: BatchId(id),
            key: key(name),
            generation: 1,
            replica_set_version: None,
            pods_version: None,
            action,
            reasons: vec![],
        };
        let cluster = encode::ClusterRef {
            name: "c",
            uid: "c",
            shard: "",
        };
        let record = Arc::new(encode::record(at(id), cluster, &batch));
        self.decided(at(id), &batch, record);
    }

    /// Adds the result of a batch with this number of operations that are done and that failed.
    fn result(&mut self, id: u64, action: ActionKind, [done, failed]: [u32; 2], message: &str) {
        self.answered(Box::new(Answered {
            key: key("web"),
            at: at(id),
            batch: BatchId(id),
            action,
            counts: OutcomeCounts {
                done,
                failed,
                not_started: failed,
            },
            failure: (failed > 0).then_some(FailureClass::Quota),
            message: message.to_owned(),
        }));
    }

    /// Adds a batch that is refused.
    fn refuse(&mut self, id: u64, action: Action, message: &str) {
        let kind = action.kind();
        self.decide("web", id, action);
        self.result(id, kind, [0, 1], message);
    }

    /// Adds a scale-down to a number of pods, with these victims and a pod that stays.
    fn down(&mut self, name: &str, batch: u64, (from, to): (i32, i32), victims: &str) {
        let pod = |name: &str, chosen| RankedPod {
            asked: None,
            name: name.into(),
            uid: Uid(name.into()),
            node: Some("node-a".into()),
            state: PodState::default(),
            rank: 1,
            preferred: Box::default(),
            at: SECOND,
            chosen,
            reason: None,
        };
        let chosen = victims.split(' ').map(|name| pod(name, true));
        self.scaled_down(ScaleDown {
            key: key(name),
            at: at(batch),
            batch: BatchId(batch),
            from,
            to,
            chosen: chosen.clone().count(),
            pods: chosen.chain([pod("stays", false)]).collect(),
            costs: Box::default(),
        });
    }

    /// The last scale-down in short: batch, pods before and after, number of victims, and the known victims.
    fn last_down(&self) -> String {
        let last = self.last_scale_down(&uid("web")).expect("it is known");
        let known = last.pods.iter().filter(|pod| pod.chosen);
        let known: Vec<_> = known.map(|pod| &*pod.name).collect();
        let v1::ScaleDown {
            batch_id,
            previous,
            desired,
            chosen,
            ..
        } = last;
        format!(
            "{batch_id}: {previous} {desired} {chosen} {}",
            known.join(" ")
        )
    }

    fn decision_ids(&self) -> Vec<u64> {
        let decisions = self.decisions(&uid("web")).into_iter();
        decisions.map(|record| record.batch_id).collect()
    }

    /// The entries of a ReplicaSet in short.
    fn told(&self, name: &str) -> Vec<String> {
        let entries = self.of(&uid(name)).into_iter();
        let told = entries.map(|entry| match entry.entry.expect("one is set") {
            Happened::Scaled(it) => format!("scaled to {}", it.desired),
            Happened::Decided(it) => {
                let action = word(it.action());
                format!("{action} {} in {}", it.operations, it.batch_id)
            }
            Happened::Answered(it) => {
                let last = it.last_time.expect("it has an end").seconds;
                let (action, times, message) = (word(it.action()), it.times, it.message);
                format!("{action} {times} times until {last}: {message}")
            }
        });
        told.collect()
    }
}

fn word(action: v1::Action) -> &'static str {
    let name = action.as_str_name();
    name.trim_start_matches("ACTION_")
}

#[test]
fn equal_attempts_are_one_entry() {
    for (words, last) in [
        ("exceeded quota", "exceeded quota"),
        (
            "pods \"web-N\" are forbidden: used: pods=1N",
            "pods \"web-100\" are forbidden: used: pods=1100",
        ),
    ] {
        for with_status in [false, true] {
            let mut timeline = Timeline::new(usize::MAX);
            timeline.scaled(&uid("web"), at(1), (Some(1), 2), Arc::default());
            for id in 2..=100 {
                timeline.refuse(id, create(), &words.replace('N', &id.to_string()));
                if with_status {
                    timeline.decide("web", 1_000 + id, status());
                }
            }
            let newest = format!("CREATE 99 times until 100: {last}");
            let expected = [&*newest, "CREATE 2 in 100", "scaled to 2"];
            assert_eq!(timeline.told("web"), expected);
            timeline.refuse(101, create(), "another cause");
            let expected = ["CREATE 1 times until 101: another cause", "CREATE 2 in 101"];
            assert_eq!(timeline.told("web")[..2], expected);
            timeline.forget(&uid("web"));
            assert!(timeline.bytes() == 0 && timeline.order.is_empty());
        }
    }
}

#[test]
fn change_during_a_batch_comes_before_its_result() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.decide("web", 1, create());
    timeline.scaled(&uid("web"), at(2), (Some(1), 2), Arc::default());
    timeline.result(1, ActionKind::Create, [0, 1], "no");
    assert_eq!(timeline.told("web")[0], "scaled to 2");
    timeline.decide("web", 5, create());
    timeline.scaled(&uid("web"), at(6), (Some(2), 3), Arc::default());
    timeline.answered(Box::new(Answered {
        at: at(7),
        ..timeline
            .last_attempt(&uid("web"))
            .expect("it is known")
            .clone()
    }));
    assert_eq!(timeline.told("web").len(), 5);
}

#[test]
fn busy_replica_set_forgets_only_its_own_past() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.scaled(&uid("quiet"), at(1), (None, 7), Arc::default());
    timeline.decide("web", 1, delete());
    timeline.decide("web", 2, delete());
    for id in 3..1_000 {
        timeline.decide("web", id, create());
        timeline.decide("web", id + 1_000, status());
    }
    assert_eq!(timeline.told("quiet"), ["scaled to 7"]);
    let decisions = timeline.decision_ids();
    let [statuses, others]: [Vec<u64>; 2] = [true, false].map(|is_status| {
        decisions
            .iter()
            .copied()
            .filter(|id| (*id >= 1_000) == is_status)
            .collect()
    });
    assert_eq!((statuses.len(), statuses[0]), (STATUS_MAX, 1_999));
    let newest = (980..1_000).rev().chain([2]).collect::<Vec<_>>();
    assert_eq!(others, newest, "and the last deletion");
}

#[test]
fn quiet_replica_sets_give_way_first_and_their_last_deletion_last() {
    let mut timeline = Timeline::new(SHARE * 400_000);
    timeline.decide("web", 1, delete());
    timeline.down("web", 1, (2, 1), "a");
    for id in 2..5_000 {
        let name = format!("set-{id}");
        timeline.decide(&name, id, create());
        timeline.decide(&name, id, status());
        assert!(timeline.bytes() <= timeline.bytes_max);
    }
    assert_eq!(timeline.decision_ids(), [1]);
    assert_eq!(timeline.last_down(), "1: 2 1 1 a");
    assert!(timeline.told("set-2").is_empty() && !timeline.told("set-4999").is_empty());
    let counted = timeline.order.values().map(|set| timeline.rings.get(set));
    assert_eq!(counted.flatten().count(), timeline.order.len());
    for id in 5_000..6_000 {
        timeline.decide(&format!("set-{id}"), id, delete());
        assert!(timeline.bytes() <= timeline.bytes_max);
    }
    assert!(timeline.decision_ids().is_empty());
}

#[test]
fn repeated_deletion_is_the_last_one() {
    let mut timeline = Timeline::new(usize::MAX);
    (1..=50).for_each(|id| timeline.refuse(id, delete(), "forbidden"));
    assert_eq!(timeline.decision_ids(), [50]);
    let expected = ["DELETE 50 times until 50: forbidden", "DELETE 20 in 50"];
    assert_eq!(timeline.told("web"), expected);
}

#[test]
fn last_attempt_is_a_status_only_if_nothing_else_failed() {
    use ActionKind::{Create, Delete, WriteStatus};
    let mut timeline = Timeline::new(usize::MAX);
    assert_eq!(timeline.last_attempt(&uid("web")), None);
    for (id, action, failed, expected) in [
        (1, create(), 0, (Create, None)),
        (2, status(), 1, (WriteStatus, Some(FailureClass::Quota))),
        (3, delete(), 1, (Delete, Some(FailureClass::Quota))),
        (4, status(), 1, (Delete, Some(FailureClass::Quota))),
    ] {
        let kind = action.kind();
        timeline.decide("web", id, action);
        timeline.result(id, kind, [0, failed], "no");
        let newest = timeline.last_attempt(&uid("web")).expect("there is one");
        assert_eq!((newest.action, newest.failure), expected, "{id}");
    }
    let shown = timeline.told("web");
    assert!(
        shown[0].starts_with("WRITE_STATUS 1 times until 4"),
        "{shown:?}"
    );
}

#[test]
fn only_another_scale_down_replaces_the_last_one() {
    use ActionKind::{Create, WriteStatus};
    let mut timeline = Timeline::new(usize::MAX);
    timeline.down("web", 1, (52, 30), "a b c");
    for batch in 2..1_000 {
        timeline.result(batch, Create, [0, 1], "no");
        timeline.result(batch, WriteStatus, [0, 1], "no");
    }
    assert_eq!(timeline.last_down(), "1: 52 30 3 a b c");
    timeline.down("web", 1_000, (32, 30), "c d");
    assert_eq!(timeline.last_down(), "1000: 32 30 2 c d");
}

impl Timeline {
    /// Changes the desired pods of web to these numbers, a second apart from a second on, each by a manager.
    fn scale(&mut self, from: i32, second: u64, changes: &[(i32, &str)]) {
        let before = std::iter::once(from).chain(changes.iter().map(|it| it.0));
        for ((second, before), (to, manager)) in (second..).zip(before).zip(changes) {
            let change = (Some(before), *to);
            self.scaled(&uid("web"), at(second), change, Arc::from(*manager));
        }
    }

    fn flapping(&self, second: u64) -> Option<Flapping> {
        Flapping::of(at(second), self.changes(&uid("web")))
    }
}

const FIGHT: [(i32, &str); 6] = [
    (4, "hpa"),
    (2, "argocd"),
    (3, "hpa"),
    (2, "argocd"),
    (4, "hpa"),
    (2, ""),
];

#[test]
fn fight_over_the_replicas_is_told_with_its_managers_until_a_minute_has_passed() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.scale(2, 1, &FIGHT);
    let fight = Flapping {
        changes: 6,
        least: 2,
        most: 4,
        managers: vec!["argocd".into(), "hpa".into()],
    };
    assert_eq!(timeline.flapping(6), Some(fight));
    // The first change is forgotten a minute after it.
    assert!(timeline.flapping(60).is_some());
    assert_eq!(timeline.flapping(61), None);
}

#[test]
fn changes_in_one_direction_or_too_few_are_no_fight() {
    let up: Vec<_> = (3..40).map(|replicas| (replicas, "rollout")).collect();
    // A rollout that is undone, and one that begins again.
    let down = (0..39).rev().map(|replicas| (replicas, "rollout"));
    let again = (1..9).map(|replicas| (replicas, "rollout"));
    let undone: Vec<_> = up.iter().copied().chain(down).collect();
    let begun_again: Vec<_> = undone.iter().copied().chain(again).collect();
    for changes in [&up, &undone, &begun_again, &FIGHT[..5].to_vec()] {
        let mut timeline = Timeline::new(usize::MAX);
        timeline.scale(2, 1, changes);
        let now = changes.len() as u64;
        assert_eq!(timeline.flapping(now), None, "{changes:?}");
    }
    // Old changes do not make a fight with new ones, and a new ReplicaSet has not changed.
    let mut timeline = Timeline::new(usize::MAX);
    timeline.scaled(&uid("web"), at(0), (None, 2), "hpa".into());
    timeline.scale(2, 1, &FIGHT[..3]);
    timeline.scale(3, 64, &FIGHT[3..]);
    timeline.scale(2, 67, &[(3, ""), (2, "")]);
    assert_eq!(timeline.flapping(68), None);
    timeline.scale(2, 69, &[(3, "")]);
    assert_eq!(timeline.flapping(69).map(|it| it.changes), Some(6));
}

#[test]
fn changes_take_bounded_memory_and_displace_no_attempt() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.refuse(1, create(), "forbidden");
    let few = timeline.bytes();
    let change = |timeline: &mut Timeline, times: usize| {
        let changes = [(3, "hpa"), (2, "argocd")].repeat(times);
        for pair in changes.chunks(2) {
            timeline.scale(2, 2, pair);
        }
        timeline.bytes()
    };
    let many = change(&mut timeline, 500);
    assert!(few < many);
    assert_eq!(timeline.flapping(3).map(|it| it.changes), Some(CHANGES_MAX));
    assert_eq!(change(&mut timeline, 500), many);
    assert!(timeline.last_attempt(&uid("web")).is_some());
}

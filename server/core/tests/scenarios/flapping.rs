//! Desired pods that go up and down: who changed them, how often, and how long it counts.

use decree_core::{Flapping, ReplicaSet, Span};

use crate::{objects::set, rig::Rig};

/// A ReplicaSet whose desired pods change to these numbers, a second apart, each by a manager.
fn changed(changes: &[(i32, &str)]) -> Rig {
    let mut rig = Rig::of(vec![set("web", 2)], Vec::new());
    rig.settle();
    for (replicas, manager) in changes {
        rig.wait(Span::seconds(1));
        write(&mut rig, *replicas, manager);
    }
    rig
}

fn write(rig: &mut Rig, replicas: i32, manager: &str) {
    rig.apply_replica_set(wanting(replicas, manager));
    rig.settle();
}

fn wanting(replicas: i32, manager: &str) -> ReplicaSet {
    ReplicaSet {
        replicas_manager: manager.into(),
        ..set("web", replicas)
    }
}

fn bytes(rig: &Rig) -> usize {
    rig.controller.inspect().sizes().bytes
}

fn flapping(rig: &Rig) -> Option<Flapping> {
    rig.view("web").flapping
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
    let mut rig = changed(&FIGHT);
    let fight = Flapping {
        changes: 6,
        least: 2,
        most: 4,
        managers: vec!["argocd".into(), "hpa".into()],
    };
    assert_eq!(flapping(&rig), Some(fight.clone()));
    // News without a change count for nothing, whoever wrote them.
    write(&mut rig, 2, "somebody");
    assert_eq!(flapping(&rig), Some(fight));
    // The first change is forgotten a minute after it.
    rig.wait(Span::seconds(54));
    assert!(flapping(&rig).is_some());
    rig.wait(Span::seconds(1));
    assert_eq!(flapping(&rig), None);
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
        assert_eq!(flapping(&changed(changes)), None, "{changes:?}");
    }
    // Old changes do not make a fight with new ones.
    let mut rig = changed(&FIGHT[..3]);
    rig.wait(Span::seconds(60));
    for (replicas, manager) in &FIGHT[3..] {
        write(&mut rig, *replicas, manager);
    }
    write(&mut rig, 3, "");
    write(&mut rig, 2, "");
    assert_eq!(flapping(&rig), None);
    write(&mut rig, 3, "");
    assert_eq!(flapping(&rig).map(|it| it.changes), Some(6));
}

#[test]
fn changes_take_bounded_memory_and_none_after_a_minute() {
    let mut rig = Rig::of(vec![set("web", 2)], Vec::new());
    rig.reports();
    let quiet = bytes(&rig);
    let change = |rig: &mut Rig, times: usize| {
        for (replicas, manager) in [(3, "hpa"), (2, "argocd")].repeat(times) {
            rig.apply_replica_set(wanting(replicas, manager));
        }
        rig.apply_replica_set(wanting(2, ""));
        rig.reports();
        bytes(rig)
    };
    let few = change(&mut rig, 1);
    let many = change(&mut rig, 500);
    assert!(quiet < few && few < many);
    let changes = flapping(&rig).map(|it| it.changes);
    assert_eq!(changes, Some(Flapping::CHANGES_MAX));
    assert_eq!(change(&mut rig, 500), many);
    rig.wait(Span::seconds(60));
    assert_eq!(bytes(&rig), quiet);
}

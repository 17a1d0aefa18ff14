//! Pods that are ready for long enough, to the instant (spec 1.3, 5.8).

use server_core::{Pod, Ready, ReplicaSet, Span, Timestamp};

use crate::{
    objects::{START, pod, set, unready, with},
    rig::{Rig, written},
};

fn patient(replicas: i32, seconds: i32) -> ReplicaSet {
    ReplicaSet {
        min_ready_seconds: seconds,
        ..set("web", replicas)
    }
}

fn ready_since(name: &str, since: Option<Timestamp>) -> Pod {
    with(pod(name, "web"), |state| {
        state.ready = Ready { ready: true, since };
    })
}

fn ago(millis: i64) -> Option<Timestamp> {
    Some(START.plus(Span::millis(-millis)))
}

#[test]
fn pods_become_available_at_the_very_moment() {
    let pods = vec![
        unready(pod("pending", "web")),
        ready_since("a", ago(0)),
        ready_since("b", ago(2_000)),
        ready_since("c", ago(4_300)),
    ];
    let mut rig = Rig::of(vec![patient(4, 5)], pods);
    let batch = rig.batch();
    let status = written(&batch);
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 0));
    rig.succeed(&batch);
    assert_eq!(rig.poll(), None);
    assert_eq!(
        rig.controller.poll_timeout(),
        Some(START.plus(Span::millis(700)))
    );
    rig.wait(Span::millis(699));
    assert_eq!(rig.poll(), None);
    rig.wait(Span::millis(1));
    assert_eq!(written(&rig.batch()).available_replicas, 1);
}

#[test]
fn exactly_long_enough_is_available() {
    let mut rig = Rig::of(
        vec![patient(3, 3600)],
        vec![
            ready_since("now", ago(0)),
            ready_since("exactly", ago(3_600_000)),
            ready_since("long", ago(7_200_000)),
        ],
    );
    let status = written(&rig.batch());
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 2));
}

#[test]
fn ready_since_an_unknown_time_is_never_available_but_looked_at_again() {
    let mut rig = Rig::of(vec![patient(1, 10)], vec![ready_since("a", None)]);
    let batch = rig.batch();
    assert_eq!(written(&batch).available_replicas, 0);
    rig.succeed(&batch);
    rig.settle();
    let syncs = rig.syncs();
    let requeue = syncs.first().map(|sync| sync.requeue_after);
    assert_eq!(requeue, Some(Some(Span::seconds(10))));
}

#[test]
fn without_a_waiting_time_ready_is_available() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![ready_since("a", None)]);
    assert_eq!(written(&rig.batch()).available_replicas, 1);
}

#[test]
fn a_pod_that_becomes_ready_is_looked_at_when_it_becomes_available() {
    let mut rig = Rig::of(vec![patient(1, 30)], vec![unready(pod("a", "web"))]);
    rig.settle();
    rig.apply_pod(ready_since("a", Some(START)));
    rig.settle();
    assert_eq!(
        rig.controller.poll_timeout(),
        Some(START.plus(Span::seconds(30)))
    );
    rig.wait(Span::seconds(30));
    assert_eq!(written(&rig.batch()).available_replicas, 1);
}

#[test]
fn a_shorter_waiting_time_makes_waiting_pods_available() {
    let mut rig = Rig::of(vec![patient(1, 3600)], vec![ready_since("a", ago(60_000))]);
    rig.settle();
    rig.apply_replica_set(patient(1, 60));
    let status = rig
        .settle()
        .iter()
        .map(written)
        .next_back()
        .expect("a status is written");
    assert_eq!(status.available_replicas, 1);
}

#[test]
fn a_clock_that_goes_back_takes_no_availability_back() {
    let mut rig = Rig::of(vec![patient(1, 5)], vec![ready_since("a", ago(5_000))]);
    rig.settle();
    rig.now = START.plus(Span::seconds(-100));
    rig.apply_pod(with(ready_since("a", ago(5_000)), |state| {
        state.restarts = 1;
    }));
    rig.settle();
    assert_eq!(rig.view("web").status.available_replicas, 1);
}

//! News that is older than the stream brings nothing back, and proves nothing that the stream has not shown.

use server_core::{Action, After, Batch, Event, Kind, OperationResult, Pod, ResourceVersion, Span};

use crate::{
    objects::{orphan, pod, set},
    rig::{Rig, at, created},
};

/// A list of pods that ends at a version.
fn list_pods_at(rig: &mut Rig, pods: Vec<Pod>, version: u64) {
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    pods.into_iter()
        .for_each(|pod| rig.observe(Event::PodApplied(pod)));
    end_list_at(rig, Kind::Pod, version);
}

fn end_list_at(rig: &mut Rig, kind: Kind, version: u64) {
    let version = Some(ResourceVersion(version));
    rig.observe(Event::SnapshotEnd { kind, version });
}

/// Answers a create with a pod of this version.
fn made_at(rig: &mut Rig, batch: &Batch, version: ResourceVersion) -> Pod {
    let made = at(pod(&created(batch)[0], "web"), version.0);
    let after = Some(After::Pod(Box::new(made.clone())));
    let version = None;
    rig.answer(batch, 0, OperationResult::Done { version, after });
    made
}

fn creates(batches: &[Batch]) -> usize {
    let creates = batches.iter();
    let creates = creates.filter(|batch| matches!(batch.action, Action::Create { .. }));
    creates.count()
}

#[test]
fn an_older_list_does_not_bring_back_a_pod_that_is_gone() {
    let (a, b) = (at(pod("a", "web"), 2), at(pod("b", "web"), 3));
    let mut rig = Rig::new();
    rig.list_sets(vec![set("web", 2)]);
    list_pods_at(&mut rig, vec![a.clone(), b.clone()], 1_100);
    rig.settle();
    let gone = rig.deletion(&a);
    let Event::PodDeleted {
        namespace,
        name,
        uid,
        ..
    } = gone
    else {
        panic!("a deletion")
    };
    let version = Some(ResourceVersion(1_200));
    rig.observe(Event::PodDeleted {
        namespace,
        name,
        uid,
        version,
    });
    let create = rig.batch();
    list_pods_at(&mut rig, vec![a.clone(), b], 1_150);
    assert_eq!(rig.view("web").status.replicas, 1);
    made_at(&mut rig, &create, ResourceVersion(1_210));
    let done = rig.settle();
    assert!(
        done.iter()
            .all(|batch| matches!(batch.action, Action::WriteStatus(_))),
        "nothing but the status: {done:?}"
    );
    assert_eq!(rig.view("web").status.replicas, 2);

    // An agent that continues from its list shows again what happened since.
    rig.observe(Event::PodApplied(at(a.clone(), 1_160)));
    assert_eq!(rig.view("web").status.replicas, 2);
    assert_eq!(rig.poll(), None);
}

#[test]
fn an_older_list_does_not_bring_back_a_replica_set_that_is_gone() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let create = rig.batch();
    rig.fail_all(&create, server_core::FailureClass::Quota);
    let (key, version) = (set("web", 2).key, Some(ResourceVersion(1_200)));
    rig.observe(Event::ReplicaSetDeleted { key, version });
    rig.observe(Event::SnapshotBegin(Kind::ReplicaSet));
    let known = || Event::ReplicaSetApplied(Box::new(set("web", 2)));
    rig.observe(known());
    end_list_at(&mut rig, Kind::ReplicaSet, 1_100);
    assert_eq!(rig.controller.inspect().sizes().replica_sets, 0);
    assert_eq!(rig.poll(), None);
    rig.observe(known());
    assert_eq!(rig.controller.inspect().sizes().replica_sets, 0);
}

#[test]
fn what_an_older_list_and_its_events_show_anew_is_news() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![]);
    rig.settle();
    rig.apply_pod(at(orphan("x", "other"), 0));
    let seen = rig.controller.version(Kind::Pod).expect("a version").0;
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.observe(Event::PodApplied(at(orphan("y", "other"), seen + 10)));
    end_list_at(&mut rig, Kind::Pod, seen - 1);
    assert_eq!(rig.controller.inspect().sizes().pods, 2);
    rig.observe(Event::PodApplied(at(orphan("z", "other"), seen + 11)));
    assert_eq!(rig.controller.inspect().sizes().pods, 3);
}

#[test]
fn a_list_that_is_as_new_as_the_stream_is_believed_whatever_the_stream_lost() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch_done();
    assert_eq!(created(&batch).len(), 1);
    rig.apply_pod(orphan("x", "other"));
    let lost = at(pod("lost", "web"), 2);
    rig.list_pods(vec![lost]);
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn doubts_of_a_list_that_is_abandoned_outlast_it() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![]);
    rig.settle();
    let gone = at(orphan("x", "other"), 1_050);
    rig.observe(Event::PodApplied(gone.clone()));
    let version = Some(ResourceVersion(1_060));
    let Event::PodDeleted {
        namespace,
        name,
        uid,
        ..
    } = rig.deletion(&gone)
    else {
        panic!("a deletion")
    };
    rig.observe(Event::PodDeleted {
        namespace,
        name,
        uid,
        version,
    });
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.observe(Event::PodApplied(gone));
    list_pods_at(&mut rig, vec![], 1_040);
    assert_eq!(rig.controller.inspect().sizes().pods, 0);
}

#[test]
fn a_created_pod_that_the_stream_has_passed_and_never_shown_waits_for_a_list() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let version = rig.next_version();
    rig.apply_pod(orphan("b", "elsewhere"));
    rig.reports();
    let made = made_at(&mut rig, &batch, version);
    assert_eq!(rig.requests(), [Kind::Pod]);
    assert_eq!(rig.poll(), None, "nothing is made until a list has come");
    rig.list_pods(vec![made, orphan("b", "elsewhere")]);
    assert_eq!(creates(&rig.settle()), 0);
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_created_pod_that_the_stream_has_passed_and_no_list_names_is_replaced_once() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let version = rig.next_version();
    rig.apply_pod(orphan("b", "elsewhere"));
    made_at(&mut rig, &batch, version);
    rig.list_pods(vec![orphan("b", "elsewhere")]);
    let done = rig.settle();
    assert_eq!(creates(&done), 1);
}

#[test]
fn a_created_pod_whose_end_was_shown_is_replaced_without_a_list() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let version = rig.next_version();
    let made = pod(&created(&batch)[0], "web");
    rig.delete_pod(&made);
    rig.apply_pod(orphan("b", "elsewhere"));
    rig.reports();
    made_at(&mut rig, &batch, version);
    assert_eq!(rig.requests(), []);
    assert_eq!(creates(&rig.settle()), 1);
}

/// The cluster was restored to an earlier state: its versions are far below those that the stream has shown.
#[test]
fn versions_that_went_back_make_no_pod_too_many() {
    let mut rig = Rig::of(vec![set("web", 3)], vec![]);
    rig.reports();
    let version = ResourceVersion(1_000_000);
    let kind = Kind::Pod;
    rig.observe(Event::Bookmark { kind, version });
    let mut there = Vec::new();
    for round in 0..10 {
        while let Some(batch) = rig.poll() {
            let Action::Create { names, .. } = &batch.action else {
                rig.succeed(&batch);
                continue;
            };
            for (operation, name) in (0..).zip(names) {
                let made = at(pod(name, "web"), rig.next_version().0);
                there.push(made.clone());
                assert!(there.len() <= 3, "a pod too many");
                let after = Some(After::Pod(Box::new(made)));
                let version = None;
                rig.answer(&batch, operation, OperationResult::Done { version, after });
            }
        }
        let version = rig.next_version().0 + round;
        list_pods_at(&mut rig, there.clone(), version);
    }
    assert_eq!(there.len(), 3, "none is missing either");
}

#[test]
fn a_list_that_begins_takes_the_request_for_it_back() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.reports();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.succeed(&batch);
    end_list_at(&mut rig, Kind::Pod, 1_002);
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    assert_eq!(rig.requests(), [], "the next list has begun");
    end_list_at(&mut rig, Kind::Pod, 1_002);
    rig.wait(Span::seconds(1));
    assert_eq!(rig.requests(), [Kind::Pod], "it is too old as well");
}

#[test]
fn lists_that_stay_older_than_a_write_are_requested_less_and_less_often_and_end_the_session() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    rig.settle();
    let mut lists = Vec::new();
    for second in 0..=70 {
        let answers = second == 0 || rig.requests() == [Kind::Pod];
        if answers && rig.controller.went_back().is_none() {
            lists.push(second);
            list_pods_at(&mut rig, vec![], 900);
        }
        assert_eq!(rig.poll(), None, "nothing is decided meanwhile");
        rig.wait(Span::seconds(1));
    }
    assert_eq!(lists, [0, 1, 2, 4, 8, 16, 32, 64]);
    let (kind, reached, got) = rig.controller.went_back().expect("a minute is over");
    assert_eq!((kind, got), (Kind::Pod, ResourceVersion(900)));
    assert!(reached > ResourceVersion(1_000));
}

#[test]
fn lists_of_two_histories_decide_nothing() {
    for (first, second) in [(Kind::ReplicaSet, Kind::Pod), (Kind::Pod, Kind::ReplicaSet)] {
        let mut rig = Rig::new();
        let list = |rig: &mut Rig, kind, version| {
            rig.observe(Event::SnapshotBegin(kind));
            if kind == Kind::ReplicaSet {
                rig.apply_replica_set(set("web", 7));
            }
            end_list_at(rig, kind, version);
        };
        list(&mut rig, first, 2_000);
        list(&mut rig, second, 1_500);
        assert_eq!(
            (rig.poll(), rig.requests()),
            (None, vec![first]),
            "{first:?}"
        );
        // No restore: the second list came from a cache that lags. The session would end at a version below 2000.
        list(&mut rig, first, 2_001);
        assert_eq!(created(&rig.batch()).len(), 7, "{first:?}");

        let mut rig = Rig::new();
        list(&mut rig, first, 2_000);
        list(&mut rig, second, 2_000);
        assert_eq!(rig.requests(), [], "{first:?}: one history");
    }
}

#[test]
fn a_list_that_begins_after_a_bare_outcome_needs_no_request() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.reports();
    rig.succeed_without_objects(&batch);
    rig.list_pods(vec![]);
    assert_eq!(rig.requests(), []);
    assert_eq!(creates(&rig.settle()), 1);
}

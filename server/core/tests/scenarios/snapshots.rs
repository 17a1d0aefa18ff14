//! The controller decides nothing on a partial or older view.

use server_core::{Action, After, Event, Kind, OperationResult, Pod, ResourceVersion, Span};

use crate::{
    objects::{orphan, pod, set, unready, with},
    rig::{Rig, at, created, uid},
};

#[test]
fn nothing_is_decided_before_both_lists_are_complete() {
    let mut rig = Rig::new();
    rig.list_sets(vec![set("web", 3)]);
    assert_eq!(rig.poll(), None);
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    assert_eq!(rig.poll(), None);
    assert!(!rig.controller.is_synced());
    rig.list_pods(vec![pod("a", "web")]);
    assert_eq!(created(&rig.batch()).len(), 2);
}

#[test]
fn nothing_is_decided_while_a_later_list_is_open() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    rig.settle();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.delete_pod(&pod("a", "web"));
    assert_eq!(rig.poll(), None);
    let version = Some(rig.next_version());
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version,
    });
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn what_a_list_does_not_name_is_gone_at_its_end_only() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![pod("a", "web"), pod("b", "web")]);
    rig.settle();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.apply_pod(pod("b", "web"));
    assert_eq!(rig.controller.inspect().sizes().pods, 2);
    let version = Some(rig.next_version());
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version,
    });
    assert_eq!(rig.controller.inspect().sizes().pods, 1);
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn a_list_that_begins_again_abandons_the_first() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![pod("a", "web"), pod("b", "web")]);
    rig.settle();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.apply_pod(pod("a", "web"));
    rig.list_pods(vec![at(pod("b", "web"), 5)]);
    assert_eq!(rig.controller.inspect().sizes().pods, 1);
}

#[test]
fn a_list_older_than_our_own_write_is_not_used() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.succeed(&batch);
    rig.reports();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version: Some(ResourceVersion(900)),
    });
    assert_eq!(rig.requests(), [Kind::Pod]);
    assert_eq!(
        rig.poll(),
        None,
        "the view is partial until a newer list is complete"
    );
    let name = created(&batch).remove(0);
    rig.list_pods(vec![pod(&name, "web")]);
    assert!(
        rig.settle()
            .iter()
            .all(|batch| !matches!(batch.action, Action::Create { .. }))
    );
}

#[test]
fn a_pod_newer_than_the_list_survives_it() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![at(pod("a", "web"), 5_000)]);
    rig.settle();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version: Some(ResourceVersion(4_999)),
    });
    assert_eq!(rig.controller.inspect().sizes().pods, 1);
}

#[test]
fn a_replica_set_that_comes_back_without_versions_waits_for_its_batch_in_flight() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let (key, version) = (set("web", 1).key, None);
    rig.observe(Event::ReplicaSetDeleted { key, version });
    rig.observe(Event::ReplicaSetApplied(Box::new(set("web", 1))));
    assert_eq!(rig.poll(), None);
    rig.succeed(&batch);
    assert!(matches!(rig.batch().action, Action::WriteStatus(_)));
}

#[test]
fn an_older_event_does_not_take_an_outcome_back() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.succeed(&batch);
    let name = created(&batch).remove(0);
    rig.observe(Event::PodApplied(at(
        Pod {
            labels: Default::default(),
            ..pod(&name, "web")
        },
        3,
    )));
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_stream_that_does_not_show_our_write_is_asked_for_a_list_and_nothing_is_repeated() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    rig.settle();
    rig.reports();
    let due = rig
        .controller
        .poll_timeout()
        .expect("the last resort arms a timer");
    rig.wait(Span(due.0 - rig.now.0));
    assert!(!rig.requests().is_empty());
    assert_eq!(rig.poll(), None);
}

#[test]
fn a_stream_that_has_passed_our_write_arms_no_timer() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    rig.settle();
    for kind in [Kind::Pod, Kind::ReplicaSet] {
        let version = rig.next_version();
        rig.observe(Event::Bookmark { kind, version });
    }
    assert_eq!(rig.controller.poll_timeout(), None);
}

#[test]
fn a_list_without_a_version_is_trusted() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.succeed(&batch);
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version: None,
    });
    assert_eq!(
        rig.controller.inspect().sizes().pods,
        0,
        "the pod is gone, since the list does not name it"
    );
    assert!(!rig.settle().is_empty());
}

#[test]
fn without_versions_the_last_state_counts() {
    let bare = |deleting| {
        let pod = with(pod("a", "web"), |state| state.deleting = deleting);
        Pod {
            version: None,
            ..pod
        }
    };
    let mut rig = Rig::of(vec![set("web", 0)], vec![bare(false)]);
    let batch = rig.batch();
    let after = Some(After::Pod(Box::new(bare(true))));
    let version = None;
    rig.answer(&batch, 0, OperationResult::Done { version, after });
    assert_eq!(rig.view("web").status.replicas, 0);
    rig.observe(Event::PodApplied(bare(false)));
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_created_pod_takes_the_place_of_an_older_one_of_its_name() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let name = created(&batch).remove(0);
    let older = Pod {
        uid: uid("older"),
        ..orphan(&name, "elsewhere")
    };
    rig.apply_pod(older.clone());
    rig.succeed(&batch);
    assert_eq!(rig.view("web").status.replicas, 1);
    rig.delete_pod(&older);
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn an_older_outcome_takes_no_event_back() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    let adoption = rig.batch();
    let version = Some(rig.next_version());
    rig.apply_pod(unready(pod("a", "web")));
    let adopted = Pod {
        version,
        ..pod("a", "web")
    };
    let after = Some(After::Pod(Box::new(adopted)));
    rig.answer(&adoption, 0, OperationResult::Done { version, after });
    assert_eq!(rig.view("web").status.ready_replicas, 0);
}

#[test]
fn the_version_of_a_batch_includes_what_outcomes_told() {
    let mut rig = Rig::of(vec![set("web", 1), set("db", 1)], vec![]);
    let (batch, other) = (rig.batch(), rig.batch());
    rig.succeed(&batch);
    let written = rig.controller.version(Kind::Pod);
    rig.succeed(&other);
    let later = rig.batch();
    assert!(later.pods_version > written, "{later:?}");
}

//! The adoption and release of pods (spec 5.3).

use server_core::{Action, After, FailureClass, OperationResult, OwnerReference, Pod, ReplicaSet};

use crate::{
    objects::{labels, orphan, owner, pod, selector, set},
    rig::{Rig, claimed, created, deleting, failed, uid},
};

#[test]
fn a_matching_orphan_is_adopted_and_another_left_alone() {
    let mut rig = Rig::of(
        vec![set("web", 1)],
        vec![orphan("mine", "web"), orphan("other", "db")],
    );
    let batch = rig.batch();
    assert_eq!(claimed(&batch), (vec!["mine".to_owned()], vec![]));
    rig.succeed(&batch);
    assert_eq!(
        rig.settle()
            .iter()
            .filter(|batch| matches!(batch.action, Action::Create { .. }))
            .count(),
        0
    );
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn an_owned_pod_that_no_longer_matches_is_released_and_replaced() {
    let strange = Pod {
        labels: labels(&[("app", "other")]),
        ..pod("strange", "web")
    };
    let mut rig = Rig::of(vec![set("web", 1)], vec![strange]);
    let batch = rig.batch();
    assert_eq!(claimed(&batch), (vec![], vec!["strange".to_owned()]));
    rig.succeed(&batch);
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn an_orphan_that_appears_amid_a_sync_is_adopted_and_not_replaced() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![orphan("b", "web")]);
    let first = rig.batch();
    assert_eq!(claimed(&first).0, ["b"]);
    rig.apply_pod(orphan("a", "web"));
    rig.succeed(&first);
    let second = rig.batch();
    assert_eq!(claimed(&second).0, ["a"]);
    rig.succeed(&second);
    assert!(
        rig.settle()
            .iter()
            .all(|batch| matches!(batch.action, Action::WriteStatus(_)))
    );
    assert_eq!(rig.view("web").status.replicas, 2);
}

#[test]
fn a_release_whose_failure_is_ignored_is_tried_once_a_sync() {
    let strange = |name| Pod {
        labels: labels(&[("app", "other")]),
        ..pod(name, "web")
    };
    let mut rig = Rig::of(vec![set("web", 0)], vec![strange("a")]);
    let first = rig.batch();
    rig.apply_pod(strange("b"));
    rig.fail_all(&first, FailureClass::Invalid);
    assert_eq!(claimed(&rig.batch()).1, ["b"]);
}

#[test]
fn an_adopted_pod_that_goes_to_another_controller_counts_no_longer() {
    let mut rig = Rig::of(
        vec![set("web", 2)],
        vec![orphan("a", "web"), pod("b", "web")],
    );
    let batch = rig.batch();
    assert_eq!(claimed(&batch).0, ["a"]);
    rig.succeed(&batch);
    rig.settle();
    assert_eq!(rig.view("web").status.replicas, 2);
    rig.apply_pod(pod("a", "web"));
    rig.apply_pod(pod("a", "db"));
    assert_eq!(rig.view("web").status.replicas, 1);
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn a_pod_of_another_controller_is_not_touched() {
    let foreign = Pod {
        controller: Some(OwnerReference {
            uid: uid("someone"),
            ..owner("web")
        }),
        ..orphan("foreign", "web")
    };
    let mut rig = Rig::of(vec![set("web", 2)], vec![foreign]);
    assert_eq!(created(&rig.batch()).len(), 2);
}

#[test]
fn the_right_uid_under_the_wrong_name_is_neither_owned_nor_orphaned() {
    let odd = Pod {
        controller: Some(OwnerReference {
            name: "renamed".into(),
            ..owner("web")
        }),
        ..orphan("odd", "web")
    };
    let mut rig = Rig::of(vec![set("web", 1)], vec![odd]);
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn a_replica_set_that_is_being_deleted_claims_creates_and_deletes_nothing() {
    let strange = Pod {
        labels: labels(&[("app", "other")]),
        ..pod("strange", "web")
    };
    let going = ReplicaSet {
        deleting: true,
        ..set("web", 3)
    };
    let mut rig = Rig::of(
        vec![going],
        vec![orphan("a", "web"), pod("b", "web"), strange],
    );
    let batches = rig.settle();
    assert!(
        batches
            .iter()
            .all(|batch| matches!(batch.action, Action::WriteStatus(_))),
        "{batches:?}"
    );
    assert_eq!(
        rig.view("web").status.replicas,
        1,
        "it keeps the pod that it owns"
    );
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_terminating_orphan_is_not_adopted() {
    let going = deleting(orphan("going", "web"));
    let mut rig = Rig::of(vec![set("web", 0)], vec![going]);
    assert_eq!(rig.poll(), None);
}

#[test]
fn an_orphan_of_another_namespace_is_not_adopted() {
    let far = Pod {
        namespace: "elsewhere".into(),
        ..orphan("far", "web")
    };
    let mut rig = Rig::of(vec![set("web", 0)], vec![far]);
    assert_eq!(rig.poll(), None);
}

#[test]
fn failing_adoptions_end_the_sync_before_anything_is_created() {
    let mut rig = Rig::of(
        vec![set("web", 10)],
        vec![orphan("a", "web"), orphan("b", "web")],
    );
    let batch = rig.batch();
    assert_eq!(claimed(&batch).0, ["a", "b"]);
    rig.fail_all(&batch, FailureClass::Conflict);
    assert_eq!(claimed(&rig.batch()).0, ["a", "b"]);
    assert_eq!(rig.errors(), ["no"]);
    assert_eq!(rig.view("web").failures, 1);
}

#[test]
fn an_owner_that_changed_under_our_eyes_ends_the_sync_with_an_error() {
    let mut rig = Rig::of(vec![set("web", 10)], vec![orphan("a", "web")]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::OwnerChanged);
    assert_eq!(claimed(&rig.batch()).0, ["a"], "afresh, and at once");
    assert_eq!(rig.errors().len(), 1);
}

#[test]
fn an_orphan_that_is_gone_is_no_error() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    let batch = rig.batch();
    rig.answer(&batch, 0, failed(FailureClass::NotFound, "not found"));
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn an_adoption_that_meets_another_pod_is_an_error() {
    let mut rig = Rig::of(vec![set("web", 10)], vec![orphan("a", "web")]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::Precondition);
    assert_eq!(claimed(&rig.batch()).0, ["a"], "afresh, and at once");
    assert_eq!(rig.errors().len(), 1);
}

#[test]
fn a_release_that_finds_another_controller_is_done() {
    let strange = |owner: &str| Pod {
        labels: labels(&[("app", "other")]),
        ..pod("a", owner)
    };
    let mut rig = Rig::of(vec![set("web", 0)], vec![strange("web")]);
    let batch = rig.batch();
    assert_eq!(claimed(&batch).1, ["a"]);
    let version = Some(rig.next_version());
    let taken = Pod {
        version,
        ..strange("db")
    };
    let after = Some(After::Pod(Box::new(taken)));
    rig.answer(&batch, 0, OperationResult::Done { version, after });
    rig.settle();
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_release_that_meets_another_pod_is_no_error() {
    let strange = Pod {
        labels: labels(&[("app", "other")]),
        ..pod("strange", "web")
    };
    let mut rig = Rig::of(vec![set("web", 0)], vec![strange]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::Invalid);
    rig.settle();
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_pod_relabelled_out_and_back_is_released_then_adopted() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    rig.settle();
    rig.apply_pod(Pod {
        labels: labels(&[("app", "else")]),
        ..pod("a", "web")
    });
    let released = rig.batch();
    assert_eq!(claimed(&released).1, ["a"]);
    rig.succeed(&released);
    rig.settle();
    rig.apply_pod(orphan("a", "web"));
    assert_eq!(claimed(&rig.batch()).0, ["a"]);
}

#[test]
fn an_empty_selector_adopts_every_orphan_of_its_namespace() {
    let all = ReplicaSet {
        selector: selector(&[]),
        ..set("all", 2)
    };
    let bare = Pod {
        labels: labels(&[]),
        ..orphan("bare", "x")
    };
    let mut rig = Rig::of(vec![all], vec![bare, orphan("b", "db")]);
    assert_eq!(claimed(&rig.batch()).0, ["b", "bare"]);
}

#[test]
fn overlapping_replica_sets_stay_as_they_are() {
    let twin = ReplicaSet {
        selector: selector(&[("app", "web")]),
        template_labels: labels(&[("app", "web")]),
        ..set("twin", 2)
    };
    let of_twin = |name| Pod {
        controller: Some(owner("twin")),
        ..orphan(name, "web")
    };
    let mut rig = Rig::of(
        vec![set("web", 1), twin],
        vec![pod("a", "web"), of_twin("b"), of_twin("c")],
    );
    assert!(
        rig.settle()
            .iter()
            .all(|batch| matches!(batch.action, Action::WriteStatus(_)))
    );
    assert_eq!(
        (
            rig.view("web").status.replicas,
            rig.view("twin").status.replicas
        ),
        (1, 2)
    );
    assert_eq!(rig.poll(), None);
}

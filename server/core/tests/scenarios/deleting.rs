//! Terminating pods count once, and a victim stays a victim.

use server_core::{Action, After, FailureClass, OperationResult, Pod, ReplicaSet};

use crate::{
    objects::{owner, pod, set},
    rig::{Rig, at, deleting, failed, victims, written},
};

#[test]
fn deletes_carry_the_uid_and_only_if_asked_for_the_version() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let Action::Delete(chosen) = rig.batch().action else {
        panic!()
    };
    assert!(chosen[0].pod.uid.is("uid-a"), "{chosen:?}");
    assert_eq!(chosen[0].version, None);
    let config = server_core::Config {
        delete_by_version: true,
        ..Default::default()
    };
    let mut rig = Rig::with(config).listed(vec![set("web", 0)], vec![pod("a", "web")]);
    let Action::Delete(chosen) = rig.batch().action else {
        panic!()
    };
    assert!(chosen[0].version.is_some());
}

#[test]
fn a_pod_whose_deletion_was_accepted_crowds_its_node_no_longer() {
    let on = |name: &str, node: &str| Pod {
        node: Some(node.into()),
        ..pod(name, "web")
    };
    let crowd = [
        on("y1", "a"),
        on("y2", "a"),
        on("y3", "a"),
        on("b1", "b"),
        on("b2", "b"),
    ];
    let of_deployment = |replicas| ReplicaSet {
        controller: Some(owner("deployment")),
        ..set("web", replicas)
    };
    let mut rig = Rig::of(vec![of_deployment(4)], crowd.to_vec());
    let batch = rig.batch();
    assert_eq!(victims(&batch), ["y1"]);
    let version = Some(rig.next_version());
    let going = Pod {
        version,
        ..deleting(crowd[0].clone())
    };
    let after = Some(After::Pod(Box::new(going)));
    rig.answer(&batch, 0, OperationResult::Done { version, after });
    rig.delete_pod(&crowd[0]);
    rig.settle();
    rig.apply_replica_set(of_deployment(3));
    let batch = rig.batch();
    // Two pods on each node: the rank of the nodes does not decide.
    assert_eq!(victims(&batch), ["b1"]);
}

#[test]
fn a_pod_that_is_gone_does_not_come_back_by_an_older_event() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web"), pod("b", "web")]);
    let batch = rig.batch();
    rig.succeed(&batch);
    rig.observe(server_core::Event::PodApplied(at(pod("a", "web"), 500)));
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_victim_that_was_gone_already_is_no_error() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::NotFound);
    rig.settle();
    assert_eq!(rig.errors(), Vec::<String>::new());
    assert_eq!(rig.view("web").status.replicas, 0);
}

#[test]
fn a_victim_that_changed_is_chosen_afresh_without_a_condition() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::Precondition);
    let status = written(&rig.batch());
    assert_eq!(status.conditions, []);
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_refused_deletion_sets_the_condition_failed_delete() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.answer(&batch, 0, failed(FailureClass::Forbidden, "rbac says no"));
    let condition = written(&rig.batch()).conditions.remove(0);
    assert_eq!(
        (&*condition.reason, &*condition.message),
        ("FailedDelete", "unable to delete pods: rbac says no")
    );
}

#[test]
fn the_pod_that_someone_deletes_is_replaced_when_it_begins_to_go() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    rig.settle();
    rig.apply_pod(deleting(pod("a", "web")));
    assert!(matches!(rig.batch().action, Action::Create { .. }));
}

#[test]
fn a_pod_of_the_same_name_with_another_uid_is_another_pod() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    rig.settle();
    let other = Pod {
        uid: crate::rig::uid("second"),
        controller: None,
        labels: Default::default(),
        ..pod("a", "web")
    };
    rig.apply_pod(other);
    assert!(
        matches!(rig.batch().action, Action::Create { .. }),
        "the first one is gone"
    );
}

#[test]
fn a_late_deletion_of_the_old_uid_leaves_the_new_pod_alone() {
    let mut rig = Rig::of(
        vec![set("web", 1)],
        vec![Pod {
            uid: crate::rig::uid("second"),
            ..pod("a", "web")
        }],
    );
    rig.settle();
    rig.delete_pod(&pod("a", "web"));
    assert_eq!(rig.view("web").status.replicas, 1);
    assert_eq!(rig.poll(), None);
}

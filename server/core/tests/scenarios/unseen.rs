//! Outcomes without the object after the write: their ReplicaSet waits for a list that begins later, and no other does.

use server_core::{Action, After, Event, Kind, OperationResult, Pod, ReplicaSet, Rule, State};

use crate::{
    objects::{orphan, pod, set},
    rig::{BARE, Rig, at, claimed, created, victims},
};

#[test]
fn a_create_without_its_pod_waits_for_a_list_and_others_go_on() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let batch = rig.batch();
    rig.succeed_without_objects(&batch);
    assert_eq!(rig.requests(), [Kind::Pod]);
    rig.apply_replica_set(set("db", 1));
    assert_eq!(&*rig.batch().key.name, "db");
    assert_eq!(rig.poll(), None);
    let view = rig.view("web");
    assert_eq!(
        (view.state, view.reasons[0].rule),
        (State::Waiting, Rule::ViewOlderThanWrite)
    );
    let made = created(&batch);
    rig.list_pods(made.iter().map(|name| pod(name, "web")).collect());
    assert!(matches!(rig.batch().action, Action::WriteStatus(_)));
    assert_eq!(rig.view("web").status.replicas, 2);
}

#[test]
fn a_created_pod_that_no_list_names_is_replaced() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.succeed_without_objects(&batch);
    rig.list_pods(vec![]);
    let again = rig.settle();
    let creates = again
        .iter()
        .filter(|batch| matches!(batch.action, Action::Create { .. }));
    assert_eq!(creates.count(), 1);
}

#[test]
fn a_list_that_began_before_the_outcome_does_not_show_the_write() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    rig.succeed_without_objects(&batch);
    assert_eq!(rig.requests(), [], "a list is open");
    let version = Some(rig.next_version());
    rig.observe(Event::SnapshotEnd {
        kind: Kind::Pod,
        version,
    });
    assert_eq!(rig.requests(), [Kind::Pod]);
    assert_eq!(rig.poll(), None);
    rig.list_pods(vec![pod(&created(&batch)[0], "web")]);
    assert!(matches!(rig.batch().action, Action::WriteStatus(_)));
    assert_eq!(rig.requests(), []);
}

#[test]
fn however_many_wait_one_list_is_asked_for() {
    let mut rig = Rig::of(vec![set("a", 1), set("b", 1), set("c", 1)], vec![]);
    while let Some(batch) = rig.poll() {
        rig.succeed_without_objects(&batch);
    }
    assert_eq!(rig.requests(), [Kind::Pod]);
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    assert_eq!(rig.requests(), []);
}

#[test]
fn a_status_without_its_replica_set_waits_for_a_list_of_those() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.succeed_without_objects(&batch);
    rig.apply_pod(pod("b", "web"));
    assert_eq!(rig.requests(), [Kind::ReplicaSet]);
    assert_eq!(rig.poll(), None);
    rig.list_sets(vec![ReplicaSet {
        status: crate::rig::written(&batch),
        ..set("web", 1)
    }]);
    assert_eq!(victims(&rig.batch()).len(), 1);
}

#[test]
fn a_bare_adoption_and_a_bare_deletion_wait_until_a_list_shows_them() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![orphan("a", "web")]);
    let batch = rig.batch();
    assert_eq!(claimed(&batch).0, ["a"]);
    rig.answer(&batch, 0, BARE);
    assert_eq!(rig.poll(), None);
    rig.list_pods(vec![at(pod("a", "web"), 2)]);
    let batch = rig.batch();
    assert_eq!(victims(&batch), ["a"]);
    rig.answer(&batch, 0, BARE);
    assert_eq!(rig.poll(), None);
    rig.list_pods(vec![]);
    assert!(matches!(rig.batch().action, Action::WriteStatus(_)));
    assert_eq!(rig.view("web").status.replicas, 0);
}

#[test]
fn an_object_that_does_not_show_the_write_counts_as_none() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let batch = rig.batch();
    let version = Some(rig.next_version());
    let staying = Pod {
        version,
        ..pod("a", "web")
    };
    let after = Some(After::Pod(Box::new(staying)));
    rig.answer(&batch, 0, OperationResult::Done { version, after });
    assert_eq!(rig.requests(), [Kind::Pod]);
    assert_eq!(rig.poll(), None);
}

#[test]
fn an_object_other_than_the_one_written_counts_as_none() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let create = rig.batch();
    let version = Some(rig.next_version());
    let another = Pod {
        version,
        ..pod("another", "web")
    };
    let after = Some(After::Pod(Box::new(another)));
    rig.answer(&create, 0, OperationResult::Done { version, after });
    assert_eq!(rig.requests(), [Kind::Pod]);

    let pods = vec![pod("a", "web"), pod("b", "db")];
    let mut rig = Rig::of(vec![set("web", 1), set("db", 1)], pods);
    let status = rig.batch();
    let version = Some(rig.next_version());
    let another = ["web", "db"]
        .map(|name| set(name, 1))
        .into_iter()
        .find(|set| set.key != status.key)
        .map(|set| ReplicaSet { version, ..set })
        .expect("there are two");
    let after = Some(After::ReplicaSet(Box::new(another)));
    rig.answer(&status, 0, OperationResult::Done { version, after });
    assert_eq!(rig.requests(), [Kind::ReplicaSet]);
}

#[test]
fn a_replica_set_that_goes_while_it_waits_leaves_nothing_behind() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.succeed_without_objects(&batch);
    let version = Some(rig.next_version());
    rig.observe(Event::ReplicaSetDeleted {
        key: set("web", 1).key,
        version,
    });
    rig.list_pods(vec![]);
    assert_eq!(rig.poll(), None);
    assert_eq!(rig.controller.inspect().sizes().replica_sets, 0);
}

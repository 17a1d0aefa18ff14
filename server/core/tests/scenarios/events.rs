//! Which change queues which ReplicaSet (spec 3.2–3.6), seen by the syncs.

use server_core::{ControllerReport, Event, OwnerReference, Phase, Pod, ReplicaSet};

use crate::{
    objects::{labels, orphan, owner, pod, selector, set, with},
    rig::{Rig, deleting, uid, written},
};

/// The names of the ReplicaSets that synced since the last call.
fn synced(rig: &mut Rig) -> Vec<String> {
    rig.settle();
    let syncs = rig.syncs().into_iter();
    let mut names: Vec<_> = syncs.map(|sync| sync.key.name.to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Two ReplicaSets with nothing to do; `web` owns pod `a`.
fn at_rest() -> Rig {
    let mut rig = Rig::of(vec![set("web", 1), set("db", 0)], vec![pod("a", "web")]);
    synced(&mut rig);
    rig
}

#[test]
fn a_replica_set_is_synced_for_every_event_even_an_unchanged_one() {
    let mut rig = at_rest();
    rig.apply_replica_set(set("db", 0));
    assert_eq!(synced(&mut rig), ["db"]);
}

#[test]
fn a_failed_pod_wakes_its_owner() {
    let mut rig = at_rest();
    rig.apply_pod(with(pod("dead", "web"), |state| {
        state.phase = Phase::Failed;
    }));
    assert_eq!(synced(&mut rig), ["web"]);
}

#[test]
fn an_owned_pod_with_new_labels_wakes_its_owner_only() {
    let mut rig = at_rest();
    rig.apply_pod(Pod {
        labels: labels(&[("app", "web"), ("x", "y")]),
        ..pod("a", "web")
    });
    assert_eq!(synced(&mut rig), ["web"]);
}

#[test]
fn a_pod_that_loses_its_owner_wakes_the_old_owner_and_who_may_adopt_it() {
    let mut rig = at_rest();
    rig.apply_pod(Pod {
        labels: labels(&[("app", "db")]),
        ..orphan("a", "db")
    });
    assert_eq!(synced(&mut rig), ["db", "web"]);
}

#[test]
fn a_pod_orphaned_and_deleted_in_one_event_is_replaced() {
    let mut rig = at_rest();
    rig.apply_pod(deleting(orphan("a", "web")));
    assert_eq!(synced(&mut rig), ["web"]);
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_terminating_pod_that_loses_its_owner_is_counted_no_longer() {
    let mut rig = at_rest();
    rig.apply_pod(deleting(pod("a", "web")));
    synced(&mut rig);
    rig.apply_pod(deleting(orphan("a", "web")));
    let statuses: Vec<_> = rig.settle().iter().map(written).collect();
    assert_eq!(
        statuses
            .last()
            .and_then(|status| status.terminating_replicas),
        Some(0)
    );
}

#[test]
fn the_same_version_again_wakes_nobody() {
    let mut rig = at_rest();
    rig.observe(Event::PodApplied(pod("a", "web")));
    assert_eq!(synced(&mut rig), Vec::<String>::new());
}

#[test]
fn a_pod_whose_owner_is_unknown_wakes_nobody() {
    let mut rig = at_rest();
    let lost = OwnerReference {
        uid: uid("gone"),
        ..owner("web")
    };
    rig.apply_pod(Pod {
        controller: Some(lost),
        ..pod("b", "web")
    });
    assert_eq!(synced(&mut rig), Vec::<String>::new());
}

#[test]
fn an_owner_of_another_kind_is_not_ours_whatever_its_uid() {
    let mut rig = at_rest();
    let kind = OwnerReference {
        kind: "Job".into(),
        ..owner("web")
    };
    rig.apply_pod(Pod {
        controller: Some(kind),
        ..pod("b", "web")
    });
    assert_eq!(synced(&mut rig), Vec::<String>::new());
}

#[test]
fn an_orphan_without_labels_wakes_nobody() {
    let mut rig = Rig::of(
        vec![
            ReplicaSet {
                selector: selector(&[]),
                ..set("all", 0)
            },
            set("web", 0),
        ],
        vec![],
    );
    synced(&mut rig);
    rig.apply_pod(Pod {
        labels: labels(&[]),
        ..orphan("bare", "x")
    });
    assert_eq!(synced(&mut rig), Vec::<String>::new());
}

#[test]
fn an_orphan_that_many_select_is_reported() {
    let twin = ReplicaSet {
        selector: selector(&[("app", "web")]),
        ..set("twin", 0)
    };
    let mut rig = Rig::of(vec![set("web", 0), twin], vec![]);
    synced(&mut rig);
    rig.apply_pod(orphan("a", "web"));
    let many = rig.reports().into_iter().any(|report| {
        matches!(
            report,
            ControllerReport::OrphanMatchesMany { matches: 2, .. }
        )
    });
    assert!(many);
}

#[test]
fn an_orphan_that_one_selects_is_not_reported() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![]);
    synced(&mut rig);
    rig.apply_pod(orphan("a", "web"));
    let many = rig
        .reports()
        .into_iter()
        .any(|report| matches!(report, ControllerReport::OrphanMatchesMany { .. }));
    assert!(!many);
}

#[test]
fn a_pod_that_goes_wakes_its_owner() {
    let mut rig = at_rest();
    rig.delete_pod(&pod("a", "web"));
    assert_eq!(synced(&mut rig), ["web"]);
}

#[test]
fn a_pod_that_came_before_its_replica_set_counts_when_that_comes() {
    let mut rig = Rig::of(vec![], vec![pod("a", "web")]);
    rig.apply_replica_set(set("web", 1));
    assert_eq!(synced(&mut rig), ["web"]);
    assert_eq!(rig.view("web").status.replicas, 1);
}

#[test]
fn a_recreated_replica_set_starts_with_nothing_of_the_old() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let old = rig.batch();
    let mut second = set("web", 2);
    second.key.uid = uid("second");
    rig.apply_replica_set(second);
    rig.succeed(&old);
    let fresh = rig.batch();
    assert_eq!(fresh.key.uid, uid("second"));
    assert_eq!(fresh.action.operations(), 2);
    assert_eq!(rig.poll(), None);
}

#[test]
fn a_deleted_replica_set_is_forgotten() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let version = Some(rig.next_version());
    rig.observe(Event::ReplicaSetDeleted {
        key: set("web", 2).key,
        version,
    });
    assert_eq!(rig.poll(), None);
    assert_eq!(rig.controller.inspect().sizes().replica_sets, 0);
}

//! Which change wakes which ReplicaSet (spec 3.2–3.6): seen by who syncs.

use server_core::{Event, OwnerReference, Phase, Pod, ReplicaSet, Report};

use crate::{
    objects::{labels, orphan, owner, pod, selector, set, with},
    world::{World, deleting, uid, written},
};

/// The ReplicaSets that synced since the last look, by name.
fn synced(world: &mut World) -> Vec<String> {
    world.settle();
    let mut names: Vec<_> = world
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::Synced { key, .. } => Some(key.name.to_string()),
            Report::StaleViewSkipped { .. }
            | Report::Quarantined { .. }
            | Report::OrphanMatchesMany { .. }
            | Report::DeletionAgeRatio(_)
            | Report::ResyncNeeded { .. } => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Two ReplicaSets at rest, `web` owning pod `a`.
fn at_rest() -> World {
    let mut world = World::of(vec![set("web", 1), set("db", 0)], vec![pod("a", "web")]);
    synced(&mut world);
    world
}

#[test]
fn a_replica_set_is_synced_for_every_event_even_an_unchanged_one() {
    let mut world = at_rest();
    world.apply_replica_set(set("db", 0));
    assert_eq!(synced(&mut world), ["db"]);
}

#[test]
fn a_failed_pod_wakes_its_owner() {
    let mut world = at_rest();
    world.apply_pod(with(pod("dead", "web"), |state| {
        state.phase = Phase::Failed;
    }));
    assert_eq!(synced(&mut world), ["web"]);
}

#[test]
fn an_owned_pod_with_new_labels_wakes_its_owner_only() {
    let mut world = at_rest();
    world.apply_pod(Pod {
        labels: labels(&[("app", "web"), ("x", "y")]),
        ..pod("a", "web")
    });
    assert_eq!(synced(&mut world), ["web"]);
}

#[test]
fn a_pod_that_loses_its_owner_wakes_the_old_owner_and_who_may_adopt_it() {
    let mut world = at_rest();
    world.apply_pod(Pod {
        labels: labels(&[("app", "db")]),
        ..orphan("a", "db")
    });
    assert_eq!(synced(&mut world), ["db", "web"]);
}

#[test]
fn a_pod_orphaned_and_deleted_in_one_event_is_replaced() {
    let mut world = at_rest();
    world.apply_pod(deleting(orphan("a", "web")));
    assert_eq!(synced(&mut world), ["web"]);
    assert_eq!(world.view("web").status.replicas, 1);
}

#[test]
fn a_terminating_pod_that_loses_its_owner_is_counted_no_longer() {
    let mut world = at_rest();
    world.apply_pod(deleting(pod("a", "web")));
    synced(&mut world);
    world.apply_pod(deleting(orphan("a", "web")));
    let statuses: Vec<_> = world.settle().iter().map(written).collect();
    assert_eq!(
        statuses
            .last()
            .and_then(|status| status.terminating_replicas),
        Some(0)
    );
}

#[test]
fn the_same_version_again_wakes_nobody() {
    let mut world = at_rest();
    world.observe(Event::PodApplied(pod("a", "web")));
    assert_eq!(synced(&mut world), Vec::<String>::new());
}

#[test]
fn a_pod_whose_owner_is_unknown_wakes_nobody() {
    let mut world = at_rest();
    let lost = OwnerReference {
        uid: uid("gone"),
        ..owner("web")
    };
    world.apply_pod(Pod {
        controller: Some(lost),
        ..pod("b", "web")
    });
    assert_eq!(synced(&mut world), Vec::<String>::new());
}

#[test]
fn an_owner_of_another_kind_is_not_ours_whatever_its_uid() {
    let mut world = at_rest();
    let kind = OwnerReference {
        kind: "Job".into(),
        ..owner("web")
    };
    world.apply_pod(Pod {
        controller: Some(kind),
        ..pod("b", "web")
    });
    assert_eq!(synced(&mut world), Vec::<String>::new());
}

#[test]
fn an_orphan_without_labels_wakes_nobody() {
    let mut world = World::of(
        vec![
            ReplicaSet {
                selector: selector(&[]),
                ..set("all", 0)
            },
            set("web", 0),
        ],
        vec![],
    );
    synced(&mut world);
    world.apply_pod(Pod {
        labels: labels(&[]),
        ..orphan("bare", "x")
    });
    assert_eq!(synced(&mut world), Vec::<String>::new());
}

#[test]
fn an_orphan_that_many_select_is_reported() {
    let twin = ReplicaSet {
        selector: selector(&[("app", "web")]),
        ..set("twin", 0)
    };
    let mut world = World::of(vec![set("web", 0), twin], vec![]);
    synced(&mut world);
    world.apply_pod(orphan("a", "web"));
    let many = world
        .reports()
        .into_iter()
        .any(|report| matches!(report, Report::OrphanMatchesMany { matches: 2, .. }));
    assert!(many);
}

#[test]
fn a_pod_that_goes_wakes_its_owner() {
    let mut world = at_rest();
    world.delete_pod(&pod("a", "web"));
    assert_eq!(synced(&mut world), ["web"]);
}

#[test]
fn a_pod_that_came_before_its_replica_set_counts_when_that_comes() {
    let mut world = World::of(vec![], vec![pod("a", "web")]);
    world.apply_replica_set(set("web", 1));
    assert_eq!(synced(&mut world), ["web"]);
    assert_eq!(world.view("web").status.replicas, 1);
}

#[test]
fn a_recreated_replica_set_starts_with_nothing_of_the_old() {
    let mut world = World::of(vec![set("web", 2)], vec![]);
    let old = world.batch();
    let mut second = set("web", 2);
    second.key.uid = uid("second");
    world.apply_replica_set(second);
    world.succeed(&old);
    let fresh = world.batch();
    assert_eq!(fresh.key.uid, uid("second"));
    assert_eq!(fresh.action.operations(), 2);
    assert_eq!(world.poll(), None);
}

#[test]
fn a_deleted_replica_set_is_forgotten() {
    let mut world = World::of(vec![set("web", 2)], vec![]);
    let version = Some(world.next_version());
    world.observe(Event::ReplicaSetDeleted {
        key: set("web", 2).key,
        version,
    });
    assert_eq!(world.poll(), None);
    assert_eq!(world.controller.sizes().replica_sets, 0);
}

//! Who is synced when (spec 8).

use server_core::{Config, FailureClass, Report, Span};

use crate::{
    objects::{orphan, set},
    world::World,
};

#[test]
fn failures_back_off_exponentially_and_success_forgets_them() {
    let mut world = World::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    let mut delays = Vec::new();
    for _ in 0..5 {
        let batch = world.batch();
        world.fail_all(&batch, FailureClass::Conflict);
        assert_eq!(world.poll(), None);
        let due = world
            .view("web")
            .next_sync
            .expect("a failed key is retried");
        delays.push(due.since(world.now).0 / 1_000_000);
        let span = due.since(world.now);
        world.wait(span);
    }
    assert_eq!(delays, [5, 10, 20, 40, 80]);
    let batch = world.batch();
    world.succeed(&batch);
    world.settle();
    assert_eq!(world.view("web").failures, 0);
}

#[test]
fn the_backoff_stops_at_a_thousand_seconds() {
    let mut world = World::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    let mut last = Span(0);
    for _ in 0..25 {
        let batch = world.batch();
        world.fail_all(&batch, FailureClass::Conflict);
        world.poll();
        last = world
            .view("web")
            .next_sync
            .expect("a failed key is retried")
            .since(world.now);
        world.wait(last);
    }
    assert_eq!(last, Span::seconds(1000));
}

#[test]
fn an_event_is_handled_at_once_whatever_the_backoff() {
    let mut world = World::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    let batch = world.batch();
    world.fail_all(&batch, FailureClass::Conflict);
    assert_eq!(world.poll(), None);
    world.apply_replica_set(set("web", 1));
    assert!(world.poll().is_some());
}

#[test]
fn many_failing_keys_share_ten_retries_a_second() {
    let sets: Vec<_> = (0..300).map(|at| set(&format!("web-{at}"), 1)).collect();
    let orphans = (0..300)
        .map(|at| orphan(&format!("pod-{at}"), &format!("web-{at}")))
        .collect();
    let mut world = World::with(Config {
        operations_in_flight_max: 100_000,
        ..Config::default()
    })
    .listed(sets, orphans);
    while let Some(batch) = world.poll() {
        world.fail_all(&batch, FailureClass::Conflict);
    }
    let delays: Vec<_> = (0..300)
        .filter_map(|at| world.view(&format!("web-{at}")).next_sync)
        .map(|due| due.since(world.now).0)
        .collect();
    let beyond = delays
        .iter()
        .filter(|delay| **delay > Span::seconds(1).0)
        .count();
    assert_eq!(delays.len(), 300);
    assert!(
        (185..=200).contains(&beyond),
        "{beyond} wait longer than a second"
    );
    assert!(delays.iter().max() >= Some(&Span::seconds(19).0));
}

#[test]
fn a_fresh_change_goes_before_the_rest_of_a_list() {
    let sets: Vec<_> = (0..50).map(|at| set(&format!("web-{at:02}"), 1)).collect();
    let mut world = World::of(sets, vec![]);
    world.apply_replica_set(set("web-49", 1));
    assert_eq!(&*world.batch().key.name, "web-49");
}

#[test]
fn a_list_is_not_starved_by_fresh_changes() {
    let mut world = World::of(vec![set("listed", 1), set("busy", 0)], vec![]);
    for _ in 0..20 {
        world.apply_replica_set(set("busy", 0));
        if world
            .poll()
            .is_some_and(|batch| &*batch.key.name == "listed")
        {
            return;
        }
    }
    panic!("the listed ReplicaSet never had its turn");
}

#[test]
fn operations_in_flight_are_bounded() {
    let config = Config {
        operations_in_flight_max: 10,
        burst_replicas: 4,
        ..Config::default()
    };
    let sets = (0..9).map(|at| set(&format!("web-{at}"), 4)).collect();
    let mut world = World::with(config).listed(sets, vec![]);
    let mut out: Vec<_> = std::iter::from_fn(|| world.poll()).collect();
    assert_eq!(out.len(), 2);
    let first = out.remove(0);
    world.succeed(&first);
    assert!(world.poll().is_some());
}

/// How long the ReplicaSets had waited whose syncs have ended since the last look.
fn waits(world: &mut World) -> Vec<Span> {
    let reports = world.reports().into_iter();
    let waits = reports.filter_map(|report| match report {
        Report::Synced { waited, .. } => Some(waited),
        Report::StaleViewSkipped { .. }
        | Report::Quarantined { .. }
        | Report::OrphanMatchesMany { .. }
        | Report::DeletionAgeRatio(_)
        | Report::ResyncNeeded { .. } => None,
    });
    waits.collect()
}

#[test]
fn sync_tells_how_long_it_waited_and_how_long_it_takes() {
    let mut world = World::of(vec![set("web", 1)], vec![orphan("a", "web")]);
    world.wait(Span::seconds(2));
    let batch = world.batch();
    world.wait(Span::seconds(3));
    let unfinished = world.controller.unfinished(world.now);
    assert_eq!(unfinished.total, Span::seconds(3));
    assert_eq!(unfinished.longest, Span::seconds(3));
    assert_eq!(world.controller.sizes().syncing, 1);
    // It needs another sync while this one runs, and waits from then on.
    world.apply_replica_set(set("web", 1));
    world.wait(Span::seconds(4));
    world.succeed(&batch);
    world.settle();
    let waits = waits(&mut world);
    assert_eq!(waits[..2], [Span::seconds(2), Span::seconds(4)]);
    assert_eq!(world.controller.sizes().syncing, 0);
    assert_eq!(world.controller.unfinished(world.now).longest, Span(0));
}

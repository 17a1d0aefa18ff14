//! The order and the delays of syncs (spec 8).

use server_core::{Batch, Config, FailureClass, NotStarted, OperationResult, Span};

use crate::{
    objects::{orphan, set},
    rig::Rig,
};

/// Fails a batch and its successors, `times` in all. Returns the delay before each retry in milliseconds, and the last batch.
fn delays(rig: &mut Rig, first: Batch, times: usize, class: FailureClass) -> (Vec<i64>, Batch) {
    let (mut batch, mut delays) = (first, Vec::new());
    while delays.len() < times {
        rig.fail_all(&batch, class);
        let (delay, next) = match rig.poll() {
            Some(next) => (Span(0), next),
            None => {
                let due = rig.view("web").next_sync.expect("it is tried again");
                let delay = due.since(rig.now);
                rig.wait(delay);
                (delay, rig.batch())
            }
        };
        delays.push(delay.0 / 1_000_000);
        batch = next;
    }
    (delays, batch)
}

/// Returns a rig with a ReplicaSet that has something to do, and its batch.
fn at_work(config: Config) -> (Rig, Batch) {
    let mut rig = Rig::with(config).listed(vec![set("web", 1)], vec![orphan("a", "web")]);
    let first = rig.batch();
    (rig, first)
}

#[test]
fn refusals_back_off_exponentially_and_success_forgets_them() {
    let (mut rig, first) = at_work(Config::default());
    let (delays, batch) = delays(&mut rig, first, 5, FailureClass::Forbidden);
    assert_eq!(delays, [5, 10, 20, 40, 80]);
    rig.succeed(&batch);
    rig.settle();
    assert_eq!(rig.view("web").failures, 0);
}

#[test]
fn backoff_stops_at_its_maximum() {
    for seconds in [30, 1_000] {
        let (mut rig, first) = at_work(Config {
            backoff_max: Span::seconds(seconds),
            ..Config::default()
        });
        let (delays, _) = delays(&mut rig, first, 25, FailureClass::Quota);
        assert_eq!(delays.last(), Some(&(seconds * 1_000)));
    }
}

/// No event shows the end of all that a guard refuses: a create of unknown effect counts for a time, and then ends in silence.
#[test]
fn guard_that_refuses_is_asked_again_within_the_maximum() {
    let (mut rig, mut batch) = at_work(Config::default());
    for _ in 0..25 {
        let guard = NotStarted::Guard("5 pods are active, 1 being created, 6 desired".to_owned());
        rig.answer(&batch, 0, OperationResult::NotStarted(guard));
        assert!(rig.poll().is_none(), "it waits");
        let due = rig.view("web").next_sync.expect("it is tried again");
        let delay = due.since(rig.now);
        assert!(delay <= Config::default().backoff_max, "{delay:?}");
        rig.wait(delay);
        batch = rig.batch();
    }
}

#[test]
fn conflicts_are_decided_afresh_at_once_and_never_wait_for_long() {
    let (mut rig, first) = at_work(Config::default());
    let (delays, _) = delays(&mut rig, first, 20, FailureClass::Conflict);
    assert_eq!(delays[..6], [0, 5, 10, 20, 40, 80]);
    assert!(delays.iter().all(|delay| *delay <= 1_000), "{delays:?}");
    assert_eq!(delays.last(), Some(&1_000));
}

#[test]
fn refusals_after_conflicts_begin_with_the_first_backoff() {
    let (mut rig, first) = at_work(Config::default());
    let (_, next) = delays(&mut rig, first, 16, FailureClass::Conflict);
    let (delays, _) = delays(&mut rig, next, 2, FailureClass::Quota);
    assert_eq!(delays, [5, 10]);
}

#[test]
fn many_failing_keys_share_ten_retries_a_second() {
    let sets: Vec<_> = (0..300).map(|at| set(&format!("web-{at}"), 1)).collect();
    let orphans = (0..300)
        .map(|at| orphan(&format!("pod-{at}"), &format!("web-{at}")))
        .collect();
    let mut rig = Rig::with(Config {
        operations_in_flight_max: 100_000,
        ..Config::default()
    })
    .listed(sets, orphans);
    while let Some(batch) = rig.poll() {
        rig.fail_all(&batch, FailureClass::Forbidden);
    }
    let delays: Vec<_> = (0..300)
        .filter_map(|at| rig.view(&format!("web-{at}")).next_sync)
        .map(|due| due.since(rig.now).0)
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
    let mut rig = Rig::of(sets, vec![]);
    rig.apply_replica_set(set("web-49", 1));
    assert_eq!(&*rig.batch().key.name, "web-49");
}

#[test]
fn a_list_is_not_starved_by_fresh_changes() {
    let mut rig = Rig::of(vec![set("listed", 1), set("busy", 0)], vec![]);
    for _ in 0..20 {
        rig.apply_replica_set(set("busy", 0));
        if rig.poll().is_some_and(|batch| &*batch.key.name == "listed") {
            return;
        }
    }
    panic!("the listed ReplicaSet never had its turn");
}

//! Refusals of the cluster, and objects that are invalid on arrival.

use server_core::{
    Action, ControllerReport, FailureClass, NotStarted, OperationResult, ReplicaSet, Rule, Span,
    State,
};

use crate::{
    objects::{orphan, pod, set},
    rig::{Rig, created, failed, invalid, slow_started, victims},
};

#[test]
fn a_terminating_namespace_is_no_error_and_waits_for_the_next_event() {
    let mut rig = Rig::of(vec![set("web", 10)], vec![]);
    let batch = rig.batch();
    rig.answer(
        &batch,
        0,
        failed(FailureClass::NamespaceTerminating, "terminating"),
    );
    (1..10).for_each(|operation| rig.answer(&batch, operation, slow_started()));
    assert_eq!(rig.settle(), []);
    assert_eq!(rig.errors(), Vec::<String>::new());
    rig.wait(Span::seconds(10_000));
    assert_eq!(rig.poll(), None);
    rig.apply_replica_set(set("web", 10));
    assert_eq!(created(&rig.batch()).len(), 10);
}

#[test]
fn an_agent_that_only_watches_is_not_asked_again_and_again() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.answer(
        &batch,
        0,
        OperationResult::NotStarted(NotStarted::NotEnforcing),
    );
    while let Some(batch) = rig.poll() {
        assert!(matches!(batch.action, Action::WriteStatus(_)));
        rig.answer(
            &batch,
            0,
            OperationResult::NotStarted(NotStarted::NotEnforcing),
        );
    }
    rig.wait(Span::seconds(10_000));
    assert_eq!(rig.poll(), None);
}

#[test]
fn what_a_guard_refused_is_tried_again_though_no_event_comes() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    while let Some(batch) = rig.poll() {
        rig.answer(
            &batch,
            0,
            OperationResult::NotStarted(NotStarted::Guard(String::new())),
        );
    }
    rig.wait(Span::seconds(1));
    assert_eq!(created(&rig.batch()).len(), 1);
}

/// Returns the rules for which a ReplicaSet waits, and the detail of the last.
fn waits_for(rig: &Rig) -> (Vec<Rule>, String) {
    let reasons = rig.view("web").reasons;
    let last = reasons.last().map(|it| it.detail.to_string());
    let rules = reasons.iter().map(|it| it.rule);
    (rules.collect(), last.unwrap_or_default())
}

#[test]
fn what_the_agent_refused_is_a_reason_until_it_gets_through() {
    let pods = ["a", "b", "c"].map(|name| pod(name, "web")).into();
    let mut rig = Rig::of(vec![set("web", 1)], pods);
    let before = rig.controller.inspect().sizes().bytes;
    let held = |rig: &mut Rig| {
        let batch = rig.batch();
        for (operation, words) in [(1, "another".to_owned()), (0, "é".repeat(1_000))] {
            let effect = OperationResult::NotStarted(NotStarted::Guard(words));
            rig.answer(&batch, operation, effect);
        }
        rig.settle();
    };
    held(&mut rig);
    let (rules, words) = waits_for(&rig);
    let waiting = [Rule::Backoff, Rule::TooManyReplicas, Rule::RefusedByAgent];
    assert_eq!(rules, waiting);
    assert_eq!(words, "é".repeat(512), "the lowest speaks, within bounds");
    rig.reports();
    let bytes = rig.controller.inspect().sizes().bytes;
    assert!(bytes > before, "it is counted");
    rig.wait(Span::seconds(1));
    let batch = rig.batch();
    assert_eq!(
        waits_for(&rig).0,
        [Rule::BatchInFlight, Rule::RefusedByAgent]
    );
    rig.succeed(&batch);
    rig.settle();
    assert_eq!(waits_for(&rig).0, [Rule::InSync]);
    rig.reports();
    assert!(rig.controller.inspect().sizes().bytes < bytes);
}

#[test]
fn what_the_agent_refused_goes_with_its_cause() {
    let pods = ["a", "b", "c"].map(|name| pod(name, "web")).into();
    let mut rig = Rig::of(vec![set("web", 1)], pods);
    let refuse = |rig: &mut Rig| {
        let batch = rig.batch();
        let refused = |_| OperationResult::NotStarted(NotStarted::Guard("held".to_owned()));
        (0..2).for_each(|operation| rig.answer(&batch, operation, refused(())));
        rig.settle();
    };
    refuse(&mut rig);
    let wanted = ReplicaSet {
        generation: 2,
        ..set("web", 3)
    };
    rig.apply_replica_set(wanted);
    rig.settle();
    let (rules, _) = waits_for(&rig);
    assert!(
        !rules.contains(&Rule::RefusedByAgent),
        "nothing is left to do"
    );
    let wanted = ReplicaSet {
        generation: 3,
        ..set("web", 1)
    };
    rig.apply_replica_set(wanted);
    refuse(&mut rig);
    rig.wait(Span::seconds(1));
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::Quota);
    rig.settle();
    let (rules, _) = waits_for(&rig);
    assert_eq!(
        rules,
        [Rule::Backoff, Rule::TooManyReplicas],
        "another cause"
    );
}

#[test]
fn the_first_operation_that_failed_speaks_for_its_batch() {
    let pods = ["a", "b", "c"].map(|name| pod(name, "web")).into();
    let mut rig = Rig::of(vec![set("web", 0)], pods);
    let batch = rig.batch();
    for (operation, message) in [(1, "second"), (2, "third"), (0, "first")] {
        rig.answer(&batch, operation, failed(FailureClass::Forbidden, message));
    }
    rig.settle();
    assert_eq!(rig.errors(), ["unable to delete pods: first"]);
}

#[test]
fn a_throttled_cluster_is_left_alone_for_as_long_as_it_asks() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let effect = OperationResult::Failed {
        class: FailureClass::Throttled,
        message: "slow down".to_owned(),
        retry_after: Some(Span::seconds(7)),
    };
    rig.answer(&batch, 0, effect);
    let status = rig.batch();
    rig.succeed(&status);
    assert_eq!(rig.poll(), None);
    let (rules, words) = waits_for(&rig);
    let waiting = [Rule::Backoff, Rule::TooFewReplicas, Rule::Throttled];
    assert_eq!((rules.as_slice(), &*words), (&waiting[..], "slow down"));
    rig.wait(Span::millis(6_999));
    assert_eq!(rig.poll(), None);
    rig.apply_replica_set(set("web", 1));
    assert_eq!(rig.poll(), None, "no event wakes it before");
    rig.wait(Span::millis(1));
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn a_cluster_may_not_ask_for_more_than_a_minute() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    let effect = OperationResult::Failed {
        class: FailureClass::Unavailable,
        message: "away".to_owned(),
        retry_after: Some(Span::seconds(1_000_000_000)),
    };
    rig.answer(&batch, 0, effect);
    rig.settle();
    rig.wait(Span::millis(59_999));
    assert_eq!(rig.poll(), None);
    rig.wait(Span::millis(1));
    assert_eq!(created(&rig.batch()).len(), 1);
}

#[test]
fn a_replica_set_with_an_invalid_selector_is_left_alone_and_said_so_once() {
    let bad = ReplicaSet {
        selector: Err(invalid()),
        ..set("web", 3)
    };
    let mut rig = Rig::of(
        vec![bad.clone(), set("db", 1)],
        vec![orphan("a", "web"), pod("b", "web")],
    );
    let batches = rig.settle();
    assert!(batches.iter().all(|batch| &*batch.key.name == "db"));
    let said = |rig: &mut Rig| {
        rig.reports()
            .iter()
            .filter(|report| matches!(report, ControllerReport::Quarantined { .. }))
            .count()
    };
    assert_eq!(said(&mut rig), 1);
    rig.apply_replica_set(bad);
    rig.settle();
    assert_eq!(said(&mut rig), 0);
    assert_eq!(rig.view("web").state, State::Quarantined);
    rig.apply_replica_set(set("web", 3));
    assert!(!rig.settle().is_empty(), "a good version releases it");
    assert_eq!(rig.controller.inspect().sizes().quarantined, 0);
}

#[test]
fn an_invalid_sibling_is_passed_over_when_neighbours_are_counted() {
    let parent = || Some(crate::objects::owner("deployment"));
    let bad = ReplicaSet {
        selector: Err(invalid()),
        controller: parent(),
        ..set("bad", 0)
    };
    let good = ReplicaSet {
        controller: parent(),
        ..set("web", 1)
    };
    let mut rig = Rig::of(vec![bad, good], vec![pod("a", "web"), pod("b", "web")]);
    let batch = std::iter::from_fn(|| rig.poll())
        .find(|batch| matches!(batch.action, Action::Delete(_)))
        .expect("one goes");
    assert_eq!(victims(&batch).len(), 1);
}

#[test]
fn an_outcome_that_comes_twice_counts_once() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let batch = rig.batch();
    rig.succeed_one(&batch, 0);
    rig.succeed_one(&batch, 0);
    rig.answer(&batch, 77, slow_started());
    assert_eq!(rig.poll(), None, "the second operation is still out");
    assert_eq!(rig.view("web").reasons[0].rule, Rule::BatchInFlight);
    assert_eq!(rig.view("web").in_flight, Some((2, 1)));
}

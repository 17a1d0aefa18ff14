//! The order and the delays of syncs (spec 8).

use decree_core::{
    Config, FailureClass, NotReady, NotStarted, OperationResult, Phase, Pod, Ready, Span,
};

use crate::{
    objects::{orphan, pod, set, unready, with},
    rig::{Rig, failed},
};

/// The groups of not ready pods of `web`: their numbers and reasons, and `-` before those that have ended.
fn not_ready(rig: &Rig) -> Vec<String> {
    let group = |NotReady {
                     reason,
                     pods,
                     ended,
                 }: &NotReady| {
        let ended = if *ended { "-" } else { "" };
        format!("{ended}{pods} {reason}")
    };
    rig.view("web").not_ready.iter().map(group).collect()
}

#[test]
fn waiting_reason_is_shown_by_number_and_decides_nothing() {
    let waits = |at: usize, reason: &str| Pod {
        waiting: Some(reason.into()).filter(|_| !reason.is_empty()),
        ..unready(pod(&format!("web-{at}"), "web"))
    };
    let mut rig = Rig::of(
        vec![set("web", 12)],
        (0..12).map(|at| waits(at, "")).collect(),
    );
    rig.settle();
    let decision = rig.simulate("web", 5);
    assert_eq!(not_ready(&rig), [""; 0]);
    let pull = |at| {
        if at < 3 {
            "ImagePull".to_owned()
        } else {
            format!("r{at:02}")
        }
    };
    (0..12).for_each(|at| rig.apply_pod(waits(at, &pull(at))));
    assert_eq!((rig.settle(), rig.simulate("web", 5)), (vec![], decision));
    let expected = [
        "3 ImagePull",
        "1 r03",
        "1 r04",
        "1 r05",
        "1 r06",
        "1 r07",
        "1 r08",
        "1 r09",
        "2 ",
    ];
    assert_eq!(not_ready(&rig), expected);
    let around = rig.surroundings("default", "web", usize::MAX);
    assert!(around.owned().all(|pod| pod.waiting.is_some()));
    // Ready pods are not counted, and ended ones apart.
    let ready = Ready {
        ready: true,
        since: None,
    };
    (1..12).for_each(|at| rig.apply_pod(with(waits(at, "r"), |state| state.ready = ready)));
    let ended = |state: &mut decree_core::PodState| state.phase = Phase::Failed;
    rig.apply_pod(with(waits(1, "Evicted"), ended));
    assert_eq!(not_ready(&rig), ["1 ImagePull", "-1 Evicted"]);
    rig.apply_pod(waits(0, ""));
    rig.delete_pod(&waits(1, ""));
    assert_eq!(not_ready(&rig), [""; 0]);
}

/// No event shows the end of all that a guard refuses: a create of unknown effect counts for a time, and then ends in silence.
#[test]
fn backoff_stops_at_its_maximum() {
    let (quota, conflict) = (FailureClass::Quota, FailureClass::Conflict);
    let guard = NotStarted::Guard("5 pods are active, 1 being created, 6 desired".to_owned());
    for (result, seconds, expected) in [
        (failed(quota, "no"), 30, 30_000),
        (failed(quota, "no"), 1_000, 1_000_000),
        (OperationResult::NotStarted(guard), 30, 30_000),
        (failed(conflict, "no"), 30, 1_000),
    ] {
        let config = Config {
            backoff_max: Span::seconds(seconds),
            ..Config::default()
        };
        let mut rig = Rig::with(config).listed(vec![set("web", 1)], vec![orphan("a", "web")]);
        let (mut batch, mut delays) = (rig.batch(), Vec::new());
        for _ in 0..25 {
            rig.answer(&batch, 0, result.clone());
            batch = rig.poll().unwrap_or_else(|| {
                let due = rig.view("web").next_sync.expect("it is tried again");
                let delay = due.since(rig.now);
                delays.push(delay.0 / 1_000_000);
                rig.wait(delay);
                rig.batch()
            });
        }
        assert!(delays.is_sorted(), "{delays:?}");
        assert_eq!(delays.last(), Some(&expected), "{result:?}");
    }
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

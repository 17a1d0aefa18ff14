//! Deletions, claims, statuses, and refused operations.

use super::*;
use crate::api::WriteStatus;

#[test]
fn deletes_start_together_under_the_precondition_of_their_uid() {
    let mut rig = Rig::taking(delete(&["a", "b"]), &[pod("a", 5), pod("b", 6)]);
    let calls = rig.calls();
    let expected = Request::DeletePod {
        pod: pod_ref("a"),
        resource_version: None,
    };
    assert_eq!((calls.len(), &calls[0].1), (2, &expected));
    rig.answer(calls[0].0, Ok(Reply::Gone("12".into())));
    rig.answer(calls[1].0, replied(deleting(pod("b", 13))));
    rig.ends_with(&[(0, "done"), (1, "done")]);
}

#[test]
fn delete_outcomes_tell_absence_from_a_failed_precondition() {
    let answered = |code| {
        let mut rig = Rig::taking(delete(&["a"]), &[pod("a", 5)]);
        let (id, _) = rig.call();
        rig.answer(id, Err(refusal(code, "")));
        rig.outcomes()
    };
    assert_eq!(answered(404), [(0, "FAILURE_CLASS_NOT_FOUND")]);
    assert_eq!(answered(409), [(0, "FAILURE_CLASS_PRECONDITION")]);
    assert_eq!(answered(403), [(0, "FAILURE_CLASS_FORBIDDEN")]);
}

#[test]
fn lost_reply_of_a_delete_is_resolved_by_reading_the_pod() {
    let after_reading = |answer: Result<Reply, ApiError>| {
        let mut rig = Rig::taking(delete(&["a"]), &[pod("a", 5)]);
        let (id, _) = rig.call();
        rig.answer(id, Err(refusal(504, "Timeout")));
        let (id, _) = rig.call();
        rig.answer(id, answer);
        rig.outcomes()
    };
    let other = v1::Pod {
        uid: "another".into(),
        ..pod("a", 12)
    };
    assert_eq!(after_reading(Err(refusal(404, "NotFound"))), [(0, "done")]);
    assert_eq!(
        after_reading(replied(deleting(pod("a", 12)))),
        [(0, "done")]
    );
    assert_eq!(after_reading(replied(other)), [(0, "done")]);
    assert_eq!(
        after_reading(replied(pod("a", 5))),
        [(0, "FAILURE_CLASS_TIMEOUT")]
    );
}

#[test]
fn lost_reply_of_a_release_is_resolved_by_reading_the_pod() {
    let after_reading = |answer: Result<Reply, ApiError>| {
        let mut rig = Rig::taking(claim(&[], &["a"]), &[pod("a", 5)]);
        let (id, _) = rig.call();
        rig.answer(id, Err(refusal(504, "Timeout")));
        let (id, _) = rig.call();
        rig.answer(id, answer);
        rig.outcomes()
    };
    assert_eq!(after_reading(replied(orphan("a", 12))), [(0, "done")]);
    assert_eq!(
        after_reading(replied(pod("a", 5))),
        [(0, "FAILURE_CLASS_TIMEOUT")]
    );
    assert_eq!(
        after_reading(Err(refusal(404, "NotFound"))),
        [(0, "FAILURE_CLASS_NOT_FOUND")]
    );
}

#[test]
fn pod_that_is_not_owned_is_never_deleted_nor_released() {
    let stranger = v1::Pod {
        controller: Some(v1::OwnerReference {
            uid: "other".into(),
            ..controller()
        }),
        ..pod("a", 5)
    };
    for action in [delete(&["a"]), claim(&[], &["a"])] {
        for there in [stranger.clone(), orphan("a", 5)] {
            let rig = Rig::taking(action.clone(), &[there]);
            rig.ends_with_refusals();
        }
    }
}

#[test]
fn pod_that_is_gone_from_the_view_is_not_found_without_a_call() {
    let mut rig = Rig::taking(delete(&["a"]), &[]);
    assert_eq!(rig.calls(), []);
    rig.ends_with(&[(0, "FAILURE_CLASS_NOT_FOUND")]);
}

#[test]
fn replica_set_is_read_live_once_before_the_first_adoption() {
    let mut rig = Rig::taking(
        claim(&["a", "b"], &["c"]),
        &[orphan("a", 1), orphan("b", 2), pod("c", 3)],
    );
    let calls = rig.calls();
    let reread = Request::ReadReplicaSet {
        namespace: "default".into(),
        name: "web".into(),
    };
    let release = Request::ReleasePod {
        pod: pod_ref("c"),
        owner_uid: "rs".into(),
    };
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0].1, &calls[1].1), (&reread, &release));
    rig.answer(calls[0].0, replied_set(replica_set(10, 1)));
    let adopts = rig.calls();
    let adopt = Request::AdoptPod {
        pod: pod_ref("a"),
        controller: controller(),
    };
    assert_eq!(adopts[0].1, adopt);
    assert_eq!(adopts.len(), 2);
    rig.answer(adopts[0].0, replied(pod("a", 20)));
    rig.answer(adopts[1].0, Err(refusal(404, "NotFound")));
    rig.answer(calls[1].0, Err(refusal(422, "Invalid")));
    rig.ends_with(&[
        (0, "done"),
        (1, "FAILURE_CLASS_NOT_FOUND"),
        (2, "FAILURE_CLASS_INVALID"),
    ]);
}

#[test]
fn no_orphan_is_adopted_by_a_replica_set_that_is_gone_or_going() {
    let answers = [
        replied_set(replica_set_of_uid("another", 10)),
        replied_set(going(12)),
        Err(refusal(404, "NotFound")),
    ];
    for answer in answers {
        let mut rig = Rig::taking(claim(&["a", "b"], &[]), &[orphan("a", 1), orphan("b", 2)]);
        let (id, _) = rig.call();
        rig.answer(id, answer);
        rig.ends_with(&[
            (0, "FAILURE_CLASS_OWNER_CHANGED"),
            (1, "FAILURE_CLASS_OWNER_CHANGED"),
        ]);
    }
}

fn status_at(version: &str) -> Request {
    let set = replica_set(10, 1).projected;
    let status = v1::ReplicaSetStatus {
        replicas: 2,
        ..v1::ReplicaSetStatus::default()
    };
    Request::WriteStatus(WriteStatus {
        replica_set: owner(),
        resource_version: version.into(),
        status,
        selector: set.selector,
    })
}

#[test]
fn status_is_written_on_the_object_that_was_decided_on() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, request) = rig.call();
    assert_eq!(request, status_at("10"));
    rig.answer(id, replied_set(replica_set(11, 1)));
    rig.ends_with(&[(0, "done")]);
}

#[test]
fn conflict_on_the_status_is_retried_once_on_the_live_object() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, _) = rig.call();
    rig.answer(id, Err(refusal(409, "Conflict")));
    let (id, _) = rig.call();
    rig.answer(id, replied_set(replica_set(12, 1)));
    let (id, request) = rig.call();
    assert_eq!(request, status_at("12"));
    rig.answer(id, Err(refusal(409, "Conflict")));
    rig.ends_with(&[(0, "FAILURE_CLASS_CONFLICT")]);
}

#[test]
fn status_never_reaches_another_replica_set_of_the_same_name() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, _) = rig.call();
    rig.answer(id, Err(refusal(409, "Conflict")));
    let (id, _) = rig.call();
    rig.answer(id, replied_set(replica_set_of_uid("another", 12)));
    rig.ends_with(&[(0, "FAILURE_CLASS_PRECONDITION")]);
}

#[test]
fn status_decided_on_an_older_version_goes_by_the_live_object() {
    let mut rig = Rig::new(&[]);
    let older = v1::Batch {
        replica_set_version: "9".into(),
        ..batch(1, write_status(2))
    };
    rig.batches
        .handle_batch(older)
        .expect("nothing else is in flight");
    let (_, request) = rig.call();
    assert!(
        matches!(request, Request::ReadReplicaSet { .. }),
        "{request:?}"
    );
}

#[test]
fn replica_set_being_deleted_gets_its_status_and_nothing_else() {
    for (action, starts) in [
        (write_status(0), 1),
        (create(1), 0),
        (delete(&["a"]), 0),
        (claim(&[], &["a"]), 0),
    ] {
        let mut rig = Rig::new(&[pod("a", 5)]);
        rig.view.apply_replica_set(&going(11));
        rig.batches
            .handle_batch(batch(1, action))
            .expect("nothing else is in flight");
        assert_eq!(rig.calls().len(), starts);
    }
}

#[test]
fn nothing_is_adopted_after_a_stop_during_the_recheck() {
    let mut rig = Rig::taking(claim(&["a"], &[]), &[orphan("a", 1)]);
    let (id, _) = rig.call();
    rig.batches.stop(NotStartedCause::NotEnforcing, "stopping");
    rig.answer(id, replied_set(replica_set(10, 1)));
    rig.ends_with(&[(0, "NOT_STARTED_CAUSE_NOT_ENFORCING")]);
}

#[test]
fn failed_release_holds_up_no_adoption() {
    let mut rig = Rig::taking(claim(&["a"], &["b"]), &[orphan("a", 1), pod("b", 2)]);
    let calls = rig.calls();
    rig.answer(calls[1].0, Err(refusal(403, "Forbidden")));
    rig.answer(calls[0].0, replied_set(replica_set(10, 1)));
    let (id, _) = rig.call();
    rig.answer(id, replied(pod("a", 20)));
    rig.ends_with(&[(1, "FAILURE_CLASS_FORBIDDEN"), (0, "done")]);
}

#[test]
fn what_the_view_forbids_is_not_started() {
    let names = ["web-bbbbb", "web-ccccc", "web-ddddd"].map(str::to_owned);
    let create = Action::Create(v1::Create {
        names: names.into(),
        generate_name: "web-".into(),
        slow_start_initial: 3,
    });
    let mut rig = Rig::taking(create, &[pod("a", 1), pod("b", 2)]);
    rig.guard.lenient = false;
    let (id, request) = rig.call();
    rig.answer(id, created(&request));
    let reports = std::mem::take(&mut rig.batches.reports);
    let rules = reports.iter().filter_map(|report| {
        let Report::Refused(refused) = report else {
            return None;
        };
        Some(refused.rule)
    });
    let rules: Vec<_> = rules.collect();
    assert_eq!(rules, [Rule::Surplus; 2], "one was wanted");
    let guard = "NOT_STARTED_CAUSE_GUARD";
    rig.ends_with(&[(1, guard), (2, guard), (0, "done")]);
}

#[test]
fn answer_of_another_kind_leaves_the_effect_unknown() {
    let mut rig = Rig::taking(delete(&["a"]), &[pod("a", 5)]);
    let (id, _) = rig.call();
    rig.answer(id, replied_set(replica_set(6, 1)));
    rig.ends_with(&[(0, "FAILURE_CLASS_TIMEOUT")]);
}

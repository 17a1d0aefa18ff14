//! Deletions, claims and statuses.

use super::*;

#[test]
fn deletes_start_together_under_the_precondition_of_their_uid() {
    let mut rig = Rig::taking(delete(&["a", "b"]), &[pod("a", 5), pod("b", 6)]);
    let calls = rig.calls();
    let expected = Request::DeletePod {
        namespace: "default".into(),
        name: "a".into(),
        uid: "uid-a".into(),
        resource_version: None,
    };
    assert_eq!((calls.len(), &calls[0].1), (2, &expected));
    rig.answer(calls[0].0, Ok(Reply::Gone(pod("a", 12))));
    rig.answer(calls[1].0, object(deleting(&pod("b", 13))));
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
    let other = with(&pod("a", 12), "/metadata/uid", "another".into());
    assert_eq!(after_reading(Err(refusal(404, "NotFound"))), [(0, "done")]);
    assert_eq!(
        after_reading(object(deleting(&pod("a", 12)))),
        [(0, "done")]
    );
    assert_eq!(after_reading(object(other)), [(0, "done")]);
    assert_eq!(
        after_reading(object(pod("a", 5))),
        [(0, "FAILURE_CLASS_TIMEOUT")]
    );
}

#[test]
fn pod_that_is_not_owned_is_never_deleted_nor_released() {
    let stranger = with(
        &pod("a", 5),
        "/metadata/ownerReferences/0/uid",
        "other".into(),
    );
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
    let Request::PatchPod {
        patch: released, ..
    } = &calls[1].1
    else {
        panic!("{calls:?}")
    };
    assert_eq!((calls.len(), &calls[0].1), (2, &reread));
    assert_eq!(
        released,
        &json!({"metadata": {"uid": "uid-c", "ownerReferences": [{"$patch": "delete", "uid": "rs"}]}})
    );
    rig.answer(calls[0].0, object(replica_set(10, 1)));
    let adopts = rig.calls();
    let Request::PatchPod { patch: adopted, .. } = &adopts[0].1 else {
        panic!("{adopts:?}")
    };
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs",
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(
        adopted,
        &json!({"metadata": {"uid": "uid-a", "ownerReferences": [controller]}})
    );
    assert_eq!(adopts.len(), 2);
    rig.answer(adopts[0].0, object(pod("a", 20)));
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
    let another = with(&replica_set(10, 1), "/metadata/uid", "another".into());
    let answers = [
        object(another),
        object(deleting(&replica_set(12, 1))),
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

#[test]
fn status_is_written_on_the_object_that_was_decided_on() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, request) = rig.call();
    let Request::ReplaceStatus {
        replica_set: written,
    } = request
    else {
        panic!("not a status")
    };
    assert_eq!(written["status"], json!({"replicas": 2}));
    assert_eq!(
        written["metadata"],
        crate::builders::written(&replica_set(10, 1))["metadata"],
        "labels stay as they are"
    );
    rig.answer(id, object(replica_set(11, 1)));
    rig.ends_with(&[(0, "done")]);
}

#[test]
fn conflict_on_the_status_is_retried_once_on_the_live_object() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, _) = rig.call();
    rig.answer(id, Err(refusal(409, "Conflict")));
    let (id, _) = rig.call();
    rig.answer(id, object(replica_set(12, 1)));
    let (id, request) = rig.call();
    let Request::ReplaceStatus {
        replica_set: written,
    } = request
    else {
        panic!("not a status")
    };
    assert_eq!(
        (&written["metadata"]["resourceVersion"], &written["status"]),
        (&json!("12"), &json!({"replicas": 2}))
    );
    rig.answer(id, Err(refusal(409, "Conflict")));
    rig.ends_with(&[(0, "FAILURE_CLASS_CONFLICT")]);
}

#[test]
fn status_never_reaches_another_replica_set_of_the_same_name() {
    let mut rig = Rig::taking(write_status(2), &[]);
    let (id, _) = rig.call();
    rig.answer(id, Err(refusal(409, "Conflict")));
    let (id, _) = rig.call();
    rig.answer(
        id,
        object(with(&replica_set(12, 1), "/metadata/uid", "another".into())),
    );
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
    let going = deleting(&replica_set(11, 1));
    for (action, starts) in [
        (write_status(0), 1),
        (create(1), 0),
        (delete(&["a"]), 0),
        (claim(&[], &["a"]), 0),
    ] {
        let mut rig = Rig::new(&[pod("a", 5)]);
        show(&mut rig.view, going.clone());
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
    rig.answer(id, object(replica_set(10, 1)));
    rig.ends_with(&[(0, "NOT_STARTED_CAUSE_NOT_ENFORCING")]);
}

#[test]
fn failed_release_holds_up_no_adoption() {
    let mut rig = Rig::taking(claim(&["a"], &["b"]), &[orphan("a", 1), pod("b", 2)]);
    let calls = rig.calls();
    rig.answer(calls[1].0, Err(refusal(403, "Forbidden")));
    rig.answer(calls[0].0, object(replica_set(10, 1)));
    let (id, _) = rig.call();
    rig.answer(id, object(pod("a", 20)));
    rig.ends_with(&[(1, "FAILURE_CLASS_FORBIDDEN"), (0, "done")]);
}

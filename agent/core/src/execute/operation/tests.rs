//! One operation: its calls to the cluster and what their answers mean.

use super::*;
use crate::tests::{self, owner, pod_ref, replied, replied_set};

fn stages() -> Vec<Stage> {
    use PodWrite::{Adopt, Create, Delete, Release};
    let write_failure = failure(FailureClass::Timeout, "no answer");
    let status = v1::ReplicaSetStatus::default();
    let writes = [Create, Delete, Adopt, Release];
    let reads = writes.map(|write| Stage::Read(write, pod_ref("a"), write_failure.clone()));
    let writes = writes.map(|write| Stage::Write(write, pod_ref("a")));
    let statuses = [
        Stage::WriteStatus(Some(status.clone())),
        Stage::RereadForStatus(status),
        Stage::WriteStatus(None),
    ];
    writes.into_iter().chain(reads).chain(statuses).collect()
}

fn answers() -> Vec<Answer> {
    let pod = |uid: &str, controller: &str, deleted| v1::Pod {
        uid: uid.to_owned(),
        controller: Some(v1::OwnerReference {
            uid: controller.to_owned(),
            ..v1::OwnerReference::default()
        }),
        deleted,
        ..v1::Pod::default()
    };
    let refused = |code| Err(tests::refusal(code, ""));
    vec![
        replied(pod("uid-a", "rs", None)),
        replied(pod("uid-a", "rs", Some(Default::default()))),
        replied(pod("uid-a", "another", None)),
        replied(pod("uid-b", "rs", None)),
        replied_set(tests::replica_set(10, 1)),
        Ok(Reply::Gone("7".to_owned())),
        refused(404),
        refused(409),
        refused(500),
        Err(ApiError::no_answer("connection reset")),
    ]
}

#[test]
fn each_success_carries_its_object() {
    let mut successes = 0;
    for stage in stages() {
        for answer in answers() {
            let case = format!("{stage:?} answered by {answer:?}");
            if let Step::Finish(OutcomeKind::Done(done)) =
                stage.clone().handle_answer(&owner(), answer)
            {
                assert!(done.object.is_some(), "{case}");
                successes += 1;
            }
        }
    }
    assert!(successes > 10, "{successes} successes were looked at");
}

#[test]
fn cluster_that_has_too_much_to_do_says_until_when() {
    for (code, asked) in [(429, Some(7)), (503, Some(7)), (403, None)] {
        let error = ApiError {
            retry_after_seconds: Some(7),
            ..tests::refusal(code, "")
        };
        let seconds = refused(&error).retry_after.map(|it| it.seconds);
        assert_eq!(seconds, asked, "{code}");
    }
}

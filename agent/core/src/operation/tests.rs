//! One operation: its calls to the cluster and what their answers mean.

use super::*;
use crate::tests::{self, replied, replied_set};

fn owner() -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "rs".to_owned(),
    }
}

fn steps() -> Vec<Stage> {
    let pod = v1::ObjectRef {
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        ..owner()
    };
    let write_failure = failure(FailureClass::Timeout, "no answer");
    let (name, status) = (pod.name.clone(), v1::ReplicaSetStatus::default());
    vec![
        Stage::Create { name: name.clone() },
        Stage::ReadCreated {
            name,
            write_failure: write_failure.clone(),
        },
        Stage::Delete { pod: pod.clone() },
        Stage::ReadDeleted {
            pod: pod.clone(),
            write_failure: write_failure.clone(),
        },
        Stage::Adopt { pod: pod.clone() },
        Stage::ReadAdopted {
            pod: pod.clone(),
            write_failure: write_failure.clone(),
        },
        Stage::Release { pod: pod.clone() },
        Stage::ReadReleased { pod, write_failure },
        Stage::WriteStatus {
            status: status.clone(),
        },
        Stage::RereadForStatus { status },
        Stage::WriteStatusAgain,
    ]
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
    for step in steps() {
        for answer in answers() {
            let case = format!("{step:?} answered by {answer:?}");
            if let Next::Finish(Kind::Done(done)) = step.clone().handle_answer(&owner(), answer) {
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

//! Which batches may begin.

use decree::v1::NotStartedCause;

use super::*;
use crate::tests::{batch, create, guard, view, write_status};

fn words<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    let refusal = result.expect_err("it is refused");
    assert_eq!(refusal.cause, NotStartedCause::Guard);
    refusal.message
}

#[test]
fn batch_of_another_session_or_epoch_is_refused() {
    let good = batch(1, create(1));
    assert_eq!(guard().check_batch(&good, 0), Ok(()));
    let session = v1::Guard {
        session_id: "s-0".into(),
        ..good.guard.clone().expect("it has one")
    };
    let other = v1::Batch {
        guard: Some(session),
        ..good.clone()
    };
    assert_eq!(
        words(guard().check_batch(&other, 0)),
        "the batch is of session \"s-0\""
    );
    let long = v1::Batch {
        guard: Some(v1::Guard {
            session_id: "s".repeat(1 << 20),
            ..v1::Guard::default()
        }),
        ..good.clone()
    };
    let message = words(guard().check_batch(&long, 0));
    assert_eq!(message.len(), 1024, "each operation gets a copy");
    let epoch = v1::Guard {
        epoch: 6,
        ..good.guard.clone().expect("it has one")
    };
    let other = v1::Batch {
        guard: Some(epoch),
        ..good.clone()
    };
    assert_eq!(
        words(guard().check_batch(&other, 0)),
        "the batch is of epoch 6"
    );
    words(guard().check_batch(
        &v1::Batch {
            guard: None,
            ..good.clone()
        },
        0,
    ));
    words(
        Guard {
            session_id: None,
            ..guard()
        }
        .check_batch(&good, 0),
    );
}

#[test]
fn more_operations_than_announced_are_refused() {
    let guard = Guard {
        operations_in_flight_max: 5,
        ..guard()
    };
    assert_eq!(guard.check_batch(&batch(1, create(3)), 2), Ok(()));
    words(guard.check_batch(&batch(1, create(4)), 2));
    let alone = guard.check_batch(&batch(1, create(6)), 0);
    assert_eq!(alone, Ok(()), "more than the bound comes alone");
    for over in [1, 2] {
        let batch = batch(1, create(OPERATIONS_MAX + over));
        let refused = words(guard.check_batch(&batch, 0));
        assert!(
            refused.ends_with("more operations are too many"),
            "{refused}"
        );
    }
}

#[test]
fn namespace_off_the_allow_list_is_refused() {
    let allowing = |namespace: &str| {
        let namespaces = [namespace.to_owned()].into();
        Guard {
            namespaces,
            ..guard()
        }
        .check_replica_set(&view(&[]), &batch(1, create(1)))
        .map(drop)
    };
    assert_eq!(allowing("default"), Ok(()));
    assert_eq!(
        words(allowing("prod")),
        "namespace \"default\" is not allowed"
    );
}

#[test]
fn replica_set_that_is_gone_gets_not_even_a_status() {
    let nothing = View::default();
    let refused = guard().check_replica_set(&nothing, &batch(1, write_status(0)));
    assert_eq!(words(refused), "replica set default/web is gone");
}

#[test]
fn batch_whose_reference_is_not_exactly_the_known_replica_set_is_refused() {
    let naming = |namespace: &str, name: &str, uid: &str| {
        let replica_set = v1::ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        };
        let batch = v1::Batch {
            replica_set: Some(replica_set),
            ..batch(1, create(1))
        };
        guard().check_replica_set(&view(&[]), &batch).map(drop)
    };
    assert_eq!(naming("default", "web", "rs"), Ok(()));
    assert_eq!(
        words(naming("kube-system", "web", "rs")),
        "replica set kube-system/web has another uid than rs, which is that of default/web"
    );
    assert_eq!(
        words(naming("default", "api", "rs")),
        "replica set default/api has another uid than rs, which is that of default/web"
    );
    assert_eq!(
        words(naming("default", "web", "old")),
        "replica set default/web is gone"
    );
}

#[test]
fn batch_without_a_replica_set_is_refused() {
    let nameless = v1::Batch {
        replica_set: None,
        ..batch(1, create(1))
    };
    words(guard().check_replica_set(&view(&[]), &nameless));
}

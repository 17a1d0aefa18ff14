//! Which batches may begin.

use decree::v1::NotStartedCause;

use super::*;
use crate::tests::{EPOCH, SESSION, batch, create, guard, view, write_status};

/// Why something is refused, or nothing.
fn words<T>(result: Result<T, Refusal>) -> String {
    let refusal = result.err();
    refusal.map_or_else(String::new, |refusal| {
        assert_eq!(refusal.cause, NotStartedCause::Guard);
        refusal.message
    })
}

#[test]
fn batch_of_another_session_or_epoch_is_refused() {
    let guarded = |guard| v1::Batch {
        guard,
        ..batch(1, create(1))
    };
    let of = |session: &str, epoch| {
        let session_id = session.into();
        guarded(Some(v1::Guard { session_id, epoch }))
    };
    let says = |batch: &v1::Batch| words(guard().check_batch(batch, 0));
    assert_eq!(says(&of(SESSION, EPOCH)), "");
    assert_eq!(says(&of("s-0", EPOCH)), "the batch is of session \"s-0\"");
    assert_eq!(says(&of(SESSION, 6)), "the batch is of epoch 6");
    let long = says(&of(&"s".repeat(1 << 20), 0));
    assert_eq!(long.len(), 1024, "each operation gets a copy");
    assert_ne!(says(&guarded(None)), "");
    let mut closed = guard();
    closed.session_id = None;
    assert_ne!(words(closed.check_batch(&of(SESSION, EPOCH), 0)), "");
}

#[test]
fn more_operations_than_announced_are_refused() {
    let guard = Guard {
        operations_in_flight_max: 5,
        ..guard()
    };
    let says = |count, beside| words(guard.check_batch(&batch(1, create(count)), beside));
    assert_eq!(says(3, 2), "");
    assert_ne!(says(4, 2), "");
    assert_eq!(says(6, 0), "", "more than the bound comes alone");
    for over in [1, 2] {
        let refused = says(OPERATIONS_MAX + over, 0);
        let is_known = refused.ends_with("more operations are too many");
        assert!(is_known, "{refused}");
    }
}

#[test]
fn namespace_off_the_allow_list_is_refused() {
    let allowing = |namespace: &str| {
        let mut guard = guard();
        guard.namespaces = [namespace.to_owned()].into();
        words(guard.check_replica_set(&view(&[]), &batch(1, create(1))))
    };
    assert_eq!(allowing("default"), "");
    assert_eq!(allowing("prod"), "namespace \"default\" is not allowed");
}

#[test]
fn replica_set_that_is_gone_gets_not_even_a_status() {
    let nothing = View::default();
    let refused = guard().check_replica_set(&nothing, &batch(1, write_status(0)));
    assert_eq!(words(refused), "replica set default/web is gone");
}

#[test]
fn batch_whose_reference_is_not_exactly_the_known_replica_set_is_refused() {
    let of = |replica_set| {
        let batch = v1::Batch {
            replica_set,
            ..batch(1, create(1))
        };
        words(guard().check_replica_set(&view(&[]), &batch))
    };
    let naming = |namespace: &str, name: &str, uid: &str| {
        of(Some(v1::ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        }))
    };
    assert_eq!(naming("default", "web", "rs"), "");
    for (namespace, name) in [("kube-system", "web"), ("default", "api")] {
        let another = "has another uid than rs, which is that of default/web";
        let expected = format!("replica set {namespace}/{name} {another}");
        assert_eq!(naming(namespace, name, "rs"), expected);
    }
    let gone = "replica set default/web is gone";
    assert_eq!(naming("default", "web", "old"), gone);
    assert_ne!(of(None), "");
}

//! Batches that no table of stories can write.

use super::*;
use crate::tests::{batch, create, guard, view};

fn refused<T>(result: Result<T, Refusal>) -> String {
    result.err().map_or_else(String::new, |it| it.message)
}

#[test]
fn batch_without_a_session_or_a_replica_set_is_refused_with_a_short_message() {
    let mut unguarded = batch(1, create(1));
    unguarded.guard = None;
    assert_ne!(refused(guard().check_batch(&unguarded, 0)), "");
    unguarded.guard = Some(v1::Guard {
        session_id: "s".repeat(1 << 20),
        epoch: 0,
    });
    let message = refused(guard().check_batch(&unguarded, 0));
    assert_eq!(message.len(), 1024, "each operation gets a copy");
    let guard = Guard::default();
    assert_ne!(refused(guard.check_batch(&batch(1, create(1)), 0)), "");
    unguarded.replica_set = None;
    assert_ne!(refused(guard.check_replica_set(&view(&[]), &unguarded)), "");
}

#[test]
fn batch_larger_than_any_burst_is_refused_where_it_is_alone_too() {
    for (count, expected) in [
        (OPERATIONS_MAX, ""),
        (OPERATIONS_MAX + 1, "5001 more operations are too many"),
    ] {
        let said = refused(guard().check_batch(&batch(1, create(count)), 0));
        assert_eq!(said, expected);
    }
}

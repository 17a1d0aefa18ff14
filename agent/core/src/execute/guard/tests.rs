//! Batches that no table of stories can write.

use super::*;
use crate::preferences::{Preference, PreferencePolicy};
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

#[test]
fn shadow_mode_follows_no_preferences_as_the_other_controller() {
    let annotated = v1::ReplicaSet {
        preferences: Some(v1::Preferences {
            keep_ended: Some(1),
            ..v1::Preferences::default()
        }),
        ignored_annotations: vec!["decree.dev/create: why".to_owned()],
        ..v1::ReplicaSet::default()
    };
    for (mode, follows) in [(v1::Mode::Enforce, true), (v1::Mode::Shadow, false)] {
        let mut guard = Guard::default();
        guard.config.mode = mode;
        let default = "*:keep-ended=5".parse().expect("a default");
        guard.config.preferences = PreferencePolicy::new(Preference::ALL.into(), &[default]);
        for mut set in [annotated.clone(), v1::ReplicaSet::default()] {
            let told = !set.ignored_annotations.is_empty();
            guard.apply_preferences(&mut set);
            assert_eq!(set.preferences.is_some(), follows, "{mode:?}");
            assert_eq!(!set.ignored_annotations.is_empty(), follows && told);
        }
    }
}

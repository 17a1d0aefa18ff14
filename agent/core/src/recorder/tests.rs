//! Which events are written, and which are only counted.

use super::*;
use crate::pace::after;

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn note(uid: &str, reason: Reason, message: &str) -> Note {
    Note {
        object: v1::ObjectRef {
            namespace: "default".into(),
            name: "web".into(),
            uid: uid.into(),
        },
        reason,
        message: message.into(),
    }
}

fn created(number: usize) -> Note {
    note(
        "u1",
        Reason::SuccessfulCreate,
        &format!("Created pod: web-{number}"),
    )
}

#[test]
fn event_says_what_upstream_says() {
    let mut recorder = Recorder::new("agent-1", "apps/v1");
    let written = recorder
        .handle_note(START, created(1))
        .expect("it is the first");
    let expected = Event {
        name: "web.1".into(),
        api_version: "apps/v1".into(),
        object: created(1).object,
        reason: Reason::SuccessfulCreate,
        message: "Created pod: web-1".into(),
        first: START,
        last: START,
        count: 1,
        instance: "agent-1".into(),
    };
    assert_eq!(written, expected);
}

#[test]
fn same_event_again_is_counted_up() {
    let mut recorder = Recorder::new("a", "apps/v1");
    let refused = || note("u1", Reason::FailedCreate, "Error creating: exceeded quota");
    let first = recorder
        .handle_note(START, refused())
        .expect("it is the first");
    let again = recorder.handle_note(after(START, Duration::from_secs(5)), refused());
    let again = again.expect("there is a share left");
    let expected = Event {
        count: 2,
        last: after(START, Duration::from_secs(5)),
        ..first
    };
    assert_eq!(again, expected);
}

#[test]
fn many_messages_of_one_reason_become_one_event() {
    let mut recorder = Recorder::new("a", "apps/v1");
    let written: Vec<_> = (1..=12)
        .filter_map(|number| recorder.handle_note(START, created(number)))
        .collect();
    let message = |at: usize| written[at].message.as_str();
    assert_eq!(message(8), "Created pod: web-9");
    let expected = "(combined from similar events): Created pod: web-10";
    assert_eq!(message(9), expected);
    let expected = "(combined from similar events): Created pod: web-12";
    assert_eq!(message(11), expected);
    assert_eq!(written[9].name, written[11].name);
    assert_eq!(written[11].count, 3);

    let later = after(START, Duration::from_secs(700));
    let fresh = recorder
        .handle_note(later, created(13))
        .expect("there is a share left");
    assert_eq!(fresh.message, "Created pod: web-13");
}

#[test]
fn warnings_are_not_lost_behind_what_went_well() {
    let mut recorder = Recorder::new("a", "apps/v1");
    let mut write = |reason: Reason, message: &str| {
        let event = recorder.handle_note(START, note("u1", reason, message));
        event.is_some()
    };
    for number in 0..100 {
        let message = format!("Created pod: web-{number}");
        write(Reason::SuccessfulCreate, &message);
        write(Reason::SuccessfulDelete, &message);
    }
    assert!(!write(Reason::SuccessfulDelete, "Deleted pod: web-0"));
    let failures = (0..100).filter(|_| write(Reason::FailedCreate, "Error creating: quota"));
    assert_eq!(failures.count(), 25);
    assert!(write(Reason::BudgetExceeded, "12 creates in a minute"));
    assert!(write(Reason::BudgetResumed, "a person resumed it"));
}

#[test]
fn replica_set_gets_its_share_and_harms_no_other() {
    let mut recorder = Recorder::new("a", "apps/v1");
    let written = (0..1_000).filter_map(|number| recorder.handle_note(START, created(number)));
    assert_eq!(written.count(), 25);
    let other = note("u2", Reason::SuccessfulDelete, "Deleted pod: x");
    assert!(recorder.handle_note(START, other).is_some());
    let later = after(START, Duration::from_secs(301));
    assert!(recorder.handle_note(later, created(1)).is_some());
}

#[test]
fn rare_events_have_a_share_of_their_own_and_no_more() {
    let mut recorder = Recorder::new("a", "apps/v1");
    for reason in [Reason::PodsDoNotLast, Reason::VersionsWentBack] {
        let noted = (0..1_000).map(|_| note("u1", reason, "so it is"));
        let written = noted.filter_map(|note| recorder.handle_note(START, note));
        assert_eq!(written.count(), 25);
    }
}

#[test]
fn many_others_void_no_share_of_one_that_is_busy() {
    let mut recorder = Recorder::new("a", "apps/v1");
    let mut busy = 0;
    for number in 0..3 * ENTRIES_MAX {
        let other = note(
            &format!("u-{number}"),
            Reason::SuccessfulCreate,
            "Created pod: x",
        );
        assert!(recorder.handle_note(START, other).is_some());
        if number.is_multiple_of(100) {
            busy += usize::from(recorder.handle_note(START, created(number)).is_some());
        }
    }
    assert_eq!(busy, 25);
}

#[test]
fn what_was_used_longest_ago_goes() {
    let mut recent = Recent::new(2);
    let mut get = |key: &'static str, value| *recent.get_or_insert_with(key, || value);
    assert_eq!([get("a", 1), get("b", 2), get("a", 9)], [1, 2, 1]);
    assert_eq!([get("c", 3), get("a", 9), get("d", 4)], [3, 1, 4]);
    assert_eq!([get("a", 9), get("b", 5)], [1, 5]);
    assert!(recent.used.len() <= 2 && recent.before.len() <= 2);
}

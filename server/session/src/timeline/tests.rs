//! What is kept of what happened, and for how long.

use std::sync::Arc;

use server_core::{Action, BatchId, Key, Rule};

use super::*;

fn key(name: &str) -> Key {
    Key {
        namespace: "default".into(),
        name: name.into(),
        uid: uid(name),
    }
}

fn uid(name: &str) -> Uid {
    Uid(name.into())
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_seconds(second.cast_signed())
}

fn create(name: &str, id: u64) -> Batch {
    Batch {
        id: BatchId(id),
        key: key(name),
        generation: 1,
        replica_set_version: None,
        pods_version: None,
        action: Action::Create {
            names: vec![Arc::from("web-1"), Arc::from("web-2")],
            generate_name: "web-".into(),
            slow_start_initial: 1,
        },
        reasons: vec![Reason {
            rule: Rule::TooFewReplicas,
            detail: "0 active pods, 2 wanted".into(),
        }],
    }
}

fn scaled(name: &str, second: u64, to: i32) -> Report {
    Report::Scaled {
        key: key(name),
        at: at(second),
        from: Some(to - 1),
        to,
    }
}

/// Returns how a batch of two creates ended whose first was refused in these words.
fn refused(name: &str, id: u64, words: &str) -> Report {
    Report::Answered(Box::new(Answered {
        key: key(name),
        at: at(id),
        batch: BatchId(id),
        action: ActionKind::Create,
        counts: OutcomeCounts {
            failed: 1,
            not_started: 1,
            ..OutcomeCounts::default()
        },
        failure: Some((FailureClass::Quota, words.to_owned())),
        refusal: None,
    }))
}

/// Returns the entries of a ReplicaSet in short.
fn told(timeline: &Timeline, name: &str) -> Vec<String> {
    let entries = timeline.of(&uid(name)).into_iter();
    let told = entries.map(|entry| match entry.entry.expect("one is set") {
        Happened::Scaled(it) => format!("scaled to {}", it.to),
        Happened::Decided(it) => format!("{} {} in {}", it.action, it.operations, it.batch_id),
        Happened::Answered(it) => {
            let last = it.last.expect("it has an end").seconds;
            format!(
                "{} {} times until {last}: {}",
                it.action, it.times, it.message
            )
        }
    });
    told.collect()
}

#[test]
fn tries_that_come_to_the_same_are_one_entry() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.take(scaled("web", 1, 2));
    for id in 2..=100 {
        timeline.decided(at(id), &create("web", id));
        timeline.take(refused("web", id, "exceeded quota"));
    }
    let expected = [
        "create 99 times until 100: exceeded quota",
        "create 2 in 2",
        "scaled to 2",
    ];
    assert_eq!(told(&timeline, "web"), expected);
    let bytes = timeline.bytes();
    timeline.decided(at(101), &create("web", 101));
    timeline.take(refused("web", 101, "forbidden"));
    assert_eq!(
        told(&timeline, "web")[..2],
        ["create 1 times until 101: forbidden", "create 2 in 101"]
    );
    timeline.forget(&uid("web"));
    assert!(bytes > 0 && timeline.bytes() == 0 && timeline.order.is_empty());
}

#[test]
fn busy_replica_set_forgets_its_own_past_alone() {
    let mut timeline = Timeline::new(usize::MAX);
    timeline.take(scaled("quiet", 1, 7));
    for second in 2..1_000 {
        timeline.take(scaled("busy", second, second as i32));
    }
    assert_eq!(told(&timeline, "quiet"), ["scaled to 7"]);
    let busy = told(&timeline, "busy");
    assert_eq!(
        (busy.len(), busy[0].as_str()),
        (OF_ONE_MAX, "scaled to 999")
    );
}

#[test]
fn oldest_of_all_goes_first_where_there_are_too_many() {
    let mut timeline = Timeline::new(usize::MAX);
    let count = ENTRIES_MAX as u64 + 10;
    for second in 0..count {
        timeline.take(scaled(&format!("set-{second}"), second, 1));
    }
    assert_eq!(timeline.order.len(), ENTRIES_MAX);
    assert_eq!(timeline.by_set.len(), ENTRIES_MAX);
    assert!(told(&timeline, "set-9").is_empty() && !told(&timeline, "set-10").is_empty());
}

#[test]
fn timeline_takes_a_small_part_of_what_a_session_may_hold() {
    let mut timeline = Timeline::new(SHARE * 10 * ENTRY_BYTES);
    for id in 0..100 {
        timeline.take(refused(&format!("set-{id}"), id, &"é".repeat(WORDS_MAX)));
        assert!(timeline.bytes() <= 10 * ENTRY_BYTES);
    }
    assert_eq!(told(&timeline, "set-99").len(), 1);
    let recounted = timeline.by_set.values().flatten().map(Entry::bytes);
    assert_eq!(recounted.sum::<usize>(), timeline.bytes());
}

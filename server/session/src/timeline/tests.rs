//! The history that is kept, and for how long.

use server_core::{
    Action, CompactUid, ControllerReport, FailureClass, Key, OutcomeCounts, PodRef, Reason, Rule,
    Victim,
};

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

fn create() -> Action {
    Action::Create {
        names: vec![Arc::from("web-1"), Arc::from("web-2")],
        generate_name: "web-".into(),
        slow_start_initial: 1,
    }
}

fn status() -> Action {
    Action::WriteStatus(Box::default())
}

fn delete() -> Action {
    let victim = |number| Victim {
        pod: PodRef {
            name: format!("{number:0>250}").into(),
            uid: CompactUid::of("u"),
        },
        version: None,
        reason: Reason {
            rule: Rule::Uid,
            detail: "".into(),
        },
    };
    Action::Delete((0..20).map(victim).collect())
}

/// Adds a decision of a batch, at the second of its number.
fn decide(timeline: &mut Timeline, name: &str, id: u64, action: Action) {
    let batch = Batch {
        id: BatchId(id),
        key: key(name),
        generation: 1,
        replica_set_version: None,
        pods_version: None,
        action,
        reasons: vec![Reason {
            rule: Rule::TooFewReplicas,
            detail: "0 active pods, 2 wanted".into(),
        }],
    };
    let cluster = encode::ClusterRef {
        name: "c",
        uid: "c",
    };
    let record = Arc::new(encode::record(at(id), cluster, &batch));
    timeline.decided(at(id), &batch, record);
}

fn decisions(timeline: &Timeline) -> Vec<u64> {
    let decisions = timeline.decisions(&uid("web")).into_iter();
    decisions.map(|record| record.batch_id).collect()
}

/// Returns the bytes of all entries, counted again.
fn recounted(timeline: &Timeline) -> usize {
    let entries = timeline.by_set.values().flatten();
    entries.map(Entry::bytes).sum()
}

fn scaled(name: &str, second: u64, to: i32) -> ControllerReport {
    ControllerReport::Scaled {
        key: key(name),
        at: at(second),
        from: Some(to - 1),
        to,
    }
}

/// Returns the result of a batch of two creates whose first was refused with this message.
fn refused(name: &str, id: u64, words: &str) -> ControllerReport {
    ControllerReport::Answered(Box::new(Answered {
        key: key(name),
        at: at(id),
        batch: BatchId(id),
        action: ActionKind::Create,
        counts: OutcomeCounts {
            failed: 1,
            not_started: 1,
            ..OutcomeCounts::default()
        },
        failure: Some(FailureClass::Quota),
        message: words.to_owned(),
    }))
}

fn take(timeline: &mut Timeline, report: ControllerReport) {
    if let ControllerReport::Scaled { key, at, from, to } = report {
        timeline.scaled(&key.uid, at, from, to);
    } else if let ControllerReport::Answered(answered) = report {
        timeline.answered(answered);
    }
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
    take(&mut timeline, scaled("web", 1, 2));
    for id in 2..=100 {
        decide(&mut timeline, "web", id, create());
        take(&mut timeline, refused("web", id, "exceeded quota"));
    }
    let expected = [
        "create 99 times until 100: exceeded quota",
        "create 2 in 100",
        "scaled to 2",
    ];
    assert_eq!(told(&timeline, "web"), expected);
    let bytes = timeline.bytes();
    decide(&mut timeline, "web", 101, create());
    take(&mut timeline, refused("web", 101, "forbidden"));
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
    take(&mut timeline, scaled("quiet", 1, 7));
    for second in 2..1_000 {
        take(&mut timeline, scaled("busy", second, second as i32));
    }
    assert_eq!(told(&timeline, "quiet"), ["scaled to 7"]);
    let busy = told(&timeline, "busy");
    assert_eq!((busy.len(), busy[0].as_str()), (SHOWN_MAX, "scaled to 999"));
}

#[test]
fn oldest_of_all_goes_first_where_there_are_too_many() {
    let mut timeline = Timeline::new(usize::MAX);
    let count = ENTRIES_MAX as u64 + 10;
    for second in 0..count {
        take(&mut timeline, scaled(&format!("set-{second}"), second, 1));
    }
    assert_eq!(timeline.order.len(), ENTRIES_MAX);
    assert_eq!(timeline.by_set.len(), ENTRIES_MAX);
    assert!(told(&timeline, "set-9").is_empty() && !told(&timeline, "set-10").is_empty());
}

#[test]
fn timeline_takes_a_small_part_of_what_a_session_may_hold() {
    let mut timeline = Timeline::new(SHARE * 10 * ENTRY_BYTES);
    for id in 0..100 {
        take(
            &mut timeline,
            refused(&format!("set-{id}"), id, &"é".repeat(WORDS_MAX)),
        );
        assert!(timeline.bytes() <= 10 * ENTRY_BYTES);
    }
    assert_eq!(told(&timeline, "set-99").len(), 1);
    assert_eq!(recounted(&timeline), timeline.bytes());
}

#[test]
fn last_deletion_is_kept_behind_any_number_of_statuses_and_others() {
    for (action, kept) in [(status as fn() -> Action, 10), (create, 20)] {
        let mut timeline = Timeline::new(usize::MAX);
        decide(&mut timeline, "web", 1, delete());
        decide(&mut timeline, "web", 2, delete());
        for id in 3..=200 {
            decide(&mut timeline, "web", id, action());
        }
        let decisions = decisions(&timeline);
        let expected: Vec<u64> = (201 - kept..=200).rev().collect();
        assert_eq!(decisions[..expected.len()], expected);
        assert_eq!(decisions[expected.len()], 2);
        assert_eq!(recounted(&timeline), timeline.bytes());
    }
}

#[test]
fn last_deletion_outlives_what_other_replica_sets_do() {
    let mut timeline = Timeline::new(usize::MAX);
    decide(&mut timeline, "web", 1, delete());
    decide(&mut timeline, "web", 2, create());
    for id in 3..2 * ENTRIES_MAX as u64 {
        let name = format!("set-{id}");
        decide(&mut timeline, &name, id, create());
        decide(&mut timeline, &name, id, status());
    }
    assert_eq!(decisions(&timeline), [1]);
    assert!(timeline.bytes() <= BYTES_MAX);
    assert_eq!(recounted(&timeline), timeline.bytes());
}

#[test]
fn deletion_that_is_tried_again_in_vain_is_the_last_one() {
    let mut timeline = Timeline::new(usize::MAX);
    for id in 1..=50 {
        decide(&mut timeline, "web", id, delete());
        let ControllerReport::Answered(mut answered) = refused("web", id, "forbidden") else {
            unreachable!("it is answered");
        };
        answered.action = ActionKind::Delete;
        take(&mut timeline, ControllerReport::Answered(answered));
    }
    assert_eq!(decisions(&timeline), [50]);
    let expected = ["delete 50 times until 50: forbidden", "delete 20 in 50"];
    assert_eq!(told(&timeline, "web"), expected);
    assert_eq!(recounted(&timeline), timeline.bytes());
}

#[test]
fn status_writes_give_way_first_and_are_no_part_of_what_led_here() {
    let mut timeline = Timeline::new(SHARE * 12 * ENTRY_BYTES);
    take(&mut timeline, scaled("web", 1, 2));
    for id in 2..=40 {
        decide(&mut timeline, "web", id, status());
    }
    assert_eq!(told(&timeline, "web"), ["scaled to 2"]);
    assert_eq!(decisions(&timeline).first(), Some(&40));
    assert!(timeline.bytes() <= 12 * ENTRY_BYTES);
}

#[test]
fn newest_attempt_is_told_and_a_status_only_where_it_alone_failed() {
    let mut timeline = Timeline::new(usize::MAX);
    let failed = |id, action, failed, class: Option<FailureClass>| {
        let ControllerReport::Answered(mut answered) = refused("web", id, "no") else {
            unreachable!("it is answered");
        };
        answered.action = action;
        answered.counts.failed = failed;
        answered.failure = class;
        ControllerReport::Answered(answered)
    };
    assert_eq!(timeline.last_attempt(&uid("web")), None);
    take(&mut timeline, failed(1, ActionKind::Create, 0, None));
    let newest = |timeline: &Timeline| {
        let attempt = timeline.last_attempt(&uid("web")).expect("there is one");
        (attempt.action, attempt.failure)
    };
    assert_eq!(newest(&timeline), (ActionKind::Create, None));
    take(
        &mut timeline,
        failed(2, ActionKind::WriteStatus, 1, Some(FailureClass::Forbidden)),
    );
    let expected = (ActionKind::WriteStatus, Some(FailureClass::Forbidden));
    assert_eq!(newest(&timeline), expected);
    take(
        &mut timeline,
        failed(3, ActionKind::Delete, 1, Some(FailureClass::Quota)),
    );
    take(
        &mut timeline,
        failed(4, ActionKind::WriteStatus, 1, Some(FailureClass::Forbidden)),
    );
    assert_eq!(
        newest(&timeline),
        (ActionKind::Delete, Some(FailureClass::Quota))
    );
}

#[test]
fn names_and_numbers_in_the_words_make_no_other_attempt() {
    let mut timeline = Timeline::new(usize::MAX);
    for id in 1..=9 {
        let words = format!("pods \"web-{id}x\" is forbidden: used: pods=1{id}");
        decide(&mut timeline, "web", id, create());
        take(&mut timeline, refused("web", id, &words));
    }
    let newest = "create 9 times until 9: pods \"web-9x\" is forbidden: used: pods=19";
    assert_eq!(told(&timeline, "web"), [newest, "create 2 in 9"]);
    assert_eq!(recounted(&timeline), timeline.bytes());
}

//! The deletions that are kept, and for how long.

use server_core::{CompactUid, ControllerReport, Key, OutcomeCounts, PodState, Timestamp};

use super::*;

fn key(name: &str) -> Key {
    Key {
        namespace: "default".into(),
        name: name.into(),
        uid: Uid(name.into()),
    }
}

fn pod(name: &str, chosen: bool) -> RankedPod {
    RankedPod {
        name: name.into(),
        uid: CompactUid::of(name),
        node: Some("node-a".into()),
        state: PodState::default(),
        rank: 1,
        at: Timestamp::from_seconds(1),
        chosen,
        reason: None,
    }
}

/// Returns a report of a batch that deletes pods and keeps one.
fn down(batch: u64, (from, to): (i32, i32), pods: &[&str]) -> ControllerReport {
    let chosen = pods.iter().map(|name| pod(name, true));
    ControllerReport::ScaleDown(Box::new(ScaleDown {
        key: key("web"),
        at: Timestamp::from_seconds(batch.cast_signed()),
        batch: BatchId(batch),
        from,
        to,
        chosen: pods.len(),
        pods: chosen.chain([pod("stays", false)]).collect(),
    }))
}

fn answered(batch: u64, action: ActionKind, [done, failed]: [u32; 2]) -> ControllerReport {
    ControllerReport::Answered(Box::new(Answered {
        key: key("web"),
        at: Timestamp::default(),
        batch: BatchId(batch),
        action,
        counts: OutcomeCounts {
            done,
            failed,
            not_started: 0,
        },
        failure: None,
        message: String::new(),
    }))
}

fn take(scale_downs: &mut ScaleDowns, report: ControllerReport) {
    if let ControllerReport::ScaleDown(scale_down) = report {
        scale_downs.decided(*scale_down);
    } else if let ControllerReport::Answered(answered) = report {
        scale_downs.answered(&answered);
    } else if let ControllerReport::Scaled { key, .. } = report {
        scale_downs.end(&key.uid);
    }
}

/// Returns the last deletion in short: batch, pods before and after, number of victims, and the known victims.
fn told(scale_downs: &ScaleDowns) -> (u64, [i32; 3], Vec<String>) {
    let last = scale_downs.get(&Uid("web".into())).expect("it is known");
    let chosen = last.pods.into_iter().filter(|pod| pod.chosen);
    let numbers = [last.from, last.to, last.chosen];
    (last.batch_id, numbers, chosen.map(|pod| pod.name).collect())
}

#[test]
fn nothing_that_follows_makes_a_deletion_forgotten_but_another_one() {
    let mut scale_downs = ScaleDowns::new(usize::MAX);
    take(&mut scale_downs, down(1, (4, 2), &["a", "b"]));
    for batch in 2..1_000 {
        let create = answered(batch, ActionKind::Create, [0, 1]);
        take(&mut scale_downs, create);
        take(
            &mut scale_downs,
            answered(batch, ActionKind::WriteStatus, [0, 1]),
        );
    }
    let expected = (1, [4, 2, 2], vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(told(&scale_downs), expected);
    take(&mut scale_downs, answered(1, ActionKind::Delete, [2, 0]));
    take(&mut scale_downs, down(1_001, (3, 2), &["c"]));
    assert_eq!(told(&scale_downs), (1_001, [3, 2, 1], vec!["c".to_owned()]));
    scale_downs.forget(&Uid("web".into()));
    assert_eq!(
        (scale_downs.get(&Uid("web".into())), scale_downs.bytes()),
        (None, 0)
    );
}

#[test]
fn batches_of_one_deletion_are_one() {
    let mut scale_downs = ScaleDowns::new(usize::MAX);
    take(&mut scale_downs, down(1, (52, 30), &["a", "b", "c"]));
    take(&mut scale_downs, answered(1, ActionKind::Delete, [20, 2]));
    take(&mut scale_downs, down(2, (32, 30), &["c", "d"]));
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        told(&scale_downs),
        (2, [52, 30, 22], names(&["a", "b", "c", "d"]))
    );
    // The number of desired pods changes, so later victims are another deletion.
    take(
        &mut scale_downs,
        ControllerReport::Scaled {
            key: key("web"),
            at: Timestamp::default(),
            from: Some(30),
            to: 30,
        },
    );
    take(&mut scale_downs, down(3, (32, 30), &["e"]));
    assert_eq!(told(&scale_downs), (3, [32, 30, 1], names(&["e"])));
    take(&mut scale_downs, answered(4, ActionKind::Create, [1, 0]));
    take(&mut scale_downs, down(5, (31, 30), &["f"]));
    assert_eq!(told(&scale_downs), (5, [31, 30, 1], names(&["f"])));
}

#[test]
fn pods_of_the_oldest_deletions_give_way_and_their_numbers_stay() {
    let mut scale_downs = ScaleDowns::new(SHARE * 100 * SCALE_DOWN_BYTES);
    let add = |scale_downs: &mut ScaleDowns, number: u64| {
        let ControllerReport::ScaleDown(mut scale_down) = down(number, (2, 1), &["a"]) else {
            unreachable!("it is one");
        };
        scale_down.key = key(&format!("set-{number}"));
        take(scale_downs, ControllerReport::ScaleDown(scale_down));
        assert!(scale_downs.bytes() <= 2 * scale_downs.bytes_max);
    };
    (0..100).for_each(|number| add(&mut scale_downs, number));
    let of = |number: u64| {
        let last = scale_downs.get(&Uid(format!("set-{number}").into()));
        let last = last.expect("it is known");
        (last.from, last.to, last.pods.len())
    };
    assert_eq!((of(0), of(99)), ((2, 1, 0), (2, 1, 2)));
    let counted = scale_downs
        .by_set
        .values()
        .map(|last| bytes(&last.scale_down.pods));
    assert_eq!(counted.sum::<usize>(), scale_downs.bytes);
    assert_eq!(scale_downs.order.len(), 100);
    add(&mut scale_downs, 100);
    let is_known = |number: u64| {
        let set = Uid(format!("set-{number}").into());
        scale_downs.get(&set).is_some()
    };
    assert!(!is_known(0) && is_known(1) && is_known(100));
}

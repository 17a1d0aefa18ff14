//! Advice: its rules and its pace, and that an agent which advises does nothing else.

use super::*;

/// Batches of an agent in a mode, of a ReplicaSet that prefers an order of deletion.
fn rig_in(mode: v1::Mode, pods: &[v1::Pod]) -> Rig {
    let mut rig = Rig::new(pods);
    (rig.guard.config.mode, rig.guard.config.lenient) = (mode, false);
    let mut set = replica_set(20, 1);
    let rule = v1::ScaleInRule::Youngest.into();
    let prefers = set.projected.preferences.get_or_insert_default();
    prefers.scale_in.push(v1::ScaleInPreference {
        rule,
        ..v1::ScaleInPreference::default()
    });
    rig.view.apply_replica_set(&set);
    rig
}

fn advise(advices: &[(&str, i32)]) -> Action {
    let advices = advices.iter().map(|(name, cost)| v1::Advice {
        pod: Some(pod_ref(name)),
        cost: *cost,
    });
    Action::Advise(v1::Advise {
        advices: advices.collect(),
    })
}

fn costing(name: &str, cost: &str, advised: Option<&str>) -> v1::Pod {
    v1::Pod {
        deletion_cost: Some(cost.to_owned()),
        advised_cost: advised.map(str::to_owned),
        ..pod(name, 7)
    }
}

/// The calls that start at a time, and the rules that refused operations since the last look.
fn at_millis(rig: &mut Rig, millis: i64) -> (Vec<String>, Vec<&'static str>) {
    let now = Timestamp::from_millisecond(millis).expect("a time");
    let calls = std::iter::from_fn(|| rig.batches.poll_call(now, &mut rig.view, &rig.guard));
    let calls = calls.map(|call| {
        if let Request::AdvisePod {
            pod,
            resource_version,
            cost,
        } = call.request
        {
            format!("{}@{resource_version}={cost}", pod.name)
        } else {
            call.request.verb().to_owned()
        }
    });
    let calls = calls.collect();
    let reports = rig.batches.reports.drain(..);
    let refused = reports.filter_map(|report| {
        let Report::Refused(refused) = report else {
            return None;
        };
        Some(refused.rule.as_str())
    });
    (calls, refused.collect())
}

#[test]
fn agent_that_advises_does_nothing_else_and_no_other_agent_advises() {
    let pods = [pod("a", 5), pod("b", 5), pod("c", 5), pod("d", 5)];
    for (mode, action, expected) in [
        (v1::Mode::Advise, advise(&[("a", 7)]), "a@5=7"),
        (v1::Mode::Enforce, advise(&[("a", 7)]), ""),
        (v1::Mode::Advise, delete(&["a"]), ""),
        (v1::Mode::Enforce, delete(&["a"]), "delete_pod"),
        (v1::Mode::Advise, create(1), ""),
        (v1::Mode::Advise, claim(&[], &["a"]), ""),
        (v1::Mode::Advise, claim(&["a"], &[]), ""),
        (v1::Mode::Advise, write_status(1), ""),
    ] {
        let mut rig = rig_in(mode, &pods);
        // A lenient agent breaks the rules of pods, and not this one.
        rig.guard.config.lenient = true;
        rig.batches.handle_batch(batch(1, action));
        let refused = if expected.is_empty() { "advice" } else { "" };
        let (calls, rules) = at_millis(&mut rig, 0);
        assert_eq!(
            (calls.join(" "), rules.join(" ")),
            (expected.into(), refused.into())
        );
    }
}

#[test]
fn advice_is_for_pods_whose_cost_nobody_else_has_set() {
    let pods = [
        costing("ours", "7", Some("7")),
        costing("theirs", "7", None),
        costing("changed", "8", Some("7")),
        costing("empty", "", None),
        deleting(pod("gone", 7)),
        v1::Pod {
            resource_version: String::new(),
            ..pod("unversioned", 7)
        },
    ];
    for (name, cost, expected) in [
        ("ours", 1, "ours@7=1"),
        ("ours", 0, "ours@7=0"),
        ("theirs", 1, "advice"),
        ("theirs", 0, "advice"),
        ("changed", 1, "advice"),
        ("empty", 1, "empty@7=1"),
        ("gone", 1, "inactive"),
        ("unversioned", 1, "inactive"),
        ("unknown", 1, ""),
    ] {
        let mut rig = rig_in(v1::Mode::Advise, &pods);
        assert_eq!(rig.view.pods.counts(RS).advised, 1);
        rig.batches.handle_batch(batch(1, advise(&[(name, cost)])));
        let (calls, refused) = at_millis(&mut rig, 0);
        assert_eq!([calls.concat(), refused.concat()].concat(), expected);
    }
    // Without an order that the ReplicaSet prefers, advice is only taken away.
    for (asks, cost, expected) in [
        (false, 1, "advice"),
        (false, 0, "ours@7=0"),
        (true, 1, "ours@7=1"),
    ] {
        let mut rig = rig_in(v1::Mode::Advise, &pods);
        let mut set = replica_set(20, 1);
        let prefers = set.projected.preferences.get_or_insert_default();
        prefers.scale_in_cost = asks.then(v1::ScaleInCost::default);
        rig.view.apply_replica_set(&set);
        rig.batches
            .handle_batch(batch(1, advise(&[("ours", cost)])));
        let (calls, refused) = at_millis(&mut rig, 0);
        assert_eq!([calls.concat(), refused.concat()].concat(), expected);
    }
}

#[test]
fn advice_has_a_pace_for_each_pod_and_in_all() {
    let mut rig = rig_in(v1::Mode::Advise, &[pod("a", 5), pod("b", 5)]);
    rig.batches
        .handle_batch(batch(1, advise(&[("a", 1), ("b", 2)])));
    assert_eq!(at_millis(&mut rig, 0).0, ["a@5=1"]);
    let due = rig.batches.paced_until.map(Timestamp::as_millisecond);
    assert_eq!(due, Some(50));
    assert_eq!(at_millis(&mut rig, 49).0, [""; 0]);
    assert_eq!(at_millis(&mut rig, 50).0, ["b@5=2"]);
    rig.batches.abandon();
    for (id, millis, expected) in [(2, 59_999, ""), (3, 60_000, "a@5=3")] {
        rig.batches.handle_batch(batch(id, advise(&[("a", 3)])));
        let (calls, refused) = at_millis(&mut rig, millis);
        assert_eq!(calls.concat(), expected);
        assert_eq!(refused.is_empty(), !expected.is_empty());
    }
}

#[test]
fn advice_without_effect_may_be_written_again_at_once() {
    for (code, expected) in [(409, "a@5=2"), (403, "a@5=2"), (504, "")] {
        let mut rig = rig_in(v1::Mode::Advise, &[pod("a", 5)]);
        rig.batches.handle_batch(batch(1, advise(&[("a", 1)])));
        let call = rig
            .batches
            .poll_call(Timestamp::UNIX_EPOCH, &mut rig.view, &rig.guard);
        let call = call.expect("it is written").id;
        let answer = Err(refusal(code, ""));
        rig.batches
            .handle_reply(Timestamp::UNIX_EPOCH, &mut rig.view, call, answer);
        let mut reports = rig.batches.reports.iter();
        let is_told = reports
            .any(|it| matches!(it, Report::AdviceFailed { pod, .. } if *pod == pod_ref("a")));
        // The pod of a conflict has changed, and is advised again.
        assert_eq!(is_told, code != 409, "{code}");
        rig.batches.abandon();
        rig.batches.handle_batch(batch(2, advise(&[("a", 2)])));
        assert_eq!(at_millis(&mut rig, 50).0.concat(), expected, "{code}");
    }
}

//! Refusals of the agent as a whole, and their end.

use super::*;
use crate::{
    budget::{self, Action, Limit, Limits},
    rules::Rule,
};

/// The rules that refused something since the last call.
fn rules(rig: &mut Rig) -> Vec<Rule> {
    let reports = std::iter::from_fn(|| rig.agent.poll_report());
    let refused = reports.filter_map(|report| {
        let Report::Refused(refused) = report else {
            return None;
        };
        Some(refused.rule)
    });
    refused.collect()
}

fn replica_set_event(rig: &mut Rig, version: u64, resume: &str) {
    let mut set = replica_set(version, 1);
    set.projected.resume = resume.into();
    let id = rig.watches[&Kind::ReplicaSet].0;
    let event = WatchEvent::Applied(set.into());
    rig.agent
        .handle_watch_event(rig.now, Kind::ReplicaSet, id, event);
    rig.effects();
}

/// An agent that may delete one pod in a minute, with these pods.
fn held(pods: &[v1::Pod]) -> Rig {
    let deletes = Limits {
        cluster: Limit::count(1),
        ..Limits::default()
    };
    let mut rig = Rig::new(AgentConfig {
        budget: budget::BudgetConfig {
            action: Action::Hold,
            deletes,
            ..budget::BudgetConfig::default()
        },
        ..AgentConfig::default()
    });
    rig.connect();
    rig.answer_lists("10", pods);
    rig.receive_batch(batch(1, delete(&["a", "b"])));
    rig.answer(replied(deleting(pod("a", 11))));
    rig.frames();
    assert_eq!(rules(&mut rig), [Rule::Budget]);
    rig
}

#[test]
fn batch_before_both_lists_of_its_session_has_no_effect() {
    let mut rig = Rig::open(&[pod("a", 5)]);
    rig.lose();
    while rig.links.is_empty() {
        rig.wait();
    }
    rig.connect();
    rig.receive_batch(batch(1, delete(&["a"])));
    assert_eq!(
        rules(&mut rig),
        [Rule::View],
        "it knows the pod from before"
    );
    assert_eq!(rig.calls.len(), 0);
    let pods = rig.list_sets();
    rig.receive_batch(batch(2, delete(&["a"])));
    assert_eq!(rules(&mut rig), [Rule::View], "the pods are not listed yet");
    rig.lists.insert(Kind::Pod, pods);
    rig.answer_lists("10", &[pod("a", 5)]);
    rig.receive_batch(batch(3, delete(&["a"])));
    assert_eq!(rules(&mut rig), []);
    assert_eq!(rig.calls.len(), 1);
}

#[test]
fn hold_lasts_from_one_session_to_the_next() {
    let mut rig = held(&[pod("a", 5), pod("b", 6)]);
    rig.lose();
    while rig.links.is_empty() {
        rig.wait();
    }
    rig.connect();
    rig.answer_lists("20", &[pod("b", 6)]);
    rig.receive_batch(batch(1, delete(&["b"])));
    assert_eq!(rules(&mut rig), [Rule::Budget]);
    assert_eq!(rig.agent.holds().count(), 1);
}

#[test]
fn annotation_for_all_ends_the_hold_and_lists_the_replica_sets_again() {
    let mut rig = held(&[pod("a", 5), pod("b", 6)]);
    replica_set_event(&mut rig, 21, "of the ReplicaSet alone");
    assert_eq!((rig.agent.holds().count(), rig.lists.len()), (1, 0));
    replica_set_event(&mut rig, 22, "all 1");
    assert_eq!(rig.agent.holds().count(), 0);
    let listed: Vec<_> = rig.lists.keys().collect();
    assert_eq!(listed, [&Kind::ReplicaSet]);
    rig.receive_batch(batch(2, delete(&["b"])));
    assert_eq!((rules(&mut rig).len(), rig.calls.len()), (0, 1));
}

#[test]
fn annotation_that_is_seen_again_or_goes_resumes_nothing() {
    let mut rig = held(&[pod("a", 5), pod("b", 6), pod("c", 7)]);
    replica_set_event(&mut rig, 21, "all 1");
    rig.answer_lists("21", &[]);
    rig.receive_batch(batch(2, delete(&["b", "c"])));
    assert_eq!(rules(&mut rig), [Rule::Budget]);
    for (version, value) in [(22, "all 1"), (23, ""), (21, "all 0")] {
        replica_set_event(&mut rig, version, value);
        assert_eq!(rig.agent.holds().count(), 1, "{value:?}");
    }
    replica_set_event(&mut rig, 24, "all 1");
    assert_eq!(
        rig.agent.holds().count(),
        0,
        "it was taken away, and set again"
    );
}

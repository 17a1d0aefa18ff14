//! Admitted operations, holds, and the end of holds.

use std::time::Duration;

use super::*;
use crate::{backoff::after, tests::owner};

/// The sizes of each scope, unless a test sets others.
const PODS: Sizes = Sizes {
    pods: 100,
    wanted: 100,
};

fn at(seconds: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
}

fn set(namespace: &str, name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-{namespace}-{name}"),
    }
}

/// A budget that holds deletes beyond these limits, without a floor.
fn holding(deletes: Limits) -> Budget {
    Budget::new(BudgetConfig {
        action: Action::Hold,
        floor: 0,
        creates: Limits::default(),
        deletes,
    })
}

fn by_replica_set(limit: Limit) -> Limits {
    Limits {
        replica_set: limit,
        ..Limits::default()
    }
}

fn by_namespace(limit: Limit) -> Limits {
    Limits {
        namespace: limit,
        ..Limits::default()
    }
}

fn by_cluster(limit: Limit) -> Limits {
    Limits {
        cluster: limit,
        ..Limits::default()
    }
}

impl Budget {
    /// Starts one delete. Returns whether it was admitted.
    fn delete(&mut self, now: Timestamp, of: &v1::ObjectRef) -> bool {
        self.admit(now, Verb::Delete, of, |_| PODS).is_ok()
    }

    /// Starts deletes until one is refused, `most` at most. Returns how many were admitted.
    fn deletes(&mut self, now: Timestamp, of: &v1::ObjectRef, most: u32) -> u32 {
        (0..most).take_while(|_| self.delete(now, of)).count() as u32
    }

    fn resumed(&mut self, by: &v1::ObjectRef, extent: Extent) -> bool {
        self.resume(&Resume {
            replica_set: by.clone(),
            extent,
        })
    }

    fn held(&self) -> Vec<String> {
        self.holds
            .values()
            .map(|hold| hold.scope.to_string())
            .collect()
    }

    fn told(&mut self) -> Vec<(Reason, String)> {
        let notes = self.notes.drain(..);
        notes.map(|note| (note.reason, note.object.name)).collect()
    }
}

#[test]
fn operation_beyond_the_limit_is_refused_and_holds_its_scope() {
    let mut budget = holding(by_replica_set(Limit::Count(3)));
    let (web, api) = (set("default", "web"), set("default", "api"));
    assert_eq!(budget.deletes(at(0), &web, 10), 3);
    assert_eq!(budget.held(), ["replica set default/web"]);
    assert_eq!(budget.deletes(at(0), &api, 2), 2, "another is not held");
    let refusal = budget.admit(at(3_600), Verb::Delete, &web, |_| PODS);
    let refusal = refusal.expect_err("it is held however long ago that was");
    assert_eq!(refusal.rule, Some(Rule::Budget));
    let expected = "deletes in replica set default/web are held since 1970-01-01T00:00:00Z: \
                    4 deletes in a minute, 3 are allowed; resume with: decree resume default/web";
    assert_eq!(refusal.message, expected);
    let note = budget.notes.pop_front().expect("people are told");
    let expected = "Held by a budget: 4 deletes in a minute, 3 are allowed; resume with: decree resume default/web";
    assert_eq!(note.message, expected);
}

#[test]
fn what_is_older_than_a_minute_does_not_count() {
    let mut budget = holding(by_replica_set(Limit::Count(3)));
    for second in [0, 10, 20, 65, 75, 85] {
        assert!(budget.delete(at(second), &owner()), "at {second} s");
    }
    assert!(!budget.delete(at(86), &owner()));
}

#[test]
fn creates_and_deletes_are_counted_and_held_apart() {
    let mut budget = holding(by_cluster(Limit::Count(1)));
    budget.config.creates = by_cluster(Limit::Count(2));
    assert_eq!(budget.deletes(at(0), &owner(), 5), 1);
    let mut create = || budget.admit(at(0), Verb::Create, &owner(), |_| PODS);
    assert_eq!([create(), create()], [Ok(()), Ok(())]);
    assert!(create().is_err());
    assert_eq!(budget.holds.values().count(), 2);
}

#[test]
fn namespace_is_held_with_all_its_replica_sets_and_no_other() {
    let mut budget = holding(by_namespace(Limit::Count(4)));
    let (web, api) = (set("a", "web"), set("a", "api"));
    assert_eq!(budget.deletes(at(0), &web, 3), 3);
    assert_eq!(budget.deletes(at(1), &api, 3), 1);
    assert!(!budget.delete(at(2), &web));
    assert_eq!(budget.deletes(at(2), &set("b", "web"), 4), 4);
    assert_eq!(budget.held(), ["namespace a"]);
}

#[test]
fn one_replica_set_may_go_whole_and_half_of_the_cluster_may_not() {
    let limits = by_cluster(Limit::Percent(50));
    let mut one = holding(limits);
    assert_eq!(one.deletes(at(0), &set("a", "web"), 100), 100);
    let mut many = holding(limits);
    let sets: Vec<_> = (0..10).map(|it| set("a", &format!("web-{it}"))).collect();
    let gone: u32 = sets.iter().map(|set| many.deletes(at(0), set, 10)).sum();
    // Fifty of a hundred pods, plus the pods of one of the ReplicaSets.
    assert_eq!(gone, 60);
    assert_eq!(many.held(), ["the cluster"]);
    let detail = &many.holds.values().next().expect("it is held").detail;
    let expected =
        "61 deletes in a minute, 50 are allowed beside the 10 of one ReplicaSet (50% of 100 pods)";
    assert_eq!(detail, expected);
}

#[test]
fn number_leaves_out_no_replica_set() {
    let mut budget = holding(by_cluster(Limit::Count(50)));
    assert_eq!(budget.deletes(at(0), &owner(), 100), 50);
}

#[test]
fn percentage_is_of_the_most_pods_for_deletes_and_of_the_fewest_for_creates() {
    let half = by_replica_set(Limit::Percent(50));
    let mut budget = holding(half);
    budget.config.creates = half;
    let admitted = |budget: &mut Budget, verb, pods: &dyn Fn(u32) -> u32| {
        let admit = |count: &u32| {
            budget
                .admit(at(0), verb, &owner(), |_| Sizes {
                    pods: pods(*count),
                    wanted: 0,
                })
                .is_ok()
        };
        (0..1_000).take_while(admit).count()
    };
    let deletes = admitted(&mut budget, Verb::Delete, &|gone| 100 - gone);
    assert_eq!(deletes, 50, "they are fewer and fewer, and it stays half");
    let creates = admitted(&mut budget, Verb::Create, &|made| 100 + made);
    assert_eq!(creates, 50, "they are more and more, and it stays half");
}

#[test]
fn few_pods_may_go_whatever_the_percentage() {
    let mut budget = holding(by_replica_set(Limit::Percent(1)));
    budget.config.floor = 20;
    assert_eq!(budget.deletes(at(0), &owner(), 100), 20);
}

#[test]
fn resumed_scope_counts_anew_and_what_it_contains_goes_on() {
    let mut budget = holding(Limits {
        replica_set: Limit::Count(3),
        namespace: Limit::Count(5),
        cluster: Limit::Off,
    });
    let (web, api) = (set("a", "web"), set("a", "api"));
    assert_eq!(budget.deletes(at(0), &web, 9), 3);
    assert_eq!(budget.deletes(at(0), &api, 9), 2);
    assert_eq!(budget.held(), ["replica set a/web", "namespace a"]);
    assert!(!budget.resumed(&web, Extent::ReplicaSet), "it concerns one");
    assert_eq!(budget.held(), ["namespace a"]);
    assert!(!budget.resumed(&set("b", "web"), Extent::Namespace));
    assert!(
        budget.resumed(&api, Extent::Namespace),
        "it concerns others"
    );
    assert_eq!(budget.held(), [""; 0]);
    assert_eq!(budget.deletes(at(1), &web, 9), 3);
}

#[test]
fn resume_without_a_hold_changes_no_count() {
    let mut budget = holding(by_replica_set(Limit::Count(3)));
    assert_eq!(budget.deletes(at(0), &owner(), 2), 2);
    assert!(!budget.resumed(&owner(), Extent::All));
    assert_eq!(budget.deletes(at(0), &owner(), 9), 1);
}

#[test]
fn each_replica_set_is_told_once_of_a_hold_and_once_of_its_end() {
    let mut budget = holding(by_namespace(Limit::Count(1)));
    let (web, api) = (set("a", "web"), set("a", "api"));
    budget.deletes(at(0), &web, 2);
    for _ in 0..100 {
        assert!(!budget.delete(at(0), &web) && !budget.delete(at(0), &api));
    }
    let exceeded = |name: &str| (Reason::BudgetExceeded, name.to_owned());
    assert_eq!(budget.told(), [exceeded("web"), exceeded("api")]);
    budget.resumed(&api, Extent::Namespace);
    assert_eq!(budget.told(), [(Reason::BudgetResumed, "api".to_owned())]);
    let changes: Vec<_> = budget.changes.drain(..).collect();
    assert!(
        matches!(changes[..], [Change::Held(_), Change::Ended(_)]),
        "{changes:?}"
    );
}

#[test]
fn warning_comes_once_a_minute_and_keeps_nothing_from_starting() {
    let mut budget = holding(by_replica_set(Limit::Count(3)));
    budget.config.action = Action::Warn;
    let changes = |budget: &mut Budget| std::mem::take(&mut budget.changes).len();
    assert_eq!(budget.deletes(at(0), &owner(), 100), 100);
    assert_eq!((changes(&mut budget), budget.told().len()), (1, 1));
    assert_eq!(budget.deletes(at(30), &owner(), 100), 100);
    assert_eq!(changes(&mut budget), 0);
    assert_eq!(budget.deletes(at(70), &owner(), 100), 100);
    assert_eq!(changes(&mut budget), 1);
    assert_eq!(budget.held(), [""; 0]);
}

#[test]
fn hold_of_a_replica_set_goes_with_it() {
    let mut budget = holding(by_replica_set(Limit::Count(1)));
    for name in ["web", "api"] {
        budget.deletes(at(0), &set("a", name), 2);
    }
    budget.retain(|uid| uid == "uid-a-api");
    assert_eq!(budget.held(), ["replica set a/api"]);
}

#[test]
fn only_scopes_of_the_last_minute_are_remembered() {
    let mut budget = holding(by_cluster(Limit::Percent(100)));
    for second in 0..1_000 {
        let set = set("a", &format!("web-{second}"));
        assert!(budget.delete(at(second), &set));
    }
    let remembered = budget.windows.len();
    assert!(remembered <= 72, "{remembered} scopes");
}

#[test]
fn nothing_is_counted_where_nothing_is_limited() {
    let mut budget = holding(Limits::default());
    assert_eq!(budget.deletes(at(0), &owner(), 1_000), 1_000);
    assert!(budget.windows.is_empty());
}

/// Starts creates for a ReplicaSet with `wanted` desired pods, alone in its cluster. Returns the number of warnings.
fn creates(budget: &mut Budget, now: Timestamp, wanted: u32, count: u32) -> usize {
    for made in 0..count {
        let sizes = Sizes { pods: made, wanted };
        let admitted = budget.admit(now, Verb::Create, &owner(), |_| sizes);
        admitted.expect("the default warns");
    }
    let warned = |change: &Change| matches!(change, Change::Warned(_));
    budget.changes.drain(..).filter(warned).count()
}

#[test]
fn ordinary_work_exceeds_no_default() {
    let mut scaled = Budget::new(BudgetConfig::default());
    for (second, wanted) in [(0, 1_000), (20, 1_000), (40, 1_000)] {
        // Scaled to 0 in between, the ReplicaSet creates all pods again.
        assert_eq!(creates(&mut scaled, at(second), wanted, wanted), 0);
    }
    let mut lost = Budget::new(BudgetConfig::default());
    // All nodes are lost, and while they come back twice more.
    for second in [0, 10, 20] {
        assert_eq!(creates(&mut lost, at(second), 30, 30), 0);
    }
    let mut rolled = Budget::new(BudgetConfig::default());
    // A rollout raises the desired number step by step, and creates as many.
    for wanted in 1..=50 {
        assert_eq!(creates(&mut rolled, at(0), wanted, 1), 0);
    }
    let mut refused = Budget::new(BudgetConfig::default());
    // The backoff of refused creates doubles from 5 ms to 30 s.
    assert_eq!(creates(&mut refused, at(0), 1, 15), 0);
}

#[test]
fn pods_that_do_not_last_exceed_the_default_of_their_replica_set() {
    let mut budget = Budget::new(BudgetConfig::default());
    assert_eq!(creates(&mut budget, at(0), 3, 29), 0);
    assert_eq!(creates(&mut budget, at(10), 3, 100), 1, "and once a minute");
    let note = budget.notes.pop_front().expect("people are told");
    let expected = "creates in replica set default/web: \
                    30 creates in a minute, 29 are allowed (3x+20, and 3 are wanted)";
    assert_eq!(
        (note.reason, note.message.as_str()),
        (Reason::BudgetExceeded, expected)
    );
}

#[test]
fn multiple_is_of_the_most_that_was_wanted_in_the_minute() {
    let mut budget = Budget::new(BudgetConfig::default());
    assert_eq!(creates(&mut budget, at(0), 100, 100), 0);
    // Scaled down to 1, and pods of before are replaced meanwhile.
    assert_eq!(creates(&mut budget, at(1), 1, 200), 0);
    assert_eq!(
        creates(&mut budget, at(66), 1, 23),
        0,
        "what was before is forgotten"
    );
    assert_eq!(creates(&mut budget, at(66), 1, 1), 1);
}

#[test]
fn many_replica_sets_that_create_too_much_exceed_the_default_of_the_cluster() {
    let mut budget = Budget::new(BudgetConfig::default());
    let mut warned = Vec::new();
    for number in 0..60 {
        let set = set("a", &format!("web-{number}"));
        for _ in 0..23 {
            let wanted = |scope: &Scope| match scope {
                Scope::ReplicaSet { .. } => 1,
                Scope::Namespace(_) | Scope::Cluster => 60,
            };
            let sizes = |scope: &Scope| Sizes {
                pods: 0,
                wanted: wanted(scope),
            };
            budget
                .admit(at(0), Verb::Create, &set, sizes)
                .expect("it warns");
        }
        while let Some(Change::Warned(hold)) = budget.changes.pop_front() {
            warned.push((hold.scope, hold.detail));
        }
    }
    let detail = "1181 creates in a minute, 1180 are allowed (3x+1000, and 60 are wanted)";
    assert_eq!(warned, [(Scope::Cluster, detail.to_owned())]);
}

#[test]
fn pod_of_another_controller_holds_its_replica_set_until_a_person_resumes_it() {
    let mut budget = Budget::new(BudgetConfig::default());
    let web = set("default", "web");
    let pod = PodOfOther {
        replica_set: web.clone(),
        pod: "web-x".into(),
        writer: "k3s".into(),
    };
    for _ in 0..2 {
        for second in [72, 73] {
            budget.note_other(at(second), &pod);
        }
        let refused = Verb::ALL.map(|verb| budget.admit(at(3_600), verb, &web, |_| PODS));
        for (refused, verb) in refused.into_iter().zip(Verb::ALL) {
            let refused = refused.expect_err("it is held");
            assert_eq!(refused.rule, Some(Rule::OtherController));
            let expected = format!(
                "{}s in replica set default/web are held since 1970-01-01T00:01:12Z: another controller is at work: \
                 k3s created its pod web-x; resume with: decree resume default/web",
                verb.as_str()
            );
            assert_eq!(refused.message, expected);
        }
        assert!(budget.delete(at(3_600), &set("default", "another")));
        let first = budget.notes.front().expect("people are told");
        let expected = "Another controller is at work: k3s created its pod web-x; resume with: decree resume default/web";
        assert_eq!(first.message, expected);
        let told = vec![(Reason::OtherController, "web".to_owned()); 2];
        assert_eq!(budget.told(), told, "creates and deletes, once each");
        budget.resumed(&web, Extent::ReplicaSet);
        budget.told();
        assert!(budget.delete(at(3_600), &web), "it is resumed");
    }
}

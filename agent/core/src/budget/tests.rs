//! Admitted operations, holds, and the end of holds.

use super::*;
use crate::tests::{at, owner};

/// The pods of each scope, unless a test sets others.
const PODS: u32 = 100;

fn set(namespace: &str, name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-{namespace}-{name}"),
    }
}

/// A budget that holds deletes beyond these limits.
fn holding(deletes: Limits) -> Budget {
    Budget::new(BudgetConfig {
        action: Action::Hold,
        creates: Limits::default(),
        deletes,
    })
}

fn limits(text: &str) -> Limits {
    text.parse().expect(text)
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
    let mut budget = holding(limits("replicaset=3"));
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

/// Returns the words of each step.
fn steps(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.split("; ").map(|step| step.split(' ').collect())
}

#[test]
fn deletes_are_admitted_up_to_the_limits_of_their_replica_set_and_the_cluster() {
    let web = "replica set a/web";
    // Each step is a second, a ReplicaSet, and how many deletes are tried and admitted.
    for (text, deletes, held) in [
        ("off", "0 web 1000 1000", ""),
        ("replicaset=3", "0 web 2 2; 70 web 9 3", web),
        // An operation counts for 60 to 65 seconds.
        ("replicaset=2", "0 web 2 2; 65 web 2 2; 124 web 1 0", web),
        ("cluster=50", "0 web 100 50; 1 api 1 0", "the cluster"),
        // A percentage leaves out the ReplicaSet with the most operations.
        ("cluster=50%", "0 web 100 100", ""),
        (
            "cluster=50%",
            "0 web 60 60; 0 api 60 50; 1 web 1 0",
            "the cluster",
        ),
    ] {
        let mut budget = holding(limits(text));
        for step in steps(deletes) {
            let number = |at: usize| step[at].parse().expect("a number");
            let second = at(u64::from(number(0)));
            let deleted = budget.deletes(second, &set("a", step[1]), number(2));
            assert_eq!(deleted, number(3), "{text}: {step:?}");
        }
        assert_eq!(budget.held().join(""), held, "{text}");
        assert!(text != "off" || budget.windows.is_empty(), "no counts");
    }
}

#[test]
fn creates_and_deletes_are_counted_and_held_apart() {
    let mut budget = holding(limits("cluster=1"));
    budget.config.creates = limits("cluster=2");
    assert_eq!(budget.deletes(at(0), &owner(), 5), 1);
    let mut create = || budget.admit(at(0), Verb::Create, &owner(), |_| PODS);
    assert_eq!([create(), create()], [Ok(()), Ok(())]);
    assert!(create().is_err());
    assert_eq!(budget.holds.values().count(), 2);
}

#[test]
fn one_replica_set_may_go_whole_and_half_of_the_cluster_may_not() {
    let mut budget = holding(limits("cluster=50%"));
    let sets: Vec<_> = (0..10).map(|it| set("a", &format!("web-{it}"))).collect();
    let gone: u32 = sets.iter().map(|set| budget.deletes(at(0), set, 10)).sum();
    // Fifty of a hundred pods, plus the pods of one of the ReplicaSets.
    assert_eq!(gone, 60);
    let detail = &budget.holds.values().next().expect("it is held").detail;
    let expected = "61 deletes in a minute, 50 are allowed beside the 10 of one ReplicaSet (50% of 100 active pods)";
    assert_eq!(detail, expected);
}

#[test]
fn deletes_do_not_lower_their_own_limit() {
    let mut budget = holding(limits("replicaset=50%"));
    let admit = |gone: &u32| {
        let admitted = budget.admit(at(0), Verb::Delete, &owner(), |_| 100 - gone);
        admitted.is_ok()
    };
    assert_eq!((0..100).take_while(admit).count(), 50);
}

#[test]
fn resumed_scope_counts_anew_and_what_it_contains_goes_on() {
    let mut budget = holding(limits("replicaset=3,cluster=5"));
    let (web, api) = (set("a", "web"), set("b", "api"));
    assert_eq!(budget.deletes(at(0), &web, 9), 3);
    assert_eq!(budget.deletes(at(0), &api, 9), 2);
    assert_eq!(budget.held(), ["replica set a/web", "the cluster"]);
    assert!(!budget.resumed(&web, Extent::ReplicaSet), "it concerns one");
    assert_eq!(budget.held(), ["the cluster"]);
    assert!(budget.resumed(&api, Extent::All), "it concerns others");
    assert_eq!(budget.held(), [""; 0]);
    assert_eq!(budget.deletes(at(1), &web, 9), 3);
}

#[test]
fn resume_without_a_hold_changes_no_count() {
    let mut budget = holding(limits("replicaset=3"));
    assert_eq!(budget.deletes(at(0), &owner(), 2), 2);
    assert!(!budget.resumed(&owner(), Extent::All));
    assert_eq!(budget.deletes(at(0), &owner(), 9), 1);
}

#[test]
fn each_replica_set_is_told_once_of_a_hold_and_once_of_its_end() {
    let mut budget = holding(limits("cluster=1"));
    let (web, api) = (set("a", "web"), set("a", "api"));
    budget.deletes(at(0), &web, 2);
    for _ in 0..100 {
        assert!(!budget.delete(at(0), &web) && !budget.delete(at(0), &api));
    }
    let exceeded = |name: &str| (Reason::BudgetExceeded, name.to_owned());
    assert_eq!(budget.told(), [exceeded("web"), exceeded("api")]);
    budget.resumed(&api, Extent::All);
    assert_eq!(budget.told(), [(Reason::BudgetResumed, "api".to_owned())]);
    let changes: Vec<_> = budget.changes.drain(..).collect();
    assert!(
        matches!(changes[..], [Change::Held(_), Change::Ended(_)]),
        "{changes:?}"
    );
}

#[test]
fn warning_comes_once_a_minute_and_keeps_nothing_from_starting() {
    let mut budget = holding(limits("replicaset=3"));
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
    let mut budget = holding(limits("replicaset=1"));
    for name in ["web", "api"] {
        budget.deletes(at(0), &set("a", name), 2);
    }
    budget.retain(|uid| uid == "uid-a-api");
    assert_eq!(budget.held(), ["replica set a/api"]);
}

#[test]
fn only_scopes_of_the_last_minute_are_remembered() {
    let mut budget = holding(limits("cluster=100%"));
    for second in 0..1_000 {
        let set = set("a", &format!("web-{second}"));
        assert!(budget.delete(at(second), &set));
    }
    let remembered = budget.windows.len();
    assert!(remembered <= 72, "{remembered} scopes");
}

/// Starts creates for a ReplicaSet with `desired` pods, alone in its cluster. Returns the number of warnings.
fn creates(budget: &mut Budget, now: Timestamp, desired: u32, count: u32) -> usize {
    for _ in 0..count {
        let admitted = budget.admit(now, Verb::Create, &owner(), |_| desired);
        admitted.expect("the default warns");
    }
    let warned = |change: &Change| matches!(change, Change::Warned(_));
    budget.changes.drain(..).filter(warned).count()
}

#[test]
fn default_warns_of_runaway_creates_and_not_of_ordinary_work() {
    // Each step is a second, the desired pods, the creates, and the warnings.
    for creations in [
        // Scaled to 0 in between, the ReplicaSet creates all pods again.
        "0 1000 1000 0; 20 1000 1000 0; 40 1000 1000 0",
        // All nodes are lost, and while they come back twice more.
        "0 30 30 0; 10 30 30 0; 20 30 30 0",
        // A rollout raises the desired number step by step, and creates as many.
        "0 1 1 0; 0 25 24 0; 0 50 25 0",
        // The backoff of refused creates doubles from 5 ms to 30 s.
        "0 1 15 0",
        // Pods do not last: a warning comes once a minute.
        "0 3 29 0; 10 3 100 1; 30 3 100 0; 80 3 100 1",
        // Scaled down to 1, and pods of before are replaced meanwhile; after a minute, that is forgotten.
        "0 100 100 0; 1 1 200 0; 66 1 23 0; 66 1 1 1",
    ] {
        let mut budget = Budget::new(BudgetConfig::default());
        for step in steps(creations) {
            let number = |at: usize| step[at].parse::<u32>().expect("a number");
            let second = at(u64::from(number(0)));
            let warned = creates(&mut budget, second, number(1), number(2));
            assert_eq!(warned, number(3) as usize, "{step:?} of {creations:?}");
        }
    }
}

#[test]
fn many_replica_sets_that_create_too_much_exceed_the_default_of_the_cluster() {
    let mut budget = Budget::new(BudgetConfig::default());
    let mut warned = Vec::new();
    for number in 0..60 {
        let set = set("a", &format!("web-{number}"));
        for _ in 0..23 {
            let desired = |scope: &Scope| if *scope == Scope::Cluster { 60 } else { 1 };
            budget
                .admit(at(0), Verb::Create, &set, desired)
                .expect("it warns");
        }
        while let Some(Change::Warned(hold)) = budget.changes.pop_front() {
            warned.push((hold.scope, hold.detail));
        }
    }
    let detail = "1204 creates in a minute, 1180 are allowed beside the 23 of one ReplicaSet (300%+1000 of 60 desired pods)";
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

//! Admitted operations, holds, and the end of holds.

use expect_test::expect_file;

use super::*;
use crate::tests::{at, play};

/// The ReplicaSet `NAMESPACE/NAME`.
fn set(text: &str) -> v1::ObjectRef {
    let (namespace, name) = text.split_once('/').expect("a place");
    v1::ObjectRef {
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-{namespace}-{name}"),
    }
}

/// Tries operations until one is refused. Returns how many started, and the last refusal.
fn tried(budget: &mut Budget, words: &[&str]) -> String {
    let number = |place: usize| words[place].parse::<u32>().expect("a number");
    let now = at(number(0).into());
    let verb = if words[1] == "create" {
        Verb::Create
    } else {
        Verb::Delete
    };
    let pods = words.get(4).copied().unwrap_or("100");
    let falls = pods.ends_with('-');
    let pods: u32 = pods.trim_end_matches('-').parse().expect("a number");
    let (mut started, mut refused) = (0, String::new());
    while started < number(3) && refused.is_empty() {
        let pods = if falls { pods - started } else { pods };
        match budget.admit(now, verb, &set(words[2]), |_| pods) {
            Ok(()) => started += 1,
            Err(refusal) => refused = format!(", refused: {}", refusal.message),
        }
    }
    format!("{started} started{refused}")
}

/// Plays a statement. Returns its result, and what it reports.
fn act(budget: &mut Budget, statement: &str) -> Option<String> {
    let words: Vec<_> = statement.split_whitespace().collect();
    let config = &mut budget.config;
    let resumed = |budget: &mut Budget, extent| {
        let concerns_many = budget.resume(&set(words[1]), extent);
        format!("concerns many: {concerns_many}")
    };
    let mut told = vec![match words[0] {
        "hold" => {
            config.action = Action::Hold;
            (config.creates, config.deletes) = (Limits::default(), Limits::default());
            return None;
        }
        "deletes" => {
            config.deletes = words[1].parse().expect("limits");
            return None;
        }
        "creates" => {
            config.creates = words[1].parse().expect("limits");
            return None;
        }
        "resume" => resumed(budget, Extent::ReplicaSet),
        "resume-all" => resumed(budget, Extent::All),
        "remains" => {
            budget.retain(|uid| uid == set(words[1]).uid);
            String::new()
        }
        _ if words[1] == "other" => {
            let pod = PodOfOther {
                replica_set: set(words[2]),
                pod: "web-x".into(),
                writer: "k3s".into(),
            };
            budget.note_other(at(words[0].parse().expect("a second")), &pod);
            String::new()
        }
        _ => tried(budget, &words),
    }];
    told.extend(budget.changes.drain(..).map(|change| match change {
        Change::Warned(hold) => format!("{} warned: {}", hold.place(), hold.detail),
        Change::Held(hold) => format!("{} held: {}", hold.place(), hold.detail),
        Change::Ended(hold) => format!("{} ended", hold.place()),
    }));
    let notes = budget.notes.drain(..);
    told.extend(
        notes.map(|it| format!("{} {}: {}", it.reason.as_str(), it.object.name, it.message)),
    );
    told.retain(|it| !it.is_empty());
    Some(told.join(" + "))
}

/// `SECOND delete REPLICASET COUNT PODS` tries deletes while each scope has so many pods, 100 unless it says otherwise, and one fewer after each
/// with a `-`. `hold` begins without limits, and other tables with the default budget.
#[test]
fn operations_are_admitted_and_held_as_in_the_table() {
    let new = || Budget::new(BudgetConfig::default());
    play(&expect_file!["tests/budget.txt"], new, act);
}

#[test]
fn only_scopes_of_the_last_minute_are_remembered() {
    for (deletes, most) in [("cluster=100%", 72), ("off", 0)] {
        let mut budget = Budget::new(BudgetConfig {
            deletes: deletes.parse().expect("limits"),
            ..BudgetConfig::default()
        });
        for second in 0..1_000 {
            let set = set(&format!("a/web-{second}"));
            let admitted = budget.admit(at(second), Verb::Delete, &set, |_| 100);
            admitted.expect("it is below the limit");
        }
        let remembered = budget.windows.len();
        assert!(remembered <= most, "{remembered} scopes");
    }
}

#[test]
fn many_replica_sets_that_create_too_much_exceed_the_default_of_the_cluster() {
    let mut budget = Budget::new(BudgetConfig::default());
    let mut warned = Vec::new();
    for number in 0..60 {
        let set = set(&format!("a/web-{number}"));
        for _ in 0..23 {
            let desired = |scope| if scope == Scope::Cluster { 60 } else { 1 };
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

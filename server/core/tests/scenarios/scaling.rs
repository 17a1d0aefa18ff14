//! Pods are created and deleted until their number is as desired.

use std::{cell::Cell, collections::BTreeSet};

use decree_core::{
    Action, Config, Event, FailureClass, Interrupted, NameSeed, Objects, Phase, Pod, Preferences,
    ReplicaSet, ScaleIn, SurroundingsCopy, SurroundingsIndex, decide_while,
};

use crate::{
    objects::{START, key, orphan, owner, pod, set, with},
    rig::{Rig, created, failed},
};

pub(crate) fn objects(replica_sets: Vec<ReplicaSet>, pods: Vec<Pod>) -> Objects {
    Objects {
        replica_sets,
        pods,
        ..Objects::default()
    }
}

#[test]
fn decisions_from_files_take_the_first_names_in_every_session() {
    let of = |names| {
        let config = Config {
            names,
            ..Config::default()
        };
        let objects = objects(vec![set("web", 3)], vec![]);
        let decided = decide_while(START, config, ("default", "web"), objects, &|| true);
        decided.expect("nobody ends it").expect("it is listed")
    };
    let in_a_session = of(NameSeed::of_session(7, "s-1"));
    assert_eq!(in_a_session.creates, of(NameSeed::default()).creates);
}

/// A longer one comes back with the ReplicaSet, which would be quarantined.
#[test]
fn condition_of_a_failure_with_the_longest_message_is_no_longer_than_may_be() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("a", "web")]);
    let batch = rig.batch();
    let longest = "é".repeat(16 * 1024);
    rig.answer(&batch, 0, failed(FailureClass::Forbidden, &longest));
    let Action::WriteStatus(status) = rig.batch().action else {
        panic!("the failure is written")
    };
    let message = &status.conditions[0].message;
    assert!(message.starts_with("unable to delete pods: é"));
    // Whole letters of two bytes, behind 23 others.
    assert_eq!(message.len(), 32 * 1024 - 1);
}

#[test]
fn decision_that_nobody_waits_for_ends_before_the_next_object() {
    let left = Cell::new(3);
    let go_on = || {
        left.set(left.get() - 1);
        left.get() > 0
    };
    let pods = ["a", "b", "c", "d"].map(|name| pod(name, "web")).into();
    let (config, objects) = (Config::default(), objects(vec![set("web", 3)], pods));
    let decided = decide_while(START, config, ("default", "web"), objects, &go_on);
    assert_eq!((decided, left.get()), (Err(Interrupted), 0));
}

#[test]
fn decision_that_nobody_waits_for_ends_while_it_counts_related_pods() {
    let sibling = |at| ReplicaSet {
        controller: Some(owner("deployment")),
        ..set(&format!("web-{at}"), 0)
    };
    let sets: Vec<_> = (0..3).map(sibling).collect();
    let pods = (0..50).map(|at| orphan(&format!("p-{at}"), &format!("app-{at}")));
    let (objects, calls) = (objects(sets, pods.collect()), Cell::new(0));
    let go_on = || {
        calls.set(calls.get() + 1);
        // One call for each object, and some for the groups of pods.
        calls.get() <= 3 + 50 + 10
    };
    let place = ("default", "web-0");
    let decided = decide_while(START, Config::default(), place, objects, &go_on);
    assert_eq!((decided, calls.get()), (Err(Interrupted), 64));
}

#[test]
fn what_is_simulated_reads_no_more_than_it_may() {
    let pods = ["a", "b", "c", "d", "e"].map(|name| pod(name, "web"));
    let others = ["x", "y", "z"].map(|name| pod(name, "db"));
    let pods = pods.into_iter().chain(others).collect();
    let rig = Rig::of(vec![set("web", 5), set("db", 3)], pods);
    let around = |objects_max| rig.surroundings("default", "web", objects_max);
    assert_eq!(around(6).objects(), 6, "the ReplicaSet and its pods");
    assert_eq!(around(0).objects(), 1, "one more object than may be");
    let decided = around(6).decide(Some(1), &|| true);
    assert_eq!(decided, Ok(rig.decision("default", "web", Some(1))));
}

#[test]
fn copy_in_steps_has_each_pod_that_stays_once() {
    let pods = (0..1_000).map(|at| pod(&format!("web-{at}"), "web"));
    let pods: Vec<_> = pods.collect();
    let mut rig = Rig::of(vec![set("web", 1_000)], pods.clone());
    let mut copy = SurroundingsCopy::new("default", "web", usize::MAX);
    let (mut gone, mut steps) = (BTreeSet::new(), 0);
    let around = loop {
        if let Some(around) = copy.step(rig.now, &rig.controller) {
            break around;
        }
        // The places of deleted pods go to new ones, also in another namespace.
        let leaving = &pods[7 * steps];
        rig.delete_pod(leaving);
        gone.insert(leaving.name.clone());
        rig.apply_pod(Pod {
            namespace: "other".into(),
            ..pod(&format!("new-{steps}"), "web")
        });
        steps += 1;
    };
    assert!(steps >= 4, "{steps} steps");
    let mut copied: Vec<_> = around.owned().map(|pod| pod.name.clone()).collect();
    copied.sort();
    let names: BTreeSet<_> = copied.iter().cloned().collect();
    assert_eq!(names.len(), copied.len(), "each once");
    let stays = pods.iter().filter(|pod| !gone.contains(&pod.name));
    assert!(stays.into_iter().all(|pod| names.contains(&pod.name)));
    assert!(around.owned().all(|pod| &*pod.namespace == "default"));
}

/// Pods of other owners and namespaces count on the nodes of the ReplicaSet, also in a preview, which copies none of them.
#[test]
fn consolidation_counts_all_pods_and_so_does_its_preview() {
    let mut web = set("web", 4);
    web.preferences = Some(Box::new(Preferences {
        scale_in: vec![ScaleIn::EmptiestNode],
        ..Preferences::default()
    }));
    let on = |pod: Pod, node: &str| Pod {
        node: Some(node.into()),
        ..pod
    };
    let mut pods = vec![
        on(pod("a", "web"), "full"),
        on(pod("b", "web"), "full"),
        on(pod("c", "web"), "emptier"),
        on(pod("d", "web"), "emptier"),
    ];
    pods.extend(["x", "y", "z"].map(|name| on(orphan(name, "none"), "full")));
    let elsewhere = |pod| Pod {
        namespace: "other".into(),
        ..on(pod, "emptier")
    };
    pods.push(elsewhere(pod("a", "db")));
    for name in ["e", "f", "g"] {
        let ended = with(orphan(name, "none"), |state| state.phase = Phase::Failed);
        pods.push(elsewhere(ended));
    }
    let mut rig = Rig::of(vec![web.clone(), set("db", 1)], pods);
    rig.settle();
    let preview = rig.simulate("web", 2).deletes;
    let index = SurroundingsIndex::new(&rig.controller);
    let around = index.of(rig.now, "default", "web");
    let decided = around.decide(Some(2), &|| true).expect("nothing ends it");
    assert_eq!(decided.expect("it is known").deletes, preview);
    let said = preview.iter().map(|it| (&*it.pod.name, &*it.reason.detail));
    let why = "3 pods on emptier vs 5 on full";
    assert_eq!(said.collect::<Vec<_>>(), [("c", why), ("d", why)]);
    web.replicas = 2;
    rig.apply_replica_set(web);
    let deletes = rig.batch().action;
    assert!(matches!(deletes, Action::Delete(victims) if victims == preview));
}

#[test]
fn copies_from_an_index_decide_as_copies_in_steps() {
    let mut sets: Vec<_> = ["web", "web-x", "db", "api"]
        .map(|name| set(name, 2))
        .into();
    // Three siblings, of which one selects the pods of another ReplicaSet, too.
    for at in [0, 1, 3] {
        sets[at].controller = Some(owner("deployment"));
    }
    sets[3].selector = set("db", 0).selector;
    let mut pods = Vec::new();
    let owners = ["web", "web-x", "db", "api", "gone"].iter().cycle();
    for (at, owner) in owners.take(40).enumerate() {
        let mut one = pod(&format!("{owner}-bcd{:02}", at + 22), owner);
        one.node = Some(format!("node-{}", at % 3).into());
        if at % 4 == 0 {
            one.controller = None;
        }
        pods.push(one);
    }
    let rig = Rig::of(sets, pods);
    let index = SurroundingsIndex::new(&rig.controller);
    for name in ["web", "web-x", "db", "api", "nothing"] {
        for replicas in [None, Some(0), Some(3), Some(30)] {
            let found = index
                .of(rig.now, "default", name)
                .decide(replicas, &|| true);
            let expected = rig.decision("default", name, replicas);
            assert_eq!(found, Ok(expected), "{name} with {replicas:?}");
        }
    }
}

#[test]
fn copy_of_a_replica_set_that_is_deleted_meanwhile_has_none() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("web-1", "web")]);
    let mut copy = SurroundingsCopy::new("default", "web", usize::MAX);
    assert!(copy.step(rig.now, &rig.controller).is_none());
    let (key, version) = (key("web"), None);
    rig.observe(Event::ReplicaSetDeleted { key, version });
    // Its place goes to another one.
    rig.apply_replica_set(set("db", 1));
    let around = copy.step(rig.now, &rig.controller).expect("it ends");
    assert_eq!(around.replica_sets(), []);
}

#[test]
fn a_name_that_some_pod_bears_is_passed_over_whoever_owns_it() {
    let first = created(&Rig::of(vec![set("web", 1)], vec![]).batch()).remove(0);
    let foreign = Pod {
        labels: Default::default(),
        ..with(orphan(&first, "other"), |state| state.phase = Phase::Failed)
    };
    let next = created(&Rig::of(vec![set("web", 1)], vec![foreign]).batch()).remove(0);
    assert_ne!(first, next);
}

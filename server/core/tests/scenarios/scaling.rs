//! Pods are created and deleted until their number is as desired.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashSet},
};

use server_core::{
    Action, Config, Event, FailureClass, Interrupted, NameSeed, Phase, Pod, ReplicaSet, Rule, Span,
    SurroundingsCopy, decide, decide_while,
};

use crate::{
    objects::{START, key, orphan, pod, set, unready, with},
    rig::{Rig, created, deleting, failed, slow_started, victims, written},
};

#[test]
fn decisions_from_files_take_the_first_names_in_every_session() {
    let of = |names| {
        let config = Config {
            names,
            ..Config::default()
        };
        let sets = vec![set("web", 3)];
        decide(START, config, ("default", "web"), sets, vec![]).expect("it is listed")
    };
    let in_a_session = of(NameSeed::of_session(7, "s-1"));
    assert_eq!(in_a_session.creates, of(NameSeed::default()).creates);
}

#[test]
fn decision_that_nobody_waits_for_ends_before_the_next_object() {
    let left = Cell::new(3);
    let go_on = || {
        left.set(left.get() - 1);
        left.get() > 0
    };
    let pods = ["a", "b", "c", "d"].map(|name| pod(name, "web")).into();
    let (config, sets) = (Config::default(), vec![set("web", 3)]);
    let decided = decide_while(START, config, ("default", "web"), sets, pods, &go_on);
    assert_eq!((decided, left.get()), (Err(Interrupted), 0));
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
fn a_replica_set_at_its_size_is_left_alone() {
    let mut wanted = set("web", 2);
    wanted.status.replicas = 2;
    wanted.status.fully_labeled_replicas = 2;
    wanted.status.ready_replicas = 2;
    wanted.status.available_replicas = 2;
    let mut rig = Rig::of(vec![wanted], vec![pod("a", "web"), pod("b", "web")]);
    assert_eq!(rig.poll(), None);
}

#[test]
fn missing_pods_are_created_under_names_chosen_here() {
    let mut rig = Rig::of(vec![set("web", 3)], vec![]);
    let batch = rig.batch();
    let names = created(&batch);
    assert_eq!(names.len(), 3);
    assert!(
        names
            .iter()
            .all(|name| name.len() == 9 && name.starts_with("web-")),
        "{names:?}"
    );
    let Action::Create {
        generate_name,
        slow_start_initial,
        ..
    } = &batch.action
    else {
        panic!()
    };
    assert_eq!((&**generate_name, *slow_start_initial), ("web-", 1));
    assert_eq!(batch.reasons[0].rule, Rule::TooFewReplicas);
}

#[test]
fn two_controllers_with_the_same_view_choose_the_same_names() {
    let names = |pods: Vec<Pod>| created(&Rig::of(vec![set("web", 5)], pods).batch());
    assert_eq!(
        names(vec![pod("a", "web"), pod("b", "web")]),
        names(vec![pod("b", "web"), pod("a", "web")])
    );
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

#[test]
fn a_lost_pod_is_replaced_under_a_name_that_no_pod_had() {
    let mut rig = Rig::of(vec![set("web", 3)], vec![]);
    let mut names = created(&rig.batch_done());
    for lost in 0..200 {
        rig.settle();
        rig.wait(Span::seconds(60));
        rig.delete_pod(&pod(&names[lost], "web"));
        names.extend(created(&rig.batch_done()));
    }
    let distinct: HashSet<_> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (203, 203));
}

#[test]
fn a_name_whose_create_came_late_is_not_used_again() {
    for class in [FailureClass::Timeout, FailureClass::Unavailable] {
        let mut rig = Rig::of(vec![set("web", 1)], vec![]);
        let batch = rig.batch();
        rig.fail_all(&batch, class);
        let late = pod(&created(&batch)[0], "web");
        rig.apply_pod(late.clone());
        rig.settle();
        rig.delete_pod(&late);
        rig.wait(Span::seconds(1));
        assert_ne!(created(&rig.batch()), created(&batch));
    }
}

#[test]
fn a_taken_name_gives_way_to_the_next_without_an_error() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::NameTaken);
    assert_ne!(created(&rig.batch()), created(&batch));
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_create_that_failed_is_repeated_under_its_name() {
    for class in [
        FailureClass::Timeout,
        FailureClass::Unavailable,
        FailureClass::Quota,
        FailureClass::Forbidden,
    ] {
        let mut rig = Rig::of(vec![set("web", 1)], vec![]);
        let batch = rig.batch();
        rig.fail_all(&batch, class);
        let status = rig.batch();
        rig.succeed(&status);
        assert_eq!(rig.poll(), None);
        rig.wait(Span::seconds(1));
        assert_eq!(created(&rig.batch()), created(&batch));
    }
}

#[test]
fn one_sync_acts_on_at_most_the_burst() {
    for (burst, replicas) in [(5, 30), (5, 12), (3, 2)] {
        let config = Config {
            burst_replicas: burst,
            ..Config::default()
        };
        let mut rig = Rig::with(config).listed(vec![set("web", replicas)], vec![]);
        let mut sizes = Vec::new();
        for batch in rig.settle() {
            if let Action::Create { names, .. } = &batch.action {
                sizes.push(names.len());
            }
        }
        assert!(
            sizes.iter().all(|size| *size <= burst as usize),
            "{sizes:?}"
        );
        assert_eq!(sizes.iter().sum::<usize>(), replicas as usize);
        rig.apply_replica_set(set("web", 0));
        let gone: Vec<_> = rig
            .settle()
            .iter()
            .filter(|batch| matches!(batch.action, Action::Delete(_)))
            .map(victims)
            .collect();
        assert!(gone.iter().all(|names| names.len() <= burst as usize));
        assert_eq!(gone.concat().len(), replicas as usize);
    }
}

#[test]
fn no_second_batch_leaves_while_one_is_in_flight() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let batch = rig.batch();
    rig.apply_replica_set(set("web", 5));
    assert_eq!(rig.poll(), None);
    rig.succeed_one(&batch, 0);
    assert_eq!(rig.poll(), None);
    rig.succeed_one(&batch, 1);
    assert_eq!(created(&rig.batch()).len(), 3);
}

#[test]
fn the_status_counts_the_pods_that_were_there_before_the_creates() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.succeed(&batch);
    assert_eq!(written(&rig.batch()).replicas, 1);
}

#[test]
fn created_pods_count_at_once_without_waiting_for_the_stream() {
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let batches = rig.settle();
    let creates = batches
        .iter()
        .filter(|batch| matches!(batch.action, Action::Create { .. }))
        .count();
    assert_eq!(creates, 1, "{batches:?}");
    assert_eq!(rig.view("web").status.replicas, 2);
}

#[test]
fn a_hundred_wanted_and_ten_allowed_makes_ten() {
    let mut rig = Rig::of(vec![set("web", 100)], vec![]);
    let batch = rig.batch();
    for operation in 0..10 {
        rig.succeed_one(&batch, operation);
    }
    for operation in 10..15 {
        rig.answer(
            &batch,
            operation,
            failed(FailureClass::Quota, "exceeded quota"),
        );
    }
    for operation in 15..100 {
        rig.answer(&batch, operation, slow_started());
    }
    let status = written(&rig.batch());
    assert_eq!(status.conditions[0].message, "exceeded quota");
    assert_eq!(rig.view("web").status.replicas, 10);
}

#[test]
fn pods_that_failed_or_are_going_do_not_count() {
    let failed = with(pod("a", "web"), |state| state.phase = Phase::Failed);
    let going = deleting(pod("b", "web"));
    let mut rig = Rig::of(vec![set("web", 2)], vec![failed, going]);
    assert_eq!(created(&rig.batch()).len(), 2);
}

#[test]
fn not_ready_pods_go_before_ready_ones() {
    let slow = unready(pod("slow", "web"));
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web"), slow]);
    assert_eq!(victims(&rig.batch()), ["slow"]);
}

#[test]
fn siblings_of_one_deployment_count_as_neighbours() {
    let deployment = || Some(crate::objects::owner("deployment"));
    let old = ReplicaSet {
        controller: deployment(),
        ..set("old", 1)
    };
    let new = ReplicaSet {
        controller: deployment(),
        ..set("new", 2)
    };
    let crowded = Pod {
        node: Some("node-b".into()),
        ..pod("crowded", "new")
    };
    let others = [orphan("x", "old"), orphan("y", "old")].map(|other| {
        let other = Pod {
            controller: Some(crate::objects::owner("old")),
            ..other
        };
        Pod {
            node: Some("node-b".into()),
            ..other
        }
    });
    let mut pods = vec![pod("a", "new"), crowded];
    pods.extend(others);
    let mut rig = Rig::of(
        vec![
            ReplicaSet { replicas: 2, ..old },
            ReplicaSet { replicas: 1, ..new },
        ],
        pods,
    );
    let batch = std::iter::from_fn(|| rig.poll())
        .find(|batch| matches!(batch.action, Action::Delete(_)))
        .expect("one pod of new goes");
    assert_eq!(victims(&batch), ["crowded"]);
}

#[test]
fn a_replica_set_that_stands_alone_has_no_neighbours() {
    let near = |name, node: &str| Pod {
        node: Some(node.into()),
        ..pod(name, "web")
    };
    // Three pods are on node-b and one on node-a: with ranks, the victim is on node-b; without, it is the smallest UID.
    let pods = vec![
        near("a", "node-a"),
        near("b", "node-b"),
        near("c", "node-b"),
        near("d", "node-b"),
    ];
    let mut rig = Rig::of(vec![set("web", 3)], pods);
    assert_eq!(victims(&rig.batch()), ["a"]);
}

#[test]
fn all_pods_go_by_name() {
    let mut rig = Rig::of(vec![set("web", 0)], vec![pod("b", "web"), pod("a", "web")]);
    let batch = rig.batch();
    assert_eq!(victims(&batch), ["a", "b"]);
    let Action::Delete(chosen) = &batch.action else {
        panic!()
    };
    assert_eq!(chosen[0].reason.rule, Rule::AllGo);
}

#[test]
fn simulate_tells_the_victims_and_changes_nothing() {
    let slow = unready(pod("slow", "web"));
    let mut rig = Rig::of(vec![set("web", 2)], vec![pod("a", "web"), slow]);
    rig.settle();
    let decision = rig.simulate("web", 1);
    assert_eq!(
        decision
            .deletes
            .iter()
            .map(|victim| &*victim.pod.name)
            .collect::<Vec<_>>(),
        ["slow"]
    );
    assert_eq!(rig.poll(), None);
}

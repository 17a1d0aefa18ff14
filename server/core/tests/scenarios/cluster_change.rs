//! The effect of a change of the cluster: the prediction comes true, and the controller does not change.

use std::collections::BTreeMap;

use decree_core::{
    Action, Event, Impact, ImpactWalk, Need, NeedWalk, Pod, QuotaLimits, ReplicaSet, Timestamp,
};
use proptest::{collection::vec, prelude::*};

use crate::{
    objects::{key, labels, orphan, owner, pod, set, unready},
    properties::{NAMES, any_pod},
    rig::{Rig, deleting, invalid},
};

fn on(node: &str, pod: Pod) -> Pod {
    Pod {
        node: Some(node.into()),
        ..pod
    }
}

/// Pods of a ReplicaSet, numbered, on these nodes.
fn pods(set: &str, nodes: &[&str]) -> Vec<Pod> {
    let numbered = nodes.iter().zip(1..);
    let pods = numbered.map(|(node, number)| on(node, pod(&format!("{set}-{number}"), set)));
    pods.collect()
}

fn walked(rig: &Rig, mut walk: ImpactWalk) -> Vec<Impact> {
    let steps = std::iter::from_fn(|| walk.step(&rig.controller));
    steps.flatten().collect()
}

fn drain(rig: &Rig, node: &str) -> Vec<Impact> {
    walked(rig, ImpactWalk::drain(node, ("", "")))
}

/// The number of active pods by node.
fn nodes(rig: &Rig) -> BTreeMap<&str, u32> {
    let nodes = rig.controller.inspect().nodes();
    nodes.map(|(name, pods)| (&**name, pods)).collect()
}

/// The ReplicaSets of a namespace that lack pods or have surplus pods, and the needs of the namespace.
fn needs(rig: &Rig, namespace: &str) -> (Vec<Impact>, Need) {
    let mut walk = NeedWalk::new(namespace);
    let need = std::iter::repeat_with(|| walk.step(&rig.controller)).find_map(|it| it);
    let impacts = walked(rig, ImpactWalk::namespace(namespace));
    (impacts, need.expect("it ends"))
}

/// Returns name, active pods, deleted pods and creates.
fn short(impacts: &[Impact]) -> Vec<(&str, i32, usize, i64)> {
    let short = |it: &'_ Impact| (it.active, it.deleted, it.creates);
    let named = impacts.iter().map(|it| {
        let (active, deleted, creates) = short(it);
        (&*it.key.name, active, deleted, creates)
    });
    named.collect()
}

/// The number of creates and deletes of each ReplicaSet until the controller is idle.
fn settle(rig: &mut Rig) -> BTreeMap<String, (i64, i64)> {
    let mut done = BTreeMap::new();
    for batch in rig.settle() {
        let (creates, deletes) = done.entry(batch.key.name.to_string()).or_insert((0, 0));
        match &batch.action {
            Action::Create { names, .. } => *creates += i64::try_from(names.len()).expect("few"),
            Action::Delete(victims) => *deletes += i64::try_from(victims.len()).expect("few"),
            Action::Claim { .. } | Action::WriteStatus(_) | Action::Advise(_) => {}
        }
    }
    done.retain(|_, done| *done != (0, 0));
    done
}

fn creates_and_deletes(impacts: &[Impact]) -> BTreeMap<String, (i64, i64)> {
    let all = impacts
        .iter()
        .map(|it| (it.key.name.to_string(), (it.creates, it.surplus)));
    all.filter(|(_, done)| *done != (0, 0)).collect()
}

/// Deletes those of some pods that are on node-b.
fn evict(rig: &mut Rig, pods: &[Pod]) {
    for Pod {
        namespace, name, ..
    } in pods
    {
        let known = rig.controller.inspect().pod(namespace, name);
        let leaving = known.filter(|pod| pod.node.as_deref() == Some("node-b"));
        if let Some(pod) = leaving {
            let version = None;
            rig.observe(Event::PodApplied(Pod {
                version,
                ..deleting(pod)
            }));
        }
    }
}

/// Up to three ReplicaSets, some of which are deleted or invalid, and pods with and without an owner on two nodes.
fn any_cluster() -> impl Strategy<Value = (Vec<ReplicaSet>, Vec<Pod>)> {
    let sets = vec((0..6_i32, 0..6_u8), 3).prop_map(|sets| {
        let sets = NAMES.iter().zip(sets);
        let sets = sets.map(|(name, (replicas, odd))| ReplicaSet {
            deleting: odd == 0,
            selector: if odd == 1 {
                Err(invalid())
            } else {
                set(name, 0).selector
            },
            ..set(name, replicas)
        });
        sets.collect()
    });
    let pod = (any_pod(), any::<bool>());
    let pods = vec(pod, 0..16).prop_map(|pods| {
        let pods = pods.into_iter().map(|(mut pod, there)| {
            // What one ReplicaSet releases, no other selects: the order of their syncs would decide whether it creates a pod first.
            let app = pod.labels.get("app").cloned();
            pod.controller
                .take_if(|owner| app.is_some_and(|app| owner.name != app));
            let pod = on(if there { "node-b" } else { "node-a" }, pod);
            (pod.name.clone(), pod)
        });
        let by_name: BTreeMap<_, _> = pods.collect();
        by_name.into_values().collect()
    });
    (sets, pods)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_drain_comes_true((sets, pods) in any_cluster()) {
        let mut rig = Rig::of(sets, pods.clone());
        rig.settle();
        let foretold = drain(&rig, "node-b");
        evict(&mut rig, &pods);
        prop_assert_eq!(settle(&mut rig), creates_and_deletes(&foretold));
    }

    #[test]
    fn every_need_comes_true((sets, pods) in any_cluster()) {
        let mut rig = Rig::of(sets, pods);
        let (impacts, need) = needs(&rig, "default");
        let done = settle(&mut rig);
        prop_assert_eq!(&done, &creates_and_deletes(&impacts));
        let (creates, surplus) = done.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        prop_assert_eq!((need.creates, need.surplus), (creates, surplus));
    }
}

#[test]
fn drain_takes_into_account_what_is_surplus_missing_and_to_be_adopted() {
    let sets = vec![set("api", 1), set("many", 700), set("web", 2)];
    let mut all = pods("api", &["node-a", "node-b", "node-b"]);
    all.extend(pods("many", &["node-b"; 600]));
    all.extend(pods("web", &["node-b", "node-b"]));
    let rig = Rig::of(sets, all);
    assert_eq!(
        nodes(&rig),
        BTreeMap::from([("node-a", 1), ("node-b", 604)])
    );
    // A ReplicaSet that lacks pods lacks more, a ReplicaSet with surplus pods may lack none, and no burst limits the numbers.
    assert_eq!(
        short(&drain(&rig, "node-b")),
        [("api", 3, 2, 0), ("many", 600, 600, 700), ("web", 2, 2, 2)]
    );
    let mut rig = Rig::of(vec![set("web", 2)], pods("web", &["node-b", "node-b"]));
    rig.settle();
    rig.apply_pod(on("node-a", orphan("spare", "web")));
    let foretold = drain(&rig, "node-b");
    assert_eq!(short(&foretold), [("web", 2, 2, 1)]);
    let names: Vec<_> = foretold[0].deleted_pods.iter().map(|it| &**it).collect();
    assert_eq!(
        (names, foretold[0].ready_left),
        (vec!["web-1", "web-2"], Some(0))
    );
    evict(&mut rig, &pods("web", &["node-b", "node-b"]));
    assert_eq!(nodes(&rig), BTreeMap::from([("node-a", 1)]));
}

#[test]
fn drain_of_a_node_without_replicas_affects_nothing() {
    let foreign = Pod {
        controller: Some(decree_core::OwnerReference {
            kind: "DaemonSet".into(),
            ..owner("proxy")
        }),
        ..on("node-c", orphan("proxy-1", "proxy"))
    };
    let mut gone = deleting(on("node-c", pod("web-2", "web")));
    gone.labels = labels(&[("app", "web")]);
    let rig = Rig::of(
        vec![set("web", 1)],
        vec![on("node-a", pod("web-1", "web")), foreign, gone],
    );
    for node in ["node-c", "node-x", ""] {
        assert_eq!(drain(&rig, node), [], "{node}");
    }
}

#[test]
fn walk_continues_after_a_name_and_goes_on_in_a_changed_cluster() {
    let names = ["a", "b", "c", "d"];
    let sets: Vec<ReplicaSet> = names.map(|name| set(name, 3)).into();
    let pods = names.map(|name| pods(name, &["node-b", "node-b", "node-a"]));
    let mut rig = Rig::of(sets, pods.concat());
    let asked = |after| {
        let impacts = walked(&rig, ImpactWalk::drain("node-b", after));
        let names: Vec<_> = impacts.iter().map(|it| it.key.name.to_string()).collect();
        names.join(" ")
    };
    assert_eq!(asked(("", "")), "a b c d");
    assert_eq!(asked(("default", "a")), "b c d");
    assert_eq!(asked(("default", "bb")), "c d");
    assert_eq!(asked(("default", "d")), "");
    assert_eq!(asked(("e", "")), "");
    let mut walk = ImpactWalk::drain("node-b", ("", ""));
    let first = walk.step(&rig.controller).flatten().expect("a is affected");
    assert_eq!((&*first.key.name, first.deleted), ("a", 2));
    for name in ["a", "b"] {
        let (key, version) = (key(name), None);
        rig.observe(Event::ReplicaSetDeleted { key, version });
    }
    rig.delete_pod(&pods[2][0]);
    let rest: Vec<_> = std::iter::from_fn(|| walk.step(&rig.controller)).collect();
    let rest: Vec<_> = rest.into_iter().flatten().collect();
    assert_eq!(short(&rest), [("c", 2, 1, 2), ("d", 3, 2, 2)]);
}

#[test]
fn needs_of_a_namespace_are_added_up() {
    let sets = vec![set("api", 5), set("calm", 2), set("done", 0), set("web", 1)];
    let mut all = pods("api", &["node-a", "node-a"]);
    all.extend(pods("calm", &["node-a", "node-b"]));
    all.extend(pods("web", &["node-a", "node-b"]));
    all.push(unready(orphan("loose", "done-not")));
    all.push(deleting(pod("web-9", "web")));
    let now = crate::objects::START.0;
    let ends = |name: &str, seconds: i64| Pod {
        deleted: Some(Timestamp(now + seconds * 1_000_000_000)),
        ..deleting(pod(name, "web"))
    };
    all.extend([ends("web-stuck", -1), ends("web-ends", 20)]);
    let rig = Rig::of(sets, all);
    let (impacts, need) = needs(&rig, "default");
    let found: Vec<_> = impacts
        .iter()
        .map(|it| {
            (
                &*it.key.name,
                it.replicas,
                it.active,
                it.creates,
                it.surplus,
            )
        })
        .collect();
    assert_eq!(found, [("api", 5, 2, 3, 0), ("web", 1, 2, 0, 1)]);
    // All pods count that have not ended and whose grace period is not over.
    let sums = Need {
        pods: 9,
        creates: 3,
        surplus: 1,
    };
    assert_eq!(need, sums);
    for (quota, room, refused, of_api) in [
        (0, 0, 3, Some((3, 3))),
        (8, 0, 3, Some((3, 3))),
        (10, 2, 1, Some((1, 1))),
        (11, 3, 0, None),
    ] {
        let limits = need.under(quota);
        assert_eq!(limits, QuotaLimits { room, refused });
        let walk = ImpactWalk::quota("default", limits, ("", ""));
        let found: Vec<_> = walked(&rig, walk).iter().map(|it| it.refused).collect();
        assert_eq!(found, of_api.into_iter().collect::<Vec<_>>(), "{quota}");
    }
    assert_eq!(needs(&rig, "other"), (vec![], Need::default()));
}

//! The effect of a change of the cluster, computed on a copy: the prediction comes true, and the controller does not change.

use server_core::{Impact, Pod, ReplicaSet, ReplicaSetsCopy, Timestamp};

use crate::{
    objects::{labels, orphan, owner, pod, set, unready},
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

fn drain(rig: &Rig, node: &str) -> Vec<Impact> {
    let copy = ReplicaSetsCopy::on_node(&rig.controller, rig.now, node, ("", ""), (100, 1_000));
    assert_eq!(copy.cut_after, None);
    copy.drain(node, &|| true).expect("nothing ends it")
}

/// Returns name, active pods, deleted pods and creates.
fn short(impacts: &[Impact]) -> Vec<(&str, i32, usize, i64)> {
    let short = |it: &'_ Impact| (it.active, it.deleted.len(), it.creates);
    let named = impacts.iter().map(|it| {
        let (active, deleted, creates) = short(it);
        (&*it.key.name, active, deleted, creates)
    });
    named.collect()
}

#[test]
fn drain_comes_true() {
    let sets = vec![set("api", 3), set("solo", 1), set("web", 4)];
    let mut all = pods("web", &["node-b", "node-b", "node-a", "node-b"]);
    all.extend(pods("api", &["node-a", "node-b", "node-a"]));
    all.extend(pods("solo", &["node-a"]));
    let mut rig = Rig::of(sets, all.clone());
    rig.settle();
    let foretold = drain(&rig, "node-b");
    assert_eq!(short(&foretold), [("api", 3, 1, 1), ("web", 4, 3, 3)]);
    let names: Vec<_> = foretold[1].deleted.iter().map(|name| &**name).collect();
    assert_eq!(names, ["web-1", "web-2", "web-4"]);
    assert!(rig.poll().is_none(), "asking changes nothing");

    let there = |pod: &&Pod| pod.node.as_deref() == Some("node-b");
    for pod in all.iter().filter(there) {
        rig.apply_pod(deleting(pod.clone()));
    }
    let mut creates = std::collections::BTreeMap::new();
    for batch in rig.settle() {
        if let server_core::Action::Create { names, .. } = &batch.action {
            *creates.entry(batch.key.name.to_string()).or_insert(0) += names.len();
        }
    }
    let expected = [("api".to_owned(), 1), ("web".to_owned(), 3)];
    assert_eq!(creates, expected.into());
}

#[test]
fn drain_takes_into_account_what_is_surplus_missing_and_to_be_adopted() {
    let sets = vec![set("api", 1), set("many", 700), set("web", 2)];
    let mut all = pods("api", &["node-a", "node-b", "node-b"]);
    all.extend(pods("many", &["node-b"; 600]));
    all.extend(pods("web", &["node-b", "node-b"]));
    let rig = Rig::of(sets, all);
    // A ReplicaSet that lacks pods lacks more, a ReplicaSet with surplus pods may lack none, and no burst limits the numbers.
    assert_eq!(
        short(&drain(&rig, "node-b")),
        [("api", 3, 2, 0), ("many", 600, 600, 700), ("web", 2, 2, 2)]
    );
    let mut rig = Rig::of(vec![set("web", 2)], pods("web", &["node-b", "node-b"]));
    rig.settle();
    rig.apply_pod(on("node-a", orphan("spare", "web")));
    assert_eq!(short(&drain(&rig, "node-b")), [("web", 2, 2, 1)]);
}

#[test]
fn drain_of_a_node_without_replicas_affects_nothing() {
    let foreign = Pod {
        controller: Some(server_core::OwnerReference {
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
fn drain_is_told_page_by_page_and_within_bounds() {
    let names = ["a", "b", "c", "d"];
    let sets: Vec<ReplicaSet> = names.map(|name| set(name, 3)).into();
    let all = names.map(|name| pods(name, &["node-b", "node-b", "node-a"]));
    let rig = Rig::of(sets, all.concat());
    let asked = |after, limit, objects_max| {
        let copy = ReplicaSetsCopy::on_node(
            &rig.controller,
            rig.now,
            "node-b",
            after,
            (limit, objects_max),
        );
        assert!(copy.objects() <= objects_max);
        let cut = copy.cut_after.as_ref().map(|key| key.name.to_string());
        let is_too_large = copy.is_too_large;
        let impacts = copy.drain("node-b", &|| true).expect("nothing ends it");
        let names: Vec<_> = impacts.iter().map(|it| it.key.name.to_string()).collect();
        (names.join(" "), cut, is_too_large)
    };
    let page = |names: &str, cut: Option<&str>| (names.to_owned(), cut.map(str::to_owned), false);
    assert_eq!(asked(("", ""), 3, 100), page("a b c", None));
    assert_eq!(asked(("default", "a"), 2, 100), page("b c", None));
    assert_eq!(asked(("default", "d"), 2, 100), page("", None));
    assert_eq!(asked(("e", ""), 2, 100), page("", None));
    // A ReplicaSet and its pods are four objects.
    assert_eq!(asked(("default", "a"), 9, 8), page("b c", Some("c")));
    assert_eq!(asked(("", ""), 9, 3), (String::new(), None, true));
    let copy = ReplicaSetsCopy::on_node(&rig.controller, rig.now, "node-b", ("", ""), (9, 100));
    assert!(copy.drain("node-b", &|| false).is_err());
}

#[test]
fn unsettled_replica_sets_of_a_namespace_say_what_they_lack() {
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
    let (copy, counted) = ReplicaSetsCopy::unsettled_in(&rig.controller, rig.now, "default", 1_000);
    assert_eq!(counted, 9, "as a ResourceQuota counts: not the stuck pod");
    let impacts = copy.settle(&|| true).expect("nothing ends it");
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
    let (elsewhere, counted) =
        ReplicaSetsCopy::unsettled_in(&rig.controller, rig.now, "other", 1_000);
    assert_eq!((elsewhere.objects(), counted), (0, 0));
    let (cut, _) = ReplicaSetsCopy::unsettled_in(&rig.controller, rig.now, "default", 4);
    assert_eq!(cut.cut_after.as_ref().map(|key| &*key.name), Some("api"));
}

#[test]
fn replica_sets_that_are_left_alone_take_no_room_in_the_copy() {
    let going = ReplicaSet {
        deleting: true,
        ..set("going", 5)
    };
    let strange = ReplicaSet {
        selector: Err(invalid()),
        ..set("strange", 5)
    };
    let mut all = pods("going", &["node-a", "node-a"]);
    all.extend(pods("strange", &["node-a", "node-a"]));
    all.push(orphan("loose", "going"));
    let rig = Rig::of(vec![going, strange], all);
    let (copy, counted) = ReplicaSetsCopy::unsettled_in(&rig.controller, rig.now, "default", 2);
    assert_eq!((copy.objects(), copy.is_too_large, counted), (0, false, 5));
}

//! Nodes whose pods are not ready now, as the cause of ReplicaSets that lack ready pods.

use server_core::{Phase, Pod, UnreadyNode, View};

use crate::{
    objects::{pod, set, unready, with},
    rig::{Rig, deleting},
};

fn on(node: &str, pod: Pod) -> Pod {
    Pod {
        node: Some(node.into()),
        ..pod
    }
}

/// Returns a rig of two ReplicaSets with nothing to do: two pods of each are on node-b, the third is on node-a.
fn rig() -> Rig {
    let pods = ["web", "api"].into_iter().flat_map(|set| {
        [("node-a", 1), ("node-b", 2), ("node-b", 3)]
            .map(|(node, number)| on(node, pod(&format!("{set}-{number}"), set)))
    });
    let mut rig = Rig::of(vec![set("web", 3), set("api", 3)], pods.collect());
    rig.settle();
    rig
}

/// Makes pods unready, and shows them to the controller.
fn lose(rig: &mut Rig, node: &str, pods: &[(&str, &str)]) {
    for (set, number) in pods {
        rig.apply_pod(unready(on(node, pod(&format!("{set}-{number}"), set))));
    }
    rig.settle();
}

fn node(view: &View) -> Option<(&str, u32)> {
    let node = view.unready_node.as_ref();
    node.map(|UnreadyNode { name, pods }| (&**name, *pods))
}

const ON_B: [(&str, &str); 4] = [("web", "2"), ("web", "3"), ("api", "2"), ("api", "3")];

#[test]
fn node_is_named_once_none_of_its_pods_is_ready_and_until_one_is() {
    let mut rig = rig();
    lose(&mut rig, "node-b", &ON_B[..3]);
    assert_eq!(node(&rig.view("web")), None, "api-3 is ready");
    lose(&mut rig, "node-b", &ON_B[3..]);
    for name in ["web", "api"] {
        assert_eq!(node(&rig.view(name)), Some(("node-b", 4)), "{name}");
    }
    rig.apply_pod(on("node-b", pod("api-2", "api")));
    rig.settle();
    assert_eq!(node(&rig.view("web")), None);
}

#[test]
fn pods_that_go_are_not_counted_on_their_node() {
    let mut rig = rig();
    lose(&mut rig, "node-b", &ON_B);
    rig.delete_pod(&pod("api-2", "api"));
    assert_eq!(node(&rig.view("web")), Some(("node-b", 3)));
    rig.apply_pod(deleting(unready(on("node-b", pod("api-3", "api")))));
    assert_eq!(node(&rig.view("web")), Some(("node-b", 2)));
    rig.delete_pod(&pod("web-2", "web"));
    assert_eq!(node(&rig.view("web")), None, "one pod says little");
}

#[test]
fn node_is_named_if_most_of_its_pods_were_ready() {
    for (lapsed, never_ready, expected) in [
        (2, 0, Some(2)),
        (2, 2, Some(4)),
        (2, 3, None),
        (1, 0, None),
        (0, 1, None),
        (0, 3, None),
    ] {
        let all = lapsed + never_ready;
        let on_b = |number: i32| on("node-b", pod(&format!("web-{number}"), "web"));
        let mut pods = vec![on("node-a", pod("api-1", "api"))];
        pods.extend((0..lapsed).map(on_b));
        pods.extend((lapsed..all).map(|number| unready(on_b(number))));
        let mut rig = Rig::of(vec![set("web", all), set("api", 1)], pods);
        rig.settle();
        (0..lapsed).for_each(|number| rig.apply_pod(unready(on_b(number))));
        rig.settle();
        let pods = node(&rig.view("web")).map(|(_, pods)| pods);
        assert_eq!(pods, expected, "{lapsed} {never_ready}");
    }
}

#[test]
fn node_whose_pods_start_is_not_named() {
    let mut rig = Rig::of(
        vec![set("web", 3), set("api", 1)],
        vec![
            on("node-a", pod("api-1", "api")),
            unready(on("node-b", pod("web-1", "web"))),
            unready(on("node-b", pod("web-2", "web"))),
            unready(on("node-b", pod("web-3", "web"))),
        ],
    );
    rig.settle();
    let view = rig.view("web");
    assert_eq!((node(&view), view.unready.is_some()), (None, true));
    // If the cluster itself reports the node as unresponsive, the session need not have seen the pods ready.
    for number in 1..=3 {
        let lost = unready(on("node-b", pod(&format!("web-{number}"), "web")));
        rig.apply_pod(with(lost, |state| state.phase = Phase::Unknown));
    }
    rig.settle();
    assert_eq!(node(&rig.view("web")), Some(("node-b", 3)));
}

#[test]
fn node_is_not_named_where_no_pod_of_the_cluster_is_ready() {
    let mut rig = rig();
    lose(&mut rig, "node-b", &ON_B);
    lose(&mut rig, "node-a", &[("web", "1"), ("api", "1")]);
    assert_eq!(node(&rig.view("web")), None);
}

#[test]
fn node_is_not_named_for_a_replica_set_most_of_whose_pods_fail_elsewhere() {
    let mut pods: Vec<_> = (1..=3)
        .map(|number| unready(on("node-a", pod(&format!("web-{number}"), "web"))))
        .collect();
    pods.push(on("node-b", pod("web-4", "web")));
    pods.push(on("node-b", pod("api-1", "api")));
    pods.push(on("node-a", pod("api-2", "api")));
    let mut rig = Rig::of(vec![set("web", 4), set("api", 2)], pods);
    rig.settle();
    lose(&mut rig, "node-b", &[("web", "4"), ("api", "1")]);
    assert_eq!(node(&rig.view("web")), None);
    assert_eq!(node(&rig.view("api")), Some(("node-b", 2)));
}

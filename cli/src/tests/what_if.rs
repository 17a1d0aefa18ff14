//! `decree simulate --drain` and `--quota`: the effect of a change of the cluster.

use std::collections::BTreeMap;

use agent_fake::Kind;
use decree_core::wording::count;
use serde_json::json;

use super::{decree_reading, system::System};
use crate::Exit;

/// What a server says of quotas while 5 creates are refused.
const QUOTAS: &str = "
[0] simulate --quota 25
A quota of 25 pods in default refuses 3 of 5 creates; it counts 23 pods now.
The order of creates is not defined: REFUSED is the least and the most of a ReplicaSet.

REPLICASET           DESIRED   CURRENT   CREATES   REFUSED
default/web-5f6a8b   5         3         2         0 to 2
default/web-7d4b9c   23        20        3         1 to 3
[0] simulate --quota 22 -n default
…
It deletes no pods, but replaces none before the loss of 2 pods.
…
[0] simulate --quota 1 -n shop
A quota of 1 pod in shop refuses 0 of 0 creates; it counts 0 pods now.";

#[test]
fn changes_of_the_cluster_are_previewed() {
    let system = System::start(&["demo"]);
    let cluster = &system.clusters[0];
    // The number of pods on the node by their ReplicaSet.
    let mut there = BTreeMap::<String, usize>::new();
    let objects = cluster.with(|it| {
        let mut all = Vec::new();
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            all.extend(it.objects(kind).map(|object| (**object).clone()));
        }
        for pod in all.iter().filter(|pod| pod["spec"]["nodeName"] == "node-b") {
            let owner = pod["metadata"]["ownerReferences"][0]["name"].as_str();
            *there
                .entry(owner.unwrap_or_default().to_owned())
                .or_default() += 1;
        }
        json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string()
    });
    let pods: usize = there.values().sum();
    let of = count(there.len(), "ReplicaSet");
    let web = there["web-7d4b9c"];
    let names = there.keys().map(|name| format!("replicaset.apps/{name}\n"));
    system.check(&format!(
        "
[0] simulate --drain node-b
A drain of node-b deletes {pods} pods of {of}, which then lack {pods} pods.
…
default/web-7d4b9c   20        20        {web} … more
[0] simulate --drain node-b -o json
…\"deletedPods\":[\"web-…
[0] simulate --drain node-b -o name
{}[0] simulate --drain node-x
A drain of node-x affects no ReplicaSet: no active pod of one is known there.
[0] simulate --drain node-b -n shop
A drain of node-b affects no ReplicaSet of shop: no active pod of one is known there.
[1] simulate --drain node-b --cluster other",
        names.collect::<String>()
    ));
    // The objects of files give the same answers, without a server.
    for line in ["--drain node-b", "--drain node-x", "--quota 20"] {
        let words: Vec<_> = ["simulate"].into_iter().chain(line.split(' ')).collect();
        let read = decree_reading(&objects, &[&words[..], &["-f", "-"]].concat());
        assert_eq!((read.exit, &*read.err), (Exit::Done, ""), "{line}");
        assert_eq!(read.out, system.decree(&words).out, "{line}");
    }
    system.settle();

    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"namespace": "default", "name": "pods"}, "spec": {"hard": {"pods": "23"}},
    });
    cluster
        .with(|it| it.create(quota))
        .expect("there is none yet");
    for (name, replicas) in [("web-5f6a8b", 5), ("web-7d4b9c", 23)] {
        system.scale(name, replicas);
    }
    system.until("get rs", "…Quota exceeded…Quota exceeded…");
    system.check(QUOTAS);
}

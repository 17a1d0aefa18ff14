//! `decree simulate --drain` and `--quota`: the effect of a change of the cluster.

use std::collections::BTreeSet;

use agent_fake::{Kind, Object};
use serde_json::{Value, json};
use server_core::wording::count;

use super::{decree, decree_reading, system::System};
use crate::Exit;

#[test]
fn drain_names_who_loses_what_and_changes_nothing() {
    let system = System::start(&["demo"]);
    // The names of the ReplicaSets with pods on the node, a name for each pod.
    let there: Vec<String> = system.clusters[0].with(|it| {
        let pods = it.objects(Kind::Pod);
        let there = pods.filter(|pod| pod["spec"]["nodeName"] == "node-b");
        let owner = |pod: &Object| pod["metadata"]["ownerReferences"][0]["name"].clone();
        let owners = there.map(owner);
        owners
            .map(|name| name.as_str().unwrap_or_default().to_owned())
            .collect()
    });
    let sets: BTreeSet<_> = there.iter().collect();
    let there = there.len();
    let drained = system.decree(&["simulate", "--drain", "node-b"]);
    assert_eq!(
        (drained.exit, drained.err.as_str()),
        (Exit::Done, ""),
        "{}",
        drained.out
    );
    let of = count(sets.len(), "ReplicaSet");
    let first =
        format!("A drain of node-b deletes {there} pods of {of}, which then lack {there} pods.\n");
    assert!(drained.out.starts_with(&first), "{}", drained.out);
    assert!(
        drained
            .out
            .contains("\ndefault/web-7d4b9c   20        20        ")
            && drained.out.contains(" more\n"),
        "{}",
        drained.out
    );
    let json = system.decree(&["simulate", "--drain", "node-b", "-o", "json"]);
    let answer: Value = serde_json::from_str(&json.out).expect("JSON");
    let listed = answer["replicaSets"].as_array().expect("a list");
    let deleted = listed
        .iter()
        .filter_map(|set| set["deletedPods"].as_array());
    assert_eq!(deleted.map(Vec::len).sum::<usize>(), there);
    let names = system.decree(&["simulate", "--drain", "node-b", "-o", "name"]);
    let expected = sets.iter().map(|name| format!("replicaset.apps/{name}\n"));
    assert_eq!(names.out, expected.collect::<String>());
    let nowhere = system.decree(&["simulate", "--drain", "node-x"]);
    assert_eq!(
        nowhere.out,
        "A drain of node-x affects no ReplicaSet: no active pod of one is known there.\n"
    );
    let unknown = system.decree(&["simulate", "--drain", "node-b", "--cluster", "other"]);
    assert_eq!(unknown.exit, Exit::No, "{}", unknown.err);
    system.settle();
}

#[test]
fn quota_says_which_creates_it_refuses() {
    let system = System::start(&["demo"]);
    let cluster = &system.clusters[0];
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"namespace": "default", "name": "pods"}, "spec": {"hard": {"pods": "23"}},
    });
    cluster.with(|it| {
        it.create(quota).expect("there is none yet");
        for (name, replicas) in [("web-5f6a8b", 5), ("web-7d4b9c", 23)] {
            it.scale("default", name, replicas).expect("it is there");
        }
    });
    let is_known = || {
        let sets = system.decree(&["get", "rs"]).out;
        sets.matches("Quota exceeded").count() >= 2
    };
    system.wait_until(is_known);
    let said = system.decree(&["simulate", "--quota", "25"]);
    assert_eq!(
        said.out,
        "A quota of 25 pods in default refuses 3 of 5 creates; 23 pods count now.\n\
         The order of creates is not defined: REFUSED is the least and the most of a ReplicaSet.\n\
         \n\
         REPLICASET           DESIRED   CURRENT   CREATES   REFUSED\n\
         default/web-5f6a8b   5         3         2         0 to 2\n\
         default/web-7d4b9c   23        20        3         1 to 3\n",
        "{}",
        said.err
    );
    let said = system.decree(&["simulate", "--quota", "22", "-n", "default"]);
    let second = "It deletes no pods, but a lost pod is not replaced before 2 pods are gone.";
    assert_eq!(said.out.lines().nth(1), Some(second), "{}", said.out);
    let elsewhere = system.decree(&["simulate", "--quota", "1", "-n", "shop"]);
    assert_eq!(
        elsewhere.out,
        "A quota of 1 pod in shop refuses 0 of 0 creates; 0 pods count now.\n"
    );
}

#[test]
fn changes_of_files_need_no_server() {
    let system = System::start(&["demo"]);
    let objects = system.clusters[0].with(|it| {
        let mut all = Vec::new();
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            all.extend(it.objects(kind).map(|object| (**object).clone()));
        }
        json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string()
    });
    for words in [
        &["simulate", "--drain", "node-b"][..],
        &["simulate", "--drain", "node-x"],
        &["simulate", "--quota", "20"],
    ] {
        let asked = system.decree(words);
        let read = decree_reading(&objects, &[words, &["-f", "-"]].concat());
        assert_eq!((read.exit, &*read.err), (Exit::Done, ""), "{words:?}");
        assert_eq!(read.out, asked.out, "{words:?}");
    }
}

#[test]
fn changes_take_no_names() {
    for words in [
        vec!["simulate", "-f", "-"],
        vec!["simulate", "web", "-f", "-"],
        vec![
            "simulate",
            "--drain",
            "node-b",
            "-f",
            "-",
            "--cluster",
            "other",
        ],
        vec!["simulate"],
        vec!["simulate", "web", "--drain", "node-b"],
        vec!["simulate", "--drain", "node-b", "--quota", "3"],
        vec!["simulate", "--drain", "node-b", "-n", "shop"],
        vec!["simulate", "--drain", "node-b", "--replicas", "3"],
        vec!["simulate", "--quota", "3", "-A"],
        vec!["simulate", "--quota", "-1"],
    ] {
        assert_eq!(decree(&words).exit, Exit::Usage, "{words:?}");
    }
}

//! `decree decide` from files that kubectl could have written, and from files that it could not.

use serde_json::{Value, json};

use super::{Ended, check_with, decree_reading};
use crate::Exit;

pub(super) const NOON: &str = "2026-05-01T12:00:00Z";

pub(super) fn replica_set(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"), "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}},
        },
    })
}

pub(super) fn pod(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": format!("uid-{name}"),
            "labels": {"app": app},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": format!("uid-{app}"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"nodeName": "node-a", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    })
}

pub(super) fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

pub(super) fn decide(input: &str, more: &[&str]) -> Ended {
    let arguments = ["decide", "-f", "-", "--now", NOON];
    decree_reading(input, &[&arguments, more].concat())
}

/// Decides, and returns the one JSON object in the output.
pub(super) fn decide_json(input: &str) -> Value {
    let ended = decide(input, &["-o", "json"]);
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""));
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
    serde_json::from_str(&ended.out).expect("JSON")
}

/// Checks a transcript of `decree decide` for each input, without the words of the command that are always the same.
fn check_inputs(cases: &[(String, &str)]) {
    for (input, transcript) in cases {
        let transcript = transcript.replace("] -", "] decide -f - -");
        check_with(input, &["--now", NOON], &transcript);
    }
}

fn refused(input: &str) -> String {
    let ended = decide(input, &[]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    ended.err.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn decisions_are_printed_as_asked() {
    let web = |replicas| replica_set("web", replicas);
    let tie = list(&[web(2), pod("web-a", "web"), pod("web-b", "web")]);
    let two = list(&[replica_set("b", 1), replica_set("a", 0), pod("b-1", "b")]);
    let mut settled = web(0);
    settled["status"] = json!({"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1});
    let mut near = web(3);
    near["spec"]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let mut slow = web(1);
    slow["spec"]["minReadySeconds"] = 30.into();
    let mut ready = pod("web-a", "web");
    ready["status"]["conditions"] =
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T11:59:40Z"}]);
    check_inputs(&[
        (
            tie,
            r#"
[0] --replicas 1 -o json
…"deletes":[{"name":"web-a",…
[0] --replicas 1
…UID              tie by every other rule
…
[0] --replicas 1 -o wide
…tie by every other rule, uid uid-web-a < uid-web-b
…"#,
        ),
        (
            two,
            r#"
[2] --replicas 1
[0] --replica-set rs/a --replicas 3 -o json
{"replicaSet":"default/a","creates":{"count":3,…
[0] -o json
{"replicaSet":"default/a",…
{"replicaSet":"default/b",…
[1] --replica-set default/shop
error: ReplicaSet default/shop not found
hint: the input contains default/a, default/b
[1] --replica-set deployment/shop
error: no ReplicaSet of Deployment default/shop found
hint: the input contains default/a, default/b"#,
        ),
        // A burst is cut to 500.
        (
            web(700).to_string(),
            "[0] -o json\n…\"creates\":{\"count\":500,…",
        ),
        (
            settled.to_string(),
            "[0] -o json\n…\"status\":null,\"requeueAfterSeconds\":null,\"quarantined\":null}",
        ),
        (
            list(&[slow, ready]),
            "[0] -o json\n…\"requeueAfterSeconds\":10,…",
        ),
        // An invalid selector is a decision and no error.
        (
            near.to_string(),
            r#"
[0] -o json
…"creates":{"count":0,…"quarantined":"…Near…
[0] -o table
…QUARANTINED…"#,
        ),
    ]);
}

#[test]
fn doubtful_input_is_told() {
    let web = |replicas| replica_set("web", replicas);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    let mut orphan = pod("lost", "web");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let mut rival = replica_set("api", 1);
    rival["spec"] = web(1)["spec"].clone();
    let mut other_state = pod("web-a", "web");
    other_state["status"]["phase"] = "Failed".into();
    let mut without_pods = web(2);
    without_pods["status"] = json!({"replicas": 2});
    let without_pods = without_pods.to_string();
    // The other commands read files alike.
    check_with(
        &without_pods,
        &["-f", "-"],
        "[0] get rs -o name\nreplicaset.apps/web\nnotice: the input has no pods in default, …",
    );
    let yaml = serde_saphyr::to_string(&web(1)).expect("YAML");
    check_inputs(&[
        (
            list(&[service.clone(), web(1), service]),
            "[0] -o table\n…\nnotice: 2 of kind Service ignored",
        ),
        (
            list(&[web(1), rival, orphan]),
            "[0] -o table\n…\nnotice: default/lost matches default/api and default/web: \
             each is decided alone, and the first to adopt it has it",
        ),
        (
            list(&[web(1), pod("web-a", "web"), other_state]),
            "[2] -o table\nerror: -: document 1: items[2]: pod default/web-a is in the input twice, \
             and differs from the one at -: document 1: items[1]\n…",
        ),
        (
            without_pods,
            "[0] -o table\n…\nnotice: the input has no pods in default, but ReplicaSets there have pods by their status; \
             use the output of: kubectl get rs,pods -o json",
        ),
        (
            format!("{yaml}kind: ReplicaSet\n"),
            "[0] -o table\n…\"kind\" is repeated; the last value counts…",
        ),
        (
            "---\n# nothing\n".to_owned(),
            "[2] -o table\nerror: the input holds no objects\n…",
        ),
        (
            list(&[pod("web-a", "web")]),
            "[2] -o table\nerror: there is no ReplicaSet in the input\n…",
        ),
        (
            "kind: Pod\n---\nkind: [\n".to_owned(),
            "[2] -o table\nerror: -: document 2: …line …",
        ),
    ]);
}

#[test]
fn names_of_creates_are_sorted_and_as_many_as_counted() {
    let decision = decide_json(&list(&[replica_set("web", 12), pod("web-a", "web")]));
    let names: Vec<String> =
        serde_json::from_value(decision["creates"]["names"].clone()).expect("names");
    assert_eq!(
        (names.len(), &decision["creates"]["count"]),
        (11, &json!(11))
    );
    let are_own = names.iter().all(|name| name.starts_with("web-"));
    assert!(names.is_sorted() && are_own, "{names:?}");
}

#[test]
fn siblings_count_as_neighbours_across_namespaces() {
    let owned = |mut set: Value, namespace: &str| {
        set["metadata"]["namespace"] = namespace.into();
        set["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "parent", "controller": true,
        }]);
        set
    };
    let mut neighbour = pod("other-1", "other");
    neighbour["metadata"]["namespace"] = "elsewhere".into();
    let mut lonely = pod("web-a", "web");
    lonely["spec"]["nodeName"] = "node-b".into();
    let input = list(&[
        owned(replica_set("web", 1), "default"),
        owned(replica_set("other", 1), "elsewhere"),
        neighbour,
        pod("web-b", "web"),
        lonely,
    ]);
    let victim = "…\"deletes\":[{\"name\":\"web-b\",\"reason\":{\"rule\":\"CROWDED_NODE\",…";
    let ended = decide(&input, &["-o", "json", "--replica-set", "default/web"]);
    assert!(super::system::says(victim, &ended.out), "{}", ended.out);
}

/// Values of the annotation, and the line of the first deletion.
const PREFERRED: &str = "
first=app.state=idle => web-c FIRST label app.state=idle
consolidate => web-b EMPTIEST_NODE 1 pod on node-b vs 3 on node-a
oldest-stays => web-b YOUNGEST 1h0m old vs 1h0m, 30s younger
oldest-stays, consolidate => web-b YOUNGEST 1h0m old vs 1h0m, 30s younger
leaving-node => web-b LEAVING_NODE on cordoned node-b
spread=topology.kubernetes.io/zone => web-a FULLEST_DOMAIN 2 pods in zone-of-node-a vs 1 pod in zone-of-node-b
kubernetes => web-a UID 1h0m old and 1h0m, the same age bucket";

/// `decide` and `simulate` follow the annotation of a manifest, and count the pods of all namespaces on the nodes.
#[test]
fn preferences_of_the_annotation_choose_the_victims() {
    let preferring = |value: &str| {
        let mut set = replica_set("web", 2);
        set["metadata"]["annotations"] = json!({"decree.dev/scale-in": value});
        let on = |name: &str, node: &str, created: &str| {
            let mut pod = pod(name, "web");
            pod["spec"]["nodeName"] = node.into();
            pod["metadata"]["creationTimestamp"] = created.into();
            pod
        };
        let mut idle = on("web-c", "node-a", "2026-05-01T08:00:00Z");
        idle["metadata"]["labels"]["app.state"] = "idle".into();
        let mut other = pod("other", "other");
        other["metadata"]["namespace"] = "elsewhere".into();
        list(&[
            set,
            on("web-a", "node-a", "2026-05-01T10:59:30Z"),
            on("web-b", "node-b", "2026-05-01T11:00:00Z"),
            idle,
            other,
            node("node-a", false),
            node("node-b", true),
        ])
    };
    for row in PREFERRED.lines().skip(1) {
        let (value, expected) = row.split_once(" => ").expect("two columns");
        let input = preferring(value);
        let decided = decide(&input, &[]);
        assert_eq!(victim(&decided.out).join(" "), expected, "by {value}");
        let simulate = ["simulate", "rs/web", "--replicas", "2", "-f", "-"];
        let simulated = decree_reading(&input, &simulate);
        let simulated = victim(&simulated.out)[..2].join(" ");
        assert!(expected.starts_with(&simulated), "{simulated} by {value}");
    }
}

pub(super) fn node(name: &str, is_cordoned: bool) -> Value {
    let zone = format!("zone-of-{name}");
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"unschedulable": is_cordoned},
    })
}

/// A cordon in a file, and a drain of another node.
#[test]
fn replacements_come_before_evictions() {
    let mut set = replica_set("web", 1);
    set["metadata"]["annotations"] = json!({"decree.dev/surge-on-eviction": "true"});
    let mut only = pod("web-a", "web");
    only["spec"]["nodeName"] = "node-b".into();
    only["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    let input = list(&[set, only, node("node-b", true)]);
    let decided = decide_json(&input);
    assert_eq!(decided["creates"]["count"], 1);
    let table = decree_reading(&input, &["decide", "-f", "-"]).out;
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("create 1 pod SURGE 1 active pod"), "{table}");
    let said = decree_reading(&input, &["explain", "web", "-f", "-"]).out;
    assert!(said.contains("Creates 1 of 2 pods"), "{said}");
    let waits = "1 active pod, 1 desired: 1 in advance for a pod on cordoned node-b";
    assert!(said.contains(waits), "{said}");
    let drained = decree_reading(&input, &["simulate", "--drain", "node-b", "-f", "-"]).out;
    let first = "With a disruption budget, these get replacements first: default/web.";
    assert!(drained.contains(first), "{drained}");
}

/// The line of the first deletion, from the pod on.
fn victim(said: &str) -> Vec<&str> {
    let line = said.lines().find(|line| line.contains("delete"));
    let line = line.unwrap_or_else(|| panic!("no deletion: {said}"));
    line.split_whitespace().skip(2).collect()
}

#[test]
fn all_forms_of_input_say_the_same() {
    let bare = |mut object: Value| {
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|key, _| key != "kind" && key != "apiVersion");
        object
    };
    let (set, pod) = (replica_set("web", 2), pod("web-a", "web"));
    let text = list(&[set.clone(), pod.clone()]);
    let expected = decide_json(&text);
    let yaml = [&set, &pod].map(|object| serde_saphyr::to_string(object).expect("YAML"));
    let sets = json!({"kind": "ReplicaSetList", "items": [bare(set.clone())]});
    let pods = json!({"kind": "PodList", "items": [bare(pod.clone())]});
    let none = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null});
    let log = "==== START logs for container c of pod default/web-a ====\n{ broken\n==== END logs for container c of pod default/web-a ====\n";
    for input in [
        format!("{set}\n{pod}"),
        format!("---\n{}---\n{}...\n", yaml[0], yaml[1]),
        format!("# set\n{}---\n---\n{pod}\n", yaml[0]),
        format!("\u{feff}{text}"),
        format!("{sets}\n{pods}"),
        list(&[bare(set.clone()), bare(pod.clone())]),
        list(&[pod.clone(), set.clone(), pod.clone(), set.clone()]),
        format!("{set}\n{log}{pod}\n{log}"),
        format!("{none}\n{text}"),
    ] {
        assert_eq!(decide_json(&input), expected, "{input}");
    }
}

/// Places of a pod with wrong values, and the refusals.
const WRONG: &str = r#"
/metadata/uid null => pod default/web-a: metadata.uid: is required
/spec/nodeName 7 => pod default/web-a: spec.nodeName: invalid type: integer `7`, expected a string
/metadata/name "Web_A" => pod default/Web_A: metadata.name: "Web_A" must be a DNS-1123 subdomain
/metadata/labels {"a b": "c"} => pod default/web-a: metadata.labels
/kind 3 => kind: expected a string"#;

#[test]
fn refusals_name_file_document_and_field() {
    for row in WRONG.lines().skip(1) {
        let (change, expected) = row.split_once(" => ").expect("two columns");
        let (place, value) = change.split_once(' ').expect("a place");
        let (set, mut bad) = (replica_set("web", 1), pod("web-a", "web"));
        let changed = bad.pointer_mut(place).expect("it is there");
        *changed = serde_json::from_str(value).expect("JSON");
        let cause = refused(&format!("{set}\n{}", list(&[pod("web-b", "web"), bad])));
        let expected = format!("error: -: document 2: items[1]: {expected}");
        assert!(cause.starts_with(&expected), "{cause}");
    }
}

#[test]
fn nesting_has_bounds() {
    let deep = format!("kind: Pod\na: {}{}", "[".repeat(50_000), "]".repeat(50_000));
    for text in [deep.replace("kind: Pod\na: ", "{\"a\":"), deep] {
        refused(&text);
    }
}

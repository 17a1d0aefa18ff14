//! `decree decide` from files that kubectl could have written, and from files that it could not.

use std::{fs, io::Write as _};

use expect_test::expect;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{Ended, decree, decree_reading, path, victims};
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

fn refused(input: &str) -> String {
    let ended = decide(input, &[]);
    assert_eq!(
        (ended.exit, ended.out.as_str()),
        (Exit::Usage, ""),
        "{}",
        ended.err
    );
    ended.err.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn victims_come_in_the_order_of_choice_with_their_reasons() {
    let state = path("docs/examples/state.yaml");
    let ended = decree(&["decide", "-f", &state, "--now", NOON]);
    expect![[r#"
        REPLICASET    ACTION   POD         RULE             DETAIL
        default/web   adopt    web-lost4   ORPHAN_MATCHES   1 orphan matches the selector
        default/web   delete   web-jv8tl   NOT_READY        not ready
        default/web   delete   web-7qz9m   DELETION_COST    deletion cost -5 before 0
        default/web   status   -           STATUS_DIFFERS   5 replicas, 5 fully labeled, 4 ready, 4 available, 0 terminating
    "#]]
    .assert_eq(&ended.out);
}

#[test]
fn other_numbers_of_replicas_are_decided_as_if_they_were_wanted() {
    let input = list(&[
        replica_set("web", 2),
        pod("web-a", "web"),
        pod("web-b", "web"),
    ]);
    let ended = decide(&input, &["--replicas", "1", "-o", "json"]);
    assert_eq!((ended.exit, &*victims(&ended.out)), (Exit::Done, "web-a\n"));
    let tie = decide(&input, &["--replicas", "1"]);
    assert!(
        tie.out
            .contains("UID              the same by every rule\n"),
        "{}",
        tie.out
    );
    let wide = decide(&input, &["--replicas", "1", "-o", "wide"]);
    assert!(
        wide.out
            .contains("the same by every rule, uid uid-web-a before uid-web-b\n"),
        "{}",
        wide.out
    );
    let two = list(&[replica_set("web", 2), replica_set("api", 1)]);
    assert_eq!(decide(&two, &["--replicas", "1"]).exit, Exit::Usage);
    let one = ["--replica-set", "rs/api", "--replicas", "3", "-o", "json"];
    let out = decide(&two, &one).out;
    assert!(out.contains(r#""creates":{"count":3,"#), "{out}");
}

#[test]
fn compressed_files_are_unpacked() {
    let state = fs::read(path("docs/examples/state.yaml")).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.yaml.gz");
    let file = file.to_str().expect("it is text");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&state).expect("a vector takes all");
    fs::write(file, packed.finish().expect("a vector takes all")).expect("there is room");
    let plain = decree(&[
        "decide",
        "-f",
        &path("docs/examples/state.yaml"),
        "--now",
        NOON,
    ]);
    let unpacked = decree(&["decide", "-f", file, "--now", NOON]);
    assert_eq!((unpacked.exit, unpacked.out), (Exit::Done, plain.out));
    fs::write(file, [0x1f, 0x8b, 8, 0]).expect("there is room");
    let torn = decree(&["decide", "-f", file]);
    assert_eq!((torn.exit, torn.out.as_str()), (Exit::Usage, ""));
}

#[test]
fn json_has_exactly_the_promised_keys() {
    let state = path("docs/examples/state.yaml");
    let ended = decree(&["decide", "-f", &state, "--now", NOON, "-o", "json"]);
    expect![[r#"
        {"replicaSet":"default/web","creates":{"count":0,"names":[]},"deletes":[{"name":"web-jv8tl","reason":{"rule":"NOT_READY","detail":"not ready"}},{"name":"web-7qz9m","reason":{"rule":"DELETION_COST","detail":"deletion cost -5 before 0"}}],"adopts":["web-lost4"],"releases":[],"status":{"replicas":5,"fullyLabeledReplicas":5,"readyReplicas":4,"availableReplicas":4,"terminatingReplicas":0,"observedGeneration":4},"requeueAfterSeconds":null,"quarantined":null}
    "#]]
    .assert_eq(&ended.out);
}

#[test]
fn names_of_creates_are_sorted_and_as_many_as_counted() {
    let decision = decide_json(&list(&[replica_set("web", 12), pod("web-a", "web")]));
    assert_eq!(decision["creates"]["count"], 11);
    let names = decision["creates"]["names"].as_array().expect("a list");
    let names: Vec<_> = names
        .iter()
        .map(|name| name.as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), 11);
    assert!(
        names.is_sorted() && names.iter().all(|name| name.starts_with("web-")),
        "{names:?}"
    );
}

#[test]
fn burst_cuts_one_decision_to_500() {
    let decision = decide_json(&replica_set("web", 700).to_string());
    assert_eq!(decision["creates"]["count"], 500);
}

#[test]
fn status_is_null_where_no_write_is_needed() {
    let mut set = replica_set("web", 0);
    set["status"] = json!({"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1});
    let decision = decide_json(&set.to_string());
    assert_eq!(decision["status"], Value::Null);
    assert_eq!(decision["quarantined"], Value::Null);
}

#[test]
fn wait_for_availability_is_a_number_of_seconds() {
    let mut set = replica_set("web", 1);
    set["spec"]["minReadySeconds"] = 30.into();
    let mut ready = pod("web-a", "web");
    ready["status"]["conditions"] =
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T11:59:40Z"}]);
    let input = list(&[set, ready]);
    assert_eq!(decide_json(&input)["requeueAfterSeconds"], json!(10));
    let half = [
        "decide",
        "-f",
        "-",
        "--now",
        "2026-05-01T11:59:59.5Z",
        "-o",
        "json",
    ];
    let decision: Value = serde_json::from_str(&decree_reading(&input, &half).out).expect("JSON");
    assert_eq!(decision["requeueAfterSeconds"], json!(10.5));
}

#[test]
fn invalid_selector_is_a_decision_and_no_error() {
    let mut set = replica_set("web", 3);
    set["spec"]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let decision = decide_json(&set.to_string());
    let quarantined = decision["quarantined"].as_str().expect("a text");
    assert!(quarantined.contains("Near"), "{quarantined}");
    assert_eq!(decision["creates"]["count"], 0);
    let table = decide(&set.to_string(), &[]).out;
    assert!(table.contains("QUARANTINED"), "{table}");
}

#[test]
fn each_replica_set_has_a_line_by_namespace_and_name() {
    let input = list(&[replica_set("b", 1), replica_set("a", 0), pod("b-1", "b")]);
    let ended = decide(&input, &["-o", "json"]);
    let lines = ended
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let sets: Vec<_> = lines
        .map(|decision| decision["replicaSet"].clone())
        .collect();
    assert_eq!(sets, ["default/a", "default/b"]);
    let one = decide(&input, &["-o", "json", "--replica-set", "default/b"]);
    assert_eq!(one.out.lines().count(), 1);
    assert!(one.out.contains("\"default/b\""), "{}", one.out);
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
    let ended = decide(&input, &["-o", "json", "--replica-set", "default/web"]);
    let decision: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(decision["deletes"][0]["name"], "web-b");
    assert_eq!(decision["deletes"][0]["reason"]["rule"], "CROWDED_NODE");
}

#[test]
fn yaml_json_lists_and_single_documents_say_the_same() {
    let (set, pod) = (replica_set("web", 2), pod("web-a", "web"));
    let expected = decide_json(&list(&[set.clone(), pod.clone()]));
    let yaml = [&set, &pod].map(|object| serde_saphyr::to_string(object).expect("YAML"));
    for input in [
        format!("{set}\n{pod}"),
        format!("---\n{}---\n{}...\n", yaml[0], yaml[1]),
        format!("# set\n{}---\n---\n{pod}\n", yaml[0]),
        format!("\u{feff}{}", list(&[set, pod])),
    ] {
        assert_eq!(decide_json(&input), expected, "{input}");
    }
}

#[test]
fn items_of_api_lists_need_not_say_their_kind() {
    let bare = |mut object: Value| {
        object
            .as_object_mut()
            .expect("an object")
            .retain(|key, _| key != "kind" && key != "apiVersion");
        object
    };
    let (set, pod) = (replica_set("web", 2), pod("web-a", "web"));
    let expected = decide_json(&list(&[set.clone(), pod.clone()]));
    let sets = json!({"kind": "ReplicaSetList", "items": [bare(set.clone())]});
    let pods = json!({"kind": "PodList", "items": [bare(pod.clone())]});
    assert_eq!(decide_json(&format!("{sets}\n{pods}")), expected);
    assert_eq!(decide_json(&list(&[bare(set), bare(pod)])), expected);
}

#[test]
fn several_files_are_one_view() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, object: &Value| {
        let file = folder.path().join(name);
        fs::write(&file, object.to_string()).expect("it can be written");
        file.display().to_string()
    };
    let (set, pod) = (replica_set("web", 1), pod("web-a", "web"));
    let (sets, pods) = (write("sets.json", &set), write("pods.json", &pod));
    let ended = decree(&["decide", "-f", &sets, "-f", &pods, "-o", "json"]);
    let decision: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(decision["creates"]["count"], 0);
}

#[test]
fn other_kinds_are_ignored_with_a_notice() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    let ended = decide(
        &list(&[service.clone(), replica_set("web", 1), service]),
        &[],
    );
    assert_eq!(ended.exit, Exit::Done);
    assert_eq!(ended.err, "notice: 2 of kind Service ignored\n");
}

#[test]
fn orphan_that_two_replica_sets_would_adopt_is_told() {
    let mut orphan = pod("lost", "web");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let mut other = replica_set("api", 1);
    other["spec"] = replica_set("web", 1)["spec"].clone();
    let ended = decide(&list(&[replica_set("web", 1), other, orphan.clone()]), &[]);
    let expected = "notice: default/lost matches default/api and default/web: \
                    each is decided alone, and the first to adopt it has it\n";
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, expected));
    let one = decide(&list(&[replica_set("web", 1), orphan]), &[]);
    assert_eq!(one.err, "");
}

#[test]
fn object_that_is_there_twice_word_for_word_counts_once() {
    let (set, pod) = (replica_set("web", 1), pod("web-a", "web"));
    let decision = decide_json(&list(&[pod.clone(), set.clone(), pod, set]));
    assert_eq!(decision["creates"]["count"], 0);
}

#[test]
fn two_states_of_one_object_are_refused() {
    let (one, mut other) = (pod("web-a", "web"), pod("web-a", "web"));
    other["status"]["phase"] = "Failed".into();
    let cause = refused(&list(&[replica_set("web", 1), one, other]));
    assert_eq!(
        cause,
        "error: -: document 1: items[2]: pod default/web-a is in the input twice, and differs from the one at \
         -: document 1: items[1]"
    );
}

#[test]
fn replica_set_that_is_not_there_is_an_answer() {
    let input = list(&[replica_set("web", 1), replica_set("db", 1)]);
    let ended = decide(&input, &["--replica-set", "default/shop"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::No, ""));
    expect![[r#"
        error: ReplicaSet default/shop not found in the input
        hint: the input contains default/db, default/web
    "#]]
    .assert_eq(&ended.err);
}

#[test]
fn input_without_a_replica_set_is_refused() {
    let pods = list(&[pod("web-a", "web")]);
    let (empty, none) = (
        "the input holds no objects",
        "there is no ReplicaSet in the input",
    );
    for (input, said) in [("", empty), ("---\n# nothing\n", empty), (&pods, none)] {
        assert_eq!(refused(input), format!("error: {said}"));
    }
    let nothing = decree(&["decide"]);
    assert!(
        nothing.err.starts_with("error: no file is named\n"),
        "{}",
        nothing.err
    );
}

#[test]
fn refusals_name_file_document_and_field() {
    let broken = |change: fn(&mut Value)| {
        let (set, mut bad) = (replica_set("web", 1), pod("web-a", "web"));
        change(&mut bad);
        refused(&format!("{set}\n{}", list(&[pod("web-b", "web"), bad])))
    };
    let at = "error: -: document 2: items[1]: ";
    for (cause, expected) in [
        (
            broken(|pod| pod["metadata"]["uid"] = Value::Null),
            "pod default/web-a: metadata.uid: is required",
        ),
        (
            broken(|pod| pod["spec"]["nodeName"] = 7.into()),
            "pod default/web-a: spec.nodeName: invalid type: integer `7`, expected a string",
        ),
        (
            broken(|pod| pod["metadata"]["name"] = "Web_A".into()),
            "pod default/Web_A: metadata.name: \"Web_A\" must be a DNS-1123 subdomain",
        ),
        (
            broken(|pod| pod["metadata"]["labels"] = json!({"a b": "c"})),
            "pod default/web-a: metadata.labels",
        ),
        (
            broken(|pod| pod["kind"] = 3.into()),
            "kind: expected a string",
        ),
        (
            broken(|pod| *pod = json!({"metadata": {}})),
            "kind: is required",
        ),
        (
            broken(|pod| *pod = json!("pod")),
            "(document): expected an object",
        ),
    ] {
        assert!(cause.starts_with(&format!("{at}{expected}")), "{cause}");
    }
}

#[test]
fn broken_files_are_refused_with_their_line() {
    let cause = refused("kind: Pod\n---\nkind: [\n");
    assert!(
        cause.starts_with("error: -: document 2: ") && cause.contains("line "),
        "{cause}"
    );
    let cause = refused("{\"kind\": \"Pod\",");
    assert!(
        cause.starts_with("error: -: document 1: ") && cause.contains("line 1"),
        "{cause}"
    );
    let missing = decree(&["decide", "-f", "no/such/file.json"]);
    assert_eq!(missing.exit, Exit::Usage);
    assert!(
        missing
            .err
            .starts_with("error: no/such/file.json: cannot be read: "),
        "{}",
        missing.err
    );
}

#[test]
fn file_that_is_no_text_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, [0xff, 0xfe, 0x00]).expect("it can be written");
    let ended = decree(&["decide", "-f", &file.path().display().to_string()]);
    assert_eq!(ended.exit, Exit::Usage);
    assert!(
        ended.err.contains("is neither UTF-8 nor UTF-16"),
        "{}",
        ended.err
    );
}

#[test]
fn time_must_be_rfc_3339() {
    let ended = decree(&["decide", "-f", "-", "--now", "yesterday"]);
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.err.contains("RFC 3339"), "{}", ended.err);
}

#[test]
fn no_cut_of_a_good_file_makes_it_panic() {
    let state = fs::read_to_string(path("docs/examples/state.yaml")).expect("it is there");
    let json = list(&[replica_set("web", 1), pod("web-a", "web")]);
    for text in [state, json] {
        for (end, _) in text.char_indices().step_by(7) {
            let ended = decide(&text[..end], &[]);
            assert!(
                matches!(ended.exit, Exit::Done | Exit::Usage),
                "cut at {end}: {}",
                ended.err
            );
        }
    }
}

#[test]
fn nesting_and_aliases_have_bounds() {
    let deep = format!("kind: Pod\na: {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let nested = (b'b'..=b'z').map(|name| {
        let (name, before) = (char::from(name), char::from(name - 1));
        format!("{name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}]\n")
    });
    let bomb = format!("a: &a [1]\n{}", nested.collect::<String>());
    for text in [deep.replace("kind: Pod\na: ", "{\"a\":"), deep, bomb] {
        refused(&text);
    }
}

//! Manifests: the accepted files, and the places in errors.

use serde_json::json;

use super::*;

fn parse_text(text: &str) -> Result<Vec<Document>, ManifestError> {
    let documents = open(Path::new("web.yaml"), text)?.documents;
    check_all(&documents)?;
    Ok(documents)
}

fn names(documents: &[Document]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let name = |it: &Document| {
        let (kind, name) = (&it.object["kind"], &it.object["metadata"]["name"]);
        format!("{}/{}", word(kind), word(name))
    };
    documents.iter().map(name).collect()
}

fn error(text: &str) -> String {
    parse_text(text).expect_err("it is refused").to_string()
}

#[test]
fn lists_become_their_items() {
    let pod = json!({"metadata": {"name": "a"}});
    let list = json!({"kind": "PodList", "items": [pod]});
    let outer = json!({"kind": "List", "items": [list, {"kind": "ReplicaSet", "metadata": {"name": "web"}}]});
    let documents = parse_text(&outer.to_string()).expect("valid");
    assert_eq!(names(&documents), ["Pod/a", "ReplicaSet/web"]);
    let place = documents[1].place.to_string();
    assert_eq!(place, "web.yaml: document 1: items[1]");
}

/// Texts, and the documents and words of their errors.
const WRONG: &str = r#"
kind: Pod\n---\nkind: Pod\nmetadata: {}\n => 1: metadata.name: is required
kind: Pod\nmetadata: {name: a}\n---\nkind: Deployment\nmetadata: {name: b}\n => 2: kind: "Deployment" is not one of Namespace,
metadata: {name: a}\n => 1: kind: is required
{"kind": "List", "items": 1} => 1: items: expected a list
- 1\n => 1: items[0]: (document): expected an object with kind and metadata
kind: Pod\n---\nkind: [\n => 2:
{"kind":  => 1:
{a: [} => 1: line 1:
{"a": 1}\n{}\n{"b": } => 3: expected value at line 3
a: 1\n---\nb: c: d\n => 2: line 3:
{[a]: 1} => 1: line 1: the key ["a"] of a mapping must be a string
a: &x [*x] => 1: line 1: an alias within its own anchor
<<: 1 => 1: line 1: the value of << must be a mapping"#;

#[test]
fn errors_name_file_document_and_field() {
    for row in WRONG.lines().skip(1) {
        let (text, expected) = row.split_once(" => ").expect("two columns");
        let expected = format!("web.yaml: document {expected}");
        let error = error(&text.replace("\\n", "\n"));
        assert!(error.starts_with(&expected), "{text}: {error}");
    }
}

fn exported() -> String {
    let web = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "exported-web", "resourceVersion": "77"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "namespace": "default", "uid": "exported-pod", "labels": {"app": "web"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "exported-web", "controller": true,
            }],
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    json!({"kind": "List", "items": [pod, web]}).to_string()
}

#[test]
fn exported_pods_keep_their_owner() {
    let mut model = crate::Cluster::new(crate::ClusterConfig::default());
    install(&mut model, parse_text(&exported()).expect("valid")).expect("the cluster takes them");
    let peek = |kind, name| model.peek(kind, "default", name).expect("it is there");
    let web = peek(crate::Kind::ReplicaSet, "web");
    let pod = peek(crate::Kind::Pod, "web-1");
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(owner, &web["metadata"]["uid"]);
    assert_ne!(owner, "exported-web");
}

#[test]
fn namespaces_come_first_and_missing_ones_are_made() {
    let mut model = crate::Cluster::new(crate::ClusterConfig::default());
    let text = "kind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: prod}\nspec: {containers: [{name: c, image: i}]}\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: default}\n";
    install(&mut model, parse_text(text).expect("valid")).expect("the cluster takes them");
    assert!(model.peek(crate::Kind::Pod, "prod", "a").is_some());
}

#[test]
fn exported_pods_run_on_their_nodes_although_no_file_has_them() {
    let mut model = crate::Cluster::new(crate::ClusterConfig::default());
    let text = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {nodeName: worker, containers: [{name: c, image: i}]}\n";
    install(&mut model, parse_text(text).expect("valid")).expect("the cluster takes them");
    while let Some(due) = model.next_due() {
        model.advance(due);
    }
    let pod = model.peek(crate::Kind::Pod, "default", "a");
    let pod = pod.expect("it is there");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["spec"]["nodeName"], "worker");
}

#[test]
fn refusal_of_the_cluster_names_the_place_and_the_object() {
    let mut model = crate::Cluster::new(crate::ClusterConfig::default());
    let text = "kind: Namespace\napiVersion: v1\nmetadata: {name: prod}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: Prod}\nspec: {containers: [{name: c, image: i}]}\n";
    let refused = install(&mut model, parse_text(text).expect("valid")).expect_err("no such name");
    let said = "web.yaml: document 2: Namespace \"Prod\" is invalid";
    assert!(refused.to_string().starts_with(said), "{refused}");
}

/// The one document of a text, without the checks of its kind.
fn value(text: &str) -> Result<Value, String> {
    let contents = open(Path::new("web.yaml"), text).map_err(|error| error.to_string())?;
    let documents = contents.documents.into_iter();
    Ok(documents.map(|it| it.object).collect())
}

/// Each line is checked against kubectl by `files_are_read_as_kubectl_reads_them`.
#[test]
fn scalars_have_the_values_of_kubectl() {
    for (text, expected) in [
        ("oN", json!("oN")),
        ("on", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("nULL", json!("nULL")),
        ("~", Value::Null),
        ("", Value::Null),
        ("03", json!(3)),
        ("08", json!(8)),
        ("010", json!(8)),
        ("0o12", json!(10)),
        ("0x2", json!(2)),
        ("0b11", json!(3)),
        ("+3", json!(3)),
        ("-0x10", json!(-16)),
        ("1_0", json!(10)),
        ("2.0", json!(2)),
        ("1e1", json!(10)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("12e45678", json!("12e45678")),
        ("2026-03-01", json!("2026-03-01")),
        ("12:30:00", json!("12:30:00")),
        ("0x", json!("0x")),
        ("18446744073709551615", json!(u64::MAX)),
        ("'03'", json!("03")),
        ("!!str 03", json!("03")),
        ("!!int '03'", json!(3)),
        ("!!float 3", json!(3)),
        ("!unknown 03", json!("03")),
    ] {
        let read = value(&format!("a: {text}"));
        assert_eq!(read, Ok(json!([{ "a": expected }])), "{text}");
    }
    for wrong in [".inf", "!!int x", "!!bool 1", "*none"] {
        assert!(value(&format!("a: {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn documents_are_read_however_they_are_written() {
    for (text, expected) in [
        ("{a: b}\n---\nc: d\n", json!([{"a": "b"}, {"c": "d"}])),
        ("{\"a\": 1}\n---\nc: d\n", json!([{"a": 1}, {"c": "d"}])),
        ("{\"a\": 1} {\"b\": 2}", json!([{"a": 1}, {"b": 2}])),
        ("[{\"a\": 1}, {\"b\": 2}]", json!([{"a": 1}, {"b": 2}])),
        ("[{a: 1}]", json!([{"a": 1}])),
        ("- a: 1\n- b: 2\n", json!([{"a": 1}, {"b": 2}])),
        (
            "a: |\n  b\n\u{2028}  c\nd: e\n",
            json!([{"a": "b\n\nc\n", "d": "e"}]),
        ),
        (
            "a: &x {b: 1}\nc: *x\n",
            json!([{"a": {"b": 1}, "c": {"b": 1}}]),
        ),
        (
            "- &x {a: 1, b: 1}\n- {<<: *x, b: 2}\n",
            json!([{"a": 1, "b": 1}, {"a": 1, "b": 2}]),
        ),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", json!([{"a": 1, "b": 2}])),
        ("{on: 1, 1.5: 2}", json!([{"true": 1, "1.5": 2}])),
        ("--- # a comment\n...\n---\na: 1\n", json!([{"a": 1}])),
        (
            "%YAML 1.2\n---\na: |\n  b\n   --- not a marker\n---\n---\n# nothing\n",
            json!([{"a": "b\n --- not a marker\n"}]),
        ),
    ] {
        assert_eq!(value(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn repeated_key_is_told_and_the_last_value_counts() {
    let text = "{}\n---\nlabels:\n  app: a\n  app: b\n";
    let contents = open(Path::new("web.yaml"), text).expect("valid");
    let last = json!({"labels": {"app": "b"}});
    assert_eq!(contents.documents[1].object, last);
    let notice = "web.yaml: line 5: \"app\" is repeated; the last value counts";
    assert_eq!(contents.notices, [notice]);
}

#[test]
fn aliases_of_aliases_are_bounded() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{}", level - 1);
        let aliases = [alias.as_str(); 8].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let error = value(&text).expect_err("it expands beyond all bounds");
    let said = "anchors and aliases expand to more than 1000000 values";
    assert!(error.ends_with(said), "{error}");
}

#[test]
fn aliases_of_a_long_text_are_bounded() {
    let text = format!("a: &a {}\n", "x".repeat(64_000));
    let aliases = |count| vec!["*a"; count].join(", ");
    let few = value(&format!("{text}b: [{}]\n", aliases(900)));
    assert!(few.is_ok(), "{:?}", few.err());
    let error = value(&format!("{text}b: [{}]\n", aliases(1_000)));
    let error = error.expect_err("it expands to 64 MB");
    let said = "anchors and aliases expand to more than 1000000 values";
    assert!(error.ends_with(said), "{error}");
}

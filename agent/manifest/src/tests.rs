//! Manifests: the accepted files, and the places in errors.

use serde_json::json;

use super::*;

fn parse_text(text: &str) -> Result<Vec<Document>, ManifestError> {
    parse(Path::new("web.yaml"), text)
}

fn names(documents: &[Document]) -> Vec<String> {
    let name = |it: &Document| {
        format!(
            "{}/{}",
            it.object["kind"].as_str().unwrap_or("?"),
            it.object["metadata"]["name"].as_str().unwrap_or("?")
        )
    };
    documents.iter().map(name).collect()
}

fn error(text: &str) -> String {
    parse_text(text).expect_err("it is refused").to_string()
}

const TWO: &str = "# objects
apiVersion: v1
kind: Namespace
metadata: {name: prod}
---
apiVersion: v1
kind: Pod
metadata:
  name: \"on\"
  labels: {version: \"1\", enabled: \"true\"}
spec:
  script: |
    a
     --- not a marker
";

#[test]
fn documents_of_a_stream_are_read_one_by_one() {
    let documents = parse_text(TWO).expect("valid");
    assert_eq!(names(&documents), ["Namespace/prod", "Pod/on"]);
    assert_eq!(documents[1].place.document, 2);
    assert_eq!(
        documents[1].object["metadata"]["labels"],
        json!({"version": "1", "enabled": "true"})
    );
}

#[test]
fn leading_marker_and_empty_documents_are_no_objects() {
    let text = format!("%YAML 1.2\n---\n{TWO}---\n---\n# nothing\n");
    assert_eq!(names(&parse_text(&text).expect("valid")).len(), 2);
}

#[test]
fn lists_become_their_items() {
    let pod = json!({"metadata": {"name": "a"}});
    let list = json!({"kind": "PodList", "items": [pod]});
    let outer = json!({"kind": "List", "items": [list, {"kind": "ReplicaSet", "metadata": {"name": "web"}}]});
    let documents = parse_text(&outer.to_string()).expect("valid");
    assert_eq!(names(&documents), ["Pod/a", "ReplicaSet/web"]);
    assert_eq!(
        documents[1].place.to_string(),
        "web.yaml: document 1: items[1]"
    );
}

#[test]
fn several_json_documents_in_one_file_are_read() {
    let pod = |name: &str| json!({"kind": "Pod", "metadata": {"name": name}}).to_string();
    let text = format!("{}\n{}", pod("a"), pod("b"));
    assert_eq!(
        names(&parse_text(&text).expect("valid")),
        ["Pod/a", "Pod/b"]
    );
}

#[test]
fn errors_name_file_document_and_field() {
    assert_eq!(
        error("kind: Pod\n---\nkind: Pod\nmetadata: {}\n"),
        "web.yaml: document 1: metadata.name: is required"
    );
    let second = "kind: Pod\nmetadata: {name: a}\n---\nkind: Deployment\nmetadata: {name: b}\n";
    assert!(
        error(second)
            .starts_with("web.yaml: document 2: kind: \"Deployment\" is not one of Namespace, ")
    );
    assert!(error("metadata: {name: a}\n").ends_with("document 1: kind: is required"));
    assert!(
        error("{\"kind\": \"List\", \"items\": 1}").ends_with("document 1: items: expected a list")
    );
    assert!(
        error("- 1\n")
            .ends_with("document 1: (document): expected an object with kind and metadata")
    );
    assert!(error("kind: Pod\n---\nkind: [\n").starts_with("web.yaml: document 2: "));
    assert!(error("{\"kind\": ").starts_with("web.yaml: document 1: "));
}

#[test]
fn file_that_is_not_there_is_named() {
    let error = read(&["/nowhere/web.yaml".into()]).expect_err("it is not there");
    assert_eq!(error.to_string(), "/nowhere/web.yaml: cannot be read");
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
    let mut model = agent_fake::Cluster::new(agent_fake::ClusterConfig::default());
    install(&mut model, parse_text(&exported()).expect("valid")).expect("the cluster takes them");
    let web = model
        .peek(agent_fake::Kind::ReplicaSet, "default", "web")
        .expect("it is there");
    let pod = model
        .peek(agent_fake::Kind::Pod, "default", "web-1")
        .expect("it is there");
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(owner, &web["metadata"]["uid"]);
    assert_ne!(owner, "exported-web");
}

#[test]
fn namespaces_come_first_and_those_that_are_there_are_kept() {
    let mut model = agent_fake::Cluster::new(agent_fake::ClusterConfig::default());
    let text = "kind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: prod}\nspec: {containers: [{name: c, image: i}]}\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: prod}\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: default}\n";
    install(&mut model, parse_text(text).expect("valid")).expect("the cluster takes them");
    assert!(model.peek(agent_fake::Kind::Pod, "prod", "a").is_some());
}

#[test]
fn refusal_of_the_cluster_names_the_place_and_the_object() {
    let mut model = agent_fake::Cluster::new(agent_fake::ClusterConfig::default());
    let text = "kind: Namespace\napiVersion: v1\nmetadata: {name: prod}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: nowhere}\nspec: {containers: [{name: c, image: i}]}\n";
    let refused = install(&mut model, parse_text(text).expect("valid")).expect_err("no namespace");
    assert!(
        refused
            .to_string()
            .starts_with("web.yaml: document 2: namespaces \"nowhere\" not found"),
        "{refused}"
    );
}

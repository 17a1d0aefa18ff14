//! Files that kubectl takes are taken here, with the same values, and what it refuses is refused.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use agent_kube::objects;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    real::{ApiServer, User},
    tools,
};

use crate::objects::replica_set;

/// Texts of `spec.replicas`.
const REPLICAS: [&str; 24] = [
    "3",
    "+3",
    "03",
    "08",
    "010",
    "0o12",
    "0x2",
    "0X2",
    "0b11",
    "1_0",
    "2.0",
    "1e1",
    "1E+1",
    "10e-1",
    "2.5",
    "1e400",
    "0x",
    "08e1",
    "\"3\"",
    "yes",
    "~",
    "",
    "!!int \"3\"",
    "!!str 3",
];
/// Texts of a label.
const LABELS: [&str; 26] = [
    "oN",
    "on",
    "nO",
    "n",
    "yEs",
    "Y",
    "tRUE",
    "true",
    "nULL",
    "null",
    "2026-03-01",
    "12e45678",
    "4E8888",
    "0x",
    "1.10",
    "0644",
    "1_000",
    ".5",
    ".nan",
    "0o7",
    "0o9",
    "a #b",
    "!!str on",
    "!!str",
    "&a x",
    "[x]",
];
/// Whole documents of ReplicaSets; `NAME` is the name.
const DOCUMENTS: [&str; 4] = [
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: NAME}, spec: SPEC}",
    "{\"apiVersion\": \"apps/v1\", \"kind\": \"ReplicaSet\", \"metadata\": {\"name\": \"NAME\"}, \"spec\": SPEC}\n---\n# end\n",
    "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: other\n  name: NAME\nspec: SPEC\n",
    "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: NAME}\nspec: SPEC\nx: b: c\n",
];
/// Texts of annotations with line breaks of YAML 1.1.
const BROKEN: [&str; 6] = [
    "a\u{2028}b",
    "a\n\u{2028}b\n",
    "\u{2029}\u{85}a\nb\u{85}\n",
    "a\r\nb\u{2029}",
    "\u{feff}a\tb\n  c\n",
    "\u{2028}",
];

/// The number of desired pods, and the labels of the template.
type Read = (Option<i32>, BTreeMap<String, String>);

fn read(object: &Value) -> Option<Read> {
    let mut object = object.clone();
    // Like kubectl, which sends it for one.
    object["metadata"]["namespace"] = "default".into();
    object["metadata"]["uid"] = "uid".into();
    let set = objects::replica_set(&object).ok()?.projected;
    let replicas = set.replicas.unwrap_or(1);
    Some((Some(replicas), set.template_labels.into_iter().collect()))
}

fn read_here(file: &Path) -> Option<Read> {
    let text = fs::read_to_string(file).expect("it was written");
    let documents = agent_fake::manifest::open(file, &text).ok()?.documents;
    let [document] = documents.as_slice() else {
        return None;
    };
    read(&document.object)
}

/// The files, each with its ReplicaSet.
fn cases() -> Vec<String> {
    let spec = |name: &str| {
        let spec = replica_set(name, 3)["spec"].to_string();
        spec.replace("\"replicas\":3", "\"replicas\": 7")
    };
    let of =
        |name: &str, document: &str| document.replace("NAME", name).replace("SPEC", &spec(name));
    let plain = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: NAME}\nspec: SPEC\n";
    let mut cases = Vec::new();
    let mut add = |document: &dyn Fn(&str) -> String| {
        let name = format!("case-{}", cases.len());
        cases.push(document(&name));
    };
    for text in REPLICAS {
        let replicas = format!("\"replicas\": {text}\n  ,");
        add(&|name| of(name, plain).replace("\"replicas\": 7,", &replicas));
    }
    for text in LABELS {
        let template = format!("\"template\":{{\"metadata\":{{\"labels\":{{\"case\": {text}\n  ,");
        add(&|name| of(name, plain).replace("\"template\":{\"metadata\":{\"labels\":{", &template));
    }
    for document in DOCUMENTS {
        add(&|name| of(name, document));
    }
    cases
}

#[tokio::test]
async fn files_are_read_as_kubectl_reads_them() {
    let kubectl = &tests::or_skip!(tools::kubectls())[0];
    let server = tests::or_skip!(ApiServer::shared().await);
    let folder = TempDir::with_prefix("decree-files-").expect("there is room");
    let cases = cases();
    let files: Vec<_> = (0..cases.len())
        .map(|at| folder.path().join(format!("case-{at}.yaml")))
        .collect();
    for (file, text) in files.iter().zip(&cases) {
        fs::write(file, text).expect("there is room");
    }
    let mut create = Command::new(kubectl);
    create
        .args(["create", "--dry-run=server", "-n", "default", "-o", "json"])
        .env("KUBECONFIG", server.kubeconfig(User::Admin))
        .env("HOME", folder.path());
    for file in &files {
        create.arg("-f").arg(file);
    }
    let created = create.output().expect("it can be started");
    let taken = serde_json::Deserializer::from_slice(&created.stdout).into_iter::<Value>();
    let taken: Vec<_> = taken
        .collect::<Result<_, _>>()
        .expect("kubectl prints JSON");
    let taken: BTreeMap<_, _> = taken
        .iter()
        .map(|it| (it["metadata"]["name"].as_str().unwrap_or_default(), it))
        .collect();
    let said = String::from_utf8_lossy(&created.stderr);
    for (at, (file, text)) in files.iter().zip(&cases).enumerate() {
        let expected = taken.get(format!("case-{at}").as_str());
        let expected = expected.and_then(|it| read(it));
        assert_eq!(read_here(file), expected, "{text}\nkubectl: {said}");
    }
    assert!(taken.len() > 30 && taken.len() + 10 < cases.len(), "{said}");
}

#[tokio::test]
async fn yaml_that_kubectl_prints_is_the_object() {
    let kubectl = &tests::or_skip!(tools::kubectls())[0];
    let server = tests::or_skip!(ApiServer::shared().await);
    let mut set = replica_set("printed", 0);
    let annotations = BROKEN.iter().enumerate();
    let annotations = annotations.map(|(at, text)| (format!("text-{at}"), json!(text)));
    set["metadata"]["annotations"] = Value::Object(annotations.collect());
    for (at, label) in LABELS.iter().enumerate() {
        if label
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
        {
            set["spec"]["template"]["metadata"]["labels"][format!("case-{at}")] = json!(label);
        }
    }
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let admin = server.admin().await;
    admin.create(path, &set).await.expect("it is valid");
    let home = TempDir::with_prefix("decree-files-").expect("there is room");
    let printed = |format: &str| {
        let mut get = Command::new(kubectl);
        get.args(["get", "rs", "printed", "-n", "default", "-o", format])
            .env("KUBECONFIG", server.kubeconfig(User::Admin))
            .env("HOME", home.path());
        let printed = get.output().expect("it can be started");
        String::from_utf8(printed.stdout).expect("it is text")
    };
    let (json, yaml) = (printed("json"), printed("yaml"));
    admin.remove(&format!("{path}/printed"), &json!({})).await;
    let object = |text: &str| {
        let contents =
            agent_fake::manifest::open("printed".as_ref(), text).expect("kubectl prints objects");
        let mut object = contents.documents[0].object.clone();
        let annotations = object["metadata"]["annotations"].as_object_mut();
        for text in annotations.expect("it has some").values_mut() {
            // A line break of YAML 1.1 reads as one of YAML 1.2, which folds it.
            let told = text.as_str().expect("a text").to_owned();
            let is_break = |it: char| it.is_whitespace() || it == '\u{85}';
            *text = told.replace(is_break, "").into();
        }
        object
    };
    assert_eq!(object(&yaml), object(&json), "{yaml}");
}

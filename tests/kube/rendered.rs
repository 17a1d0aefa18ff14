//! The shipped manifests as kustomize renders them.

use std::{collections::BTreeMap, process::Command};

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{Api, Patch, Refusal},
    running::output_of,
    tools,
};

pub(crate) const SYSTEM: &str = "decree-system";
/// The namespace of the overlay `custom-resource`.
pub(crate) const CUSTOM_SYSTEM: &str = "decree-custom";

/// The objects of one kustomization, in the order of their application.
#[derive(Debug, PartialEq)]
pub(crate) struct Rendered {
    objects: Vec<Value>,
}

impl Rendered {
    /// Renders a folder of `deploy/kustomize`. `None` without kustomize.
    pub(crate) fn of(folder: &str) -> Option<Self> {
        let kustomize = tools::kustomize()?.join("kustomize");
        Some(Self::by(Command::new(kustomize).arg("build"), folder))
    }

    /// Renders a folder of `deploy/kustomize` with a command that takes it as the last argument.
    pub(crate) fn by(renderer: &mut Command, folder: &str) -> Self {
        let path = binaries::checkout().join("deploy/kustomize").join(folder);
        let [text, _] = output_of(renderer.arg(path));
        Self::read(&text)
    }

    /// Reads the objects of a text with several documents.
    pub(crate) fn read(text: &str) -> Self {
        let documents = text.split("\n---\n");
        let objects = documents.map(serde_saphyr::from_str);
        let objects = objects.map(|object| object.expect("it is YAML"));
        Self {
            objects: objects.filter(|object: &Value| !object.is_null()).collect(),
        }
    }

    /// All objects, by their path.
    pub(crate) fn by_path(&self) -> BTreeMap<String, Value> {
        let named = self.objects.iter().map(|it| (path(it), it.clone()));
        named.collect()
    }

    pub(crate) fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |it| it["kind"] == kind)
    }

    /// The objects that create pods. None is a Deployment, whose pods need a ReplicaSet controller.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Value> {
        ["DaemonSet", "StatefulSet"]
            .into_iter()
            .flat_map(|kind| self.all(kind))
    }

    /// The workload of this name.
    pub(crate) fn workload(&self, name: &str) -> &Value {
        let found = self.workloads().find(|it| it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("nothing has pods of {name} made"))
    }

    pub(crate) fn one(&self, kind: &str, name: &str) -> &Value {
        let mut found = self.all(kind).filter(|it| it["metadata"]["name"] == name);
        let found = found.next();
        found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// Deletes all objects but namespaces and definitions.
    pub(crate) async fn delete(&self, api: &Api) {
        let stays = |object: &&Value| {
            object["kind"] == "Namespace" || object["kind"] == "CustomResourceDefinition"
        };
        for object in self.objects.iter().filter(|it| !stays(it)) {
            let deleted = api.delete(&path(object), &json!({})).await;
            deleted.unwrap_or_else(|refusal| panic!("{refusal:?}: {object}"));
        }
    }

    /// Applies all objects, and waits for definitions.
    pub(crate) async fn apply(&self, api: &Api) {
        for object in &self.objects {
            let applied = apply(api, object).await;
            applied.unwrap_or_else(|refusal| panic!("{refusal:?}: {object}"));
        }
        for definition in self.all("CustomResourceDefinition") {
            let path = path(definition);
            api.wait_for("served", &path, |it| {
                let conditions = it["status"]["conditions"].as_array()?.iter();
                let mut served =
                    conditions.filter(|it| it["type"] == "Established" && it["status"] == "True");
                served.next().map(drop)
            })
            .await;
            // The API server serves the definition a moment later.
            let collection = collection(definition);
            api.wait_for("served", &collection, |_| Some(())).await;
        }
    }
}

/// Applies a role, and binds it to a service account of a namespace.
pub(crate) async fn grant(api: &Api, role: &Value, namespace: &str, account: &str) {
    let rbac = "rbac.authorization.k8s.io";
    let (kind, metadata) = (&role["kind"], &role["metadata"]);
    let binding = json!({
        "apiVersion": role["apiVersion"], "metadata": metadata,
        "kind": format!("{}Binding", kind.as_str().expect("it is text")),
        "roleRef": {"apiGroup": rbac, "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    });
    for object in [role, &binding] {
        let applied = apply(api, object).await;
        applied.unwrap_or_else(|refusal| panic!("{refusal:?}: {object}"));
    }
}

/// Applies an object; refuses fields that its kind does not know.
pub(crate) async fn apply(api: &Api, object: &Value) -> Result<Value, Refusal> {
    let path = format!(
        "{}?fieldManager=tests&force=true&fieldValidation=Strict",
        path(object)
    );
    api.patch(&path, Patch::Apply, object).await
}

/// The path of all objects of a definition.
fn collection(definition: &Value) -> String {
    let spec = &definition["spec"];
    let parts = [
        &spec["group"],
        &spec["versions"][0]["name"],
        &spec["names"]["plural"],
    ];
    let [group, version, plural] = parts.map(|part| part.as_str().expect("it is text"));
    format!("/apis/{group}/{version}/{plural}")
}

pub(crate) fn path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let root = if version.contains('/') {
        format!("/apis/{version}")
    } else {
        format!("/api/{version}")
    };
    let plural = match kind.as_str() {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let name = text(&object["metadata"]["name"]);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("{root}/{plural}/{name}"),
    }
}

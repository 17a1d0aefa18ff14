//! The probe at the API server: a ReplicaSet without desired pods, by which an agent asks which controllers are on
//! ([`agent_core::take_over`]). Its requests share the connection of the Leases, so calls do not delay them.

use std::{convert::Infallible, time::Duration};

use agent_core::{
    api::{ApiError, Kind},
    take_over::{Command, DECLARATION_ANNOTATION, Declaration, ProbeState},
};
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

use crate::{
    body::RequestBody,
    cluster::KubeCluster,
    codec::{self, EventJson},
    objects::FIELD_MANAGER,
    reading::{self, decoded},
    requests::{self, CLI_FIELD_MANAGER, Scope},
};

/// The name of the probe.
pub const PROBE: &str = "decree-probe";
/// The wait between the end of a watch and the next read.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The probe of a namespace.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The cluster.
    pub cluster: KubeCluster,
    /// The namespace.
    pub namespace: String,
}

impl Probe {
    /// Reads the probe; `None` if there is none.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(&self) -> Result<Option<ProbeState>, ApiError> {
        let read = requests::replica_set(&Scope::default().resource, &self.namespace, PROBE)?;
        match self.send(requests::read(&read, codec::JSON)?).await {
            Err(error) if error.code == Some(404) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Makes a request of an agent.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn request(&self, command: Command) -> Result<ProbeState, ApiError> {
        match command {
            Command::Create(declaration) => {
                let manifest = manifest(declaration.as_ref());
                let create = requests::create_probe(&self.namespace, &manifest)?;
                self.send(create).await
            }
            Command::Ask => {
                // Any other value makes a new generation, and means nothing to a ReplicaSet without pods.
                let seconds = Timestamp::now().as_millisecond() & 0x3fff_ffff;
                let question = json!({"spec": {"minReadySeconds": seconds}});
                self.patch(FIELD_MANAGER, &question).await
            }
            Command::Record(declaration, version) => {
                let mut record = record(&declaration);
                record["metadata"]["resourceVersion"] = version.into();
                self.patch(FIELD_MANAGER, &record).await
            }
        }
    }

    /// Replaces the record, for a person.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn declare(&self, declaration: &Declaration) -> Result<ProbeState, ApiError> {
        let record = record(declaration);
        self.patch(CLI_FIELD_MANAGER, &record).await
    }

    /// Sends each state of the probe, and each error, for ever.
    pub async fn follow(
        self,
        news: mpsc::Sender<Result<Option<ProbeState>, ApiError>>,
    ) -> Infallible {
        loop {
            let read = self.read().await;
            let version = read.as_ref().ok().and_then(Option::as_ref);
            let version = version.map(|probe| probe.version.clone());
            // A send fails only if nobody needs the news any more; then this task is dropped.
            let _ = news.send(read).await;
            if let Some(version) = version
                && let Err(error) = self.watch(&version, &news).await
            {
                let _ = news.send(Err(error)).await;
            }
            sleep(READ_AGAIN).await;
        }
    }

    /// Sends each state after a version, until the watch ends.
    async fn watch(
        &self,
        version: &str,
        news: &mpsc::Sender<Result<Option<ProbeState>, ApiError>>,
    ) -> Result<(), ApiError> {
        let scope = Scope {
            namespace: Some(self.namespace.clone()),
            ..Scope::default()
        };
        let path = scope.watch(Kind::ReplicaSet, version, reading::WATCH_SECONDS)?;
        let path = format!("{path}&fieldSelector=metadata.name%3D{PROBE}");
        let body = self
            .cluster
            .leases
            .open(requests::read(&path, codec::JSON)?);
        let mut lines = reading::Events::new(body.await?, Kind::ReplicaSet);
        while let Some(line) = lines.next_line().await {
            let EventJson { r#type, object } = decoded(&line)?;
            let object = line.slice_ref(object.get().as_bytes());
            let state = match r#type.as_str() {
                "ADDED" | "MODIFIED" => Some(state_of(&decoded(&object)?)),
                "DELETED" => None,
                "BOOKMARK" => continue,
                // Such as a version that is too old: the next read begins again.
                _ => break,
            };
            let _ = news.send(Ok(state)).await;
        }
        Ok(())
    }

    async fn patch(&self, manager: &str, patch: &Value) -> Result<ProbeState, ApiError> {
        let patch = requests::patch_probe(&self.namespace, PROBE, manager, patch)?;
        self.send(patch).await
    }

    /// Sends a request, and once more without an answer: an API server that refuses a token ends its connection (GOAWAY), and with it the
    /// requests beside the refused one. Each request about the probe may arrive twice.
    async fn send(&self, request: Request<RequestBody>) -> Result<ProbeState, ApiError> {
        let leases = &self.cluster.leases;
        let answer = match leases.fetch(request.clone()).await {
            Err(error) if error.code.is_none() => leases.fetch(request).await?,
            answer => answer?,
        };
        Ok(state_of(&decoded(&answer)?))
    }
}

fn record(declaration: &Declaration) -> Value {
    json!({"metadata": {"annotations": {DECLARATION_ANNOTATION: declaration.text}}})
}

/// The probe as created. Its container never runs.
fn manifest(declaration: Option<&Declaration>) -> Value {
    let labels = json!({"app.kubernetes.io/name": PROBE});
    let mut manifest = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": PROBE,
            "labels": labels,
            "annotations": {
                "decree.dev/what": "Decree records here whether the built-in ReplicaSet controller is off, and asks here which controllers are on",
            },
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "none",
                        "image": "none",
                        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                    }],
                },
            },
        },
    });
    if let Some(declaration) = declaration {
        manifest["metadata"]["annotations"][DECLARATION_ANNOTATION] =
            declaration.text.as_str().into();
    }
    manifest
}

fn state_of(object: &Value) -> ProbeState {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let annotations = &object["metadata"]["annotations"];
    let declaration = annotations[DECLARATION_ANNOTATION].as_str();
    let managed = object["metadata"]["managedFields"].as_array();
    let observes =
        |entry: &&Value| entry["fieldsV1"]["f:status"]["f:observedGeneration"].is_object();
    let observer = managed.into_iter().flatten().find(observes);
    ProbeState {
        version: text(object, "/metadata/resourceVersion").to_owned(),
        declaration: declaration.map(Declaration::parse),
        generation: number("/metadata/generation"),
        observed: number("/status/observedGeneration"),
        observer: observer
            .map_or("", |entry| text(entry, "/manager"))
            .to_owned(),
    }
}

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let field = object.pointer(path).and_then(Value::as_str);
    field.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use agent_core::take_over::BuiltIn;

    use super::*;

    #[test]
    fn probe_tells_its_record_and_who_answered_its_last_question() {
        let mut probe = json!({
            "metadata": {"resourceVersion": "7", "generation": 3, "managedFields": [
                {"manager": "decree-agent", "fieldsV1": {"f:spec": {}}},
                {"manager": "people", "subresource": "status", "fieldsV1": {"f:status": {"f:replicas": {}}}},
                {"manager": "k3s", "subresource": "status", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}},
            ]},
            "status": {"observedGeneration": 2},
        });
        let mut expected = ProbeState {
            version: "7".into(),
            declaration: None,
            generation: 3,
            observed: 2,
            observer: "k3s".into(),
        };
        assert_eq!(state_of(&probe), expected);
        let declaration = Declaration::by_person(Timestamp::UNIX_EPOCH, true, "alice");
        probe["metadata"]["annotations"] = record(&declaration)["metadata"]["annotations"].clone();
        expected.declaration = Some(declaration);
        assert_eq!(state_of(&probe), expected);
        let annotations = manifest(expected.declaration.as_ref())["metadata"].clone();
        let created = state_of(&json!({"metadata": annotations}));
        let created = created.declaration.map(|it| it.built_in);
        assert_eq!(created, Some(BuiltIn::Off));
        assert_eq!(state_of(&json!({})), ProbeState::default());
    }
}

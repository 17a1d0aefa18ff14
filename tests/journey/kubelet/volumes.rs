//! The volumes of a pod as folders of this machine. Files are written once and not updated: Secrets and tokens outlast a test.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tests::real::Api;

/// The default modes of files and folders.
const FILE: u32 = 0o644;
const FOLDER: u32 = 0o755;
/// An empty folder is for all users in the pod.
const EMPTY: u32 = 0o777;
/// The group of a pod can read its files.
const GROUP: u32 = 0o040;

/// Makes the volumes of one pod.
pub(crate) struct Maker<'a> {
    pub(crate) api: &'a Api,
    pub(crate) pod: &'a Value,
    /// The folder of the volumes.
    pub(crate) folder: &'a Path,
    /// The file system of the node, for the pod's parts of it.
    pub(crate) host: &'a Path,
}

impl Maker<'_> {
    /// Makes all volumes, and returns their paths. The error says what is missing.
    pub(crate) async fn make(&self) -> Result<BTreeMap<String, PathBuf>, String> {
        let mut made = BTreeMap::new();
        for volume in items(&self.pod["spec"]["volumes"]) {
            let name = text(volume, "name");
            let path = self.volume(volume, &name).await;
            let path = path.map_err(|why| format!("volume {name}: {why}"))?;
            made.insert(name, path);
        }
        Ok(made)
    }

    async fn volume(&self, volume: &Value, name: &str) -> Result<PathBuf, String> {
        if let Some(path) = volume["hostPath"]["path"].as_str() {
            return Ok(self.host.join(path.trim_start_matches('/')));
        }
        let folder = self.folder.join(name);
        let mode = if volume["emptyDir"].is_object() {
            EMPTY
        } else {
            FOLDER
        };
        self.make_folder(&folder, mode).map_err(told)?;
        if let Some(sources) = volume["projected"]["sources"].as_array() {
            for source in sources {
                let mode = &volume["projected"]["defaultMode"];
                self.source(source, mode, &folder).await?;
            }
        } else if volume["secret"].is_object() || volume["configMap"].is_object() {
            let of = [&volume["secret"], &volume["configMap"]];
            let mode = of.iter().find(|it| it.is_object());
            let mode = mode.map_or(&Value::Null, |it| &it["defaultMode"]);
            self.source(volume, mode, &folder).await?;
        } else if volume["downwardAPI"].is_object() {
            let mode = &volume["downwardAPI"]["defaultMode"];
            self.source(volume, mode, &folder).await?;
        } else if !volume["emptyDir"].is_object() {
            return Err(format!("of a kind that is not known: {volume}"));
        }
        Ok(folder)
    }

    /// Writes the files of one source, as in a projected volume.
    async fn source(&self, source: &Value, mode: &Value, folder: &Path) -> Result<(), String> {
        let mode = mode.as_u64().and_then(|it| u32::try_from(it).ok());
        let mode = mode.unwrap_or(FILE);
        let mut files = Vec::new();
        if source["serviceAccountToken"].is_object() {
            let wanted = &source["serviceAccountToken"];
            files.push((text(wanted, "path"), self.token(wanted).await?.into_bytes()));
        } else if source["configMap"].is_object() {
            let wanted = &source["configMap"];
            let map = self.read("configmaps", &text(wanted, "name")).await?;
            let plain = |value: &Value| Some(value.as_str()?.as_bytes().to_vec());
            files.extend(chosen(&map["data"], wanted, plain)?);
        } else if source["secret"].is_object() {
            let wanted = &source["secret"];
            let name = wanted["secretName"].as_str();
            let name = name.or_else(|| wanted["name"].as_str());
            let secret = self.read("secrets", name.unwrap_or_default()).await?;
            files.extend(chosen(&secret["data"], wanted, decoded)?);
        } else if source["downwardAPI"].is_object() {
            for item in items(&source["downwardAPI"]["items"]) {
                let value = field(self.pod, &text(&item["fieldRef"], "fieldPath"))?;
                files.push((text(item, "path"), value.into_bytes()));
            }
        } else {
            return Err(format!("a source that is not known: {source}"));
        }
        for (path, content) in files {
            let path = folder.join(path);
            self.write(&path, &content, mode).map_err(told)?;
        }
        Ok(())
    }

    async fn token(&self, wanted: &Value) -> Result<String, String> {
        let (metadata, spec) = (&self.pod["metadata"], &self.pod["spec"]);
        let account = spec["serviceAccountName"].as_str().unwrap_or("default");
        let path = self.path("serviceaccounts", account);
        let audiences: Vec<_> = wanted["audience"].as_str().into_iter().collect();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": wanted["expirationSeconds"],
                "boundObjectRef": {
                    "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"],
                },
            },
        });
        let made = self.api.create(&format!("{path}/token"), &request).await;
        let made = made.map_err(|refusal| format!("{refusal:?}"))?;
        Ok(text(&made["status"], "token"))
    }

    async fn read(&self, resource: &str, name: &str) -> Result<Value, String> {
        let read = self.api.get(&self.path(resource, name)).await;
        read.map_err(|refusal| format!("{resource} {name}: {refusal:?}"))
    }

    fn path(&self, resource: &str, name: &str) -> String {
        let namespace = text(&self.pod["metadata"], "namespace");
        format!("/api/v1/namespaces/{namespace}/{resource}/{name}")
    }

    fn make_folder(&self, folder: &Path, mode: u32) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.give(folder, mode)
    }

    fn write(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, content)?;
        self.give(path, mode | GROUP)
    }

    /// Gives a file or folder to the group of the pod.
    fn give(&self, path: &Path, mode: u32) -> io::Result<()> {
        let group = self.pod["spec"]["securityContext"]["fsGroup"].as_u64();
        let group = group.and_then(|it| u32::try_from(it).ok());
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        chown(path, Some(0), group)
    }
}

/// The value of a field of a pod, for the downward API.
pub(crate) fn field(pod: &Value, path: &str) -> Result<String, String> {
    let annotation = path.strip_prefix("metadata.annotations['");
    let found = match annotation.and_then(|it| it.strip_suffix("']")) {
        Some(annotation) => &pod["metadata"]["annotations"][annotation],
        None => {
            let pointer = format!("/{}", path.replace('.', "/"));
            pod.pointer(&pointer).unwrap_or(&Value::Null)
        }
    };
    found
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("the pod has no {path}"))
}

/// The files of a ConfigMap or Secret: the named ones, or all.
fn chosen(
    data: &Value,
    wanted: &Value,
    read: impl Fn(&Value) -> Option<Vec<u8>>,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let all = data.as_object().ok_or("it has no data")?;
    let names: Vec<_> = match wanted["items"].as_array() {
        Some(items) => items
            .iter()
            .map(|item| (text(item, "key"), text(item, "path")))
            .collect(),
        None => all.keys().map(|key| (key.clone(), key.clone())).collect(),
    };
    let files = names.into_iter().map(|(key, path)| {
        let content = all.get(&key).and_then(&read);
        Ok((path, content.ok_or_else(|| format!("it has no {key}"))?))
    });
    files.collect()
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.decode(value.as_str()?).ok()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn told(error: io::Error) -> String {
    error.to_string()
}

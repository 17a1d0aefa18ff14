//! A plain client of the API: paths and JSON.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use http::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    core::WatchEvent,
};
use serde_json::{Value, json};
use tokio::time;
use tokio_stream::Stream;

use super::{LOOK_EVERY, PATIENCE};

/// A client of one user.
#[derive(Clone)]
pub struct Api {
    client: Client,
    kubeconfig: PathBuf,
}

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, which merges lists by key.
    Strategic,
    /// Server-side apply; the path has the field manager.
    Apply,
}

/// A refusal of the API server, or no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code, 0 without an answer.
    pub code: u16,
    /// The reason of the status, such as `NotFound`.
    pub reason: String,
    /// The message of the status.
    pub message: String,
}

impl Api {
    /// Makes a client of the user of a kubeconfig.
    ///
    /// The client belongs to the current runtime, so each test makes its own client.
    ///
    /// # Panics
    /// If the kubeconfig is invalid.
    pub async fn of(kubeconfig: &Path) -> Self {
        let read = Kubeconfig::read_from(kubeconfig).expect("it is a kubeconfig");
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let mut config = config.expect("the kubeconfig has a current context");
        config.default_retry = false;
        let client = Client::try_from(config).expect("the certificate is one");
        Self {
            client,
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    /// Returns the kubeconfig of this client.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the underlying client, for requests that this client does not support.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads an object or a list.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Method::GET, path, "", None).await
    }

    /// Reads a page that is not JSON, such as metrics and probes.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn text(&self, path: &str) -> Result<String, Refusal> {
        let request = Request::get(path).body(Vec::new());
        let request = request.expect("a test's path is one");
        self.client
            .request_text(request)
            .await
            .map_err(Refusal::from)
    }

    /// Reads the columns and cells that kubectl prints of a list.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn table(&self, path: &str) -> Result<Value, Refusal> {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = Request::get(path).header(ACCEPT, accept).body(Vec::new());
        let request = request.expect("a test's path is one");
        self.client.request(request).await.map_err(Refusal::from)
    }

    /// Reads the items of a list.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, Refusal> {
        let mut list = self.get(path).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => panic!("{path} is no list, but {list}"),
        }
    }

    /// Posts an object to its collection, or to a subresource such as evictions.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let json = "application/json";
        self.send(Method::POST, path, json, Some(object)).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let json = "application/json";
        self.send(Method::PUT, path, json, Some(object)).await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn patch(&self, path: &str, kind: Patch, patch: &Value) -> Result<Value, Refusal> {
        let content = match kind {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Apply => "application/apply-patch+yaml",
        };
        self.send(Method::PATCH, path, content, Some(patch)).await
    }

    /// Deletes an object or a collection, with deletion options such as `{}` or `{"gracePeriodSeconds": 0}`.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Value, Refusal> {
        let json = "application/json";
        self.send(Method::DELETE, path, json, Some(options)).await
    }

    /// Posts an object that is admitted, and returns it.
    ///
    /// # Panics
    /// With the refusal of the API server.
    pub async fn make(&self, path: &str, object: &Value) -> Value {
        let made = self.create(path, object).await;
        made.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"))
    }

    /// Merges a patch that is admitted into an object, and returns the object.
    ///
    /// # Panics
    /// With the refusal of the API server.
    pub async fn change(&self, path: &str, patch: &Value) -> Value {
        let changed = self.patch(path, Patch::Merge, patch).await;
        changed.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"))
    }

    /// Deletes what is there, and returns the answer.
    ///
    /// # Panics
    /// With the refusal of the API server.
    pub async fn remove(&self, path: &str, options: &Value) -> Value {
        let removed = self.delete(path, options).await;
        removed.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"))
    }

    /// Watches a collection from a version on; the stream ends with the connection.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn watch(
        &self,
        path: &str,
        from: &str,
    ) -> Result<impl Stream<Item = kube::Result<WatchEvent<Value>>> + use<>, Refusal> {
        let request = Request::get(format!("{path}?watch=true&resourceVersion={from}"));
        let request = request.body(Vec::new()).expect("a test's path is one");
        let events = self.client.request_events(request).await;
        events.map_err(Refusal::from)
    }

    /// Waits until `find` succeeds on the object at a path.
    ///
    /// The wait continues after refusals, because a missing object may appear.
    ///
    /// # Panics
    /// With the current object, if `find` does not succeed in [`PATIENCE`].
    pub async fn wait_for<T>(
        &self,
        what: &str,
        path: &str,
        find: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let found = self.look_for(path, (PATIENCE, LOOK_EVERY), find).await;
        found.unwrap_or_else(|there| panic!("not {what}: {there}"))
    }

    /// Reads the object at a path at an interval until `find` succeeds, for a limited time.
    ///
    /// # Errors
    /// The last object.
    pub async fn look_for<T>(
        &self,
        path: &str,
        (patience, every): (Duration, Duration),
        mut find: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, String> {
        let until = Instant::now() + patience;
        let mut looks = time::interval(every);
        loop {
            looks.tick().await;
            let there = self.get(path).await;
            if let Some(found) = there.as_ref().ok().and_then(&mut find) {
                return Ok(found);
            }
            if Instant::now() >= until {
                return Err(format!("{path} is {there:#?}"));
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let mut request = Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header(CONTENT_TYPE, content);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(body.into_bytes());
        let request = request.expect("a test's path is one");
        self.client.request(request).await.map_err(Refusal::from)
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = json!(self.kubeconfig);
        formatter.debug_tuple("Api").field(&user).finish()
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self {
                code: status.code,
                reason: status.reason,
                message: status.message,
            };
        }
        Self {
            code: 0,
            reason: "NoAnswer".to_owned(),
            message: format!("{error:?}"),
        }
    }
}

//! From a [`Request`] to its HTTP request, and to no other.
//!
//! **Invariant:** a name that comes from elsewhere is one segment of a path: it cannot lead to another resource.

use agent_core::{
    api::{ApiError, CreatePod, Kind, Request, WriteStatus},
    budget::resume::RESUME_ANNOTATION,
    lease,
    recorder::Event,
};
use decree_api::v1;
use http::{Method, header};
use serde_json::{Value, json};

use crate::{
    body::RequestBody,
    codec,
    objects::{self, FIELD_MANAGER},
    resource::{Resource, selector_text},
};

/// The field manager for writes of people with the command `decree`.
pub(crate) const CLI_FIELD_MANAGER: &str = "decree";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// The path of resources without a group.
const CORE: &str = "/api/v1";
/// The path of Evictions, which not every API server has.
pub(crate) const LIFECYCLE: &str = "/apis/lifecycle.k8s.io/v1alpha1";
/// The reviews of the credentials' permissions, and of their user.
pub(crate) const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
pub(crate) const USER_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const NAME_BYTES_MAX: usize = 253;

/// The objects to list and watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The only namespace; `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) resource: Resource,
}

/// A request, or why it cannot be expressed.
type Expressed = Result<http::Request<RequestBody>, ApiError>;

pub(crate) fn of(resource: &Resource, request: &Request) -> Expressed {
    match request {
        Request::CreatePod(create) => create_pod(create),
        Request::DeletePod {
            pod,
            resource_version,
        } => {
            let mut preconditions = json!({"uid": pod.uid});
            if let Some(version) = resource_version {
                preconditions["resourceVersion"] = version.as_str().into();
            }
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
            });
            let path = pod_path(&pod.namespace, &pod.name)?;
            change(Method::DELETE, &path, codec::JSON, &options)
        }
        Request::AdoptPod { pod, controller } => {
            patch_pod(pod, &objects::adoption(pod, controller))
        }
        Request::ReleasePod { pod, owner_uid } => patch_pod(pod, &objects::release(pod, owner_uid)),
        Request::AdvisePod {
            pod,
            resource_version,
            cost,
        } => patch_pod(pod, &objects::advice(pod, resource_version, *cost)),
        Request::WriteStatus(write) => write_status(resource, write),
        Request::ReadPod { namespace, name } => read(&pod_path(namespace, name)?, codec::OBJECTS),
        Request::ReadReplicaSet { namespace, name } => {
            read(&replica_set(resource, namespace, name)?, codec::OBJECTS)
        }
    }
}

pub(crate) fn read(path: &str, accept: &str) -> Expressed {
    let request = http::Request::get(path).header(header::ACCEPT, accept);
    let request = request.body(RequestBody::default());
    request.map_err(|error| invalid(error.to_string()))
}

/// A request to read a pod in JSON, as the API server has it in its memory.
pub(crate) fn cached_pod(namespace: &str, name: &str) -> Expressed {
    let path = pod_path(namespace, name)?;
    read(&format!("{path}?resourceVersion=0"), codec::JSON)
}

/// A request to read the value of a custom metric of a pod.
pub(crate) fn metric(namespace: &str, pod: &str, metric: &str) -> Expressed {
    let pods = collection(
        "/apis/custom.metrics.k8s.io/v1beta2",
        Some(namespace),
        "pods",
    )?;
    let path = format!("{}/{}", single(&pods, pod)?, escape(metric));
    read(&path, codec::JSON)
}

/// A request to read an object of the group `apps` in JSON.
pub(crate) fn app(plural: &str, namespace: &str, name: &str) -> Expressed {
    let path = single(&collection("/apis/apps/v1", Some(namespace), plural)?, name)?;
    read(&path, codec::JSON)
}

/// A request to list the pods of a selector in JSON, in a namespace or in all.
pub(crate) fn pods(namespace: Option<&str>, selector: &str) -> Expressed {
    let path = collection(CORE, namespace, "pods")?;
    let selector = escape(selector);
    let path = format!("{path}?labelSelector={selector}&limit=500");
    read(&path, codec::JSON)
}

pub(crate) fn event(event: &Event) -> Expressed {
    let path = managed(&collection(CORE, Some(event.namespace()), "events")?);
    post(&path, &objects::event_to_json(event))
}

/// The request that raises the count of an existing event.
pub(crate) fn event_again(event: &Event) -> Expressed {
    let events = collection(CORE, Some(event.namespace()), "events")?;
    let path = managed(&single(&events, &event.name)?);
    merge(&path, &objects::event_patch(event))
}

/// The request by which a person resumes the holds of a budget.
pub(crate) fn resume(resource: &Resource, namespace: &str, name: &str, value: &str) -> Expressed {
    let path = replica_set(resource, namespace, name)?;
    let patch = json!({"metadata": {"annotations": {RESUME_ANNOTATION: value}}});
    merge(&by(CLI_FIELD_MANAGER, &path), &patch)
}

pub(crate) fn lease(namespace: &str, name: &str, command: &lease::Command) -> Expressed {
    let leases = leases(namespace)?;
    let path = single(&leases, name)?;
    let (method, path, record) = match command {
        lease::Command::Read => return read(&path, codec::JSON),
        lease::Command::Create(record) => (Method::POST, leases, record),
        lease::Command::Replace(record) => (Method::PUT, path, record),
    };
    let lease = objects::lease_to_json(namespace, name, record);
    let lease = lease.map_err(|error| invalid(format!("Lease: {error}")))?;
    write(method, &managed(&path), codec::JSON, &lease)
}

pub(crate) fn list_leases(namespace: &str) -> Expressed {
    read(&leases(namespace)?, codec::JSON)
}

pub(crate) fn create_probe(namespace: &str, object: &Value) -> Expressed {
    let path = managed(&replica_sets(&Resource::default(), Some(namespace))?);
    post(&path, object)
}

pub(crate) fn patch_probe(namespace: &str, name: &str, manager: &str, patch: &Value) -> Expressed {
    let path = replica_set(&Resource::default(), namespace, name)?;
    merge(&by(manager, &path), patch)
}

/// The collection of nodes, with the sign for parameters.
pub(crate) fn nodes() -> String {
    format!("{CORE}/nodes?")
}

/// The collection of the Evictions that name a responder, with the sign for further parameters.
pub(crate) fn evictions(namespace: Option<&str>, responder: &str) -> Result<String, ApiError> {
    let path = collection(LIFECYCLE, namespace, "evictions")?;
    let selector = escape(responder);
    Ok(format!("{path}?labelSelector={selector}&"))
}

/// The path of one page of a list; the first has an empty token.
pub(crate) fn page(collection: &str, limit: usize, token: &str) -> String {
    let token = escape(token);
    format!("{collection}limit={limit}&continue={token}")
}

/// The path of a watch of a collection.
pub(crate) fn watch(collection: &str, from: &str, seconds: u64) -> String {
    let from = escape(from);
    format!(
        "{collection}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={from}"
    )
}

/// A request to write into the status of an Eviction.
pub(crate) fn eviction_status(namespace: &str, name: &str, patch: &Value) -> Expressed {
    let path = single(&collection(LIFECYCLE, Some(namespace), "evictions")?, name)?;
    let path = managed(&format!("{path}/status"));
    write(Method::PATCH, &path, STRATEGIC_MERGE_PATCH, patch)
}

impl Scope {
    /// The path of one page of a list. Without a version, it reads the newest state and no cache.
    pub(crate) fn page(
        &self,
        kind: Kind,
        limit: usize,
        next: Option<&str>,
    ) -> Result<String, ApiError> {
        let next = next.map(|token| format!("&continue={}", escape(token)));
        let (path, next) = (self.path(kind)?, next.unwrap_or_default());
        Ok(format!("{path}?limit={limit}{next}"))
    }

    pub(crate) fn watch(&self, kind: Kind, from: &str, seconds: u64) -> Result<String, ApiError> {
        Ok(watch(&format!("{}?", self.path(kind)?), from, seconds))
    }

    fn path(&self, kind: Kind) -> Result<String, ApiError> {
        let namespace = self.namespace.as_deref();
        match kind {
            Kind::Pod => collection(CORE, namespace, "pods"),
            Kind::ReplicaSet => replica_sets(&self.resource, namespace),
        }
    }
}

fn create_pod(create: &CreatePod) -> Expressed {
    // The name is checked as for a path: it becomes part of one soon.
    segment(&create.name)?;
    let path = managed(&collection(CORE, Some(&create.namespace), "pods")?);
    let path = format!("{path}&timeout={}ms", create.timeout.as_millis());
    let (content_type, body) =
        codec::new_pod(create).map_err(|error| invalid(format!("template: {error}")))?;
    send(Method::POST, &path, codec::OBJECTS, content_type, body)
}

pub(crate) fn patch_pod(pod: &v1::ObjectRef, patch: &Value) -> Expressed {
    let path = managed(&pod_path(&pod.namespace, &pod.name)?);
    change(Method::PATCH, &path, STRATEGIC_MERGE_PATCH, patch)
}

/// The write of a status. A custom resource gets its selector as one line of text, as the subresource `scale` cannot read the structured
/// one.
fn write_status(resource: &Resource, write: &WriteStatus) -> Expressed {
    let path = replica_set(
        resource,
        &write.replica_set.namespace,
        &write.replica_set.name,
    )?;
    let path = managed(&format!("{path}/status"));
    let mut patch = objects::status_patch(write);
    let selector = write.selector.as_ref().and_then(selector_text);
    if let Some(text) = selector.filter(|_| resource.is_custom()) {
        patch["status"]["selector"] = text.into();
    }
    change(Method::PATCH, &path, MERGE_PATCH, &patch)
}

/// A request that changes an object of the kinds that are decided on; its answer is the object.
fn change(method: Method, path: &str, content_type: &str, body: &Value) -> Expressed {
    let body = body.to_string().into_bytes();
    send(method, path, codec::OBJECTS, content_type, body)
}

/// A request that creates an object of another kind, or asks for a review.
pub(crate) fn post(path: &str, object: &Value) -> Expressed {
    write(Method::POST, path, codec::JSON, object)
}

fn merge(path: &str, patch: &Value) -> Expressed {
    write(Method::PATCH, path, MERGE_PATCH, patch)
}

/// A request that writes an object of another kind, with an answer in JSON.
fn write(method: Method, path: &str, content_type: &str, body: &Value) -> Expressed {
    let body = body.to_string().into_bytes();
    send(method, path, codec::JSON, content_type, body)
}

fn send(method: Method, path: &str, accept: &str, content_type: &str, body: Vec<u8>) -> Expressed {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept)
        .header(header::CONTENT_TYPE, content_type)
        .body(RequestBody::from(body));
    request.map_err(|error| invalid(error.to_string()))
}

fn leases(namespace: &str) -> Result<String, ApiError> {
    collection("/apis/coordination.k8s.io/v1", Some(namespace), "leases")
}

pub(crate) fn pod_path(namespace: &str, name: &str) -> Result<String, ApiError> {
    single(&collection(CORE, Some(namespace), "pods")?, name)
}

pub(crate) fn replica_set(
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<String, ApiError> {
    single(&replica_sets(resource, Some(namespace))?, name)
}

fn replica_sets(resource: &Resource, namespace: Option<&str>) -> Result<String, ApiError> {
    collection(&resource.root(), namespace, resource.plural())
}

/// The path of the objects of a resource, in one namespace or in all.
fn collection(root: &str, namespace: Option<&str>, plural: &str) -> Result<String, ApiError> {
    Ok(match namespace {
        Some(name) => format!("{root}/namespaces/{}/{plural}", segment(name)?),
        None => format!("{root}/{plural}"),
    })
}

fn single(collection: &str, name: &str) -> Result<String, ApiError> {
    Ok(format!("{collection}/{}", segment(name)?))
}

/// A path of which the API server notes the agent as the writer.
fn managed(path: &str) -> String {
    by(FIELD_MANAGER, path)
}

fn by(manager: &str, path: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

/// Checks that a name from elsewhere is one segment of a path.
pub(crate) fn segment(name: &str) -> Result<&str, ApiError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(plain)
        && name.bytes().any(|byte| byte != b'.');
    if is_name {
        return Ok(name);
    }
    Err(invalid(format!("{name:?} is not a name")))
}

fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// The error for a request that is not sent, as an API server would answer it.
pub(crate) fn invalid(message: String) -> ApiError {
    ApiError {
        code: Some(400),
        reason: "BadRequest".into(),
        message,
        ..ApiError::default()
    }
}

#[cfg(test)]
mod tests;

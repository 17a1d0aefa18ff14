//! From a [`Request`] to its HTTP request, and to no other.
//!
//! **Invariant:** a name that comes from elsewhere is one segment of a path: it cannot lead to another resource.

use agent_core::{
    api::{ApiError, CreatePod, Kind, Request, WriteStatus},
    lease,
    recorder::Event,
    resume::RESUME_ANNOTATION,
};
use decree::{TraceContext, v1};
use http::{HeaderName, HeaderValue, Method, header};
use kube::client::Body;
use serde_json::{Value, json};

use crate::{
    codec,
    objects::{self, FIELD_MANAGER},
    resource::{Resource, selector_text},
};

/// The field manager for writes of people with the command `decree`.
const CLI_FIELD_MANAGER: &str = "decree";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// The header of W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The path of resources without a group.
const CORE: &str = "/api/v1";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const NAME_BYTES_MAX: usize = 253;
/// The objects to list and watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The only namespace; `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    /// The resource of the ReplicaSets.
    pub(crate) resource: Resource,
    /// The selector of ReplicaSets. Pods are read without a selector.
    pub(crate) label_selector: Option<String>,
}

pub(crate) fn of(resource: &Resource, request: &Request) -> Result<http::Request<Body>, ApiError> {
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
        Request::WriteStatus(write) => write_status(resource, write),
        Request::ReadPod { namespace, name } => read_objects(&pod_path(namespace, name)?),
        Request::ReadReplicaSet { namespace, name } => {
            read_objects(&single(&replica_sets(resource, namespace)?, name)?)
        }
    }
}

/// Sets the header `traceparent` to the span of a request.
pub(crate) fn put_trace(request: &mut http::Request<Body>, trace: TraceContext) {
    // The value consists of digits and hyphens, which a header accepts.
    if let Ok(value) = HeaderValue::try_from(trace.to_string()) {
        request.headers_mut().insert(TRACEPARENT, value);
    }
}

/// A request for a whole object.
pub(crate) fn get(path: &str) -> Result<http::Request<Body>, ApiError> {
    read(path, codec::JSON)
}

/// A request for the metadata of a list, as templates may be long. An API server that cannot leave templates out answers with the whole
/// list.
pub(crate) fn metadata(path: &str) -> Result<http::Request<Body>, ApiError> {
    read(path, codec::METADATA)
}

/// A request for an object or a list of the kinds that are decided on.
pub(crate) fn read_objects(path: &str) -> Result<http::Request<Body>, ApiError> {
    read(path, codec::OBJECTS)
}

/// A request to watch one of these kinds.
pub(crate) fn events(path: &str) -> Result<http::Request<Body>, ApiError> {
    read(path, codec::EVENTS)
}

pub(crate) fn event(event: &Event) -> Result<http::Request<Body>, ApiError> {
    let path = format!("{}?{}", events_of(event)?, manager());
    let body = objects::event_to_json(event);
    write(Method::POST, &path, codec::JSON, &body)
}

/// The request that raises the count of an existing event.
pub(crate) fn event_again(event: &Event) -> Result<http::Request<Body>, ApiError> {
    let path = single(&events_of(event)?, &event.name)?;
    let (path, patch) = (format!("{path}?{}", manager()), objects::event_patch(event));
    write(Method::PATCH, &path, MERGE_PATCH, &patch)
}

/// The request by which a person resumes the holds of a budget.
pub(crate) fn resume(
    resource: &Resource,
    (namespace, name): (&str, &str),
    value: &str,
) -> Result<http::Request<Body>, ApiError> {
    let path = single(&replica_sets(resource, namespace)?, name)?;
    let path = format!("{path}?fieldManager={CLI_FIELD_MANAGER}");
    let patch = json!({"metadata": {"annotations": {RESUME_ANNOTATION: value}}});
    write(Method::PATCH, &path, MERGE_PATCH, &patch)
}

/// The request for a review of the credentials' permissions.
pub(crate) fn access_review(review: &Value) -> Result<http::Request<Body>, ApiError> {
    write(Method::POST, ACCESS_REVIEWS, codec::JSON, review)
}

pub(crate) fn lease(
    namespace: &str,
    name: &str,
    command: &lease::Command,
) -> Result<http::Request<Body>, ApiError> {
    let (leases, name) = (leases(namespace)?, segment(name)?);
    let (method, path, record) = match command {
        lease::Command::Read => return get(&single(&leases, name)?),
        lease::Command::Create(record) => (Method::POST, leases, record),
        lease::Command::Replace(record) => (Method::PUT, single(&leases, name)?, record),
    };
    let lease = objects::lease_to_json(namespace, name, record);
    let lease = lease.map_err(|error| invalid(format!("Lease: {error}")))?;
    let path = format!("{path}?{}", manager());
    write(method, &path, codec::JSON, &lease)
}

pub(crate) fn list_leases(namespace: &str) -> Result<http::Request<Body>, ApiError> {
    get(&leases(namespace)?)
}

pub(crate) fn delete_lease(
    namespace: &str,
    name: &str,
    resource_version: &str,
) -> Result<http::Request<Body>, ApiError> {
    let path = single(&leases(namespace)?, name)?;
    let options = json!({"preconditions": {"resourceVersion": resource_version}});
    write(Method::DELETE, &path, codec::JSON, &options)
}

pub(crate) fn probe(namespace: &str, name: &str) -> Result<http::Request<Body>, ApiError> {
    get(&single(&probes(namespace)?, name)?)
}

pub(crate) fn create_probe(
    namespace: &str,
    object: &Value,
) -> Result<http::Request<Body>, ApiError> {
    let path = format!("{}?{}", probes(namespace)?, manager());
    write(Method::POST, &path, codec::JSON, object)
}

pub(crate) fn patch_probe(
    namespace: &str,
    name: &str,
    patch: &Value,
) -> Result<http::Request<Body>, ApiError> {
    let path = single(&probes(namespace)?, name)?;
    write(
        Method::PATCH,
        &format!("{path}?{}", manager()),
        MERGE_PATCH,
        patch,
    )
}

fn probes(namespace: &str) -> Result<String, ApiError> {
    replica_sets(&Resource::default(), namespace)
}

// === impl Scope ===

impl Scope {
    /// The path of one page of a list. Without a version, it reads the newest state and no cache.
    pub(crate) fn page(
        &self,
        kind: Kind,
        limit: usize,
        next: Option<&str>,
    ) -> Result<String, ApiError> {
        let mut path = format!("{}?limit={limit}", self.path(kind)?);
        self.select(kind, &mut path);
        if let Some(token) = next {
            path += &format!("&continue={}", escape(token));
        }
        Ok(path)
    }

    /// The path of a list that is read for its version. It has no selector: an API server may search many objects for a selected one.
    pub(crate) fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        Ok(format!("{}?limit=1", self.path(kind)?))
    }

    pub(crate) fn watch(&self, kind: Kind, from: &str, seconds: u64) -> Result<String, ApiError> {
        let (path, from) = (self.path(kind)?, escape(from));
        let mut path = format!(
            "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={from}"
        );
        self.select(kind, &mut path);
        Ok(path)
    }

    fn path(&self, kind: Kind) -> Result<String, ApiError> {
        match (&self.namespace, kind) {
            (Some(namespace), Kind::Pod) => pods(namespace),
            (Some(namespace), Kind::ReplicaSet) => replica_sets(&self.resource, namespace),
            (None, Kind::Pod) => Ok(format!("{CORE}/pods")),
            (None, Kind::ReplicaSet) => {
                let (root, plural) = (self.resource.root(), self.resource.plural());
                Ok(format!("{root}/{plural}"))
            }
        }
    }

    fn select(&self, kind: Kind, path: &mut String) {
        let selector = match kind {
            Kind::ReplicaSet => self.label_selector.as_deref(),
            Kind::Pod => None,
        };
        if let Some(selector) = selector {
            *path += &format!("&labelSelector={}", escape(selector));
        }
    }
}

fn create_pod(create: &CreatePod) -> Result<http::Request<Body>, ApiError> {
    // The name is checked as for a path: it becomes part of one soon.
    segment(&create.name)?;
    let (path, timeout) = (pods(&create.namespace)?, create.timeout.as_millis());
    let path = format!("{path}?{}&timeout={timeout}ms", manager());
    let (content_type, body) =
        codec::new_pod(create).map_err(|error| invalid(format!("template: {error}")))?;
    send(Method::POST, &path, codec::OBJECTS, content_type, body)
}

fn patch_pod(pod: &v1::ObjectRef, patch: &Value) -> Result<http::Request<Body>, ApiError> {
    let path = format!("{}?{}", pod_path(&pod.namespace, &pod.name)?, manager());
    change(Method::PATCH, &path, STRATEGIC_MERGE_PATCH, patch)
}

/// The write of a status. A custom resource gets its selector as one line of text, as the subresource `scale` cannot read the structured
/// one.
fn write_status(resource: &Resource, write: &WriteStatus) -> Result<http::Request<Body>, ApiError> {
    let v1::ObjectRef {
        namespace, name, ..
    } = &write.replica_set;
    let path = single(&replica_sets(resource, namespace)?, name)?;
    let path = format!("{path}/status?{}", manager());
    let mut patch = objects::status_patch(write);
    let selector = write.selector.as_ref().and_then(selector_text);
    if let Some(text) = selector.filter(|_| resource.is_custom()) {
        patch["status"]["selector"] = text.into();
    }
    change(Method::PATCH, &path, MERGE_PATCH, &patch)
}

fn read(path: &str, accept: &str) -> Result<http::Request<Body>, ApiError> {
    let request = http::Request::get(path).header(header::ACCEPT, accept);
    let request = request.body(Body::empty());
    request.map_err(|error| invalid(error.to_string()))
}

/// A request that changes an object of the kinds that are decided on; its answer is the object.
fn change(
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<http::Request<Body>, ApiError> {
    send(
        method,
        path,
        codec::OBJECTS,
        content_type,
        codec::encode(body),
    )
}

/// A request that writes an object of another kind, with an answer in JSON.
fn write(
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<http::Request<Body>, ApiError> {
    let body = codec::encode(body);
    send(method, path, codec::JSON, content_type, body)
}

fn send(
    method: Method,
    path: &str,
    accept: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<http::Request<Body>, ApiError> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body));
    request.map_err(|error| invalid(error.to_string()))
}

fn events_of(event: &Event) -> Result<String, ApiError> {
    let namespace = segment(event.namespace())?;
    Ok(format!("{CORE}/namespaces/{namespace}/events"))
}

fn leases(namespace: &str) -> Result<String, ApiError> {
    let namespace = segment(namespace)?;
    Ok(format!(
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    ))
}

fn pod_path(namespace: &str, name: &str) -> Result<String, ApiError> {
    single(&pods(namespace)?, name)
}

fn pods(namespace: &str) -> Result<String, ApiError> {
    Ok(format!("{CORE}/namespaces/{}/pods", segment(namespace)?))
}

fn replica_sets(resource: &Resource, namespace: &str) -> Result<String, ApiError> {
    let (root, plural) = (resource.root(), resource.plural());
    let namespace = segment(namespace)?;
    Ok(format!("{root}/namespaces/{namespace}/{plural}"))
}

fn single(collection: &str, name: &str) -> Result<String, ApiError> {
    Ok(format!("{collection}/{}", segment(name)?))
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

fn manager() -> String {
    format!("fieldManager={FIELD_MANAGER}")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(byte.into());
            }
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// The error for a request that is not sent, as an API server would answer it.
fn invalid(message: String) -> ApiError {
    ApiError {
        code: Some(400),
        reason: "BadRequest".into(),
        message,
        ..ApiError::default()
    }
}

#[cfg(test)]
mod tests;

//! The parts of an API server that an agent needs, over plain HTTP: lists in pages, watches without events, and one create.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use decree_api::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use crate::objects::{self, Shape};

/// The number of objects in a page, the same as in the requests of the agent.
const PAGE: usize = 500;
/// Pads a pod to the size of a pod with two containers, volumes and managed fields.
const IMAGE: &str = "registry.example/shop/web@sha256:4b1c0a7f8c2f6a5dbd4f0f1f3f0c9e8d7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d";

/// A server that runs until the process ends.
pub(crate) struct ApiServer {
    address: String,
    listed_bytes: Arc<AtomicU64>,
    creates: mpsc::Receiver<Instant>,
}

#[derive(Clone)]
struct Served {
    shape: Shape,
    listed_bytes: Arc<AtomicU64>,
    creates: mpsc::Sender<Instant>,
}

enum Answer {
    Whole(u16, Value),
    /// No event is sent until the client disconnects.
    Watch,
}

impl ApiServer {
    /// Starts a server of a cluster of this shape.
    pub(crate) async fn start(shape: Shape) -> Self {
        let (creates, created) = mpsc::channel(1_024);
        let listed_bytes = Arc::new(AtomicU64::new(0));
        let served = Served {
            shape,
            listed_bytes: Arc::clone(&listed_bytes),
            creates,
        };
        let serve = move |stream| {
            let served = served.clone();
            async move { served.serve(stream).await }
        };
        Self {
            address: listen(serve).await,
            listed_bytes,
            creates: created,
        }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        kubeconfig(&self.address)
    }

    /// The time of the request to create the first pod.
    pub(crate) async fn first_create(&mut self) -> Option<Instant> {
        self.creates.recv().await
    }

    /// The number of sent bytes of lists.
    pub(crate) fn listed_bytes(&self) -> u64 {
        self.listed_bytes.load(Ordering::Relaxed)
    }
}

impl Served {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let Some((method, target)) = next(&mut stream).await? else {
                return Ok(());
            };
            match self.answer(&method, &target) {
                Answer::Whole(code, object) => {
                    let body = object.to_string();
                    if object["items"].is_array() {
                        self.listed_bytes
                            .fetch_add(body.len() as u64, Ordering::Relaxed);
                    }
                    write(&mut stream, code, "application/json", body.as_bytes()).await?;
                }
                Answer::Watch => {
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json;stream=watch\r\nTransfer-Encoding: chunked\r\n\r\n";
                    stream.write_all(head.as_bytes()).await?;
                }
            }
        }
    }

    fn answer(&self, method: &str, target: &str) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let shape = self.shape;
        match (method, path) {
            ("GET", "/api/v1/namespaces/kube-system") => Answer::Whole(
                200,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "much"}}),
            ),
            ("GET", "/api/v1/pods" | "/apis/apps/v1/replicasets")
                if query.contains("watch=true") =>
            {
                Answer::Watch
            }
            ("GET", "/api/v1/pods") => {
                let pod = |at| pod(&shape.listed(at));
                Answer::Whole(200, page("v1", "PodList", query, shape.total(), pod))
            }
            ("GET", "/apis/apps/v1/replicasets") => {
                let set = |at| replica_set(shape, at);
                let list = page("apps/v1", "ReplicaSetList", query, shape.replica_sets, set);
                Answer::Whole(200, list)
            }
            // A question that nobody answers.
            ("GET" | "PATCH", path) if path.ends_with("/replicasets/decree-probe") => {
                let metadata = json!({"generation": 1, "resourceVersion": "1"});
                Answer::Whole(200, json!({"kind": "ReplicaSet", "metadata": metadata}))
            }
            ("GET", path) if path.ends_with("/replicasets") && query.contains("watch=true") => {
                Answer::Watch
            }
            ("GET", path) if path.contains("/replicasets/") => {
                let name = path.rsplit('/').next().unwrap_or_default();
                Answer::Whole(200, replica_set(shape, objects::number_of(name)))
            }
            ("POST", path) if path.ends_with("/pods") => {
                // A full queue has enough of the creates.
                let _ = self.creates.try_send(Instant::now());
                refusal()
            }
            _ => refusal(),
        }
    }
}

fn refusal() -> Answer {
    let status = json!({"apiVersion": "v1", "kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": "only read"});
    Answer::Whole(503, status)
}

/// The kubeconfig for an API server at this address.
pub(crate) fn kubeconfig(address: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: much, users: [{{name: me, user: {{}}}}], contexts: [{{name: much, context: \
         {{cluster: much, user: me}}}}], clusters: [{{name: much, cluster: {{server: 'http://{address}'}}}}]}}"
    )
}

/// Serves connections until the process ends. Returns the address.
pub(crate) async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that disconnects is no fault.
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Reads the next request, and returns its method and its target. `None` at the end of the connection.
pub(crate) async fn next(
    stream: &mut BufReader<TcpStream>,
) -> io::Result<Option<(String, String)>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    skip_rest(stream).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    Ok(words.next().zip(words.next()))
}

/// Writes a response.
pub(crate) async fn write(
    stream: &mut BufReader<TcpStream>,
    code: u16,
    kind: &str,
    body: &[u8],
) -> io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {code} Said\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

/// Reads the headers and the body of a request.
async fn skip_rest(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    stream.read_exact(&mut vec![0; length]).await?;
    Ok(())
}

/// The numbers of the objects of the page for a query, and the token of the next page, which is the number of its first object.
pub(crate) fn cut(query: &str, total: usize) -> (Range<usize>, String) {
    let token = query.split('&').find_map(|it| it.strip_prefix("continue="));
    let from = token.and_then(|it| it.parse().ok()).unwrap_or(0);
    let to = (from + PAGE).min(total);
    let next = if to < total {
        to.to_string()
    } else {
        String::new()
    };
    (from..to, next)
}

/// The page for a query.
fn page(
    api: &str,
    kind: &str,
    query: &str,
    total: usize,
    object: impl Fn(usize) -> Value,
) -> Value {
    let (numbers, next) = cut(query, total);
    let items: Vec<_> = numbers.map(object).collect();
    json!({"apiVersion": api, "kind": kind, "metadata": {"resourceVersion": "100", "continue": next}, "items": items})
}

fn replica_set(shape: Shape, number: usize) -> Value {
    let set = shape.replica_set(number);
    let status = set.status.unwrap_or_default();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": metadata(&set.name, &set.uid, &json!({"app": set.name}), &Value::Null),
        "spec": {
            "replicas": set.replicas, "selector": {"matchLabels": {"app": set.name}},
            "template": {"metadata": {"labels": {"app": set.name}}, "spec": spec("")},
        },
        "status": {
            "replicas": status.replicas, "fullyLabeledReplicas": status.fully_labeled_replicas, "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas, "terminatingReplicas": 0, "observedGeneration": 1,
        },
    })
}

fn pod(pod: &v1::Pod) -> Value {
    let controller = pod.controller.clone().unwrap_or_default();
    let owners = json!([{
        "apiVersion": controller.api_version, "kind": controller.kind, "name": controller.name, "uid": controller.uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let since = "2026-05-01T12:00:00Z";
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": since}));
    let container = |name: &str| {
        json!({
            "name": name, "image": IMAGE, "imageID": IMAGE, "containerID": format!("containerd://{}", "5e".repeat(32)), "ready": true,
            "restartCount": 0, "started": true, "state": {"running": {"startedAt": since}}, "lastState": {},
        })
    };
    json!({
        "metadata": metadata(&pod.name, &pod.uid, &json!(pod.labels), &owners),
        "spec": spec(&pod.node_name),
        "status": {
            "phase": "Running", "conditions": conditions, "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
            "qosClass": "Burstable", "startTime": since, "containerStatuses": [container("main"), container("sidecar")],
        },
    })
}

/// The managed fields are those of the controller and of a kubelet, which are most of the size of an object.
fn metadata(name: &str, uid: &str, labels: &Value, owners: &Value) -> Value {
    let since = "2026-05-01T12:00:00Z";
    let fields = [
        "app",
        "image",
        "name",
        "ports",
        "resources",
        "terminationMessagePath",
        "volumeMounts",
        "securityContext",
    ];
    let fields: serde_json::Map<_, _> = fields
        .iter()
        .map(|field| {
            (
                format!("f:{field}"),
                json!({".": {}, "k:{\"type\":\"Ready\"}": {"f:status": {}, "f:type": {}}}),
            )
        })
        .collect();
    let managed = ["kube-controller-manager", "kubelet"]
        .map(|manager| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": since, "fieldsType": "FieldsV1", "fieldsV1": fields}));
    let mut metadata = json!({
        "name": name, "namespace": "default", "uid": uid, "resourceVersion": "50", "generation": 1, "creationTimestamp": since,
        "labels": labels, "managedFields": managed, "annotations": {"kubernetes.io/config.source": "api"},
    });
    if !owners.is_null() {
        metadata["ownerReferences"] = owners.clone();
    }
    metadata
}

fn spec(node: &str) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
            "env": [{"name": "REGION", "value": "eu-west"}, {"name": "LOG_LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        })
    };
    json!({
        "nodeName": node, "containers": [container("main"), container("sidecar")], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "volumes": [{"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
    })
}

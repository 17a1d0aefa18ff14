//! The cluster as a whole, and the requests to it.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    asking::{CALLS_MAX, PodSource},
    cluster::Cluster,
    lease::{Command, Record},
    nodes::{NodeEvent, NodeFields, NodeNews},
    recorder::Event,
};
use bytes::Bytes;
use decree_api::v1;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    body::RequestBody,
    codec,
    connect::{self, ConnectError, CredentialSource, Target, in_pod},
    cost,
    fence::Fence,
    follow::{Change, Follower, News},
    lanes::{self, Lanes},
    limiter::{Limiter, Permit},
    objects::{self, NodeMessage},
    reading::{self, Events, Pages, unreadable},
    renewal::renew,
    requests::{self, Scope},
    resource::Resource,
    transport::Transport,
};

/// How often a request is sent that could not leave soon after its check.
const ATTEMPTS_MAX: usize = 3;

/// The settings of a [`KubeCluster`].
#[derive(Clone, Debug)]
pub struct KubeClusterConfig {
    /// The source of the address and the credentials.
    pub source: CredentialSource,
    /// The only namespace to read; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The resource of the ReplicaSets.
    pub resource: Resource,
    /// The most calls in flight, if the API server can take them.
    pub calls_max: u16,
}

/// A handle to a cluster behind its API server.
#[derive(Clone, Debug)]
pub struct KubeCluster {
    /// The transport of calls and of requests by people.
    pub(crate) transport: Transport,
    /// The transport of Leases.
    pub(crate) leases: Transport,
    /// The transport of lists and watches.
    pub(crate) reader: Transport,
    pub(crate) scope: Arc<Scope>,
    limiter: Arc<Limiter>,
    fence: Fence,
    /// Whether new pods may name the responder to their evictions.
    pub(crate) responds: Arc<AtomicBool>,
    /// Cancelled when no call may leave any more.
    revoked: CancellationToken,
    own_namespace: Option<String>,
    target: Target,
    /// Keeps the credentials valid.
    _renewal: Option<Arc<AbortOnDropHandle<()>>>,
}

impl KubeClusterConfig {
    /// Returns the settings for the requests of a person.
    pub fn of_person(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self {
            source: CredentialSource {
                kubeconfig,
                context,
                impersonate: None,
            },
            namespace: None,
            resource: Resource::default(),
            calls_max: 1,
        }
    }
}

impl KubeCluster {
    /// Reads the credentials. It makes no request, so the API server may still be down.
    ///
    /// # Errors
    /// Says what is wrong with the credentials.
    pub async fn connect(config: &KubeClusterConfig) -> Result<Self, ConnectError> {
        let (credentials, target) = config.source.config().await?;
        let cluster = Self::with_credentials(&credentials, config)?;
        let own_namespace = in_pod().then_some(credentials.default_namespace);
        let transports = [&cluster.transport, &cluster.leases, &cluster.reader];
        let lanes = transports.map(|it| it.lanes.clone());
        let refused = Arc::clone(&cluster.transport.refused);
        let renewal = tokio::spawn(renew(config.source.clone(), lanes, refused));
        Ok(Self {
            own_namespace,
            target,
            _renewal: Some(Arc::new(AbortOnDropHandle::new(renewal))),
            ..cluster
        })
    }

    /// Returns the identity of the cluster.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Returns a handle that reads this namespace alone, or all namespaces.
    ///
    /// # Errors
    /// If the namespace is not a name.
    pub fn in_namespace(&self, namespace: Option<&str>) -> Result<Self, ConnectError> {
        if let Some(name) = namespace.filter(|it| requests::segment(it).is_err()) {
            let text = format!("namespace {name:?} is not a name");
            return Err(ConnectError::new(text));
        }
        let scope = Scope {
            namespace: namespace.map(str::to_owned),
            ..Scope::clone(&self.scope)
        };
        Ok(Self {
            scope: Arc::new(scope),
            ..self.clone()
        })
    }

    /// Returns a handle whose calls leave only while this fence also allows them.
    pub fn fenced(self, fence: &Fence) -> Self {
        let fence = self.fence.and(fence);
        Self { fence, ..self }
    }

    /// Returns a handle whose calls fail once `revoked` is cancelled, unless they have left.
    pub fn until(self, revoked: CancellationToken) -> Self {
        Self { revoked, ..self }
    }

    /// Reads, creates or replaces a Lease, on a separate connection.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn lease(
        &self,
        namespace: &str,
        name: &str,
        command: &Command,
    ) -> Result<Record, ApiError> {
        let request = requests::lease(namespace, name, command)?;
        let answer = self.leases.fetch(request).await?;
        objects::lease(&answer).map_err(unreadable)
    }

    /// Lists all Leases of a namespace, by name, from the newest state.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn list_leases(&self, namespace: &str) -> Result<Vec<(String, Record)>, ApiError> {
        let request = requests::list_leases(namespace)?;
        let answer = self.leases.fetch(request).await?;
        objects::leases(&answer).map_err(unreadable)
    }

    /// Returns the namespace of this process, if it runs in a pod.
    pub fn own_namespace(&self) -> Option<&str> {
        self.own_namespace.as_deref()
    }

    async fn send(&self, request: Request) -> Result<Reply, ApiError> {
        let mut attempts = 0;
        let body = loop {
            if let Some(body) = self.attempt(request.clone()).await? {
                break body;
            }
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                return Err(ApiError::no_answer(
                    "no connection to the API server opens soon enough for a write under a Lease",
                ));
            }
            // Opens the connection that the next attempt takes.
            let version = requests::read("/version", codec::JSON)?;
            let _ = self.transport.fetch(version).await;
        };
        let reply = match request {
            Request::DeletePod { .. } => codec::deletion(&body),
            Request::CreatePod(_)
            | Request::AdoptPod { .. }
            | Request::ReleasePod { .. }
            | Request::AdvisePod { .. }
            | Request::ReadPod { .. } => codec::object(Kind::Pod, &body).map(Reply::from),
            Request::WriteStatus(_) | Request::ReadReplicaSet { .. } => {
                codec::object(Kind::ReplicaSet, &body).map(Reply::from)
            }
        };
        reply.map_err(unreadable)
    }

    /// Sends a request as soon as it may leave. `None` if it could not leave soon after its check, and so has no effect.
    async fn attempt(&self, mut request: Request) -> Result<Option<Bytes>, ApiError> {
        if let Request::CreatePod(create) = &mut request {
            create.responds &= self.responds();
        }
        let entering = self.enter(request);
        let entered = self.revoked.run_until_cancelled(entering).await;
        let Some((permit, request)) = entered else {
            return Err(stands_by());
        };
        let departure = self.fence.departure();
        let mut http_request = requests::of(&self.scope.resource, &request)?;
        http_request.body_mut().leave_by(departure.clone());
        let answer = self.transport.fetch(http_request).await;
        if answer.is_err() && departure.is_some_and(|it| it.was_missed()) {
            return Ok(None);
        }
        permit.note(request.verb(), &answer);
        answer.map(Some)
    }

    /// Waits until a request may leave.
    async fn enter(&self, mut request: Request) -> (Permit<'_>, Request) {
        loop {
            self.fence.wait_until_allowed(&request).await;
            let permit = self.limiter.enter();
            if self.fence.allow(&mut request) {
                return (permit, request);
            }
        }
    }

    /// Sends a request of people, and reads the answer as JSON. The fence does not stop it.
    pub(crate) async fn read(
        &self,
        request: http::Request<RequestBody>,
    ) -> Result<Value, ApiError> {
        let answer = self.transport.fetch(request).await?;
        serde_json::from_slice(&answer).map_err(|error| unreadable(error.into()))
    }

    /// Sends a write other than a call, once and under the same fence. It fails if it may not leave now, or cannot leave soon.
    pub(crate) async fn write(
        &self,
        mut request: http::Request<RequestBody>,
    ) -> Result<(), ApiError> {
        if self.revoked.is_cancelled() || !self.fence.leads() {
            return Err(stands_by());
        }
        request.body_mut().leave_by(self.fence.departure());
        self.transport.fetch(request).await.map(drop)
    }

    pub(crate) fn with_credentials(
        credentials: &kube::Config,
        config: &KubeClusterConfig,
    ) -> Result<Self, ConnectError> {
        let scope = Scope {
            namespace: None,
            resource: config.resource.clone(),
        };
        let refused = Arc::<Notify>::default();
        // With room for questions for costs, and for requests of people.
        let calls_max = usize::from(config.calls_max) + CALLS_MAX;
        let for_calls = calls_max.div_ceil(lanes::REQUESTS_MAX) + 1;
        let mut clients = connect::clients(credentials, for_calls + 2)?.into_iter();
        let mut transport = |count| Transport {
            lanes: Lanes::new(clients.by_ref().take(count)),
            refused: Arc::clone(&refused),
        };
        let cluster = Self {
            transport: transport(for_calls),
            leases: transport(1),
            reader: transport(1),
            scope: Arc::new(scope),
            limiter: Arc::new(Limiter::new(config.calls_max)),
            fence: Fence::default(),
            responds: Arc::default(),
            revoked: CancellationToken::new(),
            own_namespace: None,
            target: Target::default(),
            _renewal: None,
        };
        cluster.in_namespace(config.namespace.as_deref())
    }
}

impl Cluster for KubeCluster {
    type Pages = Pages;
    type Events = Events;

    async fn uid(&self) -> Result<String, ApiError> {
        let request = requests::read("/api/v1/namespaces/kube-system", codec::JSON)?;
        let namespace = self.read(request).await?;
        let uid = namespace.pointer("/metadata/uid").and_then(Value::as_str);
        uid.map(str::to_owned)
            .ok_or_else(|| ApiError::no_answer("namespace kube-system has no uid"))
    }

    fn list(&self, kind: Kind) -> Pages {
        reading::list(self.reader.clone(), Arc::clone(&self.scope), kind)
    }

    async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        reading::newest_version(&self.transport, &self.scope, kind).await
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Events, ApiError> {
        reading::watch(&self.reader, &self.scope, kind, &from).await
    }

    async fn follow_nodes<F: Future<Output = ()> + Send>(
        self,
        fields: NodeFields,
        mut tell: impl FnMut(NodeNews) -> F + Send,
    ) -> Infallible {
        let tell = move |news| tell(node_news(news, &fields));
        Follower::new(self.reader, requests::nodes(), tell)
            .follow()
            .await
    }

    async fn record(&self, event: Event) -> Result<(), ApiError> {
        if event.count > 1 {
            match self.transport.fetch(requests::event_again(&event)?).await {
                // The event has expired meanwhile, or an earlier write was lost: the whole event is written.
                Err(error) if error.code == Some(404) => {}
                answer => return answer.map(drop),
            }
        }
        let request = requests::event(&event)?;
        self.transport.fetch(request).await.map(drop)
    }

    fn calls_max(&self) -> usize {
        self.limiter.limit()
    }

    fn cost(
        &self,
        pod: v1::ObjectRef,
        source: PodSource,
    ) -> impl Future<Output = Result<i32, String>> + Send + use<> {
        let transport = self.transport.clone();
        async move { cost::ask(&transport, &pod, &source).await }
    }

    /// Makes one call, once.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        let cluster = self.clone();
        async move { cluster.send(request).await }
    }
}

fn stands_by() -> ApiError {
    requests::invalid("the agent stands by".into())
}

/// The news of nodes with the fields that are sent.
fn node_news(news: News<NodeMessage>, fields: &NodeFields) -> NodeNews {
    let with = |node: NodeMessage| node.with(fields);
    news.map(|change| match change {
        None => Vec::new(),
        Some(Change::Listed(nodes)) => {
            vec![NodeEvent::Listed(nodes.into_iter().map(with).collect())]
        }
        Some(Change::Applied(node)) => vec![NodeEvent::Applied(with(node))],
        Some(Change::Deleted(node)) => vec![NodeEvent::Deleted(with(node).name)],
    })
}

#[cfg(test)]
mod tests;

//! Connections to a running server, and its refusals in words for a person at a prompt.

use std::{
    error::Error,
    future::Future,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use clap::Args as Group;
use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient,
};
use service::transport::{ClientArgs, Connector};
use service::{Token, failure::chain};
use tokio::runtime::Builder;
use tonic::{
    Code, Request, Response, Status,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use crate::{
    exit::{Exit, Failure},
    paging::{PAGE_SIZE, Pages},
};

/// The maximum size of an answer. A page of ReplicaSets or the decision on 5,000 pods is many times smaller.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long a server may be silent before it is asked for a sign of life, and then until the connection ends.
const KEEPALIVE: Duration = Duration::from_millis(2_250);
/// The timeout of a look whether a server listens at the default address.
const LOOK: Duration = Duration::from_millis(300);
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50051);

#[derive(Debug, Group)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ServerArgs {
    /// The server: https://HOST:PORT, unix:PATH, or http://HOST:PORT for plain text. By default http://127.0.0.1:50051. Plain text to other
    /// machines needs --insecure
    #[arg(long, env = "DECREE_SERVER", value_name = "URL")]
    pub(crate) server: Option<service::transport::Endpoint>,
    /// File with the token that authenticates you
    #[arg(long, env = "DECREE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The maximum time to wait for an answer of the server or the cluster
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = service::config::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) tls: ClientArgs,
}

/// A connection to one server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    channel: Channel,
    bearer: Bearer,
    pub(crate) url: String,
}

/// A channel whose calls carry the token.
pub(crate) type Authorized = InterceptedService<Channel, Bearer>;

/// Adds a token to each call, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bearer(Option<Token>);

/// Runs a command that talks to a server, on this thread.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::No, format!("cannot start an event loop: {error}")))?;
    runtime.block_on(command)
}

impl ServerArgs {
    pub(crate) fn endpoint(&self) -> service::transport::Endpoint {
        let named = self.server.clone();
        let default = format!("http://{DEFAULT}");
        named.unwrap_or_else(|| default.parse().expect("it is an endpoint"))
    }

    /// Whether a command without files and flags for a cluster reads the cluster of the kubeconfig: no server is named, none answers at
    /// the default address, and there is a kubeconfig.
    pub(crate) fn gives_way_to_a_cluster(&self) -> bool {
        let is_away = || TcpStream::connect_timeout(&DEFAULT, LOOK).is_err();
        self.server.is_none() && is_away() && agent_kube::is_configured()
    }
}

impl Server {
    pub(crate) async fn connect(args: &ServerArgs) -> Result<Self, Failure> {
        let unusable = |error: &dyn Error| Failure::new(Exit::Usage, chain(error));
        let metrics = service::transport::Metrics::default();
        let connector = Connector::new(args.endpoint(), &args.tls, metrics);
        let connector = connector.map_err(|error| unusable(&error))?;
        let file = args.token_file.as_deref();
        let token = file.map(Token::read).transpose();
        let token = token.map_err(|error| unusable(&error))?;
        Self::connect_by(connector, Bearer(token), args.timeout).await
    }

    /// `timeout` applies to the connection and to each call.
    pub(crate) async fn connect_by(
        connector: Connector,
        bearer: Bearer,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let url = connector.endpoint().to_string();
        let endpoint = Endpoint::from(connector.endpoint().uri());
        let endpoint = endpoint
            .connect_timeout(timeout)
            .timeout(timeout)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE);
        match endpoint.connect_with_connector(connector).await {
            Ok(channel) => Ok(Self {
                channel,
                bearer,
                url,
            }),
            Err(error) => Err(unreachable(&url, &chain(&error))),
        }
    }

    pub(crate) fn decisions(&self) -> DecisionServiceClient<Authorized> {
        DecisionServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn inspection(&self) -> InspectionServiceClient<Authorized> {
        InspectionServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// The message of an answer, or the failure that its status means.
    pub(crate) fn answer<T>(&self, answer: Result<Response<T>, Status>) -> Result<T, Failure> {
        let answer = answer.map_err(|status| self.failure(&status))?;
        Ok(answer.into_inner())
    }

    /// The sessions of a cluster that the caller may see; of all clusters for the empty text.
    pub(crate) async fn sessions(
        &self,
        cluster: &str,
    ) -> Result<v1::ListSessionsResponse, Failure> {
        let mut client = self.inspection();
        let (mut pages, mut list) = (Pages::default(), v1::ListSessionsResponse::default());
        loop {
            let request = v1::ListSessionsRequest {
                page_size: PAGE_SIZE,
                page_token: pages.token.clone(),
            };
            let page = self.answer(client.list_sessions(request).await)?;
            let has_next = pages.add(&page, &page.next_page_token)?;
            list.sessions.extend(page.sessions);
            list.server_version = page.server_version;
            list.stale_views = page.stale_views;
            if !has_next {
                break;
            }
        }
        let is_named = |names: [&str; 2]| cluster.is_empty() || names.contains(&cluster);
        list.sessions
            .retain(|session| is_named([&session.cluster_uid, &session.cluster_name]));
        list.stale_views
            .retain(|view| is_named([&view.cluster_uid, &view.cluster]));
        Ok(list)
    }

    /// The sessions. Fails if no agent is connected, or no agent of this cluster.
    pub(crate) async fn check_connected(
        &self,
        cluster: &str,
    ) -> Result<Vec<v1::SessionSummary>, Failure> {
        let sessions = self.sessions(cluster).await?.sessions;
        if sessions.is_empty() {
            return Err(self.nothing_connected(cluster));
        }
        Ok(sessions)
    }

    /// The failure if no agent is connected, or no agent of this cluster.
    pub(crate) fn nothing_connected(&self, cluster: &str) -> Failure {
        let url = &self.url;
        if cluster.is_empty() {
            let cause = format!("no agent is connected to {url}, so the server knows nothing");
            let hint = format!("start one with: decree-agent --server {url}");
            return Failure::new(Exit::No, cause).hint(hint);
        }
        let cause = format!("no agent of a cluster {cluster:?} is connected to {url}");
        Failure::new(Exit::No, cause).hint("list those that are with: decree get sessions")
    }

    /// The meaning of a status: the answer is no, the server is away, or the server refused.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        let code = status.code();
        let is_away = [Code::Unavailable, Code::Cancelled, Code::DeadlineExceeded].contains(&code);
        // A broken connection has the status UNKNOWN with the transport's error as its source.
        let is_broken = [Code::Unknown, Code::Internal].contains(&code);
        if is_away || (is_broken && status.source().is_some()) {
            // A TLS failure, such as a missing certificate, is far down in the sources.
            let cause = match status.source() {
                Some(source) => chain(source),
                None => status.message().to_owned(),
            };
            return unreachable(&self.url, &cause);
        }
        let message = status.message();
        if code == Code::NotFound {
            return match missing_cluster(status) {
                Some(cluster) => self.nothing_connected(&cluster),
                None => Failure::new(Exit::No, message)
                    .hint("list what exists with: decree get replicasets"),
            };
        }
        if code == Code::Unimplemented {
            return Failure::new(Exit::Refused, format!("{}: {message}", self.url))
                .hint("check that this is a decree-server of the same version");
        }
        refused(code, status)
    }
}

/// The cluster that a status says is not connected.
pub(crate) fn missing_cluster(status: &Status) -> Option<String> {
    let details = status.get_error_details();
    let missing = details.resource_info()?;
    (missing.resource_type == "Cluster").then(|| missing.resource_name.clone())
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            token.authorize(request.metadata_mut().as_mut());
        }
        Ok(request)
    }
}

fn refused(code: Code, status: &Status) -> Failure {
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| info.reason.as_str());
    let word = reason.map_or_else(|| format!("{code:?}"), str::to_owned);
    let failure = Failure::new(Exit::Refused, format!("{} ({word})", status.message()));
    match reason {
        Some("CLUSTER_REQUIRED") => {
            failure.hint("select a cluster with --cluster; decree get sessions lists them")
        }
        Some("CLUSTER_AMBIGUOUS") => {
            failure.hint("select a uid with --cluster; decree get sessions -o wide lists them")
        }
        Some("CREDENTIAL_REQUIRED" | "TOKEN_INVALID") => {
            failure.hint("prove who asks with --token-file")
        }
        Some(_) | None => failure,
    }
}

fn unreachable(url: &str, detail: &str) -> Failure {
    let hint = if url.starts_with("https:") {
        // With TLS 1.3, a server that requires a certificate may close the connection before the client reads the reason.
        "check that decree-server is running there and, if it asks for certificates, that it takes that of --tls-cert"
    } else {
        "check that decree-server is running there (gRPC in plain text, by default on port 50051), or set --server or DECREE_SERVER"
    };
    Failure::new(Exit::Unreachable, format!("{url}: {detail}")).hint(hint)
}

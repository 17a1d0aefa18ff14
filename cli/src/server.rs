//! Connections to a running server, and its refusals in words for a person at a prompt.

use std::{error::Error as _, future::Future, path::Path, time::Duration};

use decree::v1::{
    self, decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient,
};
use runtime::{
    Token, TokenFile,
    failure::{self, chain},
};
use tokio::runtime::Builder;
use tonic::{
    Code, Request, Status,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;
use transport::{ClientArgs, Connector, EXPOSED};

use crate::exit::{Exit, Failure};

mod args;

pub(crate) use args::ServerArgs;

/// The maximum size of an answer. A page of ReplicaSets or the decision on 5,000 pods is many times smaller.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A connection to one server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    channel: Channel,
    bearer: Bearer,
    url: String,
}

/// A channel whose calls carry the token, if there is one.
pub(crate) type Authorized = InterceptedService<Channel, Bearer>;

/// Adds a token to each call.
#[derive(Clone, Debug)]
pub(crate) struct Bearer(Option<Token>);

/// Runs a command that talks to a server, on this thread.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::No, format!("cannot start an event loop: {error}")))?;
    runtime.block_on(command)
}

/// Makes the connector to a server, and warns if others can read the connection.
fn connector(server: &transport::Endpoint, tls: &ClientArgs) -> Result<Connector, Failure> {
    let connector = Connector::new(server.clone(), tls, transport::Metrics::default());
    let connector = connector.map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
    if connector.is_exposed() {
        failure::warn(&format!("{EXPOSED} (--insecure)"));
    }
    Ok(connector)
}

// === impl Server ===

impl Server {
    pub(crate) async fn connect(args: &ServerArgs) -> Result<Self, Failure> {
        let ServerArgs {
            server,
            token_file,
            timeout,
            tls,
        } = args;
        let connector = connector(server, tls)?;
        let bearer = Bearer::read(token_file.as_deref())?;
        Self::connect_by(connector, bearer, *timeout).await
    }

    /// `timeout` applies to the connection and to each call.
    pub(crate) async fn connect_by(
        connector: Connector,
        bearer: Bearer,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let url = connector.endpoint().to_string();
        let endpoint = Endpoint::from(connector.endpoint().uri());
        let endpoint = endpoint.connect_timeout(timeout).timeout(timeout);
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

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The sessions that the caller may see.
    pub(crate) async fn sessions(&self) -> Result<v1::ListSessionsResponse, Failure> {
        let mut client = self.inspection();
        let answer = client.list_sessions(v1::ListSessionsRequest {}).await;
        let answer = answer.map_err(|status| self.failure(&status))?;
        Ok(answer.into_inner())
    }

    /// Fails if no agent is connected, or no agent of this cluster.
    pub(crate) async fn check_connected(&self, cluster: &str) -> Result<(), Failure> {
        let sessions = self.sessions().await?.sessions;
        let is_its = |session: &v1::SessionSummary| {
            let names = [session.cluster_uid.as_str(), &session.cluster_name];
            cluster.is_empty() || names.contains(&cluster)
        };
        if sessions.iter().any(is_its) {
            return Ok(());
        }
        Err(self.nothing_connected(cluster))
    }

    /// The failure if no agent is connected, or no agent of this cluster.
    pub(crate) fn nothing_connected(&self, cluster: &str) -> Failure {
        if cluster.is_empty() {
            let cause = format!(
                "no agent is connected to {}, so the server knows nothing",
                self.url
            );
            let hint = format!("start one with: decree-agent --server {}", self.url);
            return Failure::new(Exit::No, cause).hint(hint);
        }
        let cause = format!(
            "no agent of a cluster {cluster:?} is connected to {}",
            self.url
        );
        Failure::new(Exit::No, cause).hint("list those that are with: decree get sessions")
    }

    /// The meaning of a status: the answer is no, the server is away, or the server refused.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        let message = status.message();
        match status.code() {
            Code::NotFound => self.not_found(status),
            Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => {
                unreachable(&self.url, &broken(status))
            }
            // A broken connection has the status UNKNOWN with the transport's error as its source.
            Code::Unknown | Code::Internal if status.source().is_some() => {
                unreachable(&self.url, &broken(status))
            }
            Code::Unimplemented => Failure::new(Exit::Refused, format!("{}: {message}", self.url))
                .hint("check that this is a decree-server of the same version"),
            code @ (Code::Ok
            | Code::Unknown
            | Code::InvalidArgument
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::OutOfRange
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated) => refused(code, status),
        }
    }
}

impl Server {
    fn not_found(&self, status: &Status) -> Failure {
        let details = status.get_error_details();
        let cluster = details
            .resource_info()
            .filter(|it| it.resource_type == "Cluster");
        match cluster {
            Some(cluster) => self.nothing_connected(&cluster.resource_name),
            None => Failure::new(Exit::No, status.message())
                .hint("list what exists with: decree get replicasets"),
        }
    }
}

// === impl Bearer ===

impl Bearer {
    /// Adds nothing to calls.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let token = file.map(|file| TokenFile::new(file).read()).transpose();
        let token = token.map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
        Ok(Self(token))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            token.authorize(request.metadata_mut().as_mut());
        }
        Ok(request)
    }
}

/// The cause of a broken connection. A TLS failure, such as a missing certificate, is far down in the sources.
fn broken(status: &Status) -> String {
    match status.source() {
        Some(source) => chain(source),
        None => status.message().to_owned(),
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
        Some("CLUSTER_AMBIGUOUS") => failure
            .hint("write the uid of one behind --cluster; decree get sessions -o wide lists them"),
        Some("CREDENTIAL_REQUIRED" | "TOKEN_INVALID") => {
            failure.hint("prove who asks with --token-file")
        }
        Some(_) | None => failure,
    }
}

/// The failure for a server that cannot be reached.
fn unreachable(url: &str, detail: &str) -> Failure {
    // With TLS 1.3, a server that requires a certificate may close the connection before the client reads the reason.
    let hint = if url.starts_with("https:") {
        "check that decree-server is running there and, if it asks for certificates, that it takes that of --tls-cert"
    } else {
        "check that decree-server is running there, or set --server or DECREE_SERVER"
    };
    Failure::new(Exit::Unreachable, format!("{url}: {detail}")).hint(hint)
}

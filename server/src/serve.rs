//! Assembly: sockets, services, and the drain.

use std::{error::Error, future, net::SocketAddr, sync::Arc, time::Duration};

use decree_api::v1::inspection_service_server::InspectionServiceServer;
use prometheus_client::registry::Registry;
use service::transport::{Acceptor, ListenEndpoint, Listener};
use service::{Fault, Readiness, admin, process};
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::{
    layer::util::{Identity, Stack},
    util::{Either, option_layer},
};

use crate::{
    access::Access,
    args::Config,
    console, exposure,
    gauges::SessionGauges,
    incoming::{self, AcceptSettings},
    inspection::Inspection,
    layers::CallLayer,
    metrics::Metrics,
    recorder::{FINISH_WITHIN, Recorder},
    service::{DecisionServiceServer, Decisions},
    shared::Shared,
    web::WebLayer,
};

/// How long the final frames of ended calls have to reach their readers before the connections are closed.
const FLUSH: Duration = Duration::from_millis(500);
/// The maximum number of concurrent streams per connection.
const STREAMS_MAX: u32 = 64;
/// The HTTP/2 window of a stream, in bytes: how much a peer may send before the server reads.
const STREAM_WINDOW: u32 = 1 << 20;
/// The HTTP/2 window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// The maximum number of streams per connection that are reset for errors of the peer before the connection is closed.
const RESETS_MAX: usize = 256;
/// The largest request for reflection: an answer repeats it twice, and several wait for a client that does not read.
const REFLECTION_BYTES_MAX: usize = 4 << 10;
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server with open sockets that does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    grpc: Listener,
    acceptor: Acceptor,
    registry: Registry,
    metrics: Metrics,
    admin: Option<TcpListener>,
    addresses: Addresses,
    admin_routes: axum::Router,
}

/// The listen addresses of a server, with the actual ports in place of port 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The address for gRPC.
    pub grpc: ListenEndpoint,
    /// The address for `/livez`, `/readyz`, `/metrics` and the console.
    pub admin: Option<SocketAddr>,
}

/// Why a server could not start or continue; a [`Fault`] if its flags do not fit.
pub type ServeError = Box<dyn Error + Send + Sync>;

impl Server {
    /// Loads the TLS files and opens the sockets.
    ///
    /// # Errors
    /// If the files are invalid or an address is not available. Without `--insecure`, also if plain text would leave this machine or other
    /// machines would be let in without authentication or policy.
    pub async fn bind(config: Config) -> Result<Self, ServeError> {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let acceptor = Acceptor::new(
            &config.listen,
            &config.tls,
            config.hello_deadline,
            metrics.tls.clone(),
        )?;
        exposure::check(&config)?;
        let grpc = Listener::bind(&config.listen).await?;
        let admin = config.admin.open("admin", "--admin").await?;
        let admin_address = admin.as_ref().map(TcpListener::local_addr).transpose();
        let addresses = Addresses {
            grpc: grpc.endpoint().clone(),
            admin: admin_address?,
        };
        Ok(Self {
            config,
            grpc,
            acceptor,
            registry,
            metrics,
            admin,
            addresses,
            admin_routes: axum::Router::new(),
        })
    }

    /// Adds routes to the admin port, for a process that contains more than the server.
    pub fn with_admin_routes(self, admin_routes: axum::Router) -> Self {
        Self {
            admin_routes,
            ..self
        }
    }

    /// The listen addresses of the server.
    pub const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Serves until `shutdown` is cancelled, and then drains: agents are told, and sessions may finish their operations in flight. At the
    /// deadline, the remaining sessions are closed.
    ///
    /// # Errors
    /// If gRPC cannot be served, or recordings cannot be set up.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let Self {
            config,
            grpc,
            acceptor,
            mut registry,
            metrics,
            admin,
            addresses: _,
            admin_routes,
        } = self;
        process::register(&mut registry, "decree_server");
        let access = Access::new(&config.access, metrics.clone())?;
        let (recorder, written) = Recorder::start(&config.recording, metrics.clone())?.unzip();
        let shared = Arc::new(Shared {
            recorder,
            ..Shared::new(config, metrics, access)
                .map_err(|error| Fault::because("threads cannot be set up", error))?
        });
        let sessions = SessionGauges(Arc::clone(&shared.registry));
        registry.register_collector(Box::new(sessions));
        let (reporter, health_service) = tonic_health::server::health_reporter();
        let health = Health {
            readiness: Readiness::not_ready("starting"),
            reporter,
        };
        let mut beside = JoinSet::new();
        if let Some(listener) = admin {
            let router = admin::router(health.readiness.clone(), Arc::new(registry));
            let router = console::add(router.merge(admin_routes), &shared);
            let max = shared.config.limits.admin_connections_max;
            beside.spawn(admin::serve(listener, router, max));
        }
        let settings = AcceptSettings {
            shared: Arc::clone(&shared),
            cut: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        beside.spawn(Arc::clone(&shared.access).watch(settings.stop.clone()));
        let router = builder(&shared)
            .add_service(health_service)
            .add_service(
                reflection()
                    .build_v1()?
                    .max_decoding_message_size(REFLECTION_BYTES_MAX),
            )
            .add_service(
                reflection()
                    .build_v1alpha()?
                    .max_decoding_message_size(REFLECTION_BYTES_MAX),
            )
            .add_service(Decisions::server(&shared))
            .add_service(inspection(&shared));
        let (incoming, accepting) = incoming::accept(grpc, acceptor, settings.clone());
        health.set(Ok(())).await;
        let stopped = settings.stop.clone().cancelled_owned();
        let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, stopped));
        let (tls, access) = (&shared.config.tls.files, &shared.config.access);
        let (certificates, tokens) = (tls.tls_ca.is_some(), access.token_keys.is_some());
        tracing::info!(certificates, tokens, policy = ?access.policy, "serving");
        let drain = drain(&shared, &health);
        let beside = panic_of(&mut beside);
        let ended = serve_until(&shutdown, (task, beside), accepting, &settings, drain).await;
        written.into_iter().for_each(|it| it.finish(FINISH_WITHIN));
        ended
    }
}

/// The layers of every call, the outer one last.
type Layers = Stack<CallLayer, Stack<Either<WebLayer, Identity>, Identity>>;

/// Tonic's server, with the limits that tonic and hyper do not set by default. Every call is guarded.
fn builder(shared: &Arc<Shared>) -> tonic::transport::Server<Layers> {
    let origins = &shared.config.access.grpc_web_origins;
    let web = (!origins.is_empty()).then(|| WebLayer(origins.as_slice().into()));
    tonic::transport::Server::builder()
        .accept_http1(web.is_some())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_local_error_reset_streams(Some(RESETS_MAX))
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .layer(option_layer(web))
        .layer(CallLayer(Arc::clone(shared)))
}

fn inspection(shared: &Arc<Shared>) -> InspectionServiceServer<Inspection> {
    let max = shared.config.limits.frame_bytes_max;
    InspectionServiceServer::new(Inspection(Arc::clone(shared)))
        .max_decoding_message_size(max)
        .max_encoding_message_size(max)
}

fn reflection<'a>() -> tonic_reflection::server::Builder<'a> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(decree_api::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // Error details are messages in an Any. Without these descriptors a client can only show their bytes.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// Tells all agents, waits for the sessions until the deadline, and ends the remaining ones.
async fn drain(shared: &Shared, health: &Health) {
    shared.draining.cancel();
    health.set(Err("draining")).await;
    tracing::info!(sessions = shared.tasks.len(), "draining");
    shared.watchers.close();
    shared.tasks.close();
    let ended = timeout(shared.config.drain_deadline, shared.tasks.wait());
    if ended.await.is_err() {
        tracing::warn!(sessions = shared.tasks.len(), "cut off");
        shared.registry.end_all(&Shared::drain_refusal());
        // A session that does not even end is left to the end of the process.
        let _ = timeout(FLUSH, shared.tasks.wait()).await;
    }
}

/// Serves the main port until `shutdown`, runs `drain`, and closes the connections, by force if necessary.
async fn serve_until(
    shutdown: &CancellationToken,
    (mut task, beside): (
        JoinHandle<Result<(), tonic::transport::Error>>,
        impl Future<Output = JoinError>,
    ),
    accepting: JoinHandle<()>,
    settings: &AcceptSettings,
    drain: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        ended = &mut task => {
            served(ended.unwrap_or(Ok(())))?;
            // Nobody has asked for the end, so the process must not report success.
            return Err(Fault::new("gRPC is not served any more").into());
        }
        panic = beside => return Err(Fault::because("a task of the server ended", panic).into()),
    }
    drain.await;
    settings.stop.cancel();
    let mut ended = timeout(FLUSH, &mut task).await;
    settings.cut.cancel();
    if ended.is_err() {
        ended = timeout(FLUSH, &mut task).await;
    }
    task.abort();
    // The process may end next, and would leave the file of a socket.
    let _ = timeout(FLUSH, accepting).await;
    tracing::info!("stopped");
    let ended = ended.unwrap_or(Ok(Ok(())));
    served(ended.unwrap_or(Ok(())))
}

/// Ready when one of these tasks panics: without it, the process would look whole.
async fn panic_of(tasks: &mut JoinSet<()>) -> JoinError {
    while let Some(ended) = tasks.join_next().await {
        if let Err(panic) = ended {
            return panic;
        }
    }
    future::pending().await
}

fn served(ended: Result<(), tonic::transport::Error>) -> Result<(), ServeError> {
    Ok(ended.map_err(|error| Fault::because("gRPC cannot be served", error))?)
}

/// What health checks and `/readyz` report.
struct Health {
    readiness: Readiness,
    reporter: HealthReporter,
}

impl Health {
    async fn set(&self, ready: Result<(), &'static str>) {
        self.readiness.set(ready);
        let status = match ready {
            Ok(()) => ServingStatus::Serving,
            Err(_) => ServingStatus::NotServing,
        };
        for service in [
            "",
            <DecisionServiceServer<Decisions> as NamedService>::NAME,
            <InspectionServiceServer<Inspection> as NamedService>::NAME,
        ] {
            self.reporter.set_service_status(service, status).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::shared;

    #[tokio::test]
    async fn end_that_nobody_has_asked_for_is_a_failure() {
        let mut beside = JoinSet::new();
        beside.spawn(async {});
        beside.spawn(async { panic!("an odd file") });
        let panic = panic_of(&mut beside).await;
        assert!(panic.is_panic());
        let settings = AcceptSettings {
            shared: shared(),
            cut: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        for is_asked in [true, false] {
            let shutdown = CancellationToken::new();
            if is_asked {
                shutdown.cancel();
            }
            let (task, accepting) = (tokio::spawn(async { Ok(()) }), tokio::spawn(async {}));
            let task = (task, future::pending());
            let ended = serve_until(&shutdown, task, accepting, &settings, async {}).await;
            assert_eq!(ended.is_ok(), is_asked);
        }
    }
}

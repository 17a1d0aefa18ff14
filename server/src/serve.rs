//! Assembly: sockets, services, and the drain.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use build_info::{COMMIT, VERSION};
use decree::v1::inspection_service_server::InspectionServiceServer;
use otlp::{Exporter, Tracer};
use prometheus_client::registry::Registry;
use runtime::{ListenError, Readiness, admin, process};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::layer::util::{Identity, Stack};
use transport::{Acceptor, BindError, Connector, ListenEndpoint, Listener, SetupError};

use crate::{
    access::{Access, AccessError, Authorize},
    args::Config,
    capacity::Places,
    console_backend,
    exposure::{self, ExposureError},
    incoming::{self, AcceptSettings, Connection, ConnectionTimeouts},
    inspection::Inspection,
    layers::CallLayer,
    metrics::Metrics,
    recorder::{FINISH_WITHIN, RecordError, Recorder},
    service::{DecisionServiceServer, Decisions},
    shared::Shared,
};

/// How long the final frames of ended calls have to reach their readers before the connections are closed.
const FLUSH: Duration = Duration::from_millis(500);
/// How often readiness is checked: whether a new agent would get a session.
const HEALTH_INTERVAL: Duration = Duration::from_millis(100);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server with open sockets that does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    grpc: Listener,
    acceptor: Acceptor,
    tls: transport::Metrics,
    admin: Option<TcpListener>,
    probe: Option<TcpListener>,
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
    /// The address for health checks only.
    pub probe: Option<SocketAddr>,
}

/// Why a server could not start or continue.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A socket could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The socket for gRPC could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// TLS flags and files are invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Other machines would be let in without authentication.
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    /// A socket has no address.
    #[error("the address of a socket is not known")]
    Address(#[source] io::Error),
    /// The reflection service could not be created from the contract's descriptors.
    #[error("reflection is not available")]
    Reflection(#[source] tonic_reflection::server::Error),
    /// Recordings could not be set up.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Access control could not be set up.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The settings of traces are invalid.
    #[error(transparent)]
    Traces(#[from] otlp::StartError),
    /// gRPC could not be served.
    #[error("gRPC cannot be served")]
    Transport(#[source] tonic::transport::Error),
}

// === impl Server ===

impl Server {
    /// Loads the TLS files and opens the sockets.
    ///
    /// # Errors
    /// If the files are invalid or an address is not available. Without `--insecure`, also if plain text would leave this machine or other
    /// machines would be let in without authentication or policy.
    pub async fn bind(config: Config) -> Result<Self, ServeError> {
        let tls = transport::Metrics::default();
        let acceptor = Acceptor::new(
            &config.listen,
            &config.tls,
            config.hello_deadline,
            tls.clone(),
        )?;
        exposure::check(&config)?;
        let grpc = Listener::bind(&config.listen).await?;
        let admin = config.admin.open("admin", "--admin").await?;
        let probe = config.probe.open("probe", "--probe").await?;
        let addresses = Addresses {
            grpc: grpc.endpoint().clone(),
            admin: address(admin.as_ref())?,
            probe: address(probe.as_ref())?,
        };
        Ok(Self {
            config,
            grpc,
            acceptor,
            tls,
            admin,
            probe,
            addresses,
            admin_routes: axum::Router::new(),
        })
    }

    /// Adds routes to the admin port, for a process that contains more than the server.
    #[must_use]
    pub fn with_admin_routes(self, admin_routes: axum::Router) -> Self {
        Self {
            admin_routes,
            ..self
        }
    }

    /// The listen addresses of the server.
    #[must_use]
    pub const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// A connector for the process that the server runs in, without a socket and in plain text.
    #[must_use]
    pub fn connector(&self) -> Connector {
        self.grpc.connector()
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
            tls,
            admin,
            probe,
            addresses: _,
            admin_routes,
        } = self;
        let mut registry = Registry::default();
        tls.register(&mut registry);
        let metrics = Metrics::register(&mut registry).with_tls(tls);
        process::register(&mut registry, "decree_server", (VERSION, COMMIT));
        let (tracer, exporter) = traces(&config, &mut registry)?;
        let access = Access::new(&config.access, metrics.clone())?;
        let (recorder, written) = Recorder::start(&config.recording, metrics.clone())?.unzip();
        let shared = Arc::new(Shared {
            recorder,
            tracer,
            ..Shared::new(config, metrics, access)
        });
        let limits = &shared.config.limits;
        let readiness = Readiness::not_ready("starting");
        let (stop, cut) = (CancellationToken::new(), CancellationToken::new());
        let (health, health_service) = tonic_health::server::health_reporter();
        let health = Health {
            shared: Arc::clone(&shared),
            readiness: readiness.clone(),
            reporter: health,
        };
        let mut beside = JoinSet::new();
        if let Some(listener) = admin {
            let router = admin::router(readiness.clone(), Arc::new(registry)).merge(admin_routes);
            let router = console_backend::add(router, &shared);
            let (stop, max) = (CancellationToken::new(), limits.admin_connections_max);
            beside.spawn(admin::serve(listener, router, stop, max));
        }
        beside.spawn(Arc::clone(&shared.access).watch(stop.clone()));
        let settings = AcceptSettings::of(&shared, &cut, &stop);
        if let Some(listener) = probe {
            let router = limited_builder(&shared).add_service(health_service.clone());
            let incoming = probe_incoming(listener, &shared, settings.for_probes(&shared))?;
            beside.spawn(async move { drop(router.serve_with_incoming(incoming).await) });
        }
        let [v1, v1alpha] = [reflection(), reflection()];
        let router = builder(&shared)
            .add_service(health_service)
            .add_service(v1.build_v1().map_err(ServeError::Reflection)?)
            .add_service(v1alpha.build_v1alpha().map_err(ServeError::Reflection)?)
            .add_service(Decisions::server(&shared))
            .add_service(inspection(&shared));
        let (incoming, accepting) = incoming::accept(grpc, acceptor, settings);
        let stopped = stop.clone().cancelled_owned();
        health.publish().await;
        let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, stopped));
        beside.spawn(health.clone().keep());
        tracing::info!("serving");
        let tasks = (task, accepting);
        let main = GrpcTask { tasks, stop, cut };
        let ended = main.until(&shutdown, drain(&shared, &health)).await;
        written.into_iter().for_each(|it| it.finish(FINISH_WITHIN));
        exporter.finish().await;
        ended
    }
}

/// Starts the tracer and the exporter, if the configuration has a collector.
fn traces(config: &Config, registry: &mut Registry) -> Result<(Tracer, Exporter), ServeError> {
    Ok(Tracer::start(
        &config.otlp,
        "decree-server",
        VERSION,
        registry,
    )?)
}

fn address(listener: Option<&TcpListener>) -> Result<Option<SocketAddr>, ServeError> {
    listener
        .map(TcpListener::local_addr)
        .transpose()
        .map_err(ServeError::Address)
}

/// The server of the main port, on which every call is authorized.
fn builder(
    shared: &Arc<Shared>,
) -> tonic::transport::Server<Stack<Authorize, Stack<CallLayer, Identity>>> {
    limited_builder(shared).layer(Authorize(Arc::clone(&shared.access)))
}

/// Accepts connections of the probe port, which uses plain text because health is no secret.
fn probe_incoming(
    listener: TcpListener,
    shared: &Shared,
    settings: AcceptSettings,
) -> Result<ReceiverStream<io::Result<Connection>>, ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    let acceptor = Acceptor::plain(shared.metrics.tls.clone());
    let listener = Listener::of_tcp(listener, address);
    let (incoming, _) = incoming::accept(listener, acceptor, settings);
    Ok(incoming)
}

/// Tonic's server, with the limits that tonic and hyper do not set by default.
fn limited_builder(shared: &Arc<Shared>) -> tonic::transport::Server<Stack<CallLayer, Identity>> {
    let limits = &shared.config.limits;
    tonic::transport::Server::builder()
        .max_concurrent_streams(limits.streams_max)
        .initial_stream_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .http2_max_local_error_reset_streams(Some(limits.resets_max))
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
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
        .register_encoded_file_descriptor_set(decree::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // Error details are messages in an Any. Without these descriptors a client can only show their bytes.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// Tells all agents, waits for the sessions until the deadline, and ends the remaining ones.
async fn drain(shared: &Shared, health: &Health) {
    shared.draining.cancel();
    health.publish().await;
    tracing::info!(sessions = shared.tasks.len(), "draining");
    shared.watchers.close();
    shared.tasks.close();
    if timeout(shared.config.drain_deadline, shared.tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!(sessions = shared.tasks.len(), "cut off");
        shared.registry.end_all(&shared.drain_refusal());
        // A session that does not even end is left to the end of the process.
        let _ = timeout(FLUSH, shared.tasks.wait()).await;
    }
}

/// The main port's server.
struct GrpcTask {
    /// The task that serves, and the task that accepts connections.
    tasks: (
        JoinHandle<Result<(), tonic::transport::Error>>,
        JoinHandle<()>,
    ),
    stop: CancellationToken,
    cut: CancellationToken,
}

// === impl GrpcTask ===

impl GrpcTask {
    /// Serves until `shutdown`, runs `drain`, and closes the connections, by force if necessary.
    async fn until(
        self,
        shutdown: &CancellationToken,
        drain: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (mut task, accepting) = self.tasks;
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            ended = &mut task => return ended.unwrap_or(Ok(())).map_err(ServeError::Transport),
        }
        drain.await;
        self.stop.cancel();
        let ended = timeout(FLUSH, &mut task).await;
        self.cut.cancel();
        let ended = match ended {
            Ok(ended) => ended,
            Err(_) => timeout(FLUSH, &mut task).await.unwrap_or(Ok(Ok(()))),
        };
        task.abort();
        // The process may end next, and would leave the file of a socket.
        let _ = timeout(FLUSH, accepting).await;
        tracing::info!("stopped");
        ended.unwrap_or(Ok(())).map_err(ServeError::Transport)
    }
}

/// The state that health checks and `/readyz` report: whether a new agent would get a session.
#[derive(Clone)]
struct Health {
    shared: Arc<Shared>,
    readiness: Readiness,
    reporter: HealthReporter,
}

// === impl Health ===

impl Health {
    async fn keep(self) {
        while !self.shared.draining.is_cancelled() {
            sleep(HEALTH_INTERVAL).await;
            if self.shared.check_ready() != self.readiness.check() {
                self.publish().await;
            }
        }
    }

    /// Publishes the state, and repeats that if it has changed meanwhile, so that a drain is never hidden. Also called before serving starts.
    async fn publish(&self) {
        loop {
            let ready = self.shared.check_ready();
            self.readiness.set(ready);
            self.report(ready.is_ok()).await;
            if ready == self.shared.check_ready() {
                return;
            }
        }
    }

    async fn report(&self, ready: bool) {
        let status = if ready {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
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

// === impl AcceptSettings ===

impl AcceptSettings {
    fn of(shared: &Shared, cut: &CancellationToken, stop: &CancellationToken) -> Self {
        Self {
            places: Arc::clone(&shared.connections),
            timeouts: ConnectionTimeouts {
                first_call: shared.config.hello_deadline,
                idle: shared.config.idle_deadline,
                write: shared.session_config().patience(),
            },
            metrics: shared.metrics.clone(),
            queue: shared.busy.clone(),
            cut: cut.clone(),
            stop: stop.clone(),
        }
    }

    /// The settings of the probe port. Its connections are counted separately, so that peers cannot keep probes out by taking all
    /// connections of the main port.
    fn for_probes(&self, shared: &Shared) -> Self {
        let max = shared.config.limits.admin_connections_max;
        Self {
            places: Places::new(max, max),
            ..self.clone()
        }
    }
}

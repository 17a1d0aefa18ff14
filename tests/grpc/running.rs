//! A server in this process, on free ports.

use std::{
    fmt::Debug,
    future::Future,
    sync::mpsc,
    time::{Duration, SystemTime},
};

use decree_api::v1::{
    decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient,
};
use decree_server::{Addresses, Config, Limits, Server};
use tests::running::PATIENCE;
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
    time::{self, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use crate::console::ask;

/// A server that runs until it is stopped or dropped.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what)
        .await
        .expect("it comes within the test's patience")
}

/// A server's defaults, except for its time limits: no peer exceeds them because of a slow machine, and the cause of an end
/// within [`PATIENCE`] is something else.
pub(crate) fn unhurried() -> Config {
    let never = 6 * PATIENCE;
    Config {
        drain_deadline: never,
        heartbeat_interval: never,
        hello_deadline: never,
        idle_deadline: never,
        deadline: never,
        ..Config::embedded()
    }
}

/// The time of a test and of its server, which the test advances, while sockets and files work in real time. Wall clocks are
/// unaffected.
pub(crate) struct StoppedTime {
    _held: mpsc::SyncSender<()>,
}

/// Runs something that must finish before a near expiry, for which the test waits afterwards. If the machine is too slow, repeats
/// everything with a later expiry. Also returns the expiry.
pub(crate) async fn before_expiry<T, E: Debug>(
    mut what: impl AsyncFnMut(SystemTime) -> Result<T, E>,
) -> (T, SystemTime) {
    let mut life = Duration::from_secs(2);
    loop {
        let expiry = SystemTime::now() + life;
        match what(expiry).await {
            Ok(done) => return (done, expiry),
            Err(error) => {
                let is_over = SystemTime::now() + Duration::from_secs(1) >= expiry;
                assert!(is_over && life < PATIENCE, "{error:?}");
            }
        }
        life *= 2;
    }
}

impl StoppedTime {
    pub(crate) fn stop() -> Self {
        time::pause();
        let (held, dropped) = mpsc::sync_channel(0);
        // While such a task runs, tokio does not advance time by itself. If a test hangs, the task ends, and `soon` gives up.
        spawn_blocking(move || {
            let _: Result<(), _> = dropped.recv_timeout(PATIENCE);
        });
        Self { _held: held }
    }

    /// Advances time in one step.
    pub(crate) async fn pass(&self, span: Duration) {
        // Timers have a resolution of a millisecond.
        time::advance(span + Duration::from_millis(1)).await;
    }
}

impl Running {
    /// Starts a server with long time limits, on free ports.
    pub(crate) async fn start() -> Self {
        Self::start_with(unhurried()).await
    }

    /// Starts a server with long time limits, and other limits.
    pub(crate) async fn start_within(change: impl FnOnce(&mut Limits)) -> Self {
        let mut config = unhurried();
        change(&mut config.limits);
        Self::start_with(config).await
    }

    pub(crate) async fn start_with(config: Config) -> Self {
        let server = Server::bind(config).await.expect("free ports");
        let addresses = server.addresses().clone();
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let task = tokio::spawn(async move { server.serve(stop).await.expect("it serves") });
        Self {
            addresses,
            shutdown,
            task,
        }
    }

    /// The address for gRPC.
    pub(crate) fn tcp(&self) -> std::net::SocketAddr {
        self.addresses.grpc.tcp().expect("it listens on TCP")
    }

    /// A connection without any bytes sent.
    pub(crate) async fn socket(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp()).await;
        stream.expect("it listens")
    }

    /// A separate connection.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.addresses.grpc));
        soon(endpoint.expect("a valid URL").connect())
            .await
            .expect("the server listens")
    }

    pub(crate) async fn decisions(&self) -> DecisionServiceClient<Channel> {
        DecisionServiceClient::new(self.channel().await)
    }

    pub(crate) async fn inspection(&self) -> InspectionServiceClient<Channel> {
        InspectionServiceClient::new(self.channel().await)
    }

    /// Starts to stop the server, as SIGTERM does.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Waits for the end of the server.
    pub(crate) async fn ended(&mut self) {
        soon(&mut self.task).await.expect("it did not panic");
    }

    /// The page of metrics.
    pub(crate) async fn metrics(&self) -> String {
        self.admin("/metrics").await.1
    }

    /// The status and the body of a page of the admin port.
    pub(crate) async fn admin(&self, path: &str) -> (u16, String) {
        let accept = "Accept: application/openmetrics-text; version=1.0.0";
        let mut answer = ask(self, path, &format!("{accept}\r\nConnection: close\r\n")).await;
        let mut body = String::new();
        let read = soon(answer.body.read_to_string(&mut body)).await;
        read.expect("it answers in text");
        (answer.status, body)
    }

    /// Waits until `is_so` holds for a series of the metrics.
    pub(crate) async fn until(&self, series: &str, is_so: impl Fn(f64) -> bool) {
        soon(async { while !is_so(self.metric(series).await) {} }).await;
    }

    /// The value of a series of the metrics, 0 if it does not exist.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let page = self.metrics().await;
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.task.abort();
    }
}

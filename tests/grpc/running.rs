//! A server in this process, on free ports.

use std::{
    fmt::Debug,
    future::Future,
    sync::mpsc,
    time::{Duration, SystemTime},
};

use decree::v1::{
    decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient,
};
use decree_server::{Addresses, Config, Limits, Server};
use tests::running::PATIENCE;
use tokio::{
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
    time::{self, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

/// A server that serves until it is stopped or dropped.
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

/// Returns a server's defaults, but for its limits of time: no peer meets them because the machine is slow, and what ends within [`PATIENCE`] has
/// been ended by something else.
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

/// The time of a test and of the server in it, which passes as the test says, while sockets and files go on. Wall clocks are as ever.
pub(crate) struct StoppedTime {
    _held: mpsc::SyncSender<()>,
}

/// Has something done that must be through before a time, which is near as it is waited for afterwards. Where the machine took longer, all
/// is done again for a time that is further off. Returns the time too.
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

// === impl StoppedTime ===

impl StoppedTime {
    /// Stops time.
    pub(crate) fn stop() -> Self {
        time::pause();
        let (held, dropped) = mpsc::sync_channel(0);
        // As long as such a task runs, tokio lets no time pass by itself. Where a test hangs it ends, and `soon` gives up.
        spawn_blocking(move || {
            let _: Result<(), _> = dropped.recv_timeout(PATIENCE);
        });
        Self { _held: held }
    }

    /// Lets time pass, at one go.
    pub(crate) async fn pass(&self, span: Duration) {
        // Timers end by the millisecond.
        time::advance(span + Duration::from_millis(1)).await;
    }
}

// === impl Running ===

impl Running {
    /// Starts a server that is not in a hurry, on free ports.
    pub(crate) async fn start() -> Self {
        Self::start_with(unhurried()).await
    }

    /// Starts a server that is not in a hurry, with other limits.
    pub(crate) async fn start_within(change: impl FnOnce(&mut Limits)) -> Self {
        let mut config = unhurried();
        change(&mut config.limits);
        Self::start_with(config).await
    }

    /// Starts a server.
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

    /// Returns where the server listens for gRPC.
    pub(crate) fn tcp(&self) -> std::net::SocketAddr {
        self.addresses.grpc.tcp().expect("it listens on TCP")
    }

    /// Returns a connection on which nothing was said yet.
    pub(crate) async fn socket(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp()).await;
        stream.expect("it listens")
    }

    /// Returns a connection of its own.
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

    /// Begins to stop the server, as SIGTERM does.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(&mut self) {
        soon(&mut self.task).await.expect("it did not panic");
    }

    /// Returns the page of metrics.
    pub(crate) async fn metrics(&self) -> String {
        self.admin("/metrics").await.1
    }

    /// Returns the status and the body of a page of the admin port.
    pub(crate) async fn admin(&self, path: &str) -> (u16, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = self.addresses.admin.expect("the admin port is on");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let accept = "Accept: application/openmetrics-text; version=1.0.0";
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: admin\r\n{accept}\r\nConnection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer))
            .await
            .expect("it answers in text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head
            .split(' ')
            .nth(1)
            .expect("a status")
            .parse()
            .expect("a number");
        (status, body.to_owned())
    }

    /// Waits until a series of the metrics is as it should be.
    pub(crate) async fn until(&self, series: &str, is_so: impl Fn(f64) -> bool) {
        soon(async { while !is_so(self.metric(series).await) {} }).await;
    }

    /// Returns the value of a series of the metrics, 0 if it is not there.
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

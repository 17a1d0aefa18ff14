//! Flags, environment and configuration file of `decree-server`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    ops::RangeInclusive,
    path::PathBuf,
    str::FromStr,
    thread::available_parallelism,
    time::Duration,
};

use clap::{Args as Group, Parser};
use runtime::{ListenAddr, LogArgs, config};
use transport::ListenEndpoint;

use crate::access::args::AccessArgs;

/// The files that a server opens besides its connections: listeners, recordings, standard streams.
const FILES_BESIDE: usize = 64;
/// Fits into the 512 MiB that the manifests grant.
const MEMORY_MAX: usize = 288 << 20;
/// Fits about 400,000 pods. Less than [`MEMORY_MAX`], so that one session does not take everything.
const SESSION_MEMORY_MAX: usize = 192 << 20;
/// With one thread, a busy session would block all other sessions.
const THREADS_MIN: usize = 2;
/// More threads than any machine can use.
const THREADS_MAX: usize = 1024;

/// Decides which pods to create and delete for ReplicaSets. Agents execute the decisions in their clusters.
#[derive(Clone, Debug, Parser)]
#[command(name = "decree-server", version = build_info::text())]
pub struct Args {
    /// The file.
    #[command(flatten)]
    pub file: config::ConfigArgs,
    /// The logs.
    #[command(flatten)]
    pub log: LogArgs,
    /// The number of threads that serve sessions; the server starts more threads for long steps. By default the number of processors, and
    /// at least 2.
    #[arg(long, env = "DECREE_THREADS", value_parser = threads)]
    pub threads: Option<usize>,
    /// The server itself.
    #[command(flatten)]
    pub server: Config,
}

/// Listen addresses, timeouts and limits of the server.
#[derive(Clone, Debug, PartialEq, Group)]
pub struct Config {
    /// Listen address for gRPC: ADDRESS:PORT, or `unix:PATH` for a Unix socket. Port 0 picks a free port and logs it. An address on the
    /// network needs TLS, authentication (`--tls-ca` or `--token-keys`) and a `--policy`, or `--insecure`.
    #[arg(long, env = "DECREE_LISTEN", default_value = "127.0.0.1:50051")]
    pub listen: ListenEndpoint,

    /// Listen address for /livez, /readyz, /metrics and the console over HTTP, or `off`. With a trailing `?`, the server uses a free port
    /// if this port is taken.
    #[arg(long, env = "DECREE_ADMIN", default_value = "127.0.0.1:8080?")]
    pub admin: ListenAddr,

    /// Listen address for grpc.health.v1.Health only, without TLS, for probes, or `off`; `?` as for `--admin`.
    #[arg(long, env = "DECREE_PROBE", default_value = "127.0.0.1:8082?")]
    pub probe: ListenAddr,

    /// The time for sessions to finish after SIGTERM before the server closes them.
    #[arg(long, env = "DECREE_DRAIN_DEADLINE", default_value = "20s", value_parser = config::duration)]
    pub drain_deadline: Duration,

    /// The delay before agents reconnect after a drain.
    #[arg(long, env = "DECREE_RECONNECT_AFTER", default_value = "1s", value_parser = config::duration)]
    pub reconnect_after: Duration,

    /// The interval of heartbeats on an idle session; a session ends after four intervals without a frame.
    #[arg(long, env = "DECREE_HEARTBEAT_INTERVAL", default_value = "5s", value_parser = interval)]
    pub heartbeat_interval: Duration,

    /// The maximum time for the Hello of a new stream, and for the TLS handshake and the first call of a new connection.
    #[arg(long, env = "DECREE_HELLO_DEADLINE", default_value = "5s", value_parser = config::duration)]
    pub hello_deadline: Duration,

    /// The maximum time for which a connection stays open without a call. The first call must begin within --hello-deadline.
    #[arg(long, env = "DECREE_IDLE_DEADLINE", default_value = "60s", value_parser = config::duration)]
    pub idle_deadline: Duration,

    /// The maximum deadline of unary calls.
    #[arg(long, env = "DECREE_DEADLINE", default_value = "10s", value_parser = config::duration)]
    pub deadline: Duration,

    /// The longest delay between attempts of a ReplicaSet whose writes are refused, for example by a quota or an admission webhook.
    #[arg(long, env = "DECREE_BACKOFF_MAX", default_value = "30s", value_parser = interval)]
    pub backoff_max: Duration,

    /// Access.
    #[command(flatten)]
    pub access: AccessArgs,

    /// Limits of the server.
    #[command(flatten)]
    pub limits: Limits,

    /// Recordings of sessions.
    #[command(flatten)]
    pub recording: Recording,

    /// TLS for peers.
    #[command(flatten)]
    pub tls: transport::ServerArgs,

    /// Seed for session ids, and so for pod names. Set it only for runs with equal output: ids of different servers must never be equal. By
    /// default, ids are random.
    #[arg(skip)]
    pub session_seed: Option<u64>,

    /// Export of traces.
    #[command(flatten)]
    pub otlp: otlp::OtlpArgs,
}

/// The folder and the size of recordings.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Recording")]
pub struct Recording {
    /// Record the frames of all sessions in files in this folder, for `decree replay`. The folder is created if it is missing, and only one server can use it
    #[arg(long, env = "DECREE_RECORD", value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Maximum size of all recordings together, in bytes, at least 1048576. The oldest recording is deleted first; a single recording may
    /// take a quarter
    #[arg(long, env = "DECREE_RECORD_BYTES_MAX", default_value_t = 1 << 30, value_parser = many_bytes)]
    pub record_bytes_max: u64,
}

/// Limits of every resource that a peer can use.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// The maximum size of a message in either direction, in bytes; at least 512 KiB, so that a burst of 500 deletes fits.
    #[arg(long, env = "DECREE_FRAME_BYTES_MAX", default_value_t = 4 << 20, value_parser = frame_bytes)]
    pub frame_bytes_max: usize,

    /// The maximum number of sessions. At the limit, a newcomer displaces one of the identity that has most, if that identity has at least
    /// two more.
    #[arg(long, env = "DECREE_SESSIONS_MAX", default_value_t = 256, value_parser = count)]
    pub sessions_max: usize,

    /// The maximum number of streams without a Hello. At the limit, a new stream displaces the oldest of the identity that has most.
    #[arg(long, env = "DECREE_PENDING_SESSIONS_MAX", default_value_t = 256, value_parser = count)]
    pub pending_sessions_max: usize,

    /// The maximum number of concurrent calls other than sessions. At the limit, a new call displaces the oldest of the identity that has
    /// most.
    #[arg(long, env = "DECREE_CALLS_MAX", default_value_t = 256, value_parser = count)]
    pub calls_max: usize,

    /// The maximum number of bytes of incomplete messages and unanswered unary calls, over all connections. At the limit, the server
    /// refuses the oldest such call of the identity that holds most.
    #[arg(long, env = "DECREE_RECEIVED_BYTES_MAX", default_value_t = 64 << 20, value_parser = frame_bytes)]
    pub received_bytes_max: usize,

    /// The maximum share of connections, calls, streams without a Hello and received bytes per peer address, in percent. Sessions do not
    /// count.
    #[arg(long, env = "DECREE_PEER_SHARE", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub peer_share: u8,

    /// The maximum memory of all sessions together, in bytes. Beyond it, the server ends the largest session of the identity that holds
    /// most. The process needs up to half as much again for frames, calls and the allocator; a pod takes about 500 bytes.
    #[arg(long, env = "DECREE_MEMORY_MAX", default_value_t = MEMORY_MAX, value_parser = memory_bytes)]
    pub memory_max: usize,

    /// The maximum memory of one session, in bytes.
    #[arg(long, env = "DECREE_SESSION_MEMORY_MAX", default_value_t = SESSION_MEMORY_MAX, value_parser = memory_bytes)]
    pub session_memory_max: usize,

    /// The maximum number of pods and ReplicaSets per session.
    #[arg(long, env = "DECREE_OBJECTS_MAX", default_value_t = 1_000_000, value_parser = count)]
    pub objects_max: usize,

    /// The maximum number of operations per session without an outcome; further batches wait.
    #[arg(long, env = "DECREE_OPERATIONS_IN_FLIGHT_MAX", default_value_t = 10_000, value_parser = count)]
    pub operations_in_flight_max: usize,

    /// The maximum number of WatchDecisions streams. At the limit, a newcomer displaces one of the identity that has most, if that identity
    /// has at least two more.
    #[arg(long, env = "DECREE_WATCHERS_MAX", default_value_t = 64, value_parser = count)]
    pub watchers_max: usize,

    /// The number of decisions that the server buffers for a slow WatchDecisions stream.
    #[arg(long, env = "DECREE_WATCH_BUFFER", default_value_t = 256, value_parser = count)]
    pub watch_buffer: usize,

    /// The maximum number of concurrent unary decisions, on threads other than those of sessions. Further decisions wait within their
    /// deadline, and identities alternate.
    #[arg(long, env = "DECREE_DECIDES_MAX", default_value_t = 2, value_parser = count)]
    pub decides_max: usize,

    /// The maximum number of pods and ReplicaSets of a unary decision.
    #[arg(long, env = "DECREE_DECIDE_OBJECTS_MAX", default_value_t = 100_000, value_parser = count)]
    pub decide_objects_max: usize,

    /// The maximum number of connections. At the limit, a new connection displaces the oldest one without a session, of the identity that
    /// has most.
    #[arg(long, env = "DECREE_CONNECTIONS_MAX", default_value_t = 512, value_parser = count)]
    pub connections_max: usize,

    /// The maximum number of connections of the admin port, and of the probe port. A new connection displaces the oldest of the peer
    /// address that has most.
    #[arg(long, env = "DECREE_ADMIN_CONNECTIONS_MAX", default_value_t = 64, value_parser = count)]
    pub admin_connections_max: usize,

    /// The maximum number of open console pages. A new page displaces the oldest. 0 turns the console off.
    #[arg(long, env = "DECREE_CONSOLE_STREAMS_MAX", default_value_t = 16)]
    pub console_streams_max: u8,

    /// The maximum number of concurrent streams per connection.
    #[arg(long, env = "DECREE_STREAMS_MAX", default_value_t = 64, value_parser = small_count)]
    pub streams_max: u32,

    /// The HTTP/2 window of a stream, in bytes: the maximum that a peer sends before the server reads.
    #[arg(long, env = "DECREE_STREAM_WINDOW_BYTES", default_value_t = 1 << 20, value_parser = small_count)]
    pub stream_window_bytes: u32,

    /// The HTTP/2 window of a connection, in bytes.
    #[arg(long, env = "DECREE_CONNECTION_WINDOW_BYTES", default_value_t = 4 << 20, value_parser = small_count)]
    pub connection_window_bytes: u32,

    /// The number of streams that the server resets for errors of the peer before it closes the connection.
    #[arg(long, env = "DECREE_RESETS_MAX", default_value_t = 256, value_parser = count)]
    pub resets_max: usize,
}

// === impl Args ===

impl Args {
    /// The number of threads that serve the sessions.
    #[must_use]
    pub fn threads(&self) -> usize {
        let processors = || available_parallelism().map_or(THREADS_MIN, NonZeroUsize::get);
        self.threads
            .unwrap_or_else(|| processors().max(THREADS_MIN))
    }
}

fn threads(text: &str) -> Result<usize, String> {
    number(text, 1..=THREADS_MAX, "1 to 1024")
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = Some(config::duration(text)?).filter(|it| !it.is_zero());
    interval.ok_or_else(|| "must be above 0".to_owned())
}

fn frame_bytes(text: &str) -> Result<usize, String> {
    let bytes = Some(count(text)?).filter(|bytes| *bytes >= 512 << 10);
    bytes.ok_or_else(|| "must be at least 524288".to_owned())
}

fn memory_bytes(text: &str) -> Result<usize, String> {
    many_bytes(text)?
        .try_into()
        .map_err(|_| "is too large".to_owned())
}

fn many_bytes(text: &str) -> Result<u64, String> {
    number(text, 1 << 20..=1 << 50, "1048576 to 2^50")
}

fn count(text: &str) -> Result<usize, String> {
    number(text, 1..=1 << 30, "1 to 2^30")
}

fn small_count(text: &str) -> Result<u32, String> {
    number(text, 1..=1 << 30, "1 to 2^30")
}

fn number<T: FromStr + PartialOrd>(
    text: &str,
    range: RangeInclusive<T>,
    words: &str,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a number from {words}"))
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        config::defaults()
    }
}

impl Config {
    /// The maximum number of files and sockets that the server opens.
    #[must_use]
    pub fn files(&self) -> u64 {
        let Limits {
            connections_max,
            admin_connections_max,
            console_streams_max,
            ..
        } = &self.limits;
        let streams = usize::from(*console_streams_max);
        (connections_max + 2 * admin_connections_max + streams + FILES_BESIDE) as u64
    }

    /// The default configuration with free ports of the loopback interface and without probe port, for use inside another process.
    #[must_use]
    pub fn embedded() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            listen: free.into(),
            admin: ListenAddr::At(free),
            probe: ListenAddr::Off,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        config::parse(["decree-server"].iter().chain(flags).map(OsString::from))
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        for flag in [
            "--sessions-max=0",
            "--frame-bytes-max=1024",
            "--heartbeat-interval=0s",
            "--threads=0",
            "--threads=1025",
            "--record-bytes-max=4096",
            "--peer-share=0",
            "--peer-share=101",
        ] {
            assert!(parse(&[flag]).is_err(), "{flag}");
        }
    }
}

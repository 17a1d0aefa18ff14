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

/// Decides what is to be done so that ReplicaSets have the pods they want.
#[derive(Clone, Debug, Parser)]
#[command(name = "decree-server", version = build_info::text())]
pub struct Args {
    /// The file.
    #[command(flatten)]
    pub file: config::ConfigArgs,
    /// The logs.
    #[command(flatten)]
    pub log: LogArgs,
    /// The number of threads that serve the sessions, beside those that are added for long steps. By default as many as the machine has
    /// processors, and two at least.
    #[arg(long, env = "DECREE_THREADS", value_parser = threads)]
    pub threads: Option<usize>,
    /// The server itself.
    #[command(flatten)]
    pub server: Config,
}

/// Where the server listens, how long it waits, and what it bears.
#[derive(Clone, Debug, PartialEq, Group)]
pub struct Config {
    /// Listen address for gRPC: ADDRESS:PORT, or `unix:PATH` for a Unix socket. Port 0 picks a free port and logs it. For other
    /// machines it needs TLS, proof of peers (`--tls-ca` or `--token-keys`) and a `--policy`, unless `--insecure` is given.
    #[arg(long, env = "DECREE_LISTEN", default_value = "127.0.0.1:50051")]
    pub listen: ListenEndpoint,

    /// Listen address for /livez, /readyz, /metrics and the console over HTTP, or `off`. With a trailing `?`, a free port is used if this one is
    /// taken.
    #[arg(long, env = "DECREE_ADMIN", default_value = "127.0.0.1:8080?")]
    pub admin: ListenAddr,

    /// Listen address for grpc.health.v1.Health only, without TLS, for probes, or `off`; `?` as for `--admin`.
    #[arg(long, env = "DECREE_PROBE", default_value = "127.0.0.1:8082?")]
    pub probe: ListenAddr,

    /// How long sessions have to finish after SIGTERM before they are closed.
    #[arg(long, env = "DECREE_DRAIN_DEADLINE", default_value = "20s", value_parser = config::duration)]
    pub drain_deadline: Duration,

    /// How long agents should wait after a drain before they reconnect.
    #[arg(long, env = "DECREE_RECONNECT_AFTER", default_value = "1s", value_parser = config::duration)]
    pub reconnect_after: Duration,

    /// The interval of heartbeats on an idle session; a session ends after four intervals without a frame.
    #[arg(long, env = "DECREE_HEARTBEAT_INTERVAL", default_value = "5s", value_parser = interval)]
    pub heartbeat_interval: Duration,

    /// How long a new stream may take to send its Hello, and a new connection to end its TLS handshake and to
    /// begin its first call.
    #[arg(long, env = "DECREE_HELLO_DEADLINE", default_value = "5s", value_parser = config::duration)]
    pub hello_deadline: Duration,

    /// How long a connection may be open without a call before it is closed. Its first call must come within --hello-deadline.
    #[arg(long, env = "DECREE_IDLE_DEADLINE", default_value = "60s", value_parser = config::duration)]
    pub idle_deadline: Duration,

    /// The deadline of unary calls whose caller sets none that is shorter.
    #[arg(long, env = "DECREE_DEADLINE", default_value = "10s", value_parser = config::duration)]
    pub deadline: Duration,

    /// The longest delay between two tries of a ReplicaSet whose writes are refused, by a quota or an admission webhook for example.
    #[arg(long, env = "DECREE_BACKOFF_MAX", default_value = "30s", value_parser = interval)]
    pub backoff_max: Duration,

    /// Who may do what.
    #[command(flatten)]
    pub access: AccessArgs,

    /// What the server bears.
    #[command(flatten)]
    pub limits: Limits,

    /// What it keeps of its sessions.
    #[command(flatten)]
    pub recording: Recording,

    /// How peers are received.
    #[command(flatten)]
    pub tls: transport::ServerArgs,

    /// Seed for session ids, and so for pod names. Set it only where two runs must print the same: ids of different servers must never
    /// be equal. By default, ids are random.
    #[arg(skip)]
    pub session_seed: Option<u64>,

    /// Where traces go.
    #[command(flatten)]
    pub otlp: otlp::OtlpArgs,
}

/// Where recordings of sessions are kept, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Recording")]
pub struct Recording {
    /// Record the frames of all sessions in files in this folder, for `decree replay`. The folder is created if it is missing, and only one server can use it
    #[arg(long, env = "DECREE_RECORD", value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Maximum size of all recordings together, in bytes, at least 1048576. The oldest are deleted first; a single one may take a quarter
    #[arg(long, env = "DECREE_RECORD_BYTES_MAX", default_value_t = 1 << 30, value_parser = many_bytes)]
    pub record_bytes_max: u64,
}

/// Bounds everything that a peer could make grow.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// The maximum size of a message in either direction, in bytes; at least 512 KiB, so that a burst of 500 deletes fits.
    #[arg(long, env = "DECREE_FRAME_BYTES_MAX", default_value_t = 4 << 20, value_parser = frame_bytes)]
    pub frame_bytes_max: usize,

    /// The maximum number of sessions. When it is reached, one of another identity gives way to a new one if that identity holds at least two more.
    #[arg(long, env = "DECREE_SESSIONS_MAX", default_value_t = 256, value_parser = count)]
    pub sessions_max: usize,

    /// The maximum number of streams that have not sent their Hello. When it is reached, a new one displaces the oldest of the identity that has most.
    #[arg(long, env = "DECREE_PENDING_SESSIONS_MAX", default_value_t = 256, value_parser = count)]
    pub pending_sessions_max: usize,

    /// The maximum number of concurrent calls other than sessions. When it is reached, a new one displaces the oldest of the identity that has most.
    #[arg(long, env = "DECREE_CALLS_MAX", default_value_t = 256, value_parser = count)]
    pub calls_max: usize,

    /// The maximum number of bytes, over all connections, of messages that have not arrived completely and of unary calls that are not
    /// answered. When it is reached, the call of the identity that holds most is refused that has held its bytes for longest.
    #[arg(long, env = "DECREE_RECEIVED_BYTES_MAX", default_value_t = 64 << 20, value_parser = frame_bytes)]
    pub received_bytes_max: usize,

    /// The share of connections, calls, streams without a Hello and received bytes that one peer address may have, in percent. What
    /// belongs to sessions is not counted.
    #[arg(long, env = "DECREE_PEER_SHARE", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub peer_share: u8,

    /// The maximum memory for what all sessions together hold of their clusters, in bytes. Beyond it, the largest session of the identity
    /// that holds most is ended. The process takes up to half as much again for frames, calls and the allocator; a pod takes about 500 bytes.
    #[arg(long, env = "DECREE_MEMORY_MAX", default_value_t = MEMORY_MAX, value_parser = memory_bytes)]
    pub memory_max: usize,

    /// The maximum memory for what one session holds of its cluster, in bytes.
    #[arg(long, env = "DECREE_SESSION_MEMORY_MAX", default_value_t = SESSION_MEMORY_MAX, value_parser = memory_bytes)]
    pub session_memory_max: usize,

    /// The maximum number of pods and ReplicaSets per session.
    #[arg(long, env = "DECREE_OBJECTS_MAX", default_value_t = 1_000_000, value_parser = count)]
    pub objects_max: usize,

    /// The maximum number of operations per session without an outcome; further batches wait.
    #[arg(long, env = "DECREE_OPERATIONS_IN_FLIGHT_MAX", default_value_t = 10_000, value_parser = count)]
    pub operations_in_flight_max: usize,

    /// The maximum number of WatchDecisions streams. When it is reached, one of another identity gives way to a new one if that identity holds at
    /// least two more.
    #[arg(long, env = "DECREE_WATCHERS_MAX", default_value_t = 64, value_parser = count)]
    pub watchers_max: usize,

    /// The number of decisions buffered for a slow WatchDecisions stream before it misses some.
    #[arg(long, env = "DECREE_WATCH_BUFFER", default_value_t = 256, value_parser = count)]
    pub watch_buffer: usize,

    /// The maximum number of unary decisions computed at a time, beside the threads of the sessions; further ones wait within their
    /// deadline, and identities take turns.
    #[arg(long, env = "DECREE_DECIDES_MAX", default_value_t = 2, value_parser = count)]
    pub decides_max: usize,

    /// The maximum number of pods and ReplicaSets that a unary decision is made from.
    #[arg(long, env = "DECREE_DECIDE_OBJECTS_MAX", default_value_t = 100_000, value_parser = count)]
    pub decide_objects_max: usize,

    /// The maximum number of connections. When it is reached, a new connection displaces the one without a session that was opened first by the
    /// identity that has most.
    #[arg(long, env = "DECREE_CONNECTIONS_MAX", default_value_t = 512, value_parser = count)]
    pub connections_max: usize,

    /// The maximum number of connections of the admin port, and of the probe port. A new one displaces the oldest of the peer address that has most.
    #[arg(long, env = "DECREE_ADMIN_CONNECTIONS_MAX", default_value_t = 64, value_parser = count)]
    pub admin_connections_max: usize,

    /// The maximum number of pages of the console that are followed at a time. A new one displaces the oldest. 0 turns the console off.
    #[arg(long, env = "DECREE_CONSOLE_STREAMS_MAX", default_value_t = 16)]
    pub console_streams_max: u8,

    /// The maximum number of concurrent streams per connection.
    #[arg(long, env = "DECREE_STREAMS_MAX", default_value_t = 64, value_parser = small_count)]
    pub streams_max: u32,

    /// The HTTP/2 window of a stream, in bytes: what a peer may send before the server reads.
    #[arg(long, env = "DECREE_STREAM_WINDOW_BYTES", default_value_t = 1 << 20, value_parser = small_count)]
    pub stream_window_bytes: u32,

    /// The HTTP/2 window of a connection, in bytes.
    #[arg(long, env = "DECREE_CONNECTION_WINDOW_BYTES", default_value_t = 4 << 20, value_parser = small_count)]
    pub connection_window_bytes: u32,

    /// The maximum number of streams per connection that are reset for errors of the peer before the connection is closed.
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

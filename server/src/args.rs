//! Flags and environment of `decree-server`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use clap::{Args as Group, Parser, builder::RangedU64ValueParser};
use service::transport::ListenEndpoint;
use service::{ListenAddr, LogArgs, config};

use crate::access::args::AccessArgs;

/// The files that a server opens besides its connections: listeners, recordings, standard streams.
const FILES_BESIDE: usize = 64;
/// Fits into the 512 MiB that the manifests grant.
const MEMORY_MAX: usize = 288 << 20;
/// Fits about 400,000 pods. Less than [`MEMORY_MAX`], so that one session does not take everything.
const SESSION_MEMORY_MAX: usize = 192 << 20;
/// The range of sizes in bytes.
const BYTES: RangeInclusive<u64> = 1 << 20..=1 << 50;
/// The maximum number of connections is at least this.
const CONNECTIONS_MIN: usize = 512;
/// The maximum number of streams without a Hello is at least this.
const PENDING_SESSIONS_MIN: usize = 256;

type Count = RangedU64ValueParser<usize>;

/// Decides which pods to create and delete for ReplicaSets. Agents execute the decisions in their clusters.
#[derive(Clone, Debug, Parser)]
#[command(name = "decree-server", version = service::build_info::text())]
pub struct Args {
    /// The logs.
    #[command(flatten)]
    pub log: LogArgs,
    /// The server itself.
    #[command(flatten)]
    pub server: Config,
}

/// Listen addresses, timeouts and limits of the server.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
pub struct Config {
    /// Listen address for gRPC: ADDRESS:PORT, or `unix:PATH` for a Unix socket. Port 0 picks a free port and logs it. An address on the
    /// network needs TLS, authentication (`--tls-ca` or `--token-keys`) and a `--policy`, or `--insecure`.
    #[arg(long, env = "DECREE_LISTEN", default_value = "127.0.0.1:50051")]
    pub listen: ListenEndpoint,

    /// Listen address for /livez, /readyz, /metrics and the console over HTTP, or `off`. With a trailing `?`, the server uses a free port
    /// if this port is taken.
    #[arg(long, env = "DECREE_ADMIN", default_value = "127.0.0.1:8080?")]
    pub admin: ListenAddr,

    /// The time for sessions to finish after SIGTERM before the server closes them.
    #[arg(long, env = "DECREE_DRAIN_DEADLINE", default_value = "20s", value_parser = config::duration)]
    pub drain_deadline: Duration,

    /// The interval of heartbeats on an idle session; a session ends after four intervals without a frame.
    #[arg(long, env = "DECREE_HEARTBEAT_INTERVAL", default_value = "5s", value_parser = interval)]
    pub heartbeat_interval: Duration,

    /// The maximum time for the Hello of a new stream, and for the TLS handshake and the first call of a new connection.
    #[arg(long, env = "DECREE_HELLO_DEADLINE", default_value = "5s", value_parser = interval)]
    pub hello_deadline: Duration,

    /// How long a connection may be open without a call before it is closed. Its first call must come within `hello_deadline`.
    #[arg(skip = Duration::from_mins(1))]
    pub idle_deadline: Duration,

    /// The maximum deadline of unary calls.
    #[arg(long, env = "DECREE_DEADLINE", default_value = "10s", value_parser = interval)]
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
    pub tls: service::transport::ServerArgs,

    /// Seed for session ids, and so for pod names. Set it only for runs with equal output: ids of different servers must never be equal. By
    /// default, ids are random.
    #[arg(skip)]
    pub session_seed: Option<u64>,
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
    #[arg(long, env = "DECREE_RECORD_BYTES_MAX", default_value_t = 1 << 30, requires = "record", value_parser = clap::value_parser!(u64).range(BYTES))]
    pub record_bytes_max: u64,
}

/// The limits of what peers can use. Those without a flag are constants, which tests change.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// The maximum number of sessions. At the limit, a new session of an identity with fewer displaces the newest one of the identity that has most.
    #[arg(long, env = "DECREE_SESSIONS_MAX", default_value_t = 256, value_parser = Count::new().range(1..=1 << 30))]
    pub sessions_max: usize,

    /// The maximum memory of all sessions together, in bytes. Beyond it, the newest session of the identity that holds most is ended. The
    /// process takes up to half as much again for frames, calls and the allocator; a pod takes about 500 bytes.
    #[arg(long, env = "DECREE_MEMORY_MAX", default_value_t = MEMORY_MAX, value_parser = Count::new().range(BYTES))]
    pub memory_max: usize,

    /// The maximum memory of one session, in bytes.
    #[arg(long, env = "DECREE_SESSION_MEMORY_MAX", default_value_t = SESSION_MEMORY_MAX, value_parser = Count::new().range(BYTES))]
    pub session_memory_max: usize,

    /// The maximum number of open pages of the console. A new page displaces the oldest. 0 turns the console off.
    #[arg(long, env = "DECREE_CONSOLE_STREAMS_MAX", default_value_t = 16)]
    pub console_streams_max: u8,

    /// The maximum size of a message in either direction, in bytes; at least 512 KiB, so that a burst of 500 deletes fits.
    #[arg(skip = 4_usize << 20)]
    pub frame_bytes_max: usize,

    /// The maximum number of concurrent calls other than sessions.
    #[arg(skip = 256_usize)]
    pub calls_max: usize,

    /// The maximum number of pods, ReplicaSets and nodes per session. `session_memory_max` is reached before.
    #[arg(skip = 4_000_000_usize)]
    pub objects_max: usize,

    /// The maximum number of operations per session without an outcome; further batches wait.
    #[arg(skip = 10_000_usize)]
    pub operations_in_flight_max: usize,

    /// The maximum number of `WatchDecisions` streams.
    #[arg(skip = 64_usize)]
    pub watchers_max: usize,

    /// The number of decisions buffered for a slow `WatchDecisions` stream before it misses some.
    #[arg(skip = 256_usize)]
    pub watch_buffer: usize,

    /// The maximum number of pods and ReplicaSets that a unary decision is made from.
    #[arg(skip = 100_000_usize)]
    pub decide_objects_max: usize,

    /// The maximum number of connections of the admin port.
    #[arg(skip = 64_usize)]
    pub admin_connections_max: usize,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = Some(config::duration(text)?).filter(|it| !it.is_zero());
    interval.ok_or_else(|| "must be above 0".to_owned())
}

impl Default for Config {
    fn default() -> Self {
        config::defaults()
    }
}

impl Config {
    /// The maximum number of files and sockets that the server opens.
    pub fn files(&self) -> u64 {
        let limits = &self.limits;
        let streams = usize::from(limits.console_streams_max);
        (limits.connections_max() + limits.admin_connections_max + streams + FILES_BESIDE) as u64
    }

    /// The default configuration with free ports of the loopback interface, for use inside another process.
    pub fn embedded() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            listen: free.into(),
            admin: ListenAddr::At(free),
            ..Self::default()
        }
    }
}

impl Limits {
    /// The maximum number of connections: room for a new connection of each session beside its old one.
    pub fn connections_max(&self) -> usize {
        CONNECTIONS_MIN.max(self.sessions_max.saturating_mul(2))
    }

    /// The maximum number of streams that have not sent their Hello: all agents reconnect at once after a restart.
    pub(crate) fn pending_sessions_max(&self) -> usize {
        PENDING_SESSIONS_MIN.max(self.sessions_max)
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
    fn limits_out_of_range_and_flags_without_effect_are_refused() {
        for flag in [
            "--sessions-max=0",
            "--heartbeat-interval=0s",
            "--hello-deadline=0s",
            "--deadline=0s",
            "--record-bytes-max=4096",
            "--record-bytes-max=2097152",
            "--tls-client-auth=optional",
        ] {
            assert!(parse(&[flag]).is_err(), "{flag}");
        }
    }
}

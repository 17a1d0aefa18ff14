//! Misspelt environment variables: without a warning, their setting would silently not apply.

use std::env;

use tracing::warn;

const PREFIX: &str = "DECREE_";

/// The variables of all programs, without the prefix. A shell or container may have variables for another program.
const OF_PROGRAMS: &[&str] = &[
    "ACCESS_INTERVAL",
    "ADMIN",
    "ADMIN_CONNECTIONS_MAX",
    "AGENT_ADMIN",
    "API_BURST",
    "API_QPS",
    "BACKOFF_MAX",
    "BUDGET_ACTION",
    "BUDGET_FLOOR",
    "BUILT_IN_CONTROLLER",
    "BURST_REPLICAS",
    "CALLS_MAX",
    "CLUSTER",
    "CLUSTER_NAME",
    "CONFIG",
    "CONNECTIONS_MAX",
    "CONNECTION_WINDOW_BYTES",
    "CONSOLE_STREAMS_MAX",
    "CONTEXT",
    "CREATE_BACK_OFF",
    "CREATE_BUDGET_CLUSTER",
    "CREATE_BUDGET_NAMESPACE",
    "CREATE_BUDGET_REPLICASET",
    "DEADLINE",
    "DECIDES_MAX",
    "DECIDE_OBJECTS_MAX",
    "DELETE_BUDGET_CLUSTER",
    "DELETE_BUDGET_NAMESPACE",
    "DELETE_BUDGET_REPLICASET",
    "DRAIN_DEADLINE",
    "ETCD_REQUEST_TIMEOUT",
    "FAKE_GRACE",
    "FAKE_NODES",
    "FAKE_READY_AFTER",
    "FAKE_SCHEDULE_AFTER",
    "FAKE_SEED",
    "FAKE_START_AFTER",
    "FRAME_BYTES_MAX",
    "HEARTBEAT_INTERVAL",
    "HELLO_DEADLINE",
    "IDLE_DEADLINE",
    "INSECURE",
    "KUBECONFIG",
    "LABEL_SELECTOR",
    "LEADER_ELECT",
    "LEASE_DURATION",
    "LEASE_NAME",
    "LEASE_NAMESPACE",
    "LISTEN",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "MANIFEST",
    "MEMORY_MAX",
    "MODE",
    "NAMESPACE",
    "OBJECTS_MAX",
    "OPERATIONS_IN_FLIGHT_MAX",
    "OTLP_CA",
    "OTLP_ENDPOINT",
    "OTLP_SAMPLE_RATIO",
    "PEER_SHARE",
    "PENDING_SESSIONS_MAX",
    "POLICY",
    "PROBE",
    "PUBLIC_SERVICES",
    "RECEIVED_BYTES_MAX",
    "RECONNECT_AFTER",
    "RECORD",
    "RECORD_BYTES_MAX",
    "RESETS_MAX",
    "RESOURCE",
    "SERVER",
    "SESSIONS_MAX",
    "SESSION_MEMORY_MAX",
    "SHARD",
    "STREAMS_MAX",
    "STREAM_WINDOW_BYTES",
    "THREADS",
    "TLS_CA",
    "TLS_CERT",
    "TLS_CLIENT_AUTH",
    "TLS_CRL",
    "TLS_KEY",
    "TLS_RELOAD_INTERVAL",
    "TLS_SERVER_NAME",
    "TOKEN_AUDIENCE",
    "TOKEN_FILE",
    "TOKEN_ISSUER",
    "TOKEN_KEYS",
    "TOKEN_KEYS_CA",
    "TOKEN_LEEWAY",
    "UNASSIGNED_CREATES",
    "UNASSIGNED_PODS_MAX",
    "WATCHERS_MAX",
    "WATCH_BUFFER",
];

const OF_BUILDS_AND_TESTS: &[&str] = &[
    "BEFORE",
    "BENCH_MINUTES",
    "BENCH_ROUNDS",
    "BUSY_SECONDS",
    "CACHE",
    "CHROMIUM",
    "COMMIT",
    "CRASH_PLAN",
    "CRASH_PLANS",
    "DEPTH",
    "EXPLORE",
    "FUZZ_FIRST",
    "FUZZ_INPUTS",
    "FUZZ_SECONDS",
    "FUZZ_SEED",
    "GOLDEN",
    "HOSTILE_CELL",
    "HOSTILE_MEASURED",
    "HOSTILE_TABLE",
    "KEEP_RECORDINGS",
    "LOAD_AGENTS",
    "LOAD_CLUSTERS",
    "MALICIOUS_RUNS",
    "MALICIOUS_SEED",
    "MUCH_AGENTS",
    "MUCH_MINUTES",
    "MUCH_PART",
    "MUCH_RATE",
    "MUCH_SECONDS",
    "RELEASE",
    "ROTATIONS",
    "ROUNDS",
    "SHADOW_SEED",
    "SIM_RUNS",
    "SIM_SEED",
    "SIM_TRACE",
    "TLS",
];

/// The maximum number of wrong letters in ten for a suggestion.
const WRONG_OF_TEN: usize = 3;

/// A warning for each variable of this process that no program reads.
#[must_use]
pub fn unknown() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown_among(names)
}

/// Logs a warning for each variable that no program reads.
pub fn warn_of_unknown() {
    for unknown in unknown() {
        warn!("{unknown}");
    }
}

fn unknown_among(names: impl Iterator<Item = String>) -> Vec<String> {
    let unknown = names.filter_map(|name| {
        let own = name.strip_prefix(PREFIX)?;
        let is_known = OF_PROGRAMS.contains(&own) || OF_BUILDS_AND_TESTS.contains(&own);
        if is_known || is_service_link(own) {
            return None;
        }
        let meant = nearest(own).map(|known| format!(": is {PREFIX}{known} meant?"));
        Some(format!(
            "the environment variable {} is unknown and has no effect{}",
            crate::escaped(&name),
            meant.unwrap_or_default()
        ))
    });
    let mut unknown: Vec<_> = unknown.collect();
    unknown.sort();
    unknown
}

/// Whether the kubelet sets such a variable for a Service whose name begins with `decree-`.
fn is_service_link(name: &str) -> bool {
    let name = format!("_{name}");
    let mut ports = name
        .match_indices("_PORT")
        .map(|(at, port)| &name[at + port.len()..]);
    let is_number = |rest: &str| {
        let rest = rest.strip_prefix('_');
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || ports.any(|rest| rest.is_empty() || is_number(rest))
}

fn nearest(name: &str) -> Option<&'static str> {
    let distances = OF_PROGRAMS
        .iter()
        .map(|known| (distance(name, known), *known));
    let (distance, known) = distances.min()?;
    (distance * 10 <= known.len() * WRONG_OF_TEN).then_some(known)
}

/// The number of insertions, deletions and replacements that turn one name into the other.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<_> = (0..=right.len()).collect();
    for (at, one) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, other) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(one != other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &[&str]) -> Vec<String> {
        unknown_among(names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn misspelt_variable_is_named_with_the_one_that_is_meant() {
        let names = [
            "PATH",
            "DECREE_CREATE_BUDGET_REPLICA_SET",
            "DECREE_LOGLEVEL",
            "DECREE_WEATHER",
            "DECREE_",
        ];
        let unknown = |name: &str, meant: &str| {
            format!("the environment variable {name} is unknown and has no effect{meant}")
        };
        let expected = [
            unknown("DECREE_", ""),
            unknown(
                "DECREE_CREATE_BUDGET_REPLICA_SET",
                ": is DECREE_CREATE_BUDGET_REPLICASET meant?",
            ),
            unknown("DECREE_LOGLEVEL", ": is DECREE_LOG_LEVEL meant?"),
            unknown("DECREE_WEATHER", ""),
        ];
        assert_eq!(said(&names), expected);
    }

    #[test]
    fn what_another_program_or_a_test_reads_or_the_kubelet_sets_is_known() {
        let names = [
            "DECREE_SERVER",
            "DECREE_LISTEN",
            "DECREE_CACHE",
            "DECREE_SIM_RUNS",
            "DECREE_SERVICE_HOST",
            "DECREE_PORT",
            "DECREE_SERVER_SERVICE_HOST",
            "DECREE_SERVER_SERVICE_PORT",
            "DECREE_SERVER_SERVICE_PORT_GRPC",
            "DECREE_SERVER_PORT",
            "DECREE_SERVER_PORT_50051_TCP",
            "DECREE_SERVER_PORT_50051_TCP_ADDR",
        ];
        assert_eq!(said(&names), [""; 0]);
        assert_eq!(said(&["DECREE_PORTS"]).len(), 1);
    }

    #[test]
    fn distance_counts_letters() {
        for (left, right, expected) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "ac", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), expected);
            assert_eq!(distance(right, left), expected);
        }
    }
}

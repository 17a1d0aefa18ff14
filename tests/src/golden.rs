//! Reads recorded answers of upstream: one JSON object a line, in `../shared/golden` beside the checkout.

use std::{env, fs, path::PathBuf};

use agent_core::project::{project_pod, project_replica_set};
use serde_json::Value;
use server_core::{Pod, ReplicaSet, Timestamp};

/// Returns the cases of a file, or `None` with a printed notice where the folder is absent. In CI an absent folder is a failure.
///
/// # Panics
/// If a line is not JSON, or the folder is absent in CI.
#[must_use]
pub fn cases(file: &str) -> Option<Vec<Value>> {
    let folder = env::var_os("DECREE_GOLDEN").map_or_else(beside_the_checkout, PathBuf::from);
    let path = folder.join(file);
    let Ok(text) = fs::read_to_string(&path) else {
        assert!(
            env::var_os("CI").is_none(),
            "{} is absent, and CI skips nothing",
            path.display()
        );
        eprintln!("skipped: {} is absent", path.display());
        return None;
    };
    let parse = |line: &str| serde_json::from_str(line).expect("a golden line is JSON");
    Some(text.lines().map(parse).collect())
}

fn beside_the_checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden")
}

/// Takes a pod the whole way from Kubernetes' JSON to the core.
///
/// # Panics
/// If a room on the way refuses it.
#[must_use]
pub fn pod(object: &Value) -> Pod {
    let projected = project_pod(object).expect("golden pods can be projected");
    decree_server::wire::decode::pod(projected).expect("golden pods keep the contract")
}

/// Takes a ReplicaSet the whole way from Kubernetes' JSON to the core.
///
/// # Panics
/// If a room on the way refuses it.
#[must_use]
pub fn replica_set(object: &Value) -> ReplicaSet {
    let projected = project_replica_set(object).expect("golden ReplicaSets can be projected");
    decree_server::wire::decode::replica_set(projected)
        .expect("golden ReplicaSets keep the contract")
}

/// Reads a time as the API writes it.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn time(value: &Value) -> Timestamp {
    let text = value.as_str().expect("a time is a text");
    let time: jiff::Timestamp = text.parse().expect("a time is written as RFC 3339");
    Timestamp(i64::try_from(time.as_nanosecond()).expect("recorded times are near"))
}

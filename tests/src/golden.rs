//! Reads recorded answers of upstream: one JSON object a line, compressed, in `tests/golden/data`.

use std::{
    env,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use agent_kube::objects;
use decree_core::{Pod, ReplicaSet, Timestamp};
use flate2::read::GzDecoder;
use serde_json::Value;

/// Returns the cases of a file, from the checkout or from the folder that `DECREE_GOLDEN` names.
///
/// # Panics
/// If the file cannot be read, or a line is not JSON.
pub fn cases(file: &str) -> Vec<Value> {
    let folder = env::var_os("DECREE_GOLDEN").map_or_else(recorded, PathBuf::from);
    let path = folder.join(format!("{file}.gz"));
    let packed = File::open(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let lines = BufReader::new(GzDecoder::new(packed)).lines();
    let parse = |line: String| serde_json::from_str(&line).expect("a golden line is JSON");
    lines
        .map(|line| parse(line.expect("a golden file is whole")))
        .collect()
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data")
}

/// Converts a pod from Kubernetes' JSON to the core, through all conversions.
///
/// # Panics
/// If a conversion refuses it.
pub fn pod(object: &Value) -> Pod {
    let projected = objects::pod(object).expect("golden pods can be projected");
    server_session::wire::decode::pod(&projected).expect("golden pods keep the contract")
}

/// Converts a ReplicaSet from Kubernetes' JSON to the core, through all conversions.
///
/// # Panics
/// If a conversion refuses it.
pub fn replica_set(object: &Value) -> ReplicaSet {
    let projected = objects::replica_set(object).expect("golden ReplicaSets can be projected");
    server_session::wire::decode::unverified_replica_set(&projected.projected)
        .expect("golden ReplicaSets keep the contract")
}

/// Reads a time as the API writes it.
///
/// # Panics
/// If the value is not a time.
pub fn time(value: &Value) -> Timestamp {
    let text = value.as_str().expect("a time is a text");
    let time: jiff::Timestamp = text.parse().expect("a time is written as RFC 3339");
    Timestamp(i64::try_from(time.as_nanosecond()).expect("recorded times are near"))
}

//! The rows of one interval.

use std::{cmp::Ordering, collections::BTreeSet, time::Duration};

use decree::v1;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::meter::{Meter, Rate};
use crate::{
    age,
    args::Order,
    cause::{self, state},
    get::{cluster, mode, view_age},
    table::Table,
};

const MEBIBYTE: u64 = 1 << 20;
const SESSIONS: [&str; 8] = [
    "CLUSTER",
    "MODE",
    "DEC/S",
    "OPS/S",
    "IN-FLIGHT",
    "MEMORY",
    "MEMORY%",
    "OBJECTS%",
];
const REPLICA_SETS: [&str; 8] = [
    "REPLICASET",
    "DEC/S",
    "OPS/S",
    "IN-FLIGHT",
    "AVAILABLE",
    "UNCONVERGED",
    "STATE",
    "CAUSE",
];

/// All sessions and ReplicaSets after one interval, the busiest first.
#[derive(Debug)]
pub(super) struct View {
    pub(super) at: Timestamp,
    sessions: Vec<Busy<v1::SessionSummary>>,
    sets: Vec<Busy<v1::ReplicaSetSummary>>,
    /// The number of decisions that the rates leave out.
    pub(super) missed: u64,
}

/// An object with its rates.
#[derive(Debug)]
struct Busy<T> {
    what: T,
    rate: Rate,
}

// === impl View ===

impl View {
    /// Puts the ReplicaSets first that `order` asks for.
    pub(super) fn new(
        at: Timestamp,
        sessions: Vec<v1::SessionSummary>,
        sets: Vec<v1::ReplicaSetSummary>,
        rates: &Meter,
        order: Order,
    ) -> Self {
        let sessions = sessions.into_iter().map(|what| Busy {
            rate: rates.of_cluster(cluster(&what)),
            what,
        });
        let sets = sets.into_iter().map(|what| {
            let uid = what.replica_set.as_ref().map_or("", |object| &object.uid);
            let rate = rates.of_set(&what.cluster, uid);
            Busy { what, rate }
        });
        let mut sets: Vec<_> = sets.collect();
        let orders = [
            order,
            Order::Decisions,
            Order::Operations,
            Order::InFlight,
            Order::Unconverged,
        ];
        sets.sort_by(|left, right| {
            let orders = orders.iter();
            let compared = orders.map(|order| compare(left, right, *order, at));
            let compared = compared.fold(Ordering::Equal, Ordering::then);
            compared.then_with(|| path(&left.what).cmp(&path(&right.what)))
        });
        Self {
            at,
            sessions: sessions.collect(),
            sets,
            missed: rates.missed,
        }
    }

    /// The sessions. Several shards of a cluster share the rates of the cluster.
    pub(super) fn sessions(&self, is_wide: bool) -> Table {
        let wide = ["SHARD", "REPLICASETS", "PODS", "VIEW-AGE"].into_iter();
        let headers = SESSIONS.into_iter().chain(wide.filter(|_| is_wide));
        let mut table = Table::new(headers);
        for Busy { what, rate } in &self.sessions {
            let objects = what.replica_sets.saturating_add(what.pods);
            let cells = [
                cluster(what).to_owned(),
                mode(what.mode()).to_owned(),
                per_second(rate.decisions),
                per_second(rate.operations),
                what.batches_in_flight.to_string(),
                mebibytes(what.memory_bytes),
                percent(what.memory_bytes, what.memory_bytes_max),
                percent(objects, what.objects_max),
            ];
            let wide = [
                what.shard.clone(),
                what.replica_sets.to_string(),
                what.pods.to_string(),
                view_age(what).unwrap_or_default(),
            ];
            let wide = wide.into_iter().filter(|_| is_wide);
            table.row(cells.into_iter().chain(wide));
        }
        table
    }

    pub(super) fn replica_sets(&self, most: usize) -> Table {
        let clusters: BTreeSet<_> = self.sets.iter().map(|it| &it.what.cluster).collect();
        let has_clusters = clusters.len() > 1;
        let cluster = has_clusters.then_some("CLUSTER");
        let mut table = Table::new(cluster.into_iter().chain(REPLICA_SETS));
        for Busy { what, rate } in self.sets.iter().take(most) {
            let (namespace, name) = path(what);
            let cells = [
                format!("{namespace}/{name}"),
                per_second(rate.decisions),
                per_second(rate.operations),
                what.operations_in_flight.to_string(),
                format!("{}/{}", what.available, what.replicas),
                unconverged(what, self.at).map_or_else(|| "-".to_owned(), age::human),
                state(what).to_owned(),
                cause::cell(what, self.at),
            ];
            let cluster = has_clusters.then(|| what.cluster.clone());
            table.row(cluster.into_iter().chain(cells));
        }
        table
    }

    /// The first `most` ReplicaSets and all sessions for programs, and the names of these ReplicaSets.
    pub(super) fn json(&self, most: usize) -> (Value, Vec<&str>) {
        let sessions = self.sessions.iter().map(|Busy { what, rate }| {
            json!({
                "cluster": cluster(what), "shard": what.shard, "mode": mode(what.mode()),
                "replicaSets": what.replica_sets, "pods": what.pods,
                "decisionsPerSecond": rate.decisions, "operationsPerSecond": rate.operations,
                "batchesInFlight": what.batches_in_flight,
                "memoryBytes": what.memory_bytes, "memoryBytesMax": what.memory_bytes_max, "objectsMax": what.objects_max,
            })
        });
        let sets = self.sets.iter().take(most);
        let rows = sets.clone().map(|Busy { what, rate }| {
            let (namespace, name) = path(what);
            json!({
                "cluster": what.cluster, "namespace": namespace, "name": name,
                "decisionsPerSecond": rate.decisions, "operationsPerSecond": rate.operations,
                "operationsInFlight": what.operations_in_flight,
                "desired": what.replicas, "available": what.available,
                "unconvergedSeconds": unconverged(what, self.at).map(|span| span.as_secs()),
                "state": state(what), "cause": what.cause.as_ref().map(|cause| &cause.text),
            })
        });
        let (sessions, rows): (Vec<_>, Vec<_>) = (sessions.collect(), rows.collect());
        let names = sets.map(|set| path(&set.what).1).collect();
        (
            json!({"sessions": sessions, "replicaSets": rows, "missed": self.missed}),
            names,
        )
    }
}

fn compare(
    left: &Busy<v1::ReplicaSetSummary>,
    right: &Busy<v1::ReplicaSetSummary>,
    order: Order,
    at: Timestamp,
) -> Ordering {
    match order {
        Order::Decisions => right.rate.decisions.total_cmp(&left.rate.decisions),
        Order::Operations => right.rate.operations.total_cmp(&left.rate.operations),
        Order::InFlight => right
            .what
            .operations_in_flight
            .cmp(&left.what.operations_in_flight),
        Order::Unconverged => unconverged(&right.what, at).cmp(&unconverged(&left.what, at)),
    }
}

/// The time since a ReplicaSet has not converged; `None` if it has.
fn unconverged(set: &v1::ReplicaSetSummary, at: Timestamp) -> Option<Duration> {
    let since = age::wire_time(set.unconverged_since.as_ref()?)?;
    Some(Duration::try_from(at.duration_since(since)).unwrap_or_default())
}

fn path(set: &v1::ReplicaSetSummary) -> (&str, &str) {
    let object = set.replica_set.as_ref();
    object.map_or(("", ""), |object| (&object.namespace, &object.name))
}

fn per_second(rate: f64) -> String {
    format!("{rate:.1}")
}

fn mebibytes(bytes: i64) -> String {
    format!("{}Mi", u64::try_from(bytes).unwrap_or(0).div_ceil(MEBIBYTE))
}

fn percent(part: i64, whole: i64) -> String {
    match u64::try_from(whole) {
        // The server does not report its limits.
        Err(_) | Ok(0) => "<unknown>".to_owned(),
        Ok(whole) => {
            let part = u64::try_from(part).unwrap_or(0);
            format!("{}%", part.saturating_mul(100).div_ceil(whole))
        }
    }
}

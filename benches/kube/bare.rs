//! The capacity of the API server for a client that decides nothing: creates, one after the other on each of many connections.

use std::time::Instant;

use serde_json::json;
use tests::real::{ApiServer, Namespace};
use tokio::task::JoinSet;

use crate::{
    meter::{self, Cost},
    objects::pod_spec,
};

const LINES: usize = 64;

/// The cost of creating `pods` pods on a fresh API server.
pub(crate) async fn creates(pods: usize) -> Cost {
    let server = ApiServer::start().await.expect("there is an API server");
    let namespace = Namespace::create(server.admin().await, "bench").await;
    let cluster = server.pids();
    meter::until_quiet(&cluster).await;
    let before = meter::processor_time(&cluster);
    let start = Instant::now();
    let mut lines = JoinSet::new();
    for line in 0..LINES {
        let namespace = namespace.clone();
        lines.spawn(async move {
            for at in (line..pods).step_by(LINES) {
                let pod = json!({
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": format!("pod-{at}"), "labels": {"app": "bare"}},
                    "spec": pod_spec(),
                });
                let created = namespace.api().create(&namespace.pod(""), &pod).await;
                created.expect("the API server takes it");
            }
        });
    }
    lines.join_all().await;
    let seconds = start.elapsed().as_secs_f64();
    let spent = meter::processor_time(&cluster) - before;
    Cost {
        seconds,
        // The client is the benchmark, which does more than create pods.
        processor: f64::NAN,
        cluster: spent,
    }
}

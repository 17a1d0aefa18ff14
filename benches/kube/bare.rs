//! What the API server bears from a client that decides nothing: creates, one after the other on each of many lines.

use std::time::Instant;

use serde_json::json;
use tests::real::{ApiServer, Namespace};
use tokio::task::JoinSet;

use crate::scaling::pod_spec;

const LINES: usize = 64;

/// Returns how many pods a second a fresh API server creates.
pub(crate) async fn creates_a_second(pods: usize) -> f64 {
    let server = ApiServer::start().await.expect("there is an API server");
    let namespace = Namespace::create(server.admin().await, "bench").await;
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
    pods as f64 / start.elapsed().as_secs_f64()
}

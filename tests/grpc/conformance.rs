//! The rules of the conformance kit, against the server in this process: the requirements of docs/protocol.md for every server.

use std::{convert::Infallible, path::Path, time::Duration};

use conformance::Target;
use decree_server::Config;
use tempfile::TempDir;
use tokio::time::interval;
use tonic::transport::Endpoint;

use crate::running::{Running, unhurried};

/// The interval of checks whether the kit wants the server stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Stops the server once the file exists.
async fn stop_once_there_is(file: &Path, server: &Running) -> Infallible {
    let mut looks = interval(LOOK_EVERY);
    while !file.exists() {
        looks.tick().await;
    }
    server.begin_stop();
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_keeps_each_rule() {
    // The rules about silence take as long as the server waits, which is long enough for an agent on a slow machine.
    let mut config = Config {
        heartbeat_interval: Duration::from_secs(2),
        hello_deadline: Duration::from_secs(3),
        drain_deadline: Duration::from_secs(5),
        ..unhurried()
    };
    // The kit asks for this many if there is no such limit.
    config.limits.operations_in_flight_max = 3_000;
    let mut server = Running::start_with(config).await;
    let folder = TempDir::new().expect("a folder");
    let asked = folder.path().join("stop");
    let endpoint = Endpoint::from_shared(format!("http://{}", server.addresses.grpc));
    let endpoint = conformance::narrow(endpoint.expect("a valid URL"));
    let target = Target {
        channel: endpoint.connect().await.expect("the server listens"),
        stop: Some(format!("touch '{}'", asked.display())),
        only: String::new(),
    };
    let score = tokio::select! {
        score = conformance::run_server(&target) => score,
        never = stop_once_there_is(&asked, &server) => match never {},
    };
    assert!(score.is_full(), "{score}");
    assert_eq!(score.skipped(), 0, "{score}");
    assert!(score.rows().len() > 80, "{score}");
    server.ended().await;
}

//! The final status of a session, also after a panic.

use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};

use super::*;
use crate::{access::Access, args::Config, metrics::Metrics};

pub(crate) fn identity(cluster_uid: &str, epoch: i64) -> server_session::SessionIdentity {
    server_session::SessionIdentity {
        session_id: crate::shared::random_session_id(),
        cluster_uid: cluster_uid.to_owned(),
        cluster_name: format!("name of {cluster_uid}"),
        shard: String::new(),
        agent_instance: "agent-0".to_owned(),
        epoch,
        mode: v1::Mode::Enforce,
        is_kubernetes: true,
        started: decree_core::Timestamp::default(),
    }
}

pub(crate) fn shared() -> Arc<Shared> {
    let metrics = Metrics::register(&mut Registry::default());
    let config = Config::default();
    let access = Access::new(&config.access, metrics.clone()).expect("no files");
    Arc::new(Shared::new(config, metrics, access).expect("it needs no file"))
}

/// Supervises a session that only ends, and returns the final status for the agent.
async fn supervised(
    shared: &Arc<Shared>,
    session: impl Future<Output = SessionEnd> + Send + 'static,
) -> Option<Status> {
    let (outbox, final_status, mut frames) = Outbox::new(Duration::from_secs(1));
    drop(outbox);
    supervise(Arc::clone(shared), session, final_status).await;
    frames.next().await.and_then(Result::err)
}

#[tokio::test]
async fn panic_ends_its_session_and_is_counted() {
    let shared = shared();
    let status = supervised(&shared, async { panic!("a bug") })
        .await
        .expect("the agent is told");
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(shared.metrics.panics.get(), 1);
    let ends = shared
        .metrics
        .session_ends
        .get_or_create_owned(&[("reason", "INTERNAL_FAILURE")]);
    assert_eq!(ends.get(), 1);
}

#[tokio::test]
async fn session_that_its_agent_closed_ends_without_a_word() {
    let shared = shared();
    assert!(
        supervised(&shared, async { SessionEnd::Closed })
            .await
            .is_none()
    );
    assert_eq!(shared.metrics.panics.get(), 0);
}

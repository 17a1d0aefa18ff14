//! One cluster's trouble stays its own.

use decree::v1::{self, event, reconcile_request::Frame};
use tests::objects::replica_set;

use crate::{agent::Agent, running::Running};

#[tokio::test]
async fn refused_session_leaves_its_neighbour_alone() {
    let server = Running::start().await;
    let mut good = Agent::open_on(&server, "good", vec![], vec![]).await;
    let mut bad = Agent::open_on(&server, "bad", vec![], vec![]).await;
    bad.send(Frame::Events(v1::Events::default())).await;
    bad.refusal().await;
    good.prove_alive().await;
}

#[tokio::test]
async fn clusters_do_not_see_each_others_objects() {
    let server = Running::start().await;
    let sets = || vec![replica_set("web").replicas(1).build()];
    let mut one = Agent::open_on(&server, "c1", sets(), vec![]).await;
    let mut two = Agent::open_on(&server, "c2", sets(), vec![]).await;
    let (first, second) = (one.batch().await, two.batch().await);
    assert_ne!(first.guard, second.guard);
    assert_ne!(
        first.action, second.action,
        "each session has names of its own"
    );
    let gone = v1::Deleted {
        kind: v1::Kind::ReplicaSet.into(),
        object: first.replica_set,
        resource_version: "101".to_owned(),
    };
    one.event(event::Event::Deleted(gone)).await;
    one.prove_alive().await;
    let mut inspection = server.inspection().await;
    for (cluster, expected) in [("c1", false), ("c2", true)] {
        let request = v1::GetReplicaSetRequest {
            cluster: cluster.to_owned(),
            namespace: "default".to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(
            inspection.get_replica_set(request).await.is_ok(),
            expected,
            "{cluster}"
        );
    }
}

#[tokio::test]
async fn agent_that_vanishes_leaves_nothing_behind() {
    let server = Running::start().await;
    let agent = Agent::open_on(&server, "c1", vec![replica_set("web").build()], vec![]).await;
    drop(agent);
    let gone = async {
        while server.metric("decree_sessions").await > 0.5 {
            tokio::task::yield_now().await;
        }
    };
    crate::running::soon(gone).await;
    assert!(server.metric("decree_replica_sets").await < 0.5);
    assert!(server.metric("decree_panics_total").await < 0.5);
}

//! Faults of one object: the server rejects or quarantines the object by the path of its field, and its session continues.

use decree_api::v1::{self, event};
use tests::{
    bad_fields::BadFields,
    objects::{pod, pod_ref, replica_set},
};

use crate::{
    agent::{Agent, get_web},
    running::Running,
};

/// Opens a session of an empty cluster.
async fn session(server: &Running) -> Agent {
    Agent::open_on(server, "c1", vec![], vec![]).await
}

#[track_caller]
fn assert_names(rejection: &v1::RejectedObject, field: &str, reason: &str) {
    let [violation] = rejection.violations.as_slice() else {
        panic!("{field}: {rejection:?}")
    };
    assert_eq!(
        (violation.field.as_str(), violation.reason.as_str()),
        (field, reason)
    );
    assert!(!violation.description.is_empty());
}

#[tokio::test]
async fn bad_pods_are_rejected_by_field_and_the_session_goes_on() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    let rows = BadFields::read().pods;
    for row in &rows {
        let bad = row.pod();
        agent.event(event::Event::PodApplied(bad.clone())).await;
        let rejection = agent.rejection().await;
        assert_eq!(rejection.kind(), v1::Kind::Pod);
        assert_names(&rejection, &row.named, &row.reason);
        let object = rejection.object.expect("as far as it could be read");
        assert_eq!(object.name, bad.name[..bad.name.len().min(253)]);
    }
    agent.prove_alive().await;
    let counted = server
        .metric("decree_rejected_objects_total{kind=\"KIND_POD\"}")
        .await;
    assert_eq!(format!("{counted}"), rows.len().to_string());
}

/// A pod of another kind than that of its ReplicaSet would be neither its pod nor an orphan, and nothing would say so.
#[tokio::test]
async fn uid_decides_whose_pod_it_is_and_another_kind_is_rejected() {
    let server = Running::start().await;
    let with_kind = |kind: &str, version| {
        let mut pod = pod("a", "web").version(version).build();
        let owner = pod.controller.as_mut().expect("it has one");
        kind.clone_into(&mut owner.kind);
        pod
    };
    let mut set = replica_set("web").replicas(1).build();
    set.status = None;
    let sets = vec![set];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![with_kind("", 11)]).await;
    let Some(v1::batch::Action::WriteStatus(write)) = agent.batch().await.action else {
        panic!("nothing is missing")
    };
    assert_eq!(write.status.expect("the whole one").replicas, 1);
    let other = event::Event::PodApplied(with_kind("MachineSet", 101));
    agent.event(other).await;
    assert_names(&agent.rejection().await, "controller.kind", "UNKNOWN_VALUE");
    agent.prove_alive().await;
}

#[tokio::test]
async fn what_cannot_be_named_is_rejected() {
    let server = Running::start().await;
    let mut agent = session(&server).await;
    for row in BadFields::read().nameless {
        let bad = row.replica_set();
        agent.event(event::Event::ReplicaSetApplied(bad)).await;
        assert_names(&agent.rejection().await, &row.named, &row.reason);
    }
    let object = v1::ObjectRef {
        uid: String::new(),
        ..pod_ref(&pod("a", "web").build())
    };
    agent.deleted(v1::Kind::Pod, object, "").await;
    assert_names(&agent.rejection().await, "uid", "REQUIRED");
    agent.prove_alive().await;
}

#[tokio::test]
async fn replica_sets_out_of_range_are_quarantined_visibly() {
    let server = Running::start().await;
    let mut inspection = server.inspection().await;
    let mut agent = session(&server).await;
    for row in BadFields::read().quarantined {
        let bad = row.replica_set();
        agent.event(event::Event::ReplicaSetApplied(bad)).await;
        let rejection = agent.rejection().await;
        assert_names(&rejection, &row.named, &row.reason);
        assert_eq!(rejection.object.expect("a name").uid, "web-uid");
        let found = inspection.get_replica_set(get_web("")).await;
        let summary = found.expect("it is known").into_inner().summary;
        let summary = summary.expect("a summary");
        assert_eq!(summary.state(), v1::ReplicaSetState::Quarantined, "{row:?}");
        assert_eq!(
            summary.reasons.first().map(v1::Reason::rule),
            Some(v1::Rule::Quarantined)
        );
        let gone = summary.replica_set.expect("a name");
        agent.deleted(v1::Kind::ReplicaSet, gone, "").await;
    }
    agent.prove_alive().await;
}

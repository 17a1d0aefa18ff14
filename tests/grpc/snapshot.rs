//! Lists, and what may come before they are complete.

use decree::v1::{self, batch::Action, event, reconcile_request::Frame};
use tests::objects::{pod, replica_set};
use tonic::Code;

use crate::{
    agent::Agent,
    refusal::{assert_refusal, fact, fields},
    running::Running,
};

fn begin(kind: v1::Kind) -> Frame {
    Frame::SnapshotBegin(v1::SnapshotBegin { kind: kind.into() })
}

fn pods(pods: Vec<v1::Pod>) -> Frame {
    Frame::SnapshotObjects(v1::SnapshotObjects {
        pods,
        replica_sets: Vec::new(),
    })
}

#[tokio::test]
async fn nothing_is_decided_before_both_lists_are_complete() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::ReplicaSet)).await;
    let replica_sets = vec![replica_set("web").replicas(2).build()];
    agent
        .send(Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: vec![],
            replica_sets,
        }))
        .await;
    agent.end_snapshot(v1::Kind::ReplicaSet, 1).await;
    agent.send(begin(v1::Kind::Pod)).await;
    agent.send(pods(vec![pod("a", "web").build()])).await;
    agent.end_snapshot(v1::Kind::Pod, 1).await;
    let Some(Action::Create(create)) = agent.batch().await.action else {
        panic!("no create")
    };
    assert_eq!(create.names.len(), 1, "the pod of the later list counts");
}

#[tokio::test]
async fn new_begin_abandons_the_open_list() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::Pod)).await;
    agent
        .send(pods(vec![pod("a", "web").build(), pod("b", "web").build()]))
        .await;
    agent
        .snapshot(
            vec![replica_set("web").replicas(2).build()],
            vec![pod("c", "web").build()],
        )
        .await;
    let Some(Action::Create(create)) = agent.batch().await.action else {
        panic!("no create")
    };
    assert_eq!(
        create.names.len(),
        1,
        "pods of the abandoned list are not there"
    );
}

#[tokio::test]
async fn objects_without_an_open_list_end_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::ReplicaSet)).await;
    agent.send(pods(vec![pod("a", "web").build()])).await;
    assert_refusal(
        &agent.refusal().await,
        Code::FailedPrecondition,
        "SNAPSHOT_NOT_OPEN",
    );
}

#[tokio::test]
async fn end_without_begin_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.end_snapshot(v1::Kind::Pod, 0).await;
    assert_refusal(
        &agent.refusal().await,
        Code::FailedPrecondition,
        "SNAPSHOT_NOT_OPEN",
    );
}

#[tokio::test]
async fn count_that_differs_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::Pod)).await;
    agent.send(pods(vec![pod("a", "web").build()])).await;
    agent.end_snapshot(v1::Kind::Pod, 2).await;
    let refusal = agent.refusal().await;
    assert_refusal(
        &refusal,
        Code::FailedPrecondition,
        "SNAPSHOT_COUNT_MISMATCH",
    );
    assert_eq!(fact(&refusal, "arrived").as_deref(), Some("1"));
}

#[tokio::test]
async fn list_older_than_the_last_one_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    for version in ["100", "99"] {
        agent.send(begin(v1::Kind::Pod)).await;
        let end = v1::SnapshotEnd {
            kind: v1::Kind::Pod.into(),
            resource_version: version.to_owned(),
            count: 0,
        };
        agent.send(Frame::SnapshotEnd(end)).await;
    }
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::Aborted, "VERSIONS_WENT_BACK");
    assert_eq!(
        refusal.message(),
        "the versions of the cluster went back: a list of pods has version 99, the one before it had 100"
    );
    assert_eq!(fact(&refusal, "last").as_deref(), Some("100"));
    assert_eq!(fact(&refusal, "got").as_deref(), Some("99"));
}

#[tokio::test]
async fn rejected_objects_count_as_named() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    let nameless = v1::Pod {
        name: String::new(),
        ..pod("a", "web").build()
    };
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![nameless])
        .await;
    let rejection = agent.rejection().await;
    assert_eq!(rejection.kind(), v1::Kind::Pod);
    assert!(matches!(
        agent.batch().await.action,
        Some(Action::Create(_))
    ));
}

#[tokio::test]
async fn event_before_any_list_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent
        .event(event::Event::PodApplied(pod("a", "web").build()))
        .await;
    assert_refusal(
        &agent.refusal().await,
        Code::FailedPrecondition,
        "EVENT_BEFORE_SNAPSHOT",
    );
}

#[tokio::test]
async fn event_inside_an_open_list_is_applied_on_top() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::Pod)).await;
    agent
        .event(event::Event::PodApplied(
            pod("a", "web").version(101).build(),
        ))
        .await;
    agent.end_snapshot(v1::Kind::Pod, 0).await;
    agent.send(begin(v1::Kind::ReplicaSet)).await;
    let replica_sets = vec![replica_set("web").replicas(2).build()];
    agent
        .send(Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: vec![],
            replica_sets,
        }))
        .await;
    agent.end_snapshot(v1::Kind::ReplicaSet, 1).await;
    let Some(Action::Create(create)) = agent.batch().await.action else {
        panic!("no create")
    };
    assert_eq!(create.names.len(), 1);
}

#[tokio::test]
async fn list_without_a_kind_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::Unspecified)).await;
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(
        fields(&refusal),
        [("snapshot_begin.kind".to_owned(), "REQUIRED".to_owned())]
    );
}

#[tokio::test]
async fn list_with_a_bad_version_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(begin(v1::Kind::Pod)).await;
    let end = v1::SnapshotEnd {
        kind: v1::Kind::Pod.into(),
        resource_version: "007".to_owned(),
        count: 0,
    };
    agent.send(Frame::SnapshotEnd(end)).await;
    let refusal = agent.refusal().await;
    let field = "snapshot_end.resource_version".to_owned();
    assert_eq!(fields(&refusal), [(field, "INVALID_VERSION".to_owned())]);
}

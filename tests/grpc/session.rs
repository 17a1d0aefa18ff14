//! What a session does when all is well.

use std::time::Duration;

use decree::v1::{
    self, batch::Action, event, reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use decree_server::Config;
use tests::objects::{pod, replica_set};
use tonic::{Code, Request};

use crate::{
    agent::{Agent, hello},
    refusal::assert_refusal,
    running::{Running, StoppedTime},
};

#[tokio::test]
async fn missing_pods_are_created_and_the_status_follows() {
    let server = Running::start().await;
    let (mut agent, welcome) = Agent::open(&server, "c1").await;
    agent
        .snapshot(vec![replica_set("web").replicas(2).build()], vec![])
        .await;

    let batch = agent.batch().await;
    assert_eq!(batch.replica_set, Some(reference("web", "web-uid")));
    assert_eq!(batch.generation, 1);
    assert_eq!(
        batch.guard.as_ref().map(|guard| &guard.session_id),
        Some(&welcome.session_id)
    );
    assert_eq!(
        batch.reasons.first().map(v1::Reason::rule),
        Some(v1::Rule::TooFewReplicas)
    );
    let Some(Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    assert_eq!(create.names.len(), 2);
    assert_eq!(create.generate_name, "web-");
    assert_eq!(create.slow_start_initial, 1);

    let pods = create.names.iter().zip(101..);
    let pods = pods
        .map(|(name, version)| pod(name, "web").version(version).build())
        .collect();
    agent.created(&batch, pods).await;
    let batch = agent.batch().await;
    let Some(Action::WriteStatus(write)) = batch.action else {
        panic!("{batch:?}")
    };
    let status = write.status.expect("a status");
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.available_replicas
        ),
        (2, 2, 2)
    );
}

#[tokio::test]
async fn surplus_pods_are_deleted_by_uid_with_reasons() {
    let server = Running::start().await;
    let pods = ["a", "b", "c"].map(|name| pod(name, "web").build()).into();
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, pods).await;
    let batch = agent.batch().await;
    let Some(Action::Delete(delete)) = batch.action else {
        panic!("{batch:?}")
    };
    assert_eq!(delete.victims.len(), 2);
    for victim in delete.victims {
        let pod = victim.pod.expect("a pod");
        assert_eq!(pod.uid, format!("{}-uid", pod.name));
        assert_ne!(
            victim.reason.expect("a reason").rule(),
            v1::Rule::Unspecified
        );
    }
}

#[tokio::test]
async fn options_of_the_hello_rule_the_batches() {
    let server = Running::start().await;
    let options = v1::Options {
        burst_replicas: Some(3),
        slow_start_initial: Some(2),
        ..v1::Options::default()
    };
    let (mut agent, _) = Agent::open_with(
        &server,
        v1::Hello {
            options: Some(options),
            epoch: 7,
            ..hello("c1")
        },
    )
    .await;
    agent
        .snapshot(vec![replica_set("web").replicas(10).build()], vec![])
        .await;
    let batch = agent.batch().await;
    assert_eq!(batch.guard.expect("a guard").epoch, 7);
    let Some(Action::Create(create)) = batch.action else {
        panic!("no create")
    };
    assert_eq!((create.names.len(), create.slow_start_initial), (3, 2));
}

#[tokio::test]
async fn batches_of_many_replica_sets_share_frames() {
    let server = Running::start().await;
    let sets = (0..40)
        .map(|n| replica_set(&format!("web-{n}")).replicas(1).build())
        .collect();
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batches = agent.batches().await;
    assert_eq!(batches.len(), 40);
    let mut ids: Vec<_> = batches.iter().map(|batch| batch.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn frames_of_the_server_are_numbered_without_gaps() {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    agent.send(Frame::Hello(hello("c1"))).await;
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![])
        .await;
    assert_eq!(
        [agent.next_sequence().await, agent.next_sequence().await],
        [1, 2]
    );
}

#[tokio::test]
async fn what_was_decided_is_sent_before_a_closed_stream_ends() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![])
        .await;
    agent.close();
    assert!(matches!(
        agent.batch().await.action,
        Some(Action::Create(_))
    ));
    assert!(agent.end().await.is_ok());
}

#[tokio::test]
async fn idle_server_sends_heartbeats_with_the_last_sequence() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    time.pass(Config::embedded().heartbeat_interval).await;
    let Answer::Heartbeat(heartbeat) = agent.next_or_heartbeat().await else {
        panic!("an idle server sends nothing else")
    };
    assert_eq!(heartbeat.last_sequence, 1);
    assert_eq!(heartbeat.view_age, None);
}

#[tokio::test]
async fn silent_agent_is_given_up_after_four_intervals() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    let interval = Config::embedded().heartbeat_interval;
    for _ in 0..3 {
        time.pass(interval).await;
        let frame = agent.next_or_heartbeat().await;
        assert!(matches!(frame, Answer::Heartbeat(_)), "{frame:?}");
    }
    time.pass(interval).await;
    assert_refusal(
        &agent.refusal().await,
        Code::DeadlineExceeded,
        "AGENT_SILENT",
    );
}

/// Opens a stream of these requests with a deadline, and lets it pass. The client's own timer stops with the headers; what follows is the
/// server's.
async fn ends_at_the_deadline(
    requests: impl tokio_stream::Stream<Item = v1::ReconcileRequest> + Send + 'static,
) {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let mut request = Request::new(requests);
    request
        .metadata_mut()
        .insert("grpc-timeout", "100m".parse().expect("a header"));
    let answers = server.decisions().await.reconcile(request).await;
    let mut answers = answers.expect("the stream opens").into_inner();
    time.pass(Duration::from_millis(100)).await;
    let refusal = loop {
        match crate::running::soon(answers.message()).await {
            Ok(frame) => assert!(frame.is_some(), "the stream ends with a status"),
            Err(status) => break status,
        }
    };
    assert_refusal(&refusal, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
}

fn unnumbered(frame: Frame) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    }
}

#[tokio::test]
async fn deadline_of_the_caller_ends_the_stream() {
    let (frames, outbound) = tokio::sync::mpsc::channel(1);
    let hello = unnumbered(Frame::Hello(hello("c1")));
    frames.send(hello).await.expect("room for one");
    ends_at_the_deadline(tokio_stream::wrappers::ReceiverStream::new(outbound)).await;
}

#[tokio::test]
async fn deadline_of_the_caller_ends_a_stream_that_never_pauses() {
    let heartbeats = std::iter::repeat(Frame::Heartbeat(v1::Heartbeat::default()));
    let frames = std::iter::once(Frame::Hello(hello("c1"))).chain(heartbeats);
    ends_at_the_deadline(tokio_stream::iter(frames.map(unnumbered))).await;
}

#[tokio::test]
async fn view_age_of_heartbeats_is_shown() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    let view_age = Some(prost_types::Duration {
        seconds: 3,
        nanos: 500_000_000,
    });
    agent
        .send(Frame::Heartbeat(v1::Heartbeat {
            last_sequence: 1,
            view_age,
        }))
        .await;
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![])
        .await;
    agent.batch().await;
    let gauge = server
        .metric("decree_view_age_seconds{cluster=\"c1\",cluster_uid=\"c1\",shard=\"\"}")
        .await;
    assert!((gauge - 3.5).abs() < 1e-9, "{gauge}");
}

#[tokio::test]
async fn metrics_count_what_a_session_does() {
    let server = Running::start().await;
    let mut agent = Agent::open_on(
        &server,
        "c1",
        vec![replica_set("web").replicas(1).build()],
        vec![],
    )
    .await;
    let batch = agent.batch().await;
    let Some(Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    let created = pod(&create.names[0], "web").version(101).build();
    agent.created(&batch, vec![created]).await;
    agent.batch().await;
    let decided = "decree_decisions_total{op=\"create\",reason=\"RULE_TOO_FEW_REPLICAS\"}";
    assert!((server.metric(decided).await - 1.0).abs() < f64::EPSILON);
    let done = "decree_operations_total{op=\"create\",result=\"done\"}";
    assert!((server.metric(done).await - 1.0).abs() < f64::EPSILON);
    assert!((server.metric("decree_sessions").await - 1.0).abs() < f64::EPSILON);
    assert!((server.metric("decree_panics_total").await).abs() < f64::EPSILON);
    assert!(
        server
            .metric("workqueue_adds_total{name=\"replicaset\"}")
            .await
            >= 1.0
    );
}

#[tokio::test]
async fn deleted_pod_is_replaced() {
    let server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![pod("a", "web").build()]).await;
    let status = agent.batch().await;
    assert!(
        matches!(status.action, Some(Action::WriteStatus(_))),
        "{status:?}"
    );
    agent
        .event(event::Event::Deleted(v1::Deleted {
            kind: v1::Kind::Pod.into(),
            object: Some(reference("a", "a-uid")),
            resource_version: "101".to_owned(),
        }))
        .await;
    let written = v1::ReplicaSet {
        resource_version: "102".to_owned(),
        ..replica_set("web").replicas(1).build()
    };
    let done = v1::Done {
        object: Some(v1::done::Object::ReplicaSet(written)),
        ..v1::Done::default()
    };
    let outcome = v1::Outcome {
        batch_id: status.id,
        operation: 0,
        outcome: Some(v1::outcome::Outcome::Done(done)),
        ..v1::Outcome::default()
    };
    agent
        .send(Frame::Outcomes(v1::Outcomes {
            outcomes: vec![outcome],
        }))
        .await;
    let batch = agent.batch().await;
    assert!(matches!(batch.action, Some(Action::Create(_))), "{batch:?}");
}

fn reference(name: &str, uid: &str) -> v1::ObjectRef {
    let own = str::to_owned;
    v1::ObjectRef {
        namespace: own("default"),
        name: own(name),
        uid: own(uid),
    }
}

#[tokio::test]
async fn outcome_without_its_object_makes_its_replica_set_wait_for_a_list() {
    let server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batch = agent.batch().await;
    let Some(Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    let outcome = v1::Outcome {
        batch_id: batch.id,
        operation: 0,
        outcome: Some(v1::outcome::Outcome::Done(v1::Done::default())),
        ..v1::Outcome::default()
    };
    agent
        .send(Frame::Outcomes(v1::Outcomes {
            outcomes: vec![outcome],
        }))
        .await;
    let Answer::Resync(resync) = agent.next().await else {
        panic!("a list is asked for")
    };
    assert_eq!(resync.kind(), v1::Kind::Pod);
    let made = pod(&create.names[0], "web").build();
    agent.list_pods(vec![made]).await;
    let status = agent.batch().await;
    assert!(
        matches!(status.action, Some(Action::WriteStatus(_))),
        "{status:?}"
    );
}

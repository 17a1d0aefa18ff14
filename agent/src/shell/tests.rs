//! The shell against a scripted server.

use agent_fake::{Fault, Kind, Verb};
use decree::v1::{self, batch::Action, outcome::Outcome as OutcomeKind, reconcile_request::Frame};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tonic::Status;

use self::double::{Double, Session};
use super::*;
use crate::FakeCluster;

mod double;

const THREE: [&str; 3] = ["web-bbbbb", "web-ccccc", "web-ddddd"];

/// An agent that runs on a fake cluster with the ReplicaSet default/web.
struct Running {
    cluster: FakeCluster,
    shutdown: CancellationToken,
    readiness: Readiness,
    metrics: Metrics,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    fn start(url: &str) -> Self {
        let file = std::path::Path::new("web.json");
        let contents =
            agent_fake::manifest::open(file, &replica_set().to_string()).expect("it is valid");
        let fake = agent_fake::ClusterConfig {
            kubelet: agent_fake::Kubelet::idle(),
            ..agent_fake::ClusterConfig::default()
        };
        let cluster = FakeCluster::start(fake, contents.documents).expect("the cluster takes it");
        let mut config = ShellConfig::new(connector(url));
        config.agent.backoff_min = Duration::from_millis(1);
        config.agent.backoff_max = Duration::from_millis(4);
        let (shutdown, readiness) = (CancellationToken::new(), config.readiness.clone());
        let metrics = config.metrics.clone();
        let task = tokio::spawn(run(config, cluster.clone(), shutdown.clone()));
        Self {
            cluster,
            shutdown,
            readiness,
            metrics,
            task,
        }
    }

    fn exposition(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut text, &registry);
        encoded.expect("they are encodable");
        text
    }

    /// Stops the agent, and lets its session end in order.
    async fn stop(self, mut session: Session) {
        self.shutdown.cancel();
        session.receive_to_end().await;
        drop(session);
        self.join().await;
    }

    async fn join(self) {
        self.shutdown.cancel();
        let ended = self.task.await.expect("the agent does not panic");
        ended.expect("the agent ends in order");
    }

    fn pods(&self) -> Vec<String> {
        let name = |pod: &agent_fake::Object| pod["metadata"]["name"].as_str().map(str::to_owned);
        self.cluster
            .with(|model| model.objects(Kind::Pod).filter_map(name).collect())
    }
}

fn connector(url: &str) -> Connector {
    let endpoint = url.parse().expect("a URL");
    let args = service::transport::ClientArgs::default();
    let connector = Connector::new(endpoint, &args, service::transport::Metrics::default());
    connector.expect("plain text stays on this machine")
}

fn replica_set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

fn batch(id: u64, session_id: &str, replica_set: &v1::ReplicaSet, action: Action) -> v1::Batch {
    v1::Batch {
        id,
        replica_set: Some(v1::ObjectRef {
            namespace: replica_set.namespace.clone(),
            name: replica_set.name.clone(),
            uid: replica_set.uid.clone(),
        }),
        generation: replica_set.generation,
        replica_set_version: replica_set.resource_version.clone(),
        guard: Some(v1::Guard {
            session_id: session_id.into(),
            epoch: 0,
        }),
        action: Some(action),
        ..v1::Batch::default()
    }
}

fn create(names: &[&str]) -> Action {
    Action::Create(v1::Create {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        generate_name: "web-".into(),
        slow_start_initial: 1,
    })
}

/// Has the agent create pods of a ReplicaSet in the session `s-1`.
async fn send_create(session: &mut Session, web: &v1::ReplicaSet, names: &[&str]) {
    let batch = batch(1, "s-1", web, create(names));
    session.send_batch(batch).await;
}

fn is_done(outcome: &v1::Outcome) -> bool {
    matches!(outcome.outcome, Some(OutcomeKind::Done(_)))
}

/// An agent in a session, and its ReplicaSet.
async fn session(double: &mut Double) -> (Running, Session, v1::ReplicaSet) {
    let running = Running::start(&double.url);
    let (mut session, _) = double.open("s-1").await;
    let (mut replica_sets, _) = session.receive_lists().await;
    (running, session, replica_sets.remove(0))
}

#[tokio::test]
async fn agent_introduces_its_cluster_and_lists_it() {
    let mut double = Double::start().await;
    let running = Running::start(&double.url);
    assert!(running.readiness.check().is_err());
    let (mut session, hello) = double.open("s-1").await;
    let kube_system = running.cluster.uid().await.expect("the cluster has one");
    assert_eq!((hello.cluster_uid, hello.protocol_max), (kube_system, 1));
    let (replica_sets, pods) = session.receive_lists().await;
    assert_eq!((replica_sets.len(), pods.len()), (1, 0));
    assert_eq!(replica_sets[0].replicas, Some(3));
    assert!(running.readiness.check().is_ok());
    running.stop(session).await;
}

#[tokio::test]
async fn batch_is_executed_and_the_watch_shows_its_pods() {
    let mut double = Double::start().await;
    let (running, mut session, web) = session(&mut double).await;
    send_create(&mut session, &web, &THREE).await;
    let (mut outcomes, mut events) = (Vec::new(), Vec::new());
    while outcomes.len() < 3 || events.len() < 3 {
        match session.receive().await {
            Some(Frame::Outcomes(frame)) => outcomes.extend(frame.outcomes),
            Some(Frame::Events(frame)) => events.extend(frame.events),
            other => panic!("{other:?} is neither outcome nor event"),
        }
    }
    assert!(outcomes.iter().all(is_done), "{outcomes:?}");
    assert_eq!(running.pods(), THREE);
    running.stop(session).await;
}

#[tokio::test]
async fn server_that_carries_a_template_into_another_namespace_gets_no_pod() {
    let mut double = Double::start().await;
    let (running, mut session, web) = session(&mut double).await;
    let elsewhere = v1::ReplicaSet {
        namespace: "kube-system".into(),
        ..web
    };
    send_create(&mut session, &elsewhere, &THREE[..2]).await;
    for outcome in session.receive_outcomes(2).await {
        let Some(OutcomeKind::NotStarted(not_started)) = outcome.outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(not_started.cause(), v1::NotStartedCause::Guard);
        let is_named = not_started.message.contains("kube-system/web");
        assert!(is_named, "{not_started:?}");
    }
    assert_eq!(running.pods(), [""; 0]);
    let refused = "decree_agent_batches_refused_total 1";
    assert!(running.exposition().contains(refused));
    running.stop(session).await;
}

#[tokio::test]
async fn change_by_a_user_becomes_an_event() {
    let mut double = Double::start().await;
    let (running, mut session, _) = session(&mut double).await;
    let scaled = running.cluster.with(|it| it.scale("default", "web", 5));
    scaled.expect("it can be scaled");
    let Some(Frame::Events(frame)) = session.receive().await else {
        panic!("an event comes")
    };
    let Some(v1::event::Event::ReplicaSetApplied(web)) = &frame.events[0].event else {
        panic!("{frame:?} is of a replica set")
    };
    assert_eq!(web.replicas, Some(5));
    running.stop(session).await;
}

#[tokio::test]
async fn lost_server_is_found_again_and_told_what_was_done_meanwhile() {
    let mut double = Double::start().await;
    let (running, mut session, web) = session(&mut double).await;
    send_create(&mut session, &web, &THREE[..1]).await;
    session.receive_outcomes(1).await;
    drop(session);
    let (mut session, hello) = double.open("s-2").await;
    assert_eq!(hello.resumes_session_id, "s-1");
    let (_, pods) = session.receive_lists().await;
    let names: Vec<_> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-bbbbb"]);
    running.stop(session).await;
}

#[tokio::test]
async fn refused_agent_comes_back() {
    let mut double = Double::start().await;
    let running = Running::start(&double.url);
    let session = double.accept().await;
    let status = Status::failed_precondition("a lower epoch");
    session.refuse(status).await;
    let (session, _) = double.open("s-1").await;
    running.stop(session).await;
}

#[tokio::test]
async fn lost_reply_is_resolved_by_the_name() {
    let mut double = Double::start().await;
    let (running, mut session, web) = session(&mut double).await;
    let lose = Fault::lose_reply().on(Verb::Create).times(1);
    running.cluster.with(|model| model.faults_mut().add(lose));
    send_create(&mut session, &web, &THREE[..1]).await;
    let outcomes = session.receive_outcomes(1).await;
    let Some(OutcomeKind::Done(done)) = &outcomes[0].outcome else {
        panic!("{outcomes:?}")
    };
    assert!(done.already_existed);
    running.stop(session).await;
}

#[tokio::test]
async fn dropped_watch_is_opened_again_where_it_was() {
    let mut double = Double::start().await;
    let (running, mut session, _) = session(&mut double).await;
    running.cluster.with(|model| {
        model.drop_watches(Kind::ReplicaSet);
        model.scale("default", "web", 5).expect("it can be scaled");
    });
    let frame = session.receive().await;
    let is_event = matches!(frame, Some(Frame::Events(_)));
    assert!(is_event, "no new list was needed: {frame:?}");
    running.stop(session).await;
}

#[tokio::test]
async fn shutdown_reports_what_was_in_flight_and_closes_the_stream() {
    let mut double = Double::start().await;
    let (running, mut session, web) = session(&mut double).await;
    let late = Fault::delay(Duration::from_millis(20)).on(Verb::Create);
    running.cluster.with(|model| model.faults_mut().add(late));
    send_create(&mut session, &web, &THREE).await;
    while running.pods().is_empty() {
        running.cluster.changed().await;
    }
    running.shutdown.cancel();
    let frames = session.receive_to_end().await;
    let outcomes = frames.into_iter().flat_map(|frame| {
        if let Frame::Outcomes(it) = frame {
            it.outcomes
        } else {
            Vec::new()
        }
    });
    let (done, others): (Vec<_>, Vec<_>) = outcomes.partition(is_done);
    assert_eq!((done.len(), others.len()), (1, 2));
    drop(session);
    assert_eq!(running.pods(), ["web-bbbbb"]);
    running.join().await;
}

#[tokio::test]
async fn agent_without_a_server_stops_when_told() {
    let running = Running::start("http://127.0.0.1:1");
    running.join().await;
}

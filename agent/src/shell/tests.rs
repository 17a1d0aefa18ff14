//! The shell against a scripted server.

use agent_core::nodes::NodeFields;
use agent_fake::{Fault, Kind, Verb};
use decree_api::v1::{
    self, batch::Action, outcome::Outcome as OutcomeKind, reconcile_request::Frame,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

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
    task: JoinHandle<Result<(), AgentError>>,
}

impl Running {
    fn start(url: &str) -> Self {
        Self::with_nodes(url, None)
    }

    fn with_nodes(url: &str, nodes: Option<NodeFields>) -> Self {
        let file = std::path::Path::new("web.json");
        let contents =
            agent_fake::manifest::open(file, &replica_set().to_string()).expect("it is valid");
        let fake = agent_fake::ClusterConfig {
            kubelet: agent_fake::Kubelet {
                schedule_after: Duration::MAX,
                ..agent_fake::Kubelet::default()
            },
            ..agent_fake::ClusterConfig::default()
        };
        let cluster = FakeCluster::start(fake, contents.documents).expect("the cluster takes it");
        let mut config = ShellConfig::new(connector(url));
        config.agent.nodes = nodes;
        config.agent.backoff_min = Duration::from_millis(1);
        config.agent.backoff_max = Duration::from_millis(4);
        let (shutdown, readiness) = (CancellationToken::new(), config.readiness.clone());
        let task = tokio::spawn(run(config, cluster.clone(), shutdown.clone()));
        Self {
            cluster,
            shutdown,
            readiness,
            task,
        }
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

/// Has the agent create pods of a ReplicaSet in the session `s-1`.
async fn send_create(session: &mut Session, web: &v1::ReplicaSet, names: &[&str]) {
    let create = v1::Create {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        generate_name: "web-".into(),
        slow_start_initial: 1,
    };
    let batch = v1::Batch {
        id: 1,
        replica_set: Some(v1::ObjectRef {
            namespace: web.namespace.clone(),
            name: web.name.clone(),
            uid: web.uid.clone(),
        }),
        generation: web.generation,
        replica_set_version: web.resource_version.clone(),
        guard: Some(v1::Guard {
            session_id: "s-1".into(),
            epoch: 0,
        }),
        action: Some(Action::Create(create)),
        ..v1::Batch::default()
    };
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
async fn batch_is_executed_and_the_watches_show_its_pods_and_changes_of_users() {
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
async fn nodes_are_sent_in_spite_of_a_refusal_and_so_are_their_changes() {
    let mut double = Double::start().await;
    let running = Running::with_nodes(&double.url, Some(NodeFields::default()));
    let forbidden = agent_fake::ApiError::new(403, "Forbidden", "nodes is forbidden");
    let once = Fault::refuse(forbidden).on(Verb::List).of(Kind::Node);
    let faults = |it: &mut agent_fake::Cluster| it.faults_mut().add(once.times(1));
    running.cluster.with(faults);
    let (mut session, hello) = double.open("s-1").await;
    assert_eq!(hello.capabilities, ["nodes"]);
    let mut nodes = std::collections::BTreeMap::new();
    let mut is_complete = false;
    while !is_complete {
        if let Some(Frame::Nodes(frame)) = session.receive().await {
            let applied = frame.applied.into_iter();
            nodes.extend(applied.map(|it| (it.name, it.unschedulable)));
            is_complete = frame.complete;
        }
    }
    assert_eq!(nodes.len(), 3);
    let cordon = json!({"spec": {"unschedulable": true}});
    let cordoned = running
        .cluster
        .with(|it| it.patch(Kind::Node, "", "node-b", &cordon));
    cordoned.expect("there is one");
    loop {
        if let Some(Frame::Nodes(frame)) = session.receive().await {
            assert_eq!((frame.applied.len(), frame.complete), (1, false));
            assert!(frame.applied[0].unschedulable && frame.applied[0].name == "node-b");
            break;
        }
    }
    running.stop(session).await;
}

#[test]
fn agent_is_not_ready_a_minute_after_it_could_watch_last() {
    let at = |seconds| Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds);
    let check = |unwatched, now| check_watched(&[None, unwatched], at(now));
    assert_eq!(check(Some(at(0)), 59), Ok(()));
    check(Some(at(0)), 60).expect_err("it has lasted a minute");
    assert_eq!(check(None, 600), Ok(()));
}

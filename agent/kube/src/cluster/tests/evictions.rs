//! The requests of the responder to Evictions.

use std::future::pending;

use tokio::{select, sync::mpsc};

use super::*;
use crate::{Eviction, Progress};

const LIST: &str = "GET /apis/lifecycle.k8s.io/v1alpha1/evictions?labelSelector=decree.dev%2Freplicaset&limit=500&continue=";
const POD: &str = "/api/v1/namespaces/default/pods/a";

fn creates_a_pod_that_responds() -> Request {
    let Request::CreatePod(create) = create("a") else {
        panic!("it creates a pod");
    };
    Request::CreatePod(CreatePod {
        template: Template::new(*br#"{"spec": {}}"#),
        responds: true,
        ..create
    })
}

/// Follows Evictions until there is news.
pub(super) async fn first_news(server: &Server) -> News<Eviction> {
    let (sender, mut news) = mpsc::channel(1);
    let tell = |news| {
        let sender = sender.clone();
        async move {
            sender.send(news).await.expect("somebody waits");
            pending::<()>().await;
        }
    };
    select! {
        ended = server.cluster.clone().follow_evictions(tell) => panic!("{ended:?}"),
        news = news.recv() => news.expect("it is told"),
    }
}

#[tokio::test]
async fn pods_name_the_responder_where_it_may_work() {
    let status = |code: u16| Answer::json(code, json!({"kind": "Status", "code": code}));
    let may = |allowed: bool| Answer::json(201, json!({"status": {"allowed": allowed}}));
    let list = || {
        Answer::json(
            200,
            json!({"kind": "EvictionList", "metadata": {}, "items": []}),
        )
    };
    for (answers, responds) in [
        (vec![status(404)], false),
        (vec![status(403)], false),
        (vec![list(), may(false)], false),
        (vec![list(), may(true), may(true), may(false)], false),
        (vec![list(), may(true), may(true), may(true)], true),
    ] {
        let created = Answer::json(201, pod("a"));
        let server = Server::start(answers.into_iter().chain([created]).collect()).await;
        let listed = first_news(&server).await.map(drop);
        let listed = listed.as_ref().copied().map_err(|(_, error)| error);
        assert_eq!(server.cluster.learn_to_respond(listed).await, Ok(()));
        let created = server.cluster.call(creates_a_pod_that_responds()).await;
        assert!(created.is_ok(), "{created:?}");
        let asked = server.asked();
        assert_eq!(asked[0].line, LIST);
        let body = &asked.last().expect("it was created").body;
        assert_eq!(body.contains("decree.dev/replicaset"), responds, "{body}");
    }
}

#[tokio::test]
async fn announcement_is_taken_back_if_the_responder_made_it() {
    for (uid, mark, is_taken_back) in [
        ("u1", "eviction", true),
        ("u1", "2026-11-30T12:00:00Z", false),
        ("u2", "eviction", false),
    ] {
        let annotations = json!({"decree.dev/leaving": mark});
        let metadata = json!({"uid": uid, "resourceVersion": "7", "annotations": annotations});
        let found = Answer::json(200, json!({"kind": "Pod", "metadata": metadata}));
        let server = Server::start(vec![found, Answer::json(200, pod("a"))]).await;
        assert_eq!(server.cluster.take_back(&pod_ref()).await, Ok(()));
        let mut expected = vec![format!("GET {POD}")];
        if is_taken_back {
            expected.push(format!("PATCH {POD}?fieldManager=decree-agent"));
        }
        let asked = server.asked().into_iter().map(|it| it.line);
        assert_eq!(asked.collect::<Vec<_>>(), expected, "{uid} {mark}");
    }
}

#[tokio::test]
async fn responder_writes_nothing_once_its_agent_may_not() {
    let metadata = json!({"uid": "u1", "annotations": {"decree.dev/leaving": "eviction"}});
    let found = || Answer::json(200, json!({"kind": "Pod", "metadata": metadata}));
    let server = Server::start(vec![found(), found()]).await;
    let (_lease, lead) = watch::channel(None);
    let fence = Fence::new(lead, Clock::starting_at(Timestamp::UNIX_EPOCH));
    let revoked = CancellationToken::new();
    revoked.cancel();
    let eviction = json!({"metadata": {"namespace": "default", "name": "a"}});
    let eviction: Eviction = serde_json::from_value(eviction).expect("it is one");
    let (pod, now) = (pod_ref(), Timestamp::UNIX_EPOCH);
    let works = Progress::Works(None);
    for cluster in [
        server.cluster.clone().fenced(&fence),
        server.cluster.clone().until(revoked),
    ] {
        let written = [
            cluster.announce(&pod).await,
            cluster.take_back(&pod).await,
            cluster.report_progress(&eviction, now, works).await,
        ];
        let refused = |it: &Result<(), ApiError>| it.as_ref().is_err_and(|it| it.code == Some(400));
        assert!(written.iter().all(refused), "{written:?}");
    }
    let asked = server.asked().into_iter().map(|it| it.line);
    let read = format!("GET {POD}");
    assert_eq!(asked.collect::<Vec<_>>(), [read.clone(), read]);
}

#[tokio::test]
async fn reports_change_the_entry_of_the_responder_alone() {
    let metadata = json!({"namespace": "shop", "name": "web-1", "uid": "e1"});
    let eviction: Eviction =
        serde_json::from_value(json!({"metadata": metadata})).expect("it is one");
    let now: Timestamp = "2026-11-30T12:00:00.7Z".parse().expect("it is a time");
    let second = "2026-11-30T12:00:00Z";
    for (progress, expected) in [
        (
            Progress::Works(None),
            json!({"heartbeatTime": second, "expectedCompletionTime": null, "message": "waits until a replacement of the pod is available"}),
        ),
        (
            Progress::Completed("the pod has ended"),
            json!({"completionTime": second, "message": "the pod has ended"}),
        ),
    ] {
        let server = Server::start(vec![Answer::json(200, json!({}))]).await;
        let reported = server
            .cluster
            .report_progress(&eviction, now, progress)
            .await;
        assert_eq!(reported, Ok(()));
        let asked = &server.asked()[0];
        let path = "/apis/lifecycle.k8s.io/v1alpha1/namespaces/shop/evictions/web-1/status";
        assert_eq!(
            asked.line,
            format!("PATCH {path}?fieldManager=decree-agent")
        );
        let mut entry = expected;
        entry["name"] = "decree.dev/replicaset".into();
        let body: Value = serde_json::from_str(&asked.body).expect("it is JSON");
        let status = json!({"responders": [entry]});
        assert_eq!(body, json!({"metadata": {"uid": "e1"}, "status": status}));
    }
}

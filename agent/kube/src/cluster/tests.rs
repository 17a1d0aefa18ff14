//! The cluster against an API server that answers by script, over a real connection.

mod bounds;
mod connections;
mod departure;
mod evictions;
mod kinds;
mod nodes;
mod probes;
mod renewal;
mod server;

use std::time::Duration;

use agent_core::{
    api::{CreatePod, Template},
    cluster::{EventStream as _, PageStream as _},
    watch::{Items, List, Part, WatchEvent},
};
use decree_api::v1;
use jiff::Timestamp;
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use self::server::{Answer, Server};
use super::*;
use crate::clock::Clock;

async fn list(cluster: &KubeCluster) -> Result<List, ApiError> {
    let mut pages = cluster.list(Kind::Pod);
    let mut list = pages.next().await.expect("there is a page")?;
    while let Some(page) = pages.next().await {
        list = list.joined(page?);
    }
    Ok(list)
}

async fn next(events: &mut Events) -> Option<Vec<WatchEvent>> {
    timeout(Duration::from_secs(120), events.next())
        .await
        .expect("the watch goes on")
}

/// Watches pods from version 7 on.
async fn watch_pods(server: &Server) -> Events {
    let events = server.cluster.watch(Kind::Pod, "7".into()).await;
    events.expect("it opens")
}

/// Creates a pod, which fails.
async fn refused(server: &Server) -> ApiError {
    let reply = server.cluster.call(create("a")).await;
    reply.expect_err("it is refused")
}

fn pod(name: &str) -> Value {
    let metadata =
        json!({"namespace": "default", "name": name, "uid": name, "resourceVersion": "5"});
    json!({"kind": "Pod", "metadata": metadata})
}

fn create(name: &str) -> Request {
    Request::CreatePod(CreatePod {
        namespace: "default".into(),
        name: name.into(),
        generate_name: String::new(),
        controller: v1::OwnerReference::default(),
        template: Template::new(*b"{}"),
        responds: false,
        timeout: Duration::from_secs(20),
    })
}

fn pod_ref() -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: "a".into(),
        uid: "u1".into(),
    }
}

fn delete() -> Request {
    Request::DeletePod {
        pod: pod_ref(),
        resource_version: None,
    }
}

fn page(names: &[&str], version: &str, next: &str) -> Answer {
    let items: Vec<_> = names.iter().map(|name| pod(name)).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    let list = json!({"kind": "PodList", "metadata": metadata, "items": items});
    Answer::json(200, list)
}

fn expired() -> Answer {
    let status = json!({"kind": "Status", "reason": "Expired", "code": 410});
    Answer::json(410, status)
}

#[tokio::test]
async fn cluster_is_known_by_its_kube_system() {
    let server = Server::start(vec![Answer::json(200, json!({"metadata": {"uid": "c1"}}))]).await;
    assert_eq!(server.cluster.uid().await, Ok("c1".into()));
    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /api/v1/namespaces/kube-system");
    let agent = concat!("decree-agent/", env!("CARGO_PKG_VERSION"));
    assert_eq!(asked[0].agent, agent);
}

fn names(list: &List) -> Vec<String> {
    let Items::Pods(pods) = &list.items else {
        panic!("{list:?} is no list of pods")
    };
    pods.iter().map(|pod| pod.name).collect()
}

#[tokio::test]
async fn list_is_read_page_by_page() {
    let pages = vec![page(&["a", "b"], "7", "t="), page(&["c"], "7", "")];
    let server = Server::start(pages).await;
    let list = list(&server.cluster).await.expect("it is read");
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!(list.part, Part::WHOLE);
    assert_eq!(list.resource_version, "7");
    let lines: Vec<_> = server.asked().into_iter().map(|it| it.line).collect();
    let first = "GET /api/v1/pods?limit=500";
    assert_eq!(lines, [first, &format!("{first}&continue=t%3D")]);
}

#[tokio::test]
async fn page_that_is_gone_begins_the_list_anew() {
    let [old, new] = [page(&["old"], "7", "t1"), page(&["new"], "9", "")];
    let server = Server::start(vec![old, expired(), new]).await;
    let list = list(&server.cluster).await.expect("it is read");
    assert_eq!(names(&list), ["new"]);
    assert_eq!(server.asked()[2].line, "GET /api/v1/pods?limit=500");
}

#[tokio::test]
async fn list_whose_pages_are_always_gone_ends() {
    let pages = (0..10).flat_map(|_| [page(&["a"], "7", "t"), expired()]);
    let server = Server::start(pages.collect()).await;
    let error = list(&server.cluster).await.expect_err("it ends");
    assert_eq!(error.code, Some(410));
    assert_eq!(server.asked().len(), 10);
}

/// One field of a message: its number, length and content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("tests are short");
    [&[number << 3 | 2, length], content].concat()
}

fn document(kind: &str, object: &[u8]) -> Vec<u8> {
    let kind = field(1, &field(2, kind.as_bytes()));
    [b"k8s\0".to_vec(), kind, field(2, object)].concat()
}

/// A watch's event in protobuf, with its length before it.
fn frame_in(verb: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let object = field(1, &document(kind, object));
    let event = [field(1, verb.as_bytes()), field(2, &object)].concat();
    let length = u32::try_from(event.len()).expect("tests are short");
    [&length.to_be_bytes(), &event[..]].concat()
}

#[tokio::test]
async fn event_that_cannot_be_read_asks_for_a_new_list() {
    let text = b"{\"type\":\"ADDED\",\"object\":\n{\"type\":\"NOVEL\",\"object\":{}}\n".to_vec();
    let server = Server::start(vec![Answer::stream(vec![text])]).await;
    let chunk = next(&mut watch_pods(&server).await).await;
    let chunk = chunk.expect("there are events");
    let asks = |event: &WatchEvent| matches!(event, WatchEvent::Error(it) if it.code == Some(410));
    assert!(chunk.iter().all(asks), "{chunk:?}");
    assert_eq!(chunk.len(), 2);
}

#[tokio::test]
async fn watch_refused_as_gone_says_so() {
    let server = Server::start(vec![expired()]).await;
    let refused = server.cluster.watch(Kind::Pod, "1".into()).await;
    assert_eq!(refused.expect_err("it is refused").code, Some(410));
}

#[tokio::test]
async fn refused_create_is_sent_once() {
    let busy = || Answer::json(429, json!({"details": {"retryAfterSeconds": 3}}));
    let server = Server::start(vec![busy(), busy()]).await;
    let error = refused(&server).await;
    assert_eq!(error.code, Some(429));
    assert_eq!(error.retry_after_seconds, Some(3));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn refusal_in_words_of_a_proxy_keeps_its_code() {
    let server = Server::start(vec![Answer::text(503, "<html>away</html>").retry_after(7)]).await;
    let error = refused(&server).await;
    assert_eq!(error.code, Some(503));
    assert_eq!(error.retry_after_seconds, Some(7));
    assert_eq!(error.message, "the cluster answers 503");
}

#[tokio::test]
async fn call_without_an_answer_leaves_its_effect_unknown() {
    for answer in [Answer::Hangup, Answer::text(200, "not JSON")] {
        let server = Server::start(vec![answer]).await;
        let error = refused(&server).await;
        assert_eq!(error.code, None, "{error:?}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn throttling_lowers_what_the_cluster_is_asked_to_bear() {
    let server = Server::start(vec![Answer::text(429, "")]).await;
    assert_eq!(server.cluster.calls_max(), 32);
    refused(&server).await;
    assert_eq!(server.cluster.calls_max(), 16);
}

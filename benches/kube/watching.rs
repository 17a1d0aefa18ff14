//! A plain watch by the benchmark.

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tests::real::Api;
use tokio::sync::mpsc;

/// More events than any benchmark leaves in the queue: an event that waits is measured late.
const WAITING_MAX: usize = 100_000;

/// The future events of the pods of a namespace with this label.
pub(crate) async fn pods(api: &Api, path: &str, label: &str) -> mpsc::Receiver<Value> {
    let path = format!("{path}?labelSelector={label}");
    let list = api
        .get(&format!("{path}&limit=1"))
        .await
        .expect("pods can be listed");
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.expect("it has one").to_owned();
    let api = api.clone();
    let (sender, events) = mpsc::channel(WAITING_MAX);
    tokio::spawn(watch(api, path, version, sender));
    events
}

/// Passes events on until the receiver is gone. The API server ends a watch that is slow on a busy machine; the watch then
/// continues at its last version.
async fn watch(api: Api, path: String, mut version: String, sender: mpsc::Sender<Value>) {
    while !sender.is_closed() {
        let path = format!("{path}&watch=true&resourceVersion={version}");
        let request = Request::get(path).body(Body::empty()).expect("it is one");
        let answer = api.client().send(request).await.expect("it is watched");
        let mut body = answer.into_body();
        let mut buffer = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            buffer.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = buffer.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).expect("it is JSON");
                assert_ne!(event["type"], "ERROR", "{event}");
                let seen = event["object"]["metadata"]["resourceVersion"].as_str();
                seen.expect("it has one").clone_into(&mut version);
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        }
    }
}

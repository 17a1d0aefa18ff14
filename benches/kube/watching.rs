//! A plain watch of the benchmark's own.

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tests::real::Api;
use tokio::sync::mpsc;

/// More events than any benchmark lets wait: what waits here is late.
const WAITING_MAX: usize = 100_000;

/// The events of the pods of a namespace from now on, as they come.
pub(crate) async fn pods(api: &Api, path: &str) -> mpsc::Receiver<Value> {
    let list = api
        .get(&format!("{path}?limit=1"))
        .await
        .expect("pods can be listed");
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .expect("it has one");
    let path = format!("{path}?watch=true&resourceVersion={version}");
    let request = Request::get(path).body(Body::empty()).expect("it is one");
    let answer = api.client().send(request).await.expect("it is watched");
    let mut body = answer.into_body();
    let (sender, events) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        let mut buffer = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            buffer.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = buffer.drain(..=end).collect();
                let event = serde_json::from_slice(&line).expect("it is JSON");
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        }
    });
    events
}

//! Unary calls and watches: any method, header and body, many at a time.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use decree_api::v1::{self, simulate_cluster_request::Change};
use http::{Request, Response};
use http_body::Body as _;
use prost::Message as _;
use serde::Deserialize;
use tests::{body::in_pieces, template::Template};
use tokio::{task::JoinSet, time};
use tonic::{Status, body::Body, codegen::Service as _, transport::Channel};

use crate::{
    guard::Who,
    script::hex,
    seen::{Seen, one},
    stream::ending,
    target::Target,
};

/// The timeout of a call, which only a hanging call reaches.
const PATIENCE: Duration = Duration::from_mins(4);
/// The size of the pieces of a body.
const PIECE: usize = 64 << 10;

/// Concurrent calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calls {
    /// The method, without the package: `DecisionService/Decide`.
    method: String,
    /// A short description of the message: see [`Calls::message`].
    #[serde(default)]
    message: String,
    /// The number of calls on each connection.
    #[serde(default = "one")]
    calls: u64,
    #[serde(default = "one")]
    connections: u64,
    /// How long each call is repeated, in seconds, one at a time. Without it, each call is made once.
    #[serde(default)]
    seconds: u64,
    /// Headers to set, or to remove if they are empty.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The method of HTTP.
    #[serde(default = "post")]
    http: String,
    /// The flag before the message.
    #[serde(default)]
    flag: u8,
    /// The length before the message, if it differs from the message's.
    length: Option<u32>,
    /// The number of messages.
    #[serde(default = "one")]
    messages: u64,
    /// Whether the body does not end.
    #[serde(default)]
    endless: bool,
    /// The credentials of each call.
    #[serde(default, rename = "as")]
    who: Who,
    /// The number of messages to read from an endless stream; then the call is dropped.
    read: Option<usize>,
    /// Whether an open stream is held and not read.
    #[serde(default)]
    hold: bool,
}

fn post() -> String {
    "POST".to_owned()
}

impl Calls {
    /// The same calls with other credentials.
    pub(crate) fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    /// Makes all calls, and waits for their ends.
    pub(crate) async fn run(&self, target: impl Into<Target>) -> Seen {
        let target = target.into().by(&self.who);
        let mut calls = JoinSet::new();
        let mut seen = Seen::default();
        let body = self.body();
        for at in 0..self.connections {
            let channel = match target.connect().await {
                Ok(channel) => channel,
                Err(error) => {
                    seen.ends.insert(error);
                    continue;
                }
            };
            for number in at * self.calls..(at + 1) * self.calls {
                let (this, channel, body) = (self.clone(), channel.clone(), body.clone());
                let authorization = target.authorization(number);
                calls.spawn(async move { this.repeat(channel, authorization, body).await });
            }
        }
        seen.add_all(calls).await;
        seen
    }

    async fn repeat(&self, channel: Channel, authorization: Option<String>, body: Bytes) -> Seen {
        let until = time::Instant::now() + Duration::from_secs(self.seconds);
        let mut seen = Seen::default();
        loop {
            let call = self.call(channel.clone(), authorization.clone(), body.clone());
            seen.add(call.await);
            if time::Instant::now() >= until {
                return seen;
            }
        }
    }

    async fn call(&self, mut channel: Channel, authorization: Option<String>, body: Bytes) -> Seen {
        let mut request = Request::builder()
            .method(self.http.as_str())
            .uri(format!("/{}", self.method));
        let own = [("content-type", "application/grpc"), ("te", "trailers")];
        for (name, value) in own {
            if self.headers.iter().all(|(have, _)| have != name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(name, repeated(value));
        }
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let pieces: Vec<_> = body
            .chunks(PIECE)
            .map(|piece| body.slice_ref(piece))
            .collect();
        let request = request.body(in_pieces(pieces, !self.endless));
        let request = request.expect("a request");
        let answered = async {
            if std::future::poll_fn(|cx| channel.poll_ready(cx))
                .await
                .is_err()
            {
                return Seen::ended("closed");
            }
            match channel.call(request).await {
                Ok(answer) if self.hold && Status::from_header_map(answer.headers()).is_none() => {
                    let mut seen = Seen::ended("held");
                    seen.held.push(Box::new(answer));
                    seen
                }
                Ok(answer) => self.read(answer).await,
                Err(_) => Seen::ended("closed"),
            }
        };
        let answered = time::timeout(PATIENCE, answered).await;
        answered.unwrap_or_else(|_| Seen::ended("silent"))
    }

    async fn read(&self, answer: Response<Body>) -> Seen {
        let (head, mut body) = answer.into_parts();
        let mut seen = Seen::default();
        let mut status = Status::from_header_map(&head.headers);
        let mut pieces = 0;
        loop {
            if self.read.is_some_and(|read| pieces >= read) {
                return Seen::ended("dropped");
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            let Some(Ok(frame)) = frame else { break };
            pieces += 1;
            seen.bytes += frame.data_ref().map_or(0, Bytes::len);
            let trailers = frame.trailers_ref().and_then(Status::from_header_map);
            status = trailers.or(status);
        }
        seen.bytes += status
            .as_ref()
            .map_or(0, |it| it.message().len() + it.details().len());
        let http = format!("HTTP {}", head.status.as_u16());
        let end = status.as_ref().map_or(http, ending);
        seen.ends.insert(end);
        seen
    }

    fn body(&self) -> Bytes {
        let message = self.message();
        let length = u32::try_from(message.len()).expect("messages are below 4 GiB");
        let length = self.length.unwrap_or(length).to_be_bytes();
        let one = [&[self.flag][..], &length, &message].concat();
        let times = usize::try_from(self.messages).expect("few");
        one.repeat(times).into()
    }

    /// The message of these words: `decide sets N pods N [template of all]`, `simulate|get|list|drain|quota key=value…`,
    /// `hex 0a03…`, `text TEXT*N`, `nothing`.
    fn message(&self) -> Vec<u8> {
        let words: Vec<_> = self.message.split_whitespace().collect();
        match words[..] {
            [] | ["nothing"] => Vec::new(),
            ["hex", text] => hex(text),
            ["text", text] => repeated(text).into_bytes(),
            ["decide", "sets", sets, "pods", pods, ref words @ ..] => {
                let template = Template::read(words.iter().copied());
                let count = |word: &str| word.parse::<u64>().expect("a number");
                let set = |at| template.replica_set(at);
                let sets = count(sets);
                v1::DecideRequest {
                    replica_set: (sets > 0).then(|| set(0)),
                    other_replica_sets: (1..sets).map(set).collect(),
                    pods: (0..count(pods)).map(|at| template.pod(at)).collect(),
                    ..v1::DecideRequest::default()
                }
                .encode_to_vec()
            }
            [verb, ref words @ ..] => query(verb, &Template::read(words.iter().copied())),
        }
    }
}

fn query(verb: &str, template: &Template) -> Vec<u8> {
    let text = |key: &str| template.text(key, 0).unwrap_or_default();
    let (cluster, namespace, name) = (text("cluster"), text("namespace"), text("name"));
    match verb {
        "simulate" => v1::SimulateRequest {
            cluster,
            namespace,
            name,
            replicas: template.value("replicas", 0),
            shard: text("shard"),
            ..v1::SimulateRequest::default()
        }
        .encode_to_vec(),
        "drain" => {
            let node = text("node");
            let change = Change::NodeDrain(v1::NodeDrain { node });
            changing(cluster, change)
        }
        "quota" => {
            let pods = template.value("pods", 0).unwrap_or(0);
            changing(cluster, Change::PodQuota(v1::PodQuota { namespace, pods }))
        }
        "get" => v1::GetReplicaSetRequest {
            cluster,
            namespace,
            name,
            shard: text("shard"),
        }
        .encode_to_vec(),
        "list" => v1::ListReplicaSetsRequest {
            cluster,
            namespace,
            page_size: template.value("size", 0).unwrap_or(0),
            page_token: text("token"),
            shard: text("shard"),
        }
        .encode_to_vec(),
        verb => panic!("{verb} is no message"),
    }
}

fn changing(cluster: String, change: Change) -> Vec<u8> {
    v1::SimulateClusterRequest {
        cluster,
        change: Some(change),
        ..v1::SimulateClusterRequest::default()
    }
    .encode_to_vec()
}

/// Expands `x*300`.
pub(crate) fn repeated(value: &str) -> String {
    let parts = value.rsplit_once('*');
    let times = parts.and_then(|(text, times)| Some((text, times.parse::<usize>().ok()?)));
    times.map_or_else(|| value.to_owned(), |(text, times)| text.repeat(times))
}

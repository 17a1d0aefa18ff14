//! Deletion costs from pods: an HTTP GET at the address of the pod itself, and at no other.
//!
//! The address is the one that the pod has in the API server at the time of the question. It is neither kept nor sent to anyone. A pod with the
//! network of its node is not asked: its address is that of the node. There are no redirects, credentials and proxies.

use std::{
    error::Error,
    net::{IpAddr, SocketAddr},
};

use agent_core::asking::CostSource;
use bytes::Bytes;
use decree_api::v1;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::{client::legacy, rt::TokioExecutor};
use serde_json::Value;

use crate::{requests, transport::Transport};

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64;
/// The most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

type Failure = Box<dyn Error + Send + Sync>;

/// Asks a pod. The caller limits the time.
pub(crate) async fn ask(
    transport: &Transport,
    pod: &v1::ObjectRef,
    source: &CostSource,
) -> Result<i32, String> {
    let asked = async {
        let request = requests::cached_pod(&pod.namespace, &pod.name)?;
        let address = address(&transport.fetch(request).await?, &pod.uid)?;
        get(SocketAddr::new(address, source.port), &source.path).await
    };
    asked.await.map_err(|error: Failure| innermost(&*error))
}

/// The address of a pod, as the API server describes it.
fn address(pod: &[u8], uid: &str) -> Result<IpAddr, Failure> {
    let pod: Value = serde_json::from_slice(pod)?;
    if pod["metadata"]["uid"] != uid {
        return Err("the pod is gone".into());
    }
    if pod["spec"]["hostNetwork"] == true {
        return Err("the pod has the network of its node".into());
    }
    let address = pod["status"]["podIP"].as_str().filter(|it| !it.is_empty());
    let address = address.ok_or("the pod has no address yet")?;
    let read = address.parse::<IpAddr>().ok().filter(is_of_a_pod);
    read.ok_or_else(|| format!("{address:?} is no address of a pod").into())
}

/// Not this machine, nor the services that answer at addresses of a link, such as those with the credentials of a node.
fn is_of_a_pod(address: &IpAddr) -> bool {
    let address = address.to_canonical();
    let is_local = match address {
        IpAddr::V4(it) => it.is_link_local() || it.is_broadcast(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    };
    !is_local && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

async fn get(address: SocketAddr, path: &str) -> Result<i32, Failure> {
    let request = Request::get(format!("http://{address}{path}"));
    let client = legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .build_http();
    let response = client.request(request.body(Empty::<Bytes>::new())?).await?;
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status().as_u16()).into());
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
    let body = body.await?.to_bytes();
    let text = str::from_utf8(&body).ok();
    let cost = text.and_then(|text| text.trim_ascii().parse().ok());
    cost.ok_or_else(|| "the answer is no 32-bit integer".into())
}

/// The cause at the end of a chain of errors, such as `Connection refused`.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests;

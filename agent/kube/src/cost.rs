//! Deletion costs of pods, from the pod itself or from a custom metric.
//!
//! A pod is asked by an HTTP GET at its own address, and at no other. The address is the one that the pod has in the API server at the time
//! of the question. It is neither kept nor sent to anyone. A pod with the network of its node is not asked: its address is that of the node.
//! There are no redirects, credentials and proxies.

use std::{
    error::Error,
    net::{IpAddr, SocketAddr},
};

use agent_core::asking::PodSource;
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

/// The suffixes of quantities, with their factors.
const SUFFIXES: [(&str, f64); 9] = [
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
];

type Failure = Box<dyn Error + Send + Sync>;

/// Asks a pod. The caller limits the time.
pub(crate) async fn ask(
    transport: &Transport,
    pod: &v1::ObjectRef,
    source: &PodSource,
) -> Result<i32, String> {
    let v1::ObjectRef {
        namespace,
        name,
        uid,
    } = pod;
    let asked = async {
        match source {
            PodSource::Http { port, path } => {
                let request = requests::cached_pod(namespace, name)?;
                let address = address(&transport.fetch(request).await?, uid)?;
                get(SocketAddr::new(address, *port), path).await
            }
            PodSource::Metric(metric) => {
                let request = requests::metric(namespace, name, metric)?;
                value(&transport.fetch(request).await?, name)
            }
        }
    };
    asked.await.map_err(|error: Failure| innermost(&*error))
}

/// The value in a `MetricValueList` of the API of custom metrics.
fn value(list: &[u8], pod: &str) -> Result<i32, Failure> {
    let list: Value = serde_json::from_slice(list)?;
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let item = items.iter().find(|it| it["describedObject"]["name"] == pod);
    let value = item.and_then(|it| it["value"].as_str());
    let value = value.ok_or("the metric has no value for the pod")?;
    quantity(value).ok_or_else(|| format!("{value:?} is no 32-bit number").into())
}

/// A quantity of Kubernetes, rounded to an integer.
fn quantity(text: &str) -> Option<i32> {
    let scaled = |(suffix, factor): &(&str, f64)| Some((text.strip_suffix(suffix)?, *factor));
    let (number, factor) = SUFFIXES.iter().find_map(scaled).unwrap_or((text, 1.0));
    let value = (number.parse::<f64>().ok()? * factor).round();
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
    // The text of an integer without an exponent.
    fits.then(|| format!("{value:.0}").parse().ok())?
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

//! Metrics of the requests to the API server, with the names, labels and buckets of client-go.
//!
//! A request is counted when its status arrives or it fails, and timed until its answer is read. A watch is counted and not timed. The
//! series are bounded: the agent uses five methods, an API server has a few dozen codes, and there is one host.

use http::{Method, StatusCode, Uri};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;

/// The buckets of Kubernetes' components.
const BUCKETS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
/// Upstream's value of the label `code` for a request that failed without a status.
pub const NO_STATUS: &str = "<error>";

type Labels<const N: usize> = [(&'static str, String); N];

/// The metrics of the requests to one API server.
#[derive(Debug)]
pub(crate) struct Metrics {
    host: String,
    requests: Family<Labels<3>, Counter>,
    durations: Family<Labels<2>, Histogram, fn() -> Histogram>,
}

/// A request under way. The drop counts the request, so that a request that is given up is counted too.
pub(crate) struct Exchange<'a> {
    metrics: &'a Metrics,
    method: Method,
    /// The status of the answer, once it has arrived.
    pub(crate) status: Option<StatusCode>,
    begun: Instant,
    is_timed: bool,
}

impl Metrics {
    pub(crate) fn new(url: &Uri) -> Self {
        let host = url.host().unwrap_or_default();
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Self {
            host,
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }

    pub(crate) fn register_requests(&self, registry: &mut Registry) {
        let help = "Requests to the API server, by status code, method and host";
        registry.register("rest_client_requests", help, self.requests.clone());
        let help = "How long requests to the API server took, by method and host";
        registry.register(
            "rest_client_request_duration_seconds",
            help,
            self.durations.clone(),
        );
    }

    /// Begins a request, which is timed unless its answer is endless.
    pub(crate) fn begin(&self, method: &Method, is_timed: bool) -> Exchange<'_> {
        Exchange {
            metrics: self,
            method: method.clone(),
            status: None,
            begun: Instant::now(),
            is_timed,
        }
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let code = self.status.as_ref().map_or(NO_STATUS, StatusCode::as_str);
        let (method, host) = (self.method.as_str(), self.metrics.host.as_str());
        let labels = [("code", code), ("method", method), ("host", host)];
        let requests = &self.metrics.requests;
        requests.get_or_create(&labels.map(owned)).inc();
        if self.is_timed {
            let labels = [("verb", method), ("host", host)].map(owned);
            let took = self.begun.elapsed().as_secs_f64();
            self.metrics.durations.get_or_create(&labels).observe(took);
        }
    }
}

fn owned((name, value): (&'static str, &str)) -> (&'static str, String) {
    (name, value.to_owned())
}

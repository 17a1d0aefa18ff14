//! A collector of OpenTelemetry in this process, on a separate port, which keeps the received spans.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, status::StatusCode},
};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::running::PATIENCE;

/// A collector, which ends when this is dropped.
#[derive(Debug)]
pub struct Collector {
    address: String,
    received: Received,
    _runtime: Runtime,
}

/// The reaction to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The collector accepts requests.
    Attentive,
    /// The collector never answers.
    Silent,
}

/// A received span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The name of the service.
    pub service: String,
    /// The name of the span.
    pub name: String,
    /// The id of the trace, in hexadecimal digits.
    pub trace_id: String,
    /// The id of the span.
    pub id: String,
    /// The id of its parent; empty for the root span.
    pub parent: String,
    /// The start, in nanoseconds since 1970.
    pub start: u64,
    /// The end, in nanoseconds since 1970.
    pub end: u64,
    /// Whether the operation failed.
    pub has_failed: bool,
    /// Its attributes, as texts.
    pub attributes: BTreeMap<String, String>,
    /// The header `authorization` of its request.
    pub authorization: String,
}

#[derive(Clone, Debug)]
struct Received {
    spans: Arc<(Mutex<Vec<Span>>, Condvar)>,
    manner: Manner,
}

impl Collector {
    /// Starts a collector.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start(manner: Manner) -> Self {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("there is a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let received = Received {
            spans: Arc::default(),
            manner,
        };
        let service = TraceServiceServer::new(received.clone());
        let incoming = TcpListenerStream::new(listener);
        runtime.spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        Self {
            address: format!("http://{address}"),
            received,
            _runtime: runtime,
        }
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.address
    }

    /// Waits until `find` succeeds on the received spans.
    ///
    /// # Panics
    /// If the wait takes too long.
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&[Span]) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut spans = self.received.lock();
        loop {
            if let Some(found) = find(&spans) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}: {spans:#?}");
            let waited = self.received.spans.1.wait_timeout(spans, left);
            (spans, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns all received spans.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.received.lock().clone()
    }
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, Vec<Span>> {
        self.spans.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        if self.manner == Manner::Silent {
            std::future::pending::<()>().await;
        }
        let authorization = request.metadata().get("authorization");
        let authorization = authorization.and_then(|it| it.to_str().ok()).unwrap_or("");
        let authorization = authorization.to_owned();
        let resources = request.into_inner().resource_spans;
        let spans = resources
            .into_iter()
            .flat_map(|resource| read(resource, &authorization));
        self.lock().extend(spans);
        self.spans.1.notify_all();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn read(resource: ResourceSpans, authorization: &str) -> Vec<Span> {
    let service = attributes(resource.resource.unwrap_or_default().attributes);
    let service = service.get("service.name").cloned().unwrap_or_default();
    let spans = resource.scope_spans.into_iter().flat_map(|it| it.spans);
    let read = spans.map(|span| Span {
        service: service.clone(),
        name: span.name,
        trace_id: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        has_failed: span
            .status
            .is_some_and(|status| status.code() == StatusCode::Error),
        attributes: attributes(span.attributes),
        authorization: authorization.to_owned(),
    });
    read.collect()
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let read = attributes.into_iter().filter_map(|it| {
        let value = it.value?.value?;
        let value = if let Value::StringValue(text) = value {
            text
        } else if let Value::IntValue(number) = value {
            number.to_string()
        } else {
            format!("{value:?}")
        };
        Some((it.key, value))
    });
    read.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

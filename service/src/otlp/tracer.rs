//! The tracer, which makes spans.

use std::time::Duration;

use crate::transport::{ClientArgs, Connector, SetupError, TlsArgs};
use decree::TraceContext;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use prometheus_client::registry::Registry;
use thiserror::Error;
use tonic::transport::Endpoint;

use crate::otlp::{
    exporter::{Exporter, Queue},
    metrics::Metrics,
    span::{Span, ago, remote},
    target::{Target, VariableError},
};

/// The timeout for a connection to the collector.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Makes spans, or none if the tracer is off. Clones are the same tracer.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<SdkTracer>);

/// Why the tracer cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An environment variable has an invalid endpoint.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// An `https` collector has no CA to check its certificate.
    #[error(
        "an https:// endpoint in OTEL_EXPORTER_OTLP_ENDPOINT needs OTEL_EXPORTER_OTLP_CERTIFICATE"
    )]
    NoCa,
    /// The connection to the collector cannot be set up.
    #[error("the way to the collector of traces cannot be made")]
    Setup(#[source] SetupError),
    /// The environment has invalid headers or an invalid timeout.
    #[error("the exporter of traces cannot be made")]
    Exporter(#[source] ExporterBuildError),
}

impl Tracer {
    /// Starts the tracer of a service, and the task that exports its spans. The tracer is off if the environment has no endpoint.
    ///
    /// The collector need not be reachable. The tracer reads these OpenTelemetry variables: `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_CERTIFICATE`,
    /// `…_HEADERS`, `…_TIMEOUT` and their forms for traces, `OTEL_TRACES_SAMPLER` and its `…_ARG`, `OTEL_SERVICE_NAME`,
    /// `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SDK_DISABLED`.
    ///
    /// # Errors
    /// If the environment is invalid.
    pub fn start(
        service: &'static str,
        version: &'static str,
        registry: &mut Registry,
    ) -> Result<(Self, Exporter), StartError> {
        match Target::of_environment()? {
            Some(target) => Self::to(&target, (service, version), registry),
            None => Ok((Self::default(), Exporter::default())),
        }
    }

    /// Starts the tracer with this collector.
    pub(crate) fn to(
        target: &Target,
        (service, version): (&'static str, &'static str),
        registry: &mut Registry,
    ) -> Result<(Self, Exporter), StartError> {
        let resource = resource(service, version);
        let collector = collector(target)?;
        let (queue, exporter) = Exporter::start(
            collector,
            target.timeout,
            &resource,
            Metrics::register_spans(registry),
        );
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_span_processor::<Queue>(queue)
            .build();
        let endpoint = target.endpoint.to_string();
        tracing::info!(endpoint, "traces are exported");
        Ok((Self(Some(provider.tracer("decree"))), exporter))
    }

    /// Begins a trace, if it is sampled. It began `elapsed` ago.
    #[must_use]
    pub fn root(&self, kind: SpanKind, name: &'static str, elapsed: Duration) -> Option<Span> {
        let tracer = self.0.as_ref()?;
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let builder = builder.with_start_time(ago(elapsed));
        recorded(tracer.build_with_context(builder, &Context::new()))
    }

    /// Continues a trace that the sender records, if it is sampled here too.
    #[must_use]
    pub fn child(&self, parent: TraceContext, kind: SpanKind, name: &'static str) -> Option<Span> {
        let tracer = self.0.as_ref()?;
        if !parent.is_sampled() {
            return None;
        }
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let parent = Context::new().with_remote_span_context(remote(parent));
        recorded(tracer.build_with_context(builder, &parent))
    }
}

fn recorded(span: opentelemetry_sdk::trace::Span) -> Option<Span> {
    span.is_recording().then_some(Span(span))
}

/// The resource of all spans of the process. The environment takes precedence over the name of the service.
fn resource(service: &'static str, version: &'static str) -> Resource {
    let given = Resource::builder().build();
    let named = given.iter().filter(|(key, value)| {
        // The library fills in a default name if none is given.
        key.as_str() != "service.name" || !value.as_str().starts_with("unknown_service")
    });
    let named = named.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", service),
            KeyValue::new("service.version", version),
        ])
        .with_attributes(named)
        .build()
}

/// The exporter to the collector. The connection is opened with the first export.
fn collector(target: &Target) -> Result<SpanExporter, StartError> {
    let Target { endpoint, ca, .. } = target;
    let is_tls = matches!(endpoint, crate::transport::Endpoint::Https(_));
    if is_tls && ca.is_none() {
        return Err(StartError::NoCa);
    }
    let args = ClientArgs {
        files: TlsArgs {
            tls_ca: ca.clone().filter(|_| is_tls),
            ..TlsArgs::default()
        },
        // An `http://` URL is an explicit choice of plain text.
        insecure: true,
        ..ClientArgs::default()
    };
    let connector = Connector::new(
        endpoint.clone(),
        &args,
        crate::transport::Metrics::default(),
    );
    let connector = connector.map_err(StartError::Setup)?;
    if connector.is_exposed() {
        tracing::warn!(%endpoint, "traces leave this machine in plain text: names of objects and messages of failures can be read on the path");
    }
    let channel = Endpoint::from(endpoint.uri())
        .connect_timeout(CONNECT_MAX)
        .connect_with_connector_lazy(connector);
    SpanExporter::builder()
        .with_tonic()
        .with_channel(channel)
        .build()
        .map_err(StartError::Exporter)
}

//! The export of spans to the collector: a queue that never blocks, and a task that empties it.

use std::{mem, time::Duration};

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{Span, SpanData, SpanExporter as _, SpanProcessor},
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::otlp::metrics::Metrics;

/// The maximum number of waiting spans, of about a kilobyte each. Beyond it, spans are dropped.
const QUEUE: usize = 2_048;
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for more spans.
const GATHER: Duration = Duration::from_secs(1);
/// How long the final export may take at the end of the process.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// The task that sends spans, if there is one.
#[derive(Debug, Default)]
pub struct Exporter(Option<(CancellationToken, JoinHandle<()>)>);

/// The queue of ended spans.
#[derive(Debug)]
pub(crate) struct Queue {
    spans: mpsc::Sender<SpanData>,
    metrics: Metrics,
}

struct Task {
    collector: SpanExporter,
    /// The export timeout of a batch.
    patience: Duration,
    spans: mpsc::Receiver<SpanData>,
    metrics: Metrics,
    stop: CancellationToken,
    /// Whether the last export succeeded.
    takes: bool,
}

impl Exporter {
    pub(crate) fn start(
        mut collector: SpanExporter,
        patience: Duration,
        resource: &Resource,
        metrics: Metrics,
    ) -> (Queue, Self) {
        collector.set_resource(resource);
        let (sender, spans) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let task = Task {
            collector,
            patience,
            spans,
            metrics: metrics.clone(),
            stop: stop.clone(),
            takes: true,
        };
        let task = tokio::spawn(task.run());
        let queue = Queue {
            spans: sender,
            metrics,
        };
        (queue, Self(Some((stop, task))))
    }

    /// Sends the ended spans, and ends the task. Spans that the collector has not accepted within two seconds are lost.
    pub async fn finish(self) {
        if let Some((stop, mut task)) = self.0 {
            stop.cancel();
            if timeout(FINISH_WITHIN, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(span).is_err() {
            self.metrics.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Task {
    async fn run(mut self) {
        let stop = self.stop.clone();
        let mut batch = Vec::new();
        while self.gather(&mut batch, &stop).await {
            self.send(mem::take(&mut batch)).await;
        }
    }

    /// Waits for a span, and then for more spans until the batch is due. Returns whether there is a batch: `false` means the end.
    async fn gather(&mut self, batch: &mut Vec<SpanData>, stop: &CancellationToken) -> bool {
        let first = self.spans.recv_many(batch, BATCH_MAX);
        if stop.run_until_cancelled(first).await.is_some() {
            let until = Instant::now() + GATHER;
            let more = async {
                while batch.len() < BATCH_MAX && !batch.is_empty() {
                    let more = self.spans.recv_many(batch, BATCH_MAX - batch.len());
                    if !matches!(timeout_at(until, more).await, Ok(1..)) {
                        return;
                    }
                }
            };
            stop.run_until_cancelled(more).await;
            return !batch.is_empty();
        }
        while batch.len() < BATCH_MAX
            && let Ok(span) = self.spans.try_recv()
        {
            batch.push(span);
        }
        !batch.is_empty()
    }

    /// Sends a batch, once. Spans that the collector does not accept are lost and counted.
    async fn send(&mut self, batch: Vec<SpanData>) {
        let spans = batch.len() as u64;
        let patience = self.patience;
        let sent = timeout(patience, self.collector.export(batch)).await;
        let sent = sent.unwrap_or(Err(OTelSdkError::Timeout(patience)));
        match &sent {
            Ok(()) => self.metrics.exported.inc_by(spans),
            Err(_) => self.metrics.failed.inc_by(spans),
        };
        match (self.takes, &sent) {
            (true, Err(error)) => {
                let why = crate::excerpt(&error.to_string());
                let peer = "collector";
                tracing::warn!(peer, spans, why, "the collector does not take traces");
            }
            (false, Ok(())) => {
                tracing::info!(peer = "collector", "the collector takes traces again");
            }
            (true, Ok(())) | (false, Err(_)) => {}
        }
        self.takes = sent.is_ok();
    }
}

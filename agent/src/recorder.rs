//! Writes events to the cluster, through a separate queue with a separate rate, so that no pod waits for an event.

use std::time::Duration;

use agent_core::{
    api::ApiError,
    cluster::Cluster,
    pace::TokenBucket,
    recorder::{self, Event, Note},
};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::metrics::Metrics;
use agent_kube::Clock;

/// How many events may wait. Further events are dropped, and counted.
const QUEUE_MAX: usize = 1_000;
/// The interval of events, and how many are written at once after a rest: a tenth of the calls for pods.
const EVERY: Duration = Duration::from_millis(20);
const BURST: u32 = 100;
/// How often an unanswered write of an event is attempted, and the wait between attempts.
const TRIES_MAX: usize = 3;
const TRY_EVERY: Duration = Duration::from_secs(2);

/// Takes notes. Its drop discards the unwritten events.
#[derive(Debug)]
pub(crate) struct Recorder {
    machine: recorder::Recorder,
    queue: mpsc::Sender<Event>,
    metrics: Metrics,
    _task: AbortOnDropHandle<()>,
}

impl Recorder {
    pub(crate) fn start<C: Cluster>(
        machine: recorder::Recorder,
        cluster: C,
        metrics: Metrics,
    ) -> Self {
        let (queue, writes) = mpsc::channel(QUEUE_MAX);
        let task = tokio::spawn(write(cluster, writes, metrics.clone()));
        Self {
            machine,
            queue,
            metrics,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn record(&mut self, now: Timestamp, note: Note) {
        let Some(event) = self.machine.handle_note(now, note) else {
            return;
        };
        if self.queue.try_send(event).is_err() {
            self.metrics.events_dropped.inc();
        }
    }
}

async fn write<C: Cluster>(cluster: C, mut events: mpsc::Receiver<Event>, metrics: Metrics) {
    let clock = Clock::starting_at(Timestamp::now());
    let mut bucket = TokenBucket::new(EVERY, BURST);
    while let Some(event) = events.recv().await {
        for attempt in 1..=TRIES_MAX {
            tokio::time::sleep(bucket.take(clock.now())).await;
            match cluster.record(event.clone()).await {
                Ok(()) => break,
                Err(error) if attempt < TRIES_MAX && may_pass(&error) => {
                    tokio::time::sleep(TRY_EVERY).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "an event is not written");
                    metrics.events_dropped.inc();
                    break;
                }
            }
        }
    }
}

fn may_pass(error: &ApiError) -> bool {
    matches!(error.code, None | Some(429 | 500..))
}

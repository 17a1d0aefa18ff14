//! Writes events to the cluster, through a separate queue with a separate rate, so that no pod waits for an event.

use std::time::Duration;

use agent_core::{
    api::ApiError,
    cluster::Cluster,
    pace::TokenBucket,
    recorder::{self, Event, Note, Reason},
};
use jiff::Timestamp;
use service::excerpt;
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

    /// Records a note. The server writes parts of some texts: the causes of its limits.
    pub(crate) fn record(&mut self, now: Timestamp, mut note: Note) {
        if matches!(note.reason, Reason::PodsDoNotLast | Reason::CreatesAreSlow) {
            note.message = excerpt(&note.message);
        }
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

#[cfg(test)]
mod tests {
    use decree_api::v1;

    use super::*;

    #[tokio::test]
    async fn event_with_a_text_of_the_server_is_short_and_steers_no_terminal() {
        let (queue, mut events) = mpsc::channel(1);
        let mut recorder = Recorder {
            machine: recorder::Recorder::new("agent-1", "apps/v1"),
            queue,
            metrics: Metrics::default(),
            _task: AbortOnDropHandle::new(tokio::spawn(std::future::pending())),
        };
        let note = Note {
            object: v1::ObjectRef::default(),
            reason: Reason::PodsDoNotLast,
            message: format!("\u{202e}{}", "x".repeat(100_000)),
        };
        recorder.record(Timestamp::UNIX_EPOCH, note);
        let message = events.try_recv().expect("it is rare").message;
        assert!(message.starts_with("\\u{202e}x"), "{message}");
        assert!(message.len() < 1_100, "{} bytes", message.len());
    }
}

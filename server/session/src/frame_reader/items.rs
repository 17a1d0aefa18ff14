//! Reads the items of a frame where they stand, a pod without a copy of its texts.

use decree::{TraceContext, v1};
use server_core::{After, BatchId, Effect, Event, Outcome};

use super::sink::Sink;
use crate::{
    incoming::{Item, Items, SMALL},
    refusal::Refusal,
    wire::{RawEvent, RawLabels, RawOutcome, RawPod, Rejected, decode, pod_rejected, pod_view},
};

/// Reads an event that shows a pod, if it can be read where it stands.
pub(super) fn event_of_pod<'a>(item: Item<'a>, labels: &mut RawLabels<'a>) -> Option<RawEvent<'a>> {
    small(item, |bytes| RawEvent::read(bytes, labels))
}

/// Reads a pod of a list.
pub(super) fn read_pod<'a>(
    item: Item<'a>,
    labels: &mut RawLabels<'a>,
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    if let Some(pod) = small(item, |bytes| RawPod::read(bytes, labels)) {
        return take_pod(&pod, labels, None, sink, |_| Ok(()));
    }
    let (pod, mut labels) = (item.pod()?, RawLabels::new());
    let pod = RawPod::of(&pod, &mut labels);
    take_pod(&pod, &labels, None, sink, |_| Ok(()))
}

/// Takes a pod; a valid one only where `admit` lets it in.
pub(super) fn take_pod<S: Sink>(
    pod: &RawPod<'_>,
    labels: &[(&str, &str)],
    trace: Option<TraceContext>,
    sink: &mut S,
    admit: impl FnOnce(&S) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    match pod_view(pod, labels) {
        Ok(pod) => {
            admit(sink)?;
            sink.pod(&pod, trace);
        }
        Err(violations) => sink.rejected(pod_rejected(pod, violations)),
    }
    Ok(())
}

/// Reads outcomes.
pub(super) fn read_outcomes(items: &Items, sink: &mut impl Sink) -> Result<(), Refusal> {
    let mut labels = RawLabels::new();
    for (place, item) in items.iter().enumerate() {
        let item = item?;
        let read = small(item, |bytes| RawOutcome::read(bytes, &mut labels));
        if !read.is_some_and(|outcome| take_done(&outcome, &labels, sink)) {
            take_outcome(place, item.outcome()?, sink)?;
        }
    }
    Ok(())
}

/// Takes an outcome; returns whether all of it is valid. If not, nothing has been taken.
fn take_done(outcome: &RawOutcome<'_>, labels: &[(&str, &str)], sink: &mut impl Sink) -> bool {
    let Ok(version) = decode::version("resource_version", outcome.resource_version) else {
        return false;
    };
    let done = |after| Outcome {
        batch: BatchId(outcome.batch_id),
        operation: outcome.operation,
        result: Effect::Done { version, after },
    };
    let trace = TraceContext::parse(outcome.traceparent);
    let Some(pod) = &outcome.pod else {
        sink.outcome(done(Some(After::Gone)), trace);
        return true;
    };
    let pod = pod_view(pod, labels);
    if let Ok(pod) = &pod {
        sink.outcome_of_pod(done(None), pod, trace);
    }
    pod.is_ok()
}

/// Reads an item; a larger one is read by prost, with bounds on what it has.
fn small<'a, T>(item: Item<'a>, read: impl FnOnce(&'a [u8]) -> Option<T>) -> Option<T> {
    (item.bytes.len() < SMALL)
        .then(|| read(item.bytes))
        .flatten()
}

/// Takes an outcome that prost has read.
pub(super) fn take_outcome(
    place: usize,
    outcome: v1::Outcome,
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    let trace = TraceContext::parse(&outcome.traceparent);
    let (outcome, rejected) = decode::outcome(outcome).map_err(|violation| {
        Refusal::field(violation.within(&format!("outcomes.outcomes[{place}]")))
    })?;
    sink.outcome(outcome, trace);
    if let Some(rejected) = rejected {
        sink.rejected(rejected);
    }
    Ok(())
}

/// Takes what was read of an object.
pub(super) fn pass(read: Result<Event, Rejected>, sink: &mut impl Sink) {
    match read {
        Ok(event) => sink.event(event, None),
        Err(rejected) => sink.rejected(rejected),
    }
}

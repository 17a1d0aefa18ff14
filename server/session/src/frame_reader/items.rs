//! Reads items in place, a pod without a copy of its texts.

use decree::{TraceContext, v1};
use prost::Message;
use server_core::{Event, Outcome};

use super::sink::Sink;
use crate::{
    refusal::Refusal,
    wire::{
        LargeObject, MalformedFrame, RawLabels, RawPod, Rejected, decode,
        outcome_with_large_object, pod_applied, pod_view, read_done, replica_set_applied,
    },
};

pub(super) fn read_pod<'a>(
    bytes: &'a [u8],
    labels: &mut RawLabels<'a>,
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    if let Some(large) = LargeObject::of(v1::Kind::Pod, bytes) {
        pass(large.read().map(Event::ReplicaSetApplied), None, sink);
        return Ok(());
    }
    if let Some(pod) = RawPod::read(bytes, labels) {
        return take_pod(&pod, labels, None, sink, |_| Ok(()));
    }
    pass(pod_applied(&message(bytes)?), None, sink);
    Ok(())
}

pub(super) fn read_replica_set(bytes: &[u8], sink: &mut impl Sink) -> Result<(), Refusal> {
    let set = match LargeObject::of(v1::Kind::ReplicaSet, bytes) {
        Some(large) => large.read().map(Event::ReplicaSetApplied),
        None => replica_set_applied(&message(bytes)?),
    };
    pass(set, None, sink);
    Ok(())
}

/// Passes on a pod; a valid pod only if `admit` accepts it.
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
        Err(violations) => {
            let names = [pod.namespace, pod.name, pod.uid];
            sink.rejected(Rejected::new(v1::Kind::Pod, names, violations));
        }
    }
    Ok(())
}

/// Reads the outcome at index `place` of its list.
pub(super) fn read_outcome<'a>(
    place: usize,
    bytes: &'a [u8],
    labels: &mut RawLabels<'a>,
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    if let Some((outcome, rejected)) = outcome_with_large_object(bytes)? {
        take_outcome(outcome, rejected, None, sink);
        return Ok(());
    }
    if let Some((outcome, pod, traceparent)) = read_done(bytes, labels)
        && let Ok(pod) = pod.map(|pod| pod_view(&pod, labels)).transpose()
    {
        sink.outcome(outcome, pod.as_ref(), TraceContext::parse(traceparent));
        return Ok(());
    }
    let outcome: v1::Outcome = message(bytes)?;
    let trace = TraceContext::parse(&outcome.traceparent);
    let (outcome, rejected) = decode::outcome(outcome).map_err(|violation| {
        Refusal::field(violation.within(&format!("outcomes.outcomes[{place}]")))
    })?;
    take_outcome(outcome, rejected, trace, sink);
    Ok(())
}

/// Passes on an outcome, and its object if that was not accepted.
fn take_outcome(
    outcome: Outcome,
    rejected: Option<Rejected>,
    trace: Option<TraceContext>,
    sink: &mut impl Sink,
) {
    sink.outcome(outcome, None, trace);
    if let Some(rejected) = rejected {
        sink.rejected(rejected);
    }
}

/// Reads an item with prost.
pub(super) fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, MalformedFrame> {
    Ok(M::decode(bytes)?)
}

/// Passes on an event with its trace context, or the rejection of its object.
pub(super) fn pass(
    read: Result<Event, Rejected>,
    trace: Option<TraceContext>,
    sink: &mut impl Sink,
) {
    match read {
        Ok(event) => sink.event(event, trace),
        Err(rejected) => sink.rejected(rejected),
    }
}

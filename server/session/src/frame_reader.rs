//! The agent's half of the protocol: reads frames in order, and returns their content, or why the session must end.

use decree::{
    TraceContext,
    v1::{self, reconcile_request::Frame},
};
use server_core::{ByKind, Event, Kind};

pub(crate) use self::sink::Sink;
use crate::{
    incoming::{Head, IncomingFrame, Item, List},
    refusal::Refusal,
    wire::{
        Fault, LargeObject, MalformedFrame, RawLabels, Violation, decode, duration_in, read_event,
    },
};

mod items;
mod sink;

const ABSENT: &str = "is absent; exactly one must be set";
const EMPTY: &str = "is empty; must have at least one";

/// The progress of reading the agent's frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameReader {
    sequence: u64,
    /// The number of objects that the open list of a kind has named; `None` if no list is open.
    lists: ByKind<Option<i64>>,
}

// === impl FrameReader ===

impl FrameReader {
    /// Returns the last sequence number received.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Checks the sequence of the first frame, and takes the Hello out of it.
    pub(crate) fn hello(&mut self, request: v1::ReconcileRequest) -> Result<v1::Hello, Refusal> {
        self.advance(request.sequence)?;
        match request.frame {
            Some(Frame::Hello(hello)) => Ok(hello),
            Some(_) => Err(Refusal::HelloExpected),
            None => Err(required("frame", ABSENT)),
        }
    }

    /// Reads a frame after the Hello.
    pub(crate) fn read(
        &mut self,
        frame: &IncomingFrame,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let Head { sequence, list } = frame.head()?;
        self.advance(sequence)?;
        let Some(list) = list else {
            return self.read_message(frame.to_message()?, sink);
        };
        let (mut labels, mut items) = (RawLabels::new(), 0);
        for (place, item) in frame.items(list).enumerate() {
            items += 1;
            match item? {
                Item::Pod(pod) => {
                    self.name(Kind::Pod)?;
                    items::read_pod(pod, &mut labels, sink)?;
                }
                Item::ReplicaSet(set) => {
                    self.name(Kind::ReplicaSet)?;
                    items::read_replica_set(set, sink)?;
                }
                Item::Event(event) => self.read_event(place, event, &mut labels, sink)?,
                Item::Outcome(outcome) => {
                    items::read_outcome(place, outcome, &mut labels, sink)?;
                }
            }
            sink.check()?;
        }
        match list {
            List::Events if items == 0 => Err(required("events.events", EMPTY)),
            List::Outcomes if items == 0 => Err(required("outcomes.outcomes", EMPTY)),
            List::Objects | List::Events | List::Outcomes => Ok(()),
        }
    }

    fn read_message(
        &mut self,
        request: v1::ReconcileRequest,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        match request.frame.ok_or_else(|| required("frame", ABSENT))? {
            Frame::Hello(_) => Err(Refusal::HelloRepeated),
            Frame::SnapshotBegin(begin) => self.begin(&begin, sink),
            Frame::SnapshotEnd(end) => self.end(&end, sink),
            Frame::Heartbeat(heartbeat) => {
                if let Some(age) = &heartbeat.view_age {
                    sink.view_age(duration_in(age));
                }
                Ok(())
            }
            // A list is read item by item, and the frame has no other content.
            Frame::SnapshotObjects(_) | Frame::Events(_) | Frame::Outcomes(_) => {
                Err(MalformedFrame::Twice.into())
            }
        }
    }

    fn read_event<'a>(
        &mut self,
        place: usize,
        bytes: &'a [u8],
        labels: &mut RawLabels<'a>,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let (event, trace) = if let Some(large) = LargeObject::within(bytes, 1, 2)? {
            (large.read().map(Event::ReplicaSetApplied), None)
        } else if let Some((pod, traceparent)) = read_event(bytes, labels) {
            let trace = TraceContext::parse(traceparent);
            return items::take_pod(&pod, labels, trace, sink, |sink| {
                self.admit(Kind::Pod, sink)
            });
        } else {
            let event: v1::Event = items::message(bytes)?;
            let trace = TraceContext::parse(&event.traceparent);
            let event = decode::event(event);
            let at = |fault: Violation| fault.within(&format!("events.events[{place}]"));
            (event.map_err(|fault| Refusal::field(at(fault)))?, trace)
        };
        if let Ok(event) = &event {
            self.admit(kind_of(event), sink)?;
        }
        items::pass(event, trace, sink);
        Ok(())
    }

    fn advance(&mut self, got: u64) -> Result<(), Refusal> {
        if got == 0 {
            return Ok(());
        }
        let expected = self.sequence.saturating_add(1);
        if got != expected {
            return Err(Refusal::SequenceGap { expected, got });
        }
        self.sequence = got;
        Ok(())
    }

    fn begin(&mut self, begin: &v1::SnapshotBegin, sink: &mut impl Sink) -> Result<(), Refusal> {
        let kind = decode::kind("snapshot_begin.kind", begin.kind).map_err(Refusal::field)?;
        *self.lists.of_mut(kind) = Some(0);
        sink.event(Event::SnapshotBegin(kind), None);
        Ok(())
    }

    fn end(&mut self, end: &v1::SnapshotEnd, sink: &mut impl Sink) -> Result<(), Refusal> {
        let kind = decode::kind("snapshot_end.kind", end.kind).map_err(Refusal::field)?;
        let version = decode::version("snapshot_end.resource_version", &end.resource_version)
            .map_err(Refusal::field)?;
        let Some(arrived) = self.lists.of_mut(kind).take() else {
            return Err(Refusal::SnapshotNotOpen(kind));
        };
        let count = end.count;
        if arrived != count {
            return Err(Refusal::SnapshotCount {
                kind,
                count,
                arrived,
            });
        }
        if let (Some(last), Some(got)) = (sink.last_list(kind), version)
            && got < last
        {
            return Err(Refusal::VersionsWentBack { kind, last, got });
        }
        sink.event(Event::SnapshotEnd { kind, version }, None);
        Ok(())
    }

    /// Counts an object of the open list of a kind.
    fn name(&mut self, kind: Kind) -> Result<(), Refusal> {
        let named = self.lists.of_mut(kind).as_mut();
        let named = named.ok_or(Refusal::SnapshotNotOpen(kind))?;
        *named = named.saturating_add(1);
        Ok(())
    }

    /// Checks that a change is legal in the current state of the list of its kind.
    fn admit(&mut self, kind: Kind, sink: &impl Sink) -> Result<(), Refusal> {
        if self.lists.of_mut(kind).is_some() || sink.is_listed(kind) {
            return Ok(());
        }
        Err(Refusal::EventBeforeSnapshot(kind))
    }
}

const fn kind_of(event: &Event) -> Kind {
    match event {
        Event::SnapshotBegin(kind)
        | Event::SnapshotEnd { kind, .. }
        | Event::Bookmark { kind, .. } => *kind,
        Event::PodApplied(_) | Event::PodDeleted { .. } => Kind::Pod,
        Event::ReplicaSetApplied(_) | Event::ReplicaSetDeleted { .. } => Kind::ReplicaSet,
    }
}

fn required(field: &str, description: &str) -> Refusal {
    Refusal::field(Violation::new(field, Fault::Required, description))
}

#[cfg(test)]
mod tests;

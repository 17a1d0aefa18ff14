//! The agent's half of the protocol: reads frames in their order and says what is in them, or why the session must end.

use decree::{
    TraceContext,
    v1::{self, reconcile_request::Frame},
};
use server_core::{ByKind, Event, Kind};

pub(crate) use self::sink::Sink;
use crate::{
    incoming::{Content, IncomingFrame, Items, List, PODS, REPLICA_SETS},
    refusal::Refusal,
    wire::{
        BadEvent, Fault, RawLabels, Violation, decode, duration_in, pod_applied,
        replica_set_applied,
    },
};

mod items;
mod sink;

/// How far the agent's frames have been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameReader {
    sequence: u64,
    lists: ByKind<OpenList>,
}

/// How many objects the list that is being sent has named; `None` where none is.
#[derive(Clone, Debug, Default)]
struct OpenList(Option<i64>);

// === impl FrameReader ===

impl FrameReader {
    /// Returns the last sequence number received.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Checks the sequence of a frame and takes the hello out of the first one.
    pub(crate) fn hello(&mut self, request: v1::ReconcileRequest) -> Result<v1::Hello, Refusal> {
        self.advance(request.sequence)?;
        match request.frame {
            Some(Frame::Hello(hello)) => Ok(hello),
            Some(_) => Err(Refusal::HelloExpected),
            None => Err(no_frame()),
        }
    }

    /// Reads a frame after the hello.
    pub(crate) fn read(
        &mut self,
        frame: IncomingFrame,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        match frame.0 {
            Content::Frame(request) => self.read_frame(request, sink),
            Content::Items(items) => self.read_items(&items, sink),
        }
    }

    fn read_frame(
        &mut self,
        request: v1::ReconcileRequest,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        self.advance(request.sequence)?;
        match request.frame.ok_or_else(no_frame)? {
            Frame::Hello(_) => Err(Refusal::HelloRepeated),
            Frame::SnapshotBegin(begin) => self.begin(&begin, sink),
            Frame::SnapshotObjects(objects) => self.objects(&objects, sink),
            Frame::SnapshotEnd(end) => self.end(&end, sink),
            Frame::Events(events) => self.events(events, sink),
            Frame::Outcomes(outcomes) => take_outcomes(outcomes, sink),
            Frame::Heartbeat(heartbeat) => {
                if let Some(age) = &heartbeat.view_age {
                    sink.view_age(duration_in(age));
                }
                Ok(())
            }
        }
    }

    fn read_items(&mut self, items: &Items, sink: &mut impl Sink) -> Result<(), Refusal> {
        self.advance(items.sequence)?;
        let is_empty = items.iter().next().is_none();
        match items.list() {
            List::Objects => self.read_objects(items, sink),
            List::Events if is_empty => Err(empty("events.events")),
            List::Events => self.read_events(items, sink),
            List::Outcomes if is_empty => Err(empty("outcomes.outcomes")),
            List::Outcomes => items::read_outcomes(items, sink),
        }
    }

    /// Reads objects: all pods, then all ReplicaSets, as they stand in the message.
    fn read_objects(&mut self, items: &Items, sink: &mut impl Sink) -> Result<(), Refusal> {
        let (mut pods, mut replica_sets) = (0, 0);
        for item in items.iter().flatten() {
            let count = if item.field == PODS {
                &mut pods
            } else {
                &mut replica_sets
            };
            *count += 1;
        }
        self.lists.of_mut(Kind::Pod).name(Kind::Pod, pods)?;
        self.lists
            .of_mut(Kind::ReplicaSet)
            .name(Kind::ReplicaSet, replica_sets)?;
        let mut labels = RawLabels::new();
        for item in items.iter() {
            let item = item?;
            if item.field == PODS {
                items::read_pod(item, &mut labels, sink)?;
                sink.check()?;
            }
        }
        for item in items.iter() {
            let item = item?;
            if item.field == REPLICA_SETS {
                items::pass(replica_set_applied(&item.replica_set()?), sink);
                sink.check()?;
            }
        }
        Ok(())
    }

    fn read_events(&mut self, items: &Items, sink: &mut impl Sink) -> Result<(), Refusal> {
        let mut labels = RawLabels::new();
        for (place, item) in items.iter().enumerate() {
            let item = item?;
            sink.check()?;
            let Some(event) = items::event_of_pod(item, &mut labels) else {
                self.event(place, item.event()?, sink)?;
                continue;
            };
            let trace = TraceContext::parse(event.traceparent);
            items::take_pod(&event.pod, &labels, trace, sink, |sink| {
                self.admit(Kind::Pod, sink)
            })?;
        }
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
        self.lists.of_mut(kind).0 = Some(0);
        sink.event(Event::SnapshotBegin(kind), None);
        Ok(())
    }

    fn objects(
        &mut self,
        objects: &v1::SnapshotObjects,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let v1::SnapshotObjects { pods, replica_sets } = objects;
        self.lists.of_mut(Kind::Pod).name(Kind::Pod, pods.len())?;
        self.lists
            .of_mut(Kind::ReplicaSet)
            .name(Kind::ReplicaSet, replica_sets.len())?;
        for pod in pods {
            items::pass(pod_applied(pod), sink);
        }
        for set in replica_sets {
            items::pass(replica_set_applied(set), sink);
        }
        Ok(())
    }

    fn end(&mut self, end: &v1::SnapshotEnd, sink: &mut impl Sink) -> Result<(), Refusal> {
        let kind = decode::kind("snapshot_end.kind", end.kind).map_err(Refusal::field)?;
        let version = decode::version("snapshot_end.resource_version", &end.resource_version)
            .map_err(Refusal::field)?;
        let Some(arrived) = self.lists.of_mut(kind).0.take() else {
            return Err(Refusal::SnapshotNotOpen(kind));
        };
        if arrived != end.count {
            return Err(Refusal::SnapshotCount {
                kind,
                count: end.count,
                arrived,
            });
        }
        let last = sink.last_list(kind);
        if let (Some(last), Some(got)) = (last, version)
            && got < last
        {
            return Err(Refusal::VersionsWentBack { kind, last, got });
        }
        sink.event(Event::SnapshotEnd { kind, version }, None);
        Ok(())
    }

    fn events(&mut self, events: v1::Events, sink: &mut impl Sink) -> Result<(), Refusal> {
        if events.events.is_empty() {
            return Err(empty("events.events"));
        }
        for (place, event) in events.events.into_iter().enumerate() {
            self.event(place, event, sink)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        place: usize,
        event: v1::Event,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let trace = TraceContext::parse(&event.traceparent);
        match decode::event(event) {
            Ok(event) => {
                self.admit(kind_of(&event), sink)?;
                sink.event(event, trace);
            }
            Err(BadEvent::Rejected(rejected)) => sink.rejected(rejected),
            Err(BadEvent::Malformed(violation)) => {
                return Err(Refusal::field(
                    violation.within(&format!("events.events[{place}]")),
                ));
            }
        }
        Ok(())
    }

    /// Checks that a change is legal where the list of its kind stands.
    fn admit(&mut self, kind: Kind, sink: &impl Sink) -> Result<(), Refusal> {
        if self.lists.of_mut(kind).0.is_some() || sink.is_listed(kind) {
            return Ok(());
        }
        Err(Refusal::EventBeforeSnapshot(kind))
    }
}

fn take_outcomes(outcomes: v1::Outcomes, sink: &mut impl Sink) -> Result<(), Refusal> {
    if outcomes.outcomes.is_empty() {
        return Err(empty("outcomes.outcomes"));
    }
    for (place, outcome) in outcomes.outcomes.into_iter().enumerate() {
        items::take_outcome(place, outcome, sink)?;
    }
    Ok(())
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

fn no_frame() -> Refusal {
    Refusal::field(Violation::new(
        "frame",
        Fault::Required,
        "is absent; exactly one must be set",
    ))
}

fn empty(field: &str) -> Refusal {
    Refusal::field(Violation::new(
        field,
        Fault::Required,
        "is empty; must have at least one",
    ))
}

// === impl OpenList ===

impl OpenList {
    /// Counts objects of the open list.
    fn name(&mut self, kind: Kind, objects: usize) -> Result<(), Refusal> {
        if objects == 0 {
            return Ok(());
        }
        let named = self.0.as_mut().ok_or(Refusal::SnapshotNotOpen(kind))?;
        *named = named.saturating_add(i64::try_from(objects).unwrap_or(i64::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! The agent's half of the protocol: takes frames in their order and tells what is in them, or why the session must end.
//!
//! Nothing here waits or decides, so the rules of a session can be tested frame by frame.

use decree::v1::{self, reconcile_request::Frame};
use server_core::{Event, Kind, Outcome, Span};

use crate::{
    error::Refusal,
    wire::{
        BadEvent, Fault, Rejected, Violation, decode, duration_in, pod_applied, replica_set_applied,
    },
};

/// Takes what arrived, in order.
pub(crate) trait Sink {
    /// Takes an event.
    fn event(&mut self, event: Event);
    /// Takes an outcome.
    fn outcome(&mut self, outcome: Outcome);
    /// Takes an object that was not accepted.
    fn rejected(&mut self, rejected: Rejected);
    /// Takes the age of the agent's view.
    fn view_age(&mut self, age: Span);
}

/// Where a session stands: the sequence, and the snapshots.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    sequence: u64,
    pods: Lane,
    replica_sets: Lane,
}

/// Where the list of one kind stands.
#[derive(Debug, Default)]
struct Lane {
    /// How many objects the open snapshot has named.
    open: Option<i64>,
    /// Whether a snapshot has been complete.
    complete: bool,
}

// === impl Intake ===

impl Intake {
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

    /// Takes a frame after the hello.
    pub(crate) fn take(
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
        self.lane(kind).open = Some(0);
        sink.event(Event::SnapshotBegin(kind));
        Ok(())
    }

    fn objects(
        &mut self,
        objects: &v1::SnapshotObjects,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let v1::SnapshotObjects { pods, replica_sets } = objects;
        self.pods.name(Kind::Pod, pods.len())?;
        self.replica_sets
            .name(Kind::ReplicaSet, replica_sets.len())?;
        for pod in pods {
            pass(pod_applied(pod), sink);
        }
        for set in replica_sets {
            pass(replica_set_applied(set), sink);
        }
        Ok(())
    }

    fn end(&mut self, end: &v1::SnapshotEnd, sink: &mut impl Sink) -> Result<(), Refusal> {
        let kind = decode::kind("snapshot_end.kind", end.kind).map_err(Refusal::field)?;
        let version = decode::version("snapshot_end.resource_version", &end.resource_version)
            .map_err(Refusal::field)?;
        let lane = self.lane(kind);
        let Some(arrived) = lane.open.take() else {
            return Err(Refusal::SnapshotNotOpen(kind));
        };
        if arrived != end.count {
            return Err(Refusal::SnapshotCount {
                kind,
                count: end.count,
                arrived,
            });
        }
        lane.complete = true;
        sink.event(Event::SnapshotEnd { kind, version });
        Ok(())
    }

    fn events(&mut self, events: v1::Events, sink: &mut impl Sink) -> Result<(), Refusal> {
        if events.events.is_empty() {
            return Err(empty("events.events"));
        }
        for (place, event) in events.events.into_iter().enumerate() {
            match decode::event(event) {
                Ok(event) => {
                    self.lane(kind_of(&event)).admit(&event)?;
                    sink.event(event);
                }
                Err(BadEvent::Rejected(rejected)) => sink.rejected(rejected),
                Err(BadEvent::Malformed(violation)) => {
                    return Err(Refusal::field(
                        violation.within(&format!("events.events[{place}]")),
                    ));
                }
            }
        }
        Ok(())
    }

    const fn lane(&mut self, kind: Kind) -> &mut Lane {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
        }
    }
}

fn take_outcomes(outcomes: v1::Outcomes, sink: &mut impl Sink) -> Result<(), Refusal> {
    if outcomes.outcomes.is_empty() {
        return Err(empty("outcomes.outcomes"));
    }
    for (place, outcome) in outcomes.outcomes.into_iter().enumerate() {
        let (outcome, rejected) = decode::outcome(outcome).map_err(|violation| {
            Refusal::field(violation.within(&format!("outcomes.outcomes[{place}]")))
        })?;
        sink.outcome(outcome);
        if let Some(rejected) = rejected {
            sink.rejected(rejected);
        }
    }
    Ok(())
}

fn pass(read: Result<Event, Rejected>, sink: &mut impl Sink) {
    match read {
        Ok(event) => sink.event(event),
        Err(rejected) => sink.rejected(rejected),
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

// === impl Lane ===

impl Lane {
    /// Counts objects of the open snapshot.
    fn name(&mut self, kind: Kind, objects: usize) -> Result<(), Refusal> {
        if objects == 0 {
            return Ok(());
        }
        let open = self.open.as_mut().ok_or(Refusal::SnapshotNotOpen(kind))?;
        *open = open.saturating_add(i64::try_from(objects).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Returns whether a change is legal where the list stands.
    fn admit(&self, event: &Event) -> Result<(), Refusal> {
        if self.complete || self.open.is_some() {
            return Ok(());
        }
        Err(Refusal::EventBeforeSnapshot(kind_of(event)))
    }
}

#[cfg(test)]
mod tests;

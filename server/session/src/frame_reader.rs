//! The agent's half of the protocol: reads frames in order, and returns their content, or why the session must end.

use decree_api::v1::{self, reconcile_request::Frame};
use decree_core::{ByKind, Event, Kind, NodeChange, Outcome, PodView, ResourceVersion, Span, Uid};
use prost::Message;

use crate::{
    incoming::{Head, IncomingFrame, Item, List},
    refusal::Refusal,
    wire::{
        Fault, LargeObject, MalformedFrame, RawLabels, RawPod, Rejected, Violation, decode,
        duration_in, node_name, outcome_with_large_object, pod_applied, pod_view, read_event,
        replica_set_applied,
    },
};

const ABSENT: &str = "is absent; exactly one must be set";
/// The maximum size of a node on the wire.
const NODE_BYTES_MAX: usize = 16 << 10;
const EMPTY: &str = "is empty; must have at least one";

/// The number of bytes that are read of the reason why a pod has not answered.
const FAILURE_BYTES_MAX: usize = 128;

/// Takes the content of frames, in order.
pub(crate) trait Sink {
    fn is_listed(&self, kind: Kind) -> bool;
    fn last_list(&self, kind: Kind) -> Option<ResourceVersion>;
    fn event(&mut self, event: Event);
    /// Takes a pod: inside a list a member of it, outside a change.
    fn pod(&mut self, pod: &PodView<'_>);
    fn outcome(&mut self, outcome: Outcome);
    fn node(&mut self, change: NodeChange);
    /// Whether the agent has asked to send nodes.
    fn takes_nodes(&self) -> bool;
    fn rejected(&mut self, rejected: Rejected);
    /// Takes the answer to a question for costs.
    fn costs(&mut self, question: u64, costs: Vec<(Uid, Result<i32, Box<str>>)>);
    /// Checks the limits of the session, between two items: a frame may have very many.
    fn check(&mut self) -> Result<(), Refusal>;
    /// Whether to read the rest of the frame later, between two items: a small frame may have much work.
    fn pauses(&self) -> bool {
        false
    }
    fn view_age(&mut self, age: Span);
}

/// The progress of reading the agent's frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameReader {
    /// The last number received.
    pub(crate) sequence: u64,
    /// The number of objects that the open list of a kind has named; `None` if no list is open.
    lists: ByKind<Option<i64>>,
    /// The place in the current frame, if its rest is to be read later.
    paused: Option<Place>,
}

/// A place between two items of a frame.
#[derive(Clone, Copy, Debug)]
struct Place {
    list: List,
    /// The number of items that are read.
    items: usize,
    /// The bytes that are [left](crate::incoming::Items::left).
    left: [usize; 2],
}

impl FrameReader {
    /// Checks the sequence of the first frame, and takes the Hello out of it.
    pub(crate) fn hello(&mut self, request: v1::ReconcileRequest) -> Result<v1::Hello, Refusal> {
        self.advance(request.sequence)?;
        match request.frame {
            Some(Frame::Hello(hello)) => Ok(hello),
            Some(_) => Err(Refusal::HelloExpected),
            None => Err(required("frame", ABSENT)),
        }
    }

    /// Whether the rest of a frame is to be read, with the next [`Self::read`].
    pub(crate) const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Reads a frame after the Hello, or the next part of it if the last one [paused](Self::is_paused). A part has at least one item.
    pub(crate) fn read(
        &mut self,
        frame: &IncomingFrame,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let (list, mut number, mut items) = if let Some(place) = self.paused.take() {
            let items = frame.items_after(place.list, place.left);
            (place.list, place.items, items)
        } else {
            let Head { sequence, list } = frame.head()?;
            self.advance(sequence)?;
            let Some(list) = list else {
                return self.read_message(frame.to_message()?, sink);
            };
            (list, 0, frame.items(list))
        };
        if list == List::Nodes && !sink.takes_nodes() {
            return Err(Refusal::NodesUnexpected);
        }
        let mut labels = RawLabels::new();
        while let Some(item) = items.next() {
            match item? {
                Item::Pod(pod) => self.read_pod(pod, &mut labels, sink)?,
                Item::ReplicaSet(set) => self.read_replica_set(set, sink)?,
                Item::Event(event) => self.read_event(number, event, &mut labels, sink)?,
                Item::Outcome(outcome) => read_outcome(number, outcome, sink)?,
                item @ (Item::Node(_) | Item::DeletedNode(_) | Item::NodesComplete) => {
                    sink.node(node_change(number, item)?);
                }
            }
            number += 1;
            sink.check()?;
            if sink.pauses() {
                let left = items.left();
                self.paused = Some(Place {
                    list,
                    items: number,
                    left,
                });
                return Ok(());
            }
        }
        match list {
            List::Events if number == 0 => Err(required("events.events", EMPTY)),
            List::Outcomes if number == 0 => Err(required("outcomes.outcomes", EMPTY)),
            List::Objects | List::Events | List::Outcomes | List::Nodes => Ok(()),
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
            Frame::Costs(v1::Costs { id, costs }) => {
                let why = |it: &v1::PodCost| {
                    it.failure[..it.failure.floor_char_boundary(FAILURE_BYTES_MAX)].into()
                };
                let cost = |it: v1::PodCost| {
                    (Uid(it.uid.as_str().into()), it.cost.ok_or_else(|| why(&it)))
                };
                sink.costs(id, costs.into_iter().map(cost).collect());
                Ok(())
            }
            // A list is read item by item, and the frame has no other content.
            Frame::SnapshotObjects(_) | Frame::Events(_) | Frame::Outcomes(_) | Frame::Nodes(_) => {
                Err(MalformedFrame::Twice.into())
            }
        }
    }

    /// Reads a member of a list in place, without a copy of its texts if prost need not read it.
    fn read_pod<'a>(
        &mut self,
        bytes: &'a [u8],
        labels: &mut RawLabels<'a>,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        self.name(Kind::Pod)?;
        if let Some(large) = LargeObject::of(v1::Kind::Pod, bytes) {
            return self.take(large.read().map(Event::ReplicaSetApplied), sink);
        }
        match RawPod::read(bytes, labels) {
            Some(pod) => self.take_pod(&pod, labels, sink),
            None => self.take(pod_applied(&message(bytes)?), sink),
        }
    }

    fn read_replica_set(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), Refusal> {
        self.name(Kind::ReplicaSet)?;
        let set = match LargeObject::of(v1::Kind::ReplicaSet, bytes) {
            Some(large) => large.read().map(Event::ReplicaSetApplied),
            None => replica_set_applied(&message(bytes)?),
        };
        self.take(set, sink)
    }

    /// Reads the event at index `place` of its list.
    fn read_event<'a>(
        &mut self,
        place: usize,
        bytes: &'a [u8],
        labels: &mut RawLabels<'a>,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        if let Some(large) = LargeObject::within(bytes, 1, 2)? {
            return self.take(large.read().map(Event::ReplicaSetApplied), sink);
        }
        if let Some(pod) = read_event(bytes, labels) {
            return self.take_pod(&pod, labels, sink);
        }
        let event = decode::event(message(bytes)?).map_err(|violation| {
            Refusal::field(violation.within(&format!("events.events[{place}]")))
        })?;
        self.take(event, sink)
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
        sink.event(Event::SnapshotBegin(kind));
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
        sink.event(Event::SnapshotEnd { kind, version });
        Ok(())
    }

    /// Counts an object of the open list of a kind.
    fn name(&mut self, kind: Kind) -> Result<(), Refusal> {
        let named = self.lists.of_mut(kind).as_mut();
        let named = named.ok_or(Refusal::SnapshotNotOpen(kind))?;
        *named = named.saturating_add(1);
        Ok(())
    }

    /// Passes on a member of a list or a change, or the rejection of its object.
    fn take(
        &mut self,
        event: Result<Event, Rejected>,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        match event {
            Ok(event) => {
                self.admit(kind_of(&event), sink)?;
                sink.event(event);
            }
            Err(rejected) => sink.rejected(rejected),
        }
        Ok(())
    }

    /// Does as [`Self::take`] for a pod that is read in place.
    fn take_pod(
        &mut self,
        pod: &RawPod<'_>,
        labels: &[(&str, &str)],
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        match pod_view(pod, labels) {
            Ok(pod) => {
                self.admit(Kind::Pod, sink)?;
                sink.pod(&pod);
            }
            Err(violations) => {
                let names = [pod.namespace, pod.name, pod.uid];
                sink.rejected(Rejected::new(v1::Kind::Pod, names, violations));
            }
        }
        Ok(())
    }

    /// Checks that an object may come in the current state of the list of its kind.
    fn admit(&mut self, kind: Kind, sink: &impl Sink) -> Result<(), Refusal> {
        if self.lists.of_mut(kind).is_some() || sink.is_listed(kind) {
            return Ok(());
        }
        Err(Refusal::EventBeforeSnapshot(kind))
    }
}

/// Reads the outcome at index `place` of its list.
fn read_outcome(place: usize, bytes: &[u8], sink: &mut impl Sink) -> Result<(), Refusal> {
    let (outcome, rejected) = match outcome_with_large_object(bytes)? {
        Some(large) => large,
        None => decode::outcome(message(bytes)?).map_err(|violation| {
            Refusal::field(violation.within(&format!("outcomes.outcomes[{place}]")))
        })?,
    };
    sink.outcome(outcome);
    if let Some(rejected) = rejected {
        sink.rejected(rejected);
    }
    Ok(())
}

/// Reads the change of nodes at index `place` of its list.
fn node_change(place: usize, item: Item<'_>) -> Result<NodeChange, Refusal> {
    let at = |violation: Violation| violation.within(&format!("nodes[{place}]"));
    match item {
        Item::Node(bytes) if bytes.len() > NODE_BYTES_MAX => {
            let found = format!(
                "has {} bytes; at most {NODE_BYTES_MAX} are allowed",
                bytes.len()
            );
            Err(Refusal::field(at(Violation::new("", Fault::Range, found))))
        }
        Item::Node(bytes) => {
            let node = decode::node(&message(bytes)?).map_err(|found| {
                let found = found.into_iter().map(at);
                Refusal::Invalid(found.collect(), 0)
            })?;
            Ok(NodeChange::Applied(node))
        }
        Item::DeletedNode(bytes) => {
            let name = str::from_utf8(bytes).unwrap_or_default();
            let name = node_name("", name).map_err(|found| Refusal::field(at(found)))?;
            Ok(NodeChange::Deleted(name.into()))
        }
        Item::NodesComplete
        | Item::Pod(_)
        | Item::ReplicaSet(_)
        | Item::Event(_)
        | Item::Outcome(_) => Ok(NodeChange::Complete),
    }
}

/// Reads an item with prost.
fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, MalformedFrame> {
    Ok(M::decode(bytes)?)
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

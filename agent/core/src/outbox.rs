//! Output that waits for the server, in frames of a bounded size.
//!
//! A slow reader costs bounded memory. If many events wait, only the latest event of each object stays, and the agent leaves a server for
//! which [too many](crate::link::EVENTS_WAITING_MAX) wait nevertheless. A new list of a kind replaces the waiting rest of an older list. Of
//! a node, only the newest state waits. The outbox sends the pages of a list before the last page has come. Outcomes wait elsewhere, and
//! their number is bounded by the operations in flight.

use std::collections::{BTreeMap, HashMap, VecDeque};

use decree_api::v1::{
    self, done, event::Event as EventKind, outcome::Outcome as OutcomeKind,
    reconcile_request::Frame,
};
use prost::Message;

use crate::{
    api::Kind,
    watch::{
        Items, Part,
        packed_pods::{self, PackedPods},
    },
};

/// The largest frame of objects, events or outcomes, apart from one larger object (docs/protocol.md). It is small enough not to delay
/// further outcomes.
const FRAME_BYTES_MAX: usize = 256 * 1024;

/// The most outcomes in one frame; each may carry an object.
const FRAME_OUTCOMES_MAX: usize = 256;

/// The output of one session. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    snapshots: VecDeque<Snapshot>,
    /// Events in order of arrival. If many wait, only the latest event of an object stays. Only the latest bookmark of a kind waits.
    events: BTreeMap<u64, (ObjectId, v1::Event)>,
    /// The position of the latest event of each object that waits.
    positions: HashMap<ObjectId, u64>,
    position_last: u64,
    /// How many events may wait before events of one object are merged.
    unmerged_max: usize,
    /// The nodes by name; `None` for a node that is gone.
    nodes: BTreeMap<String, Option<v1::Node>>,
    /// Whether the server must learn that these are the last of all nodes.
    completes_nodes: bool,
}

#[derive(Clone, Debug)]
struct Snapshot {
    kind: Kind,
    begun: bool,
    /// The pods that have come and were not sent.
    pods: PackedPods,
    replica_sets: VecDeque<v1::ReplicaSet>,
    count: usize,
    /// The version of the list, once the list is complete.
    resource_version: Option<String>,
}

/// The kind and UID of an object. A bookmark has an empty UID.
type ObjectId = (Kind, String);

impl Outbox {
    /// Creates an empty outbox, in which this many events may wait before events of one object are merged.
    pub(crate) fn new(unmerged_max: usize) -> Self {
        Self {
            unmerged_max,
            ..Self::default()
        }
    }

    /// Takes a list, or its next page. The list covers all output of its kind that waited before.
    pub(crate) fn push_list(&mut self, part: Part, items: Items, resource_version: String) {
        let kind = items.kind();
        if part.begins {
            self.positions.retain(|(of, _), _| *of != kind);
            self.events.retain(|_, ((of, _), _)| *of != kind);
            self.snapshots.retain(|snapshot| snapshot.kind != kind);
            self.snapshots.push_back(Snapshot {
                kind,
                begun: false,
                pods: PackedPods::default(),
                replica_sets: VecDeque::new(),
                count: 0,
                resource_version: None,
            });
        }
        let mut snapshots = self.snapshots.iter_mut();
        if let Some(snapshot) = snapshots.find(|snapshot| snapshot.kind == kind) {
            snapshot.push(items);
            snapshot.resource_version = part.ends.then_some(resource_version);
        }
    }

    /// Takes an event. If many wait, it replaces an earlier event of the same object.
    pub(crate) fn push_event(&mut self, kind: Kind, uid: String, event: EventKind) {
        self.position_last += 1;
        let position = self.position_last;
        let bookmark = matches!(event, EventKind::Bookmark(_));
        let merges = bookmark || self.events.len() >= self.unmerged_max;
        let id = (kind, uid);
        let earlier = self.positions.insert(id.clone(), position);
        if let Some(earlier) = earlier.filter(|_| merges) {
            self.events.remove(&earlier);
            // A waiting bookmark would vouch for the replaced event.
            if !bookmark && let Some(position) = self.positions.remove(&(kind, String::new())) {
                self.events.remove(&position);
            }
        }
        let event = Some(event);
        self.events.insert(position, (id, v1::Event { event }));
    }

    pub(crate) fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Takes changed nodes, after which all may have been sent.
    pub(crate) fn push_nodes(
        &mut self,
        nodes: BTreeMap<String, Option<v1::Node>>,
        completes: bool,
    ) {
        self.nodes.extend(nodes);
        self.completes_nodes |= completes;
    }

    /// True if nothing waits, and no open list will bring more.
    pub(crate) fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.events.is_empty() && !self.has_nodes()
    }

    pub(crate) fn has_frame(&self) -> bool {
        let listed = self.snapshots.iter().any(Snapshot::has_frame);
        listed || !self.events.is_empty() || self.has_nodes()
    }

    fn has_nodes(&self) -> bool {
        self.completes_nodes || !self.nodes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.unmerged_max);
    }

    /// The next frame: outcomes first, as the server waits for them, then nodes, lists and events.
    pub(crate) fn poll_frame(&mut self, outcomes: &mut VecDeque<v1::Outcome>) -> Option<Frame> {
        if !outcomes.is_empty() {
            return Some(self.outcomes_frame(outcomes));
        }
        if self.has_nodes() {
            return Some(self.nodes_frame());
        }
        let snapshot = self.snapshots.iter().position(Snapshot::has_frame);
        let Some(index) = snapshot else {
            return self.events_frame();
        };
        let frame = self.snapshots[index].poll_frame();
        if matches!(frame, Some(Frame::SnapshotEnd(_))) {
            self.snapshots.remove(index);
        }
        frame
    }

    fn nodes_frame(&mut self) -> Frame {
        let (mut frame, mut bytes) = (v1::Nodes::default(), 0);
        while let Some(entry) = self.nodes.first_entry() {
            let node = entry.get().as_ref().map_or(0, Message::encoded_len);
            bytes += entry.key().len() + node;
            if bytes > FRAME_BYTES_MAX && (frame != v1::Nodes::default()) {
                return Frame::Nodes(frame);
            }
            match entry.remove_entry() {
                (_, Some(node)) => frame.applied.push(node),
                (name, None) => frame.deleted.push(name),
            }
        }
        frame.complete = std::mem::take(&mut self.completes_nodes);
        Frame::Nodes(frame)
    }

    fn outcomes_frame(&self, waiting: &mut VecDeque<v1::Outcome>) -> Frame {
        let (mut outcomes, mut bytes) = (Vec::new(), 0);
        while let Some(outcome) = waiting.front_mut()
            && outcomes.len() < FRAME_OUTCOMES_MAX
        {
            if let Some(OutcomeKind::Done(done)) = &mut outcome.outcome
                && let Some(done::Object::Pod(pod)) = &mut done.object
                && let Some(newest) = self.newest_of(pod)
            {
                *pod = newest.clone();
            }
            bytes += outcome.encoded_len();
            if bytes > FRAME_BYTES_MAX && !outcomes.is_empty() {
                break;
            }
            outcomes.extend(waiting.pop_front());
        }
        Frame::Outcomes(v1::Outcomes { outcomes })
    }

    /// The waiting state of a pod. An event that this state replaced may have been due before changes that are sent already. A server that
    /// received the older state only now would take the pod for gone.
    fn newest_of(&self, pod: &v1::Pod) -> Option<&v1::Pod> {
        let position = self.positions.get(&(Kind::Pod, pod.uid.clone()))?;
        let event = self.events.get(position)?.1.event.as_ref()?;
        let EventKind::PodApplied(newest) = event else {
            return None;
        };
        Some(newest)
    }

    fn events_frame(&mut self) -> Option<Frame> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        while let Some(entry) = self.events.first_entry() {
            let length = entry.get().1.encoded_len();
            if !events.is_empty() && bytes + length > FRAME_BYTES_MAX {
                break;
            }
            bytes += length;
            let (position, (id, event)) = entry.remove_entry();
            events.push(event);
            // A later event of the same object keeps its position.
            if self.positions.get(&id) == Some(&position) {
                self.positions.remove(&id);
            }
        }
        (!events.is_empty()).then_some(Frame::Events(v1::Events { events }))
    }
}

impl Snapshot {
    fn push(&mut self, items: Items) {
        self.count += items.len();
        match items {
            Items::Pods(more) => self.pods.0.extend(more.0),
            Items::ReplicaSets(more) => {
                let projected = more.into_iter().map(|set| set.projected);
                self.replica_sets.extend(projected);
            }
        }
    }

    /// True if all objects that have come are sent.
    fn is_sent(&self) -> bool {
        self.pods.is_empty() && self.replica_sets.is_empty()
    }

    fn has_frame(&self) -> bool {
        !self.begun || self.resource_version.is_some() || !self.is_sent()
    }

    fn poll_frame(&mut self) -> Option<Frame> {
        if !self.begun {
            self.begun = true;
            return Some(Frame::SnapshotBegin(v1::SnapshotBegin {
                kind: self.kind.to_wire().into(),
            }));
        }
        if self.is_sent() {
            return Some(Frame::SnapshotEnd(v1::SnapshotEnd {
                kind: self.kind.to_wire().into(),
                resource_version: self.resource_version.take()?,
                count: i64::try_from(self.count).unwrap_or(i64::MAX),
            }));
        }
        Some(Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: take_fitting(&mut self.pods.0, |pod| pod.len())
                .map(|pod| packed_pods::decode(&pod))
                .collect(),
            replica_sets: take_fitting(&mut self.replica_sets, Message::encoded_len).collect(),
        }))
    }
}

/// Takes the objects that fit into a frame by their length, at least one if there is any.
fn take_fitting<T>(
    objects: &mut VecDeque<T>,
    length: impl Fn(&T) -> usize,
) -> impl Iterator<Item = T> {
    let mut bytes = 0;
    let fits = |object: &&T| {
        bytes += length(object);
        bytes <= FRAME_BYTES_MAX
    };
    let count = objects.iter().take_while(fits).count().max(1);
    objects.drain(..count.min(objects.len()))
}

#[cfg(test)]
mod tests;

//! Output that waits for the server, in frames of a bounded size.
//!
//! A slow reader costs bounded memory. If many events wait, only the latest event of each object stays. The operations in flight bound the
//! outcomes, and a new list of a kind replaces the waiting rest of an older list. The outbox sends the pages of a list before the last page
//! has come.

use std::collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry};

use decree::{
    TraceContext,
    v1::{
        self, done, event::Event as EventKind, outcome::Outcome as OutcomeKind,
        reconcile_request::Frame,
    },
};
use prost::Message;

use crate::{api::Kind, batch::traceparent, packed_pods::PackedPods, watch::Part};

/// The largest frame of objects or events (docs/protocol.md), small enough not to delay outcomes.
const FRAME_BYTES_MAX: usize = 256 * 1024;

/// The most outcomes in one frame; each may carry a pod.
const FRAME_OUTCOMES_MAX: usize = 256;

/// The output of one session. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    outcomes: VecDeque<v1::Outcome>,
    snapshots: VecDeque<Snapshot>,
    events: Events,
}

/// The objects of a list, projected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Objects {
    Pods(PackedPods),
    ReplicaSets(Vec<v1::ReplicaSet>),
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

/// Events in order of arrival. If many wait, only the latest event of an object stays. Only the latest bookmark of a kind waits.
#[derive(Clone, Debug, Default)]
struct Events {
    waiting: BTreeMap<u64, v1::Event>,
    /// The position of the latest event of each object.
    positions: HashMap<(Kind, String), u64>,
    position_last: u64,
    /// How many events may wait before events of one object are merged.
    unmerged_max: usize,
}

// === impl Outbox ===

impl Outbox {
    pub(crate) fn new(events_max: usize) -> Self {
        Self {
            events: Events::new(events_max),
            ..Self::default()
        }
    }

    pub(crate) fn push_outcome(&mut self, outcome: v1::Outcome) {
        self.outcomes.push_back(outcome);
    }

    /// Takes a list, or its next page. The list covers all output of its kind that waited before.
    pub(crate) fn push_list(&mut self, part: Part, objects: Objects, resource_version: String) {
        let kind = objects.kind();
        if part.begins() {
            self.events.forget(kind);
            self.snapshots.retain(|snapshot| snapshot.kind != kind);
            self.snapshots.push_back(Snapshot::new(kind));
        }
        let mut snapshots = self.snapshots.iter_mut();
        if let Some(snapshot) = snapshots.find(|snapshot| snapshot.kind == kind) {
            snapshot.push(objects);
            snapshot.resource_version = part.ends().then_some(resource_version);
        }
    }

    /// Takes an event. If many wait, it replaces an earlier event of the same object and continues that event's trace.
    pub(crate) fn push_event(
        &mut self,
        kind: Kind,
        uid: String,
        event: EventKind,
        trace: Option<TraceContext>,
    ) {
        self.events.push(kind, uid, event, traceparent(trace));
    }

    pub(crate) fn outcomes_waiting(&self) -> usize {
        self.outcomes.len()
    }

    /// True if nothing waits, and no open list will bring more.
    pub(crate) fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.snapshots.is_empty() && self.events.waiting.is_empty()
    }

    pub(crate) fn has_frame(&self) -> bool {
        let listed = self.snapshots.iter().any(Snapshot::has_frame);
        listed || !self.outcomes.is_empty() || !self.events.waiting.is_empty()
    }

    /// Drops lists and events.
    pub(crate) fn keep_outcomes(&mut self) {
        self.snapshots.clear();
        self.events = Events::new(self.events.unmerged_max);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.events.unmerged_max);
    }

    /// The next frame: outcomes first, as the server waits for them, then lists, then events.
    pub(crate) fn poll_frame(&mut self) -> Option<Frame> {
        if !self.outcomes.is_empty() {
            return Some(self.outcomes_frame());
        }
        let snapshot = self.snapshots.iter().position(Snapshot::has_frame);
        let Some(index) = snapshot else {
            return self.events.poll_frame();
        };
        let frame = self.snapshots[index].poll_frame();
        if matches!(frame, Some(Frame::SnapshotEnd(_))) {
            self.snapshots.remove(index);
        }
        frame
    }

    fn outcomes_frame(&mut self) -> Frame {
        let count = self.outcomes.len().min(FRAME_OUTCOMES_MAX);
        let mut outcomes: Vec<_> = self.outcomes.drain(..count).collect();
        for pod in outcomes.iter_mut().filter_map(pod_of) {
            if let Some(newest) = self.events.newest_of(pod) {
                *pod = newest.clone();
            }
        }
        Frame::Outcomes(v1::Outcomes { outcomes })
    }
}

// === impl Snapshot ===

impl Snapshot {
    const fn new(kind: Kind) -> Self {
        Self {
            kind,
            begun: false,
            pods: PackedPods::new(),
            replica_sets: VecDeque::new(),
            count: 0,
            resource_version: None,
        }
    }

    fn push(&mut self, objects: Objects) {
        match objects {
            Objects::Pods(more) => {
                self.count += more.len();
                self.pods.append(more);
            }
            Objects::ReplicaSets(more) => {
                self.count += more.len();
                self.replica_sets.extend(more);
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
            pods: self.pods.pop_fitting(FRAME_BYTES_MAX),
            replica_sets: take_fitting(&mut self.replica_sets),
        }))
    }
}

// === impl Objects ===

impl Objects {
    const fn kind(&self) -> Kind {
        match self {
            Self::Pods(_) => Kind::Pod,
            Self::ReplicaSets(_) => Kind::ReplicaSet,
        }
    }
}

// === impl Events ===

impl Events {
    fn new(unmerged_max: usize) -> Self {
        Self {
            unmerged_max,
            ..Self::default()
        }
    }

    fn push(&mut self, kind: Kind, uid: String, event: EventKind, mut traceparent: String) {
        self.position_last += 1;
        let position = self.position_last;
        let bookmark = matches!(event, EventKind::Bookmark(_));
        let merges = bookmark || self.waiting.len() >= self.unmerged_max;
        let earlier = self.positions.insert((kind, uid), position);
        if let Some(earlier) = earlier.filter(|_| merges) {
            let earlier = self.waiting.remove(&earlier);
            if let Some(earlier) = earlier.filter(|it| !it.traceparent.is_empty()) {
                traceparent = earlier.traceparent;
            }
            if !bookmark {
                self.forget_bookmark(kind);
            }
        }
        let event = Some(event);
        self.waiting
            .insert(position, v1::Event { event, traceparent });
    }

    /// The waiting state of a pod. An event that this state replaced may have been due before changes that are sent already. A server that
    /// received the older state only now would take the pod for gone.
    fn newest_of(&self, pod: &v1::Pod) -> Option<&v1::Pod> {
        let position = self.positions.get(&(Kind::Pod, pod.uid.clone()))?;
        match self.waiting.get(position)?.event.as_ref()? {
            EventKind::PodApplied(newest) => Some(newest),
            EventKind::ReplicaSetApplied(_) | EventKind::Deleted(_) | EventKind::Bookmark(_) => {
                None
            }
        }
    }

    /// Drops a waiting bookmark, which would vouch for an event that a later one has just replaced.
    fn forget_bookmark(&mut self, kind: Kind) {
        if let Some(position) = self.positions.remove(&(kind, String::new())) {
            self.waiting.remove(&position);
        }
    }

    fn forget(&mut self, kind: Kind) {
        self.positions.retain(|(of, _), _| *of != kind);
        self.waiting.retain(|_, event| {
            let event = event.event.as_ref();
            event.and_then(kind_of) != Some(kind)
        });
    }

    fn poll_frame(&mut self) -> Option<Frame> {
        let mut events = Vec::new();
        let (mut bytes, mut last) = (0, 0);
        while let Some(entry) = self.waiting.first_entry() {
            let length = entry.get().encoded_len();
            if !events.is_empty() && bytes + length > FRAME_BYTES_MAX {
                break;
            }
            bytes += length;
            last = *entry.key();
            events.push(entry.remove());
        }
        if events.is_empty() {
            return None;
        }
        self.forget_sent(&events, last);
        Some(Frame::Events(v1::Events { events }))
    }

    /// Forgets the positions of sent events; `last` is the last sent position. A later event of the same object keeps its position.
    fn forget_sent(&mut self, sent: &[v1::Event], last: u64) {
        if self.waiting.is_empty() {
            self.positions.clear();
            return;
        }
        for event in sent {
            let of = event.event.as_ref().and_then(identity);
            let Some(Entry::Occupied(position)) = of.map(|of| self.positions.entry(of)) else {
                continue;
            };
            if *position.get() <= last {
                position.remove();
            }
        }
    }
}

const fn pod_of(outcome: &mut v1::Outcome) -> Option<&mut v1::Pod> {
    match &mut outcome.outcome {
        Some(OutcomeKind::Done(v1::Done {
            object: Some(done::Object::Pod(pod)),
            ..
        })) => Some(pod),
        Some(OutcomeKind::Done(_) | OutcomeKind::Failed(_) | OutcomeKind::NotStarted(_)) | None => {
            None
        }
    }
}

/// The object of an event, by kind and UID. A bookmark has an empty UID.
fn identity(event: &EventKind) -> Option<(Kind, String)> {
    match event {
        EventKind::PodApplied(pod) => Some((Kind::Pod, pod.uid.clone())),
        EventKind::ReplicaSetApplied(replica_set) => {
            Some((Kind::ReplicaSet, replica_set.uid.clone()))
        }
        EventKind::Deleted(deleted) => {
            let uid = deleted
                .object
                .as_ref()
                .map(|object| object.uid.clone())
                .unwrap_or_default();
            Some((Kind::from_wire(deleted.kind())?, uid))
        }
        EventKind::Bookmark(bookmark) => Some((Kind::from_wire(bookmark.kind())?, String::new())),
    }
}

fn kind_of(event: &EventKind) -> Option<Kind> {
    match event {
        EventKind::PodApplied(_) => Some(Kind::Pod),
        EventKind::ReplicaSetApplied(_) => Some(Kind::ReplicaSet),
        EventKind::Deleted(deleted) => Kind::from_wire(deleted.kind()),
        EventKind::Bookmark(bookmark) => Kind::from_wire(bookmark.kind()),
    }
}

/// Takes the objects that fit into a frame, at least one if there is any.
fn take_fitting<T: Message>(objects: &mut VecDeque<T>) -> Vec<T> {
    let mut bytes = 0;
    let mut count = 0;
    for object in &*objects {
        bytes += object.encoded_len();
        if count > 0 && bytes > FRAME_BYTES_MAX {
            break;
        }
        count += 1;
    }
    objects.drain(..count).collect()
}

#[cfg(test)]
mod tests;

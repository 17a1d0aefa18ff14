//! Lists and changes of the cluster for the server.

use std::collections::{BTreeMap, VecDeque};

use agent_core::{
    api::{ApiError, Kind, Object, ReplicaSet},
    watch::{Items, List, WatchCommand, WatchEvent, WatchId},
};
use decree::v1::{self, event::Event, reconcile_request as request};
use jiff::Timestamp;

use super::behaviour::{Behaviour, Manner};
use crate::rng::Rng;

/// The maximum delay before a failed list or watch is retried.
const RETRY_MAX: std::time::Duration = std::time::Duration::from_millis(400);

/// The delay before an agent that polls lists again.
const POLL_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// The view of the cluster for the server.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    kinds: [Progress; 2],
    commands: VecDeque<(Kind, WatchCommand)>,
    /// The items to send, in order.
    waiting: VecDeque<Item>,
    /// The existing ReplicaSets, by uid.
    pub(super) sets: BTreeMap<String, ReplicaSet>,
}

/// The state of the list and watch of a kind.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The number of the last requested list or watch.
    id: u64,
    version: String,
    /// Whether a list has begun and its end has not left.
    is_open: bool,
    /// Whether this session has had a list.
    is_listed: bool,
    /// The version of the last list of this session: a later list must not be older.
    listed: u64,
    /// The next retry and its time.
    retry: Option<(Timestamp, Retry)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    List,
    Watch,
}

#[derive(Clone, Debug)]
enum Item {
    /// The start of a list; `asks` if the cluster is asked for the list only then.
    Begin {
        kind: Kind,
        asks: bool,
    },
    Object(Box<Object>),
    End(Kind, v1::SnapshotEnd),
    /// A change of an object, by its uid; a bookmark has none.
    Change {
        kind: Kind,
        uid: String,
        event: Box<Event>,
    },
}

// === impl Feed: what the cluster tells ===

impl Feed {
    pub(super) fn new() -> Self {
        Self {
            kinds: Default::default(),
            commands: VecDeque::new(),
            waiting: VecDeque::new(),
            sets: BTreeMap::new(),
        }
    }

    pub(super) fn list(&mut self, kind: Kind, behaviour: &Behaviour) {
        self.kinds[kind as usize].retry = None;
        if !behaviour.begins_early {
            return self.ask_for_list(kind);
        }
        let begins = |item: &Item| matches!(item, Item::Begin { kind: of, .. } if *of == kind);
        if !self.waiting.iter().any(begins) {
            // Discards what an earlier list or watch brings meanwhile.
            self.next_id(kind);
            self.waiting.push_back(Item::Begin { kind, asks: true });
        }
    }

    /// Ends all lists and watches, and discards unsent items.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
        self.commands.clear();
        for kind in Kind::ALL {
            self.kinds[kind as usize].retry = None;
            self.kinds[kind as usize].is_open = false;
            self.kinds[kind as usize].is_listed = false;
            self.kinds[kind as usize].listed = 0;
            self.next_id(kind);
            self.commands.push_back((kind, WatchCommand::Stop));
        }
    }

    pub(super) fn handle_listed(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
        behaviour: &Behaviour,
        rng: &mut Rng,
    ) {
        if !self.is_current(kind, id) {
            return;
        }
        let Ok(list) = list else {
            return self.retry(now, kind, Retry::List, rng);
        };
        let version = list.resource_version.parse().unwrap_or(0);
        let last = &mut self.kinds[kind as usize].listed;
        if version < *last && behaviour.manner != Some(Manner::OlderLists) {
            // The cache of another API server is further behind.
            return self.retry(now, kind, Retry::List, rng);
        }
        *last = version;
        if !behaviour.begins_early {
            self.waiting.push_back(Item::Begin { kind, asks: false });
        }
        let count = self.name(list.items);
        let resource_version = if behaviour.versions_lists {
            list.resource_version.clone()
        } else {
            String::new()
        };
        let end = v1::SnapshotEnd {
            kind: kind.to_wire().into(),
            resource_version,
            count,
        };
        self.waiting.push_back(Item::End(kind, end));
        self.kinds[kind as usize].version = list.resource_version;
        self.kinds[kind as usize].is_listed = true;
        if behaviour.polls() {
            self.kinds[kind as usize].retry = Some((now + POLL_AFTER, Retry::List))
        } else {
            self.watch(kind)
        }
    }

    /// Returns whether the event is a change.
    pub(super) fn handle_event(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
        merges: bool,
        rng: &mut Rng,
    ) -> bool {
        if !self.is_current(kind, id) {
            return false;
        }
        let object = match event {
            WatchEvent::Applied(object) | WatchEvent::MadeByOther { object, .. } => {
                self.note(&object);
                self.change(kind, uid(&object), applied(object), merges)
            }
            WatchEvent::Deleted(object) => {
                self.sets.remove(&uid(&object));
                self.change(kind, uid(&object), deleted(kind, &object), merges)
            }
            WatchEvent::Bookmark(version) => {
                let bookmark = Event::Bookmark(v1::Bookmark {
                    kind: kind.to_wire().into(),
                    resource_version: version.clone(),
                });
                self.change(kind, String::new(), bookmark, false);
                version
            }
            WatchEvent::Invalid {
                resource_version, ..
            } => resource_version,
            WatchEvent::Error(error) => {
                self.handle_ended(now, kind, id, Some(&error), rng);
                return false;
            }
        };
        self.kinds[kind as usize].version = object;
        true
    }

    pub(super) fn handle_ended(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
        rng: &mut Rng,
    ) {
        if self.is_current(kind, id) {
            let gone = error.is_some_and(|error| error.code == Some(410));
            let retry = if gone { Retry::List } else { Retry::Watch };
            self.retry(now, kind, retry, rng);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Timestamp, behaviour: &Behaviour) {
        for kind in Kind::ALL {
            let retry = &mut self.kinds[kind as usize].retry;
            match retry.take_if(|(at, _)| *at <= now) {
                Some((_, Retry::List)) => self.list(kind, behaviour),
                Some((_, Retry::Watch)) => self.watch(kind),
                None => {}
            }
        }
    }
}

// === impl Feed: what is to be done and to be sent ===

impl Feed {
    pub(super) fn poll_command(&mut self) -> Option<(Kind, WatchCommand)> {
        self.commands.pop_front()
    }

    pub(super) fn poll_timeouts(&self) -> impl Iterator<Item = Timestamp> {
        let retries = self.kinds.iter().filter_map(|it| it.retry);
        retries.map(|(at, _)| at)
    }

    /// Whether a list has begun, or is about to, and its end has not left.
    pub(super) fn is_listing(&self) -> bool {
        let begins = |item: &Item| matches!(item, Item::Begin { .. });
        self.kinds.iter().any(|it| it.is_open) || self.waiting.iter().any(begins)
    }

    pub(super) const fn is_listed(&self, kind: Kind) -> bool {
        self.kinds[kind as usize].is_listed
    }

    /// Whether a change of a pod waits before the next list.
    pub(super) fn is_waiting(&self, pod: &str) -> bool {
        let of_pod = |item: &Item| matches!(item, Item::Change { uid, .. } if uid == pod);
        let begins = |item: &Item| matches!(item, Item::Begin { .. });
        let mut waiting = self.waiting.iter().take_while(|item| !begins(item));
        waiting.any(of_pod)
    }

    /// The next frame, with at most `items_max` objects or changes; `None` if a list is next and may not begin.
    pub(super) fn poll_frame(
        &mut self,
        items_max: usize,
        may_list: bool,
    ) -> Option<request::Frame> {
        if !may_list && matches!(self.waiting.front(), Some(Item::Begin { .. })) {
            return None;
        }
        match self.waiting.pop_front()? {
            Item::Begin { kind, asks } => {
                self.kinds[kind as usize].is_open = true;
                if asks {
                    self.ask_for_list(kind);
                }
                Some(request::Frame::SnapshotBegin(v1::SnapshotBegin {
                    kind: kind.to_wire().into(),
                }))
            }
            Item::End(kind, end) => {
                self.kinds[kind as usize].is_open = false;
                Some(request::Frame::SnapshotEnd(end))
            }
            Item::Object(first) => Some(self.objects(*first, items_max)),
            Item::Change { event, .. } => Some(self.changes(*event, items_max)),
        }
    }

    fn objects(&mut self, first: Object, items_max: usize) -> request::Frame {
        let mut objects = v1::SnapshotObjects::default();
        let mut next = Some(first);
        let mut named = 0;
        while let Some(object) = next.take() {
            match object {
                Object::Pod(pod) => objects.pods.push(*pod),
                Object::ReplicaSet(set) => objects.replica_sets.push(set.projected),
            }
            named += 1;
            let is_full = named >= items_max;
            match self.waiting.pop_front() {
                Some(Item::Object(object)) if !is_full => next = Some(*object),
                Some(other) => self.waiting.push_front(other),
                None => {}
            }
        }
        request::Frame::SnapshotObjects(objects)
    }

    fn changes(&mut self, first: Event, items_max: usize) -> request::Frame {
        let mut events = vec![first];
        while events.len() < items_max {
            match self.waiting.pop_front() {
                Some(Item::Change { event, .. }) => events.push(*event),
                Some(other) => {
                    self.waiting.push_front(other);
                    break;
                }
                None => break,
            }
        }
        let events = events.into_iter().map(|it| v1::Event {
            event: Some(it),
            ..v1::Event::default()
        });
        request::Frame::Events(v1::Events {
            events: events.collect(),
        })
    }

    /// Queues the objects of a list; returns their number.
    fn name(&mut self, items: Items) -> i64 {
        let objects: Vec<_> = match items {
            Items::Pods(pods) => {
                let pods = pods.into_pods();
                pods.map(|it| Object::Pod(Box::new(it))).collect()
            }
            Items::ReplicaSets(sets) => {
                self.sets.clear();
                let sets = sets.into_iter();
                sets.map(|it| Object::ReplicaSet(Box::new(it))).collect()
            }
        };
        objects.iter().for_each(|object| self.note(object));
        let count = objects.len();
        let items = objects.into_iter().map(|it| Item::Object(Box::new(it)));
        self.waiting.extend(items);
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    fn note(&mut self, object: &Object) {
        if let Object::ReplicaSet(set) = object {
            let uid = set.projected.uid.clone();
            self.sets.insert(uid, (**set).clone());
        }
    }

    /// Queues a change. If changes merge, the change replaces an older one of the object, and the bookmarks that vouch for the
    /// older one.
    fn change(&mut self, kind: Kind, uid: String, event: Event, merges: bool) -> String {
        let version = version(&event).to_owned();
        if merges {
            let older = |item: &Item| matches!(item, Item::Change { kind: of, uid: it, .. } if (of, it) == (&kind, &uid));
            let begun = self
                .waiting
                .iter()
                .rposition(|item| matches!(item, Item::Begin { kind: of, .. } if *of == kind));
            let found = self.waiting.iter().rposition(older);
            if let Some(at) = found.filter(|at| begun.is_none_or(|begun| begun < *at)) {
                self.waiting.remove(at);
                self.waiting.retain(|item| !is_bookmark(item, kind));
            }
        }
        let event = Box::new(event);
        self.waiting.push_back(Item::Change { kind, uid, event });
        version
    }

    fn ask_for_list(&mut self, kind: Kind) {
        let id = self.next_id(kind);
        self.commands.push_back((kind, WatchCommand::List(id)));
    }

    fn watch(&mut self, kind: Kind) {
        let id = self.next_id(kind);
        let from = self.kinds[kind as usize].version.clone();
        let command = WatchCommand::Watch { id, from };
        self.commands.push_back((kind, command));
    }

    fn retry(&mut self, now: Timestamp, kind: Kind, what: Retry, rng: &mut Rng) {
        let at = now + rng.delay(RETRY_MAX);
        self.next_id(kind);
        self.kinds[kind as usize].retry = Some((at, what));
    }

    const fn next_id(&mut self, kind: Kind) -> WatchId {
        let id = &mut self.kinds[kind as usize].id;
        *id += 1;
        WatchId(*id)
    }

    fn is_current(&self, kind: Kind, id: WatchId) -> bool {
        self.kinds[kind as usize].id == id.0
    }
}

fn is_bookmark(item: &Item, kind: Kind) -> bool {
    // A bookmark belongs to no object.
    matches!(item, Item::Change { kind: of, uid, .. } if *of == kind && uid.is_empty())
}

fn uid(object: &Object) -> String {
    match object {
        Object::Pod(pod) => pod.uid.clone(),
        Object::ReplicaSet(set) => set.projected.uid.clone(),
    }
}

fn version(event: &Event) -> &str {
    match event {
        Event::PodApplied(pod) => &pod.resource_version,
        Event::ReplicaSetApplied(set) => &set.resource_version,
        Event::Deleted(deleted) => &deleted.resource_version,
        Event::Bookmark(bookmark) => &bookmark.resource_version,
    }
}

pub(crate) fn applied(object: Object) -> Event {
    match object {
        Object::Pod(pod) => Event::PodApplied(*pod),
        Object::ReplicaSet(set) => Event::ReplicaSetApplied(set.projected),
    }
}

pub(crate) fn deleted(kind: Kind, object: &Object) -> Event {
    let (namespace, name, resource_version) = match object {
        Object::Pod(it) => (&it.namespace, &it.name, &it.resource_version),
        Object::ReplicaSet(set) => {
            let it = &set.projected;
            (&it.namespace, &it.name, &it.resource_version)
        }
    };
    Event::Deleted(v1::Deleted {
        kind: kind.to_wire().into(),
        object: Some(v1::ObjectRef {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid(object),
        }),
        resource_version: resource_version.clone(),
    })
}

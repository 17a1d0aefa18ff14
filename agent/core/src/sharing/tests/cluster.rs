//! A cluster that changes, is watched and fails, in an order from a seed. In the end each shard sees all its objects.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::watch::{Watch, WatchCommand};

const NAMESPACES: u64 = 6;
const STEPS: usize = 600;

/// A cluster of pods, and the reader of it.
struct World {
    random: u64,
    now: Timestamp,
    version: u64,
    pods: BTreeMap<String, v1::Pod>,
    /// All that happened, by version.
    events: Vec<(u64, WatchEvent)>,
    sharing: Sharing,
    /// The pages of the list under way.
    pages: VecDeque<Result<List, ApiError>>,
    /// The open watch, and its position.
    open: Option<(WatchId, u64)>,
    readers: Vec<Reader>,
}

/// The knowledge of one shard's agent.
struct Reader {
    shard: Shard,
    watch: Watch,
    queue: Option<QueueId>,
    listing: Option<WatchId>,
    watching: Option<WatchId>,
    pods: BTreeMap<String, u64>,
}

// === impl World ===

impl World {
    fn new(seed: u64, shards: NonZeroU16) -> Self {
        let reader = |shard: Shard| {
            let mut watch = Watch::new(Kind::Pod, seed + u64::from(shard.index()));
            watch.start();
            Reader {
                shard,
                watch,
                queue: None,
                listing: None,
                watching: None,
                pods: BTreeMap::new(),
            }
        };
        let mut sharing = Sharing::new(Kind::Pod, shards, seed);
        sharing.events_max = 40;
        Self {
            random: seed,
            now: START,
            version: 1,
            pods: BTreeMap::new(),
            events: Vec::new(),
            sharing,
            pages: VecDeque::new(),
            open: None,
            readers: Shard::all(shards).map(reader).collect(),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = self.random.wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// A pod is made, changed or deleted.
    fn change(&mut self) {
        self.version += 1;
        let namespace = format!("team-{}", self.draw(NAMESPACES));
        let name = format!("p{}", self.draw(4));
        let pod = pod(&namespace, &name, self.version);
        let gone = self.draw(3) == 0 && self.pods.remove(&pod.uid).is_some();
        let event = if gone {
            WatchEvent::Deleted(pod.into())
        } else {
            self.pods.insert(pod.uid.clone(), pod.clone());
            WatchEvent::Applied(pod.into())
        };
        self.events.push((self.version, event));
    }

    /// The reader asks, or is answered in part.
    fn read(&mut self) {
        if let Some(page) = self.pages.pop_front() {
            self.sharing.handle_page(self.now, page);
        } else if self.sharing.begin_list(self.now) {
            let pods: Vec<_> = self.pods.values().cloned().collect();
            let version = self.version.to_string();
            let half = pods.len() / 2;
            self.pages = [
                page(Part::First, &version, &pods[..half]),
                page(Part::Last, &version, &pods[half..]),
            ]
            .into();
            if self.draw(5) == 0 {
                self.pages[1] = Err(ApiError::no_answer("cut off"));
            }
        }
        if let Some((id, from)) = self.sharing.poll_watch(self.now) {
            self.open = Some((id, from.parse().expect("versions are numbers")));
            self.sharing.handle_opened(id);
        }
    }

    fn pass_on(&mut self) {
        let Some((id, from)) = self.open else {
            return;
        };
        let count = 1 + usize::try_from(self.draw(8)).expect("it is small");
        let next = self.events.iter().filter(|(version, _)| *version > from);
        let next: Vec<_> = next.take(count).cloned().collect();
        if let Some((last, _)) = next.last() {
            self.open = Some((id, *last));
        }
        let events = next.into_iter().map(|(_, event)| event).collect();
        self.sharing.handle_events(self.now, id, events);
    }

    /// The watch ends: in order, refused, or with a version that is gone.
    fn end_watch(&mut self) {
        if let Some((id, _)) = self.open.take() {
            let error = match self.draw(3) {
                0 => None,
                1 => Some(ApiError::no_answer("refused")),
                _ => Some(gone("expired")),
            };
            self.sharing.handle_closed(self.now, id, error);
        }
    }

    fn step(&mut self) {
        self.now = after(self.now, Duration::from_millis(50));
        match self.draw(20) {
            0..6 => self.change(),
            6..10 => self.read(),
            10..14 => self.pass_on(),
            14 => self.end_watch(),
            15 => {
                let at = self.draw(self.readers.len() as u64);
                self.readers[usize::try_from(at).expect("it is small")]
                    .watch
                    .start();
            }
            _ => self.agents_read(),
        }
    }

    fn agents_read(&mut self) {
        for reader in &mut self.readers {
            reader.read(self.now, &mut self.sharing);
        }
    }

    /// Reads everything, without failures.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            self.now = after(self.now, Duration::from_secs(1));
            self.read();
            self.pass_on();
            self.agents_read();
        }
    }
}

// === impl Reader ===

impl Reader {
    fn read(&mut self, now: Timestamp, sharing: &mut Sharing) {
        self.watch.handle_timeout(now);
        match self.watch.poll_command() {
            Some(WatchCommand::List(id)) => {
                self.queue = Some(sharing.join(self.shard));
                (self.listing, self.watching) = (Some(id), None);
            }
            Some(WatchCommand::Watch { id, from }) => {
                let queue = self.queue.expect("it has listed");
                match sharing.subscribe(queue, &from) {
                    Poll::Ready(Ok(())) | Poll::Pending => self.watching = Some(id),
                    Poll::Ready(Err(error)) => {
                        self.watch.handle_closed(now, id, Some(&error));
                    }
                }
            }
            Some(WatchCommand::Stop) | None => {}
        }
        let Some(queue) = self.queue else {
            return;
        };
        if let Some(id) = self.listing
            && let Poll::Ready(Some(page)) = sharing.poll_page(queue)
            && let Some(list) = self.watch.handle_listed(now, id, page, None)
        {
            self.take(list);
        }
        if let Some(id) = self.watching {
            self.follow(now, id, sharing.poll_events(queue));
        }
    }

    fn follow(&mut self, now: Timestamp, id: WatchId, next: Poll<Option<Vec<WatchEvent>>>) {
        match next {
            Poll::Ready(Some(events)) => {
                for event in events {
                    let news = self.watch.handle_event(now, id, event);
                    self.apply(news);
                }
            }
            Poll::Ready(None) => {
                self.watching = None;
                self.watch.handle_closed(now, id, None);
            }
            Poll::Pending => {}
        }
    }

    fn take(&mut self, list: List) {
        if list.part.begins() {
            self.pods.clear();
        }
        let Items::Pods(pods) = list.items else {
            panic!("it is a list of pods")
        };
        for pod in pods.iter() {
            self.pods.insert(pod.uid, version_of(&pod.resource_version));
        }
    }

    fn apply(&mut self, event: Option<WatchEvent>) {
        match event {
            Some(WatchEvent::Applied(Object::Pod(pod))) => {
                self.pods.insert(pod.uid, version_of(&pod.resource_version));
            }
            Some(WatchEvent::Deleted(Object::Pod(pod))) => {
                self.pods.remove(&pod.uid);
            }
            Some(_) | None => {}
        }
    }
}

fn version_of(text: &str) -> u64 {
    text.parse().expect("versions are numbers")
}

#[test]
fn each_shard_sees_what_is_in_its_namespaces_whatever_happens_on_the_way() {
    for seed in 0..300 {
        let shards = NonZeroU16::new(1 + (seed % 4)).expect("it is not 0");
        let mut world = World::new(u64::from(seed), shards);
        (0..STEPS).for_each(|_| world.step());
        world.settle();
        for reader in &world.readers {
            let own = world.pods.values();
            let own = own.filter(|pod| reader.shard.contains(&pod.namespace));
            let own: BTreeMap<_, _> = own
                .map(|pod| (pod.uid.clone(), version_of(&pod.resource_version)))
                .collect();
            assert_eq!(reader.pods, own, "seed {seed}, {:?}", reader.shard);
        }
    }
}

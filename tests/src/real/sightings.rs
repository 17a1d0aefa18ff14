//! Every pod that was ever there, by a watch of the test's own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::core::WatchEvent;
use serde_json::Value;
use tokio::{task::JoinHandle, time};
use tokio_stream::StreamExt as _;

use super::{LOOK_EVERY, api::Api, namespace::Namespace};

/// The pods of a namespace that were seen since it began, those that are gone too.
#[derive(Debug)]
pub struct Sightings {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    by_uid: BTreeMap<String, Sighting>,
    /// The active pods of each controller by its name: those that there are, and the most that there were.
    active: BTreeMap<String, (usize, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Sighting {
    name: String,
    deleted: bool,
    /// The name of its controller, while it is active.
    counts_for: Option<String>,
}

// === impl Sightings ===

impl Sightings {
    /// Begins to watch a namespace; pods that are there already are seen.
    #[must_use]
    pub fn begin(namespace: &Namespace) -> Self {
        let seen = Arc::default();
        let watcher = Watcher {
            api: namespace.api().clone(),
            path: namespace.pod(""),
            seen: Arc::clone(&seen),
        };
        let task = tokio::spawn(watcher.run());
        Self { seen, task }
    }

    /// Returns how many pods were seen.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.seen).by_uid.len()
    }

    /// Returns the names of the pods that were seen and went.
    #[must_use]
    pub fn gone(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        let gone = seen.by_uid.values().filter(|sighting| sighting.deleted);
        gone.map(|sighting| sighting.name.clone()).collect()
    }

    /// Returns how many active pods a controller of this name had at most, at one time.
    #[must_use]
    pub fn most(&self, controller: &str) -> usize {
        let seen = lock(&self.seen);
        seen.active.get(controller).map_or(0, |(_, most)| *most)
    }

    /// Waits until so many pods were seen.
    ///
    /// # Panics
    /// Where they were not within [`PATIENCE`](super::PATIENCE).
    pub async fn reach(&self, count: usize) {
        let mut looks = time::interval(LOOK_EVERY);
        let until = time::Instant::now() + super::PATIENCE;
        while self.count() < count {
            let late = time::Instant::now() >= until;
            assert!(!late, "{} pods were seen, not {count}", self.count());
            looks.tick().await;
        }
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Watcher {
    api: Api,
    path: String,
    seen: Arc<Mutex<Seen>>,
}

// === impl Seen ===

impl Seen {
    fn see(&mut self, uid: String, sighting: Sighting) {
        if let Some(name) = &sighting.counts_for {
            let (now, _) = self.active.entry(name.clone()).or_default();
            *now += 1;
        }
        let counts_for = sighting.counts_for.clone();
        let before = self.by_uid.insert(uid, sighting);
        if let Some(name) = before.and_then(|it| it.counts_for) {
            let (now, _) = self.active.entry(name).or_default();
            *now -= 1;
        }
        if let Some((now, most)) = counts_for.and_then(|name| self.active.get_mut(&name)) {
            *most = (*most).max(*now);
        }
    }
}

// === impl Watcher ===

impl Watcher {
    /// Watches from the last version that was seen; where that is too old, from a new list.
    async fn run(self) {
        let mut from = None;
        let mut tries = time::interval(LOOK_EVERY);
        loop {
            tries.tick().await;
            from = match from {
                None => self.list().await,
                Some(version) => self.watch(version).await,
            };
        }
    }

    async fn list(&self) -> Option<String> {
        let list = self.api.get(&self.path).await.ok()?;
        for pod in list["items"].as_array()? {
            self.see(pod, false);
        }
        list["metadata"]["resourceVersion"]
            .as_str()
            .map(str::to_owned)
    }

    /// Returns the version to go on from.
    async fn watch(&self, mut version: String) -> Option<String> {
        let Ok(events) = self.api.watch(&self.path, &version).await else {
            return Some(version);
        };
        let mut events = Box::pin(events);
        while let Some(Ok(event)) = events.next().await {
            let (pod, deleted) = match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                WatchEvent::Deleted(pod) => (pod, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(_) => return None,
            };
            self.see(&pod, deleted);
            version = text(&pod, "resourceVersion");
        }
        Some(version)
    }

    fn see(&self, pod: &Value, deleted: bool) {
        let metadata = &pod["metadata"];
        let has_ended = ["Succeeded", "Failed"]
            .map(Value::from)
            .contains(&pod["status"]["phase"]);
        let is_active = !deleted && !has_ended && metadata["deletionTimestamp"].is_null();
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let controller = owners.find(|owner| owner["controller"] == true);
        let name = controller.and_then(|owner| owner["name"].as_str());
        let sighting = Sighting {
            name: text(pod, "name"),
            deleted,
            counts_for: name.filter(|_| is_active).map(str::to_owned),
        };
        lock(&self.seen).see(text(pod, "uid"), sighting);
    }
}

fn lock(mutex: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(pod: &Value, field: &str) -> String {
    let field = &pod["metadata"][field];
    field.as_str().expect("a stored pod has it").to_owned()
}

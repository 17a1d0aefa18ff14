//! Every pod that ever existed, from a watch by the test.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agent_fake::is_active;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::{task::JoinHandle, time};
use tokio_stream::StreamExt as _;

use super::{LOOK_EVERY, api::Api, found, namespace::Namespace};
use crate::lock;

/// The pods of a namespace that were seen since the start, including deleted ones.
#[derive(Debug)]
pub struct Sightings {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    by_uid: BTreeMap<String, Sighting>,
    /// The active pods of each controller by its name: the current number and the maximum.
    active: BTreeMap<String, (usize, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Sighting {
    name: String,
    deleted: bool,
    /// The name of its controller, while the pod is active.
    counts_for: Option<String>,
}

impl Sightings {
    /// Starts to watch a namespace. Existing pods count as seen.
    pub fn begin(namespace: &Namespace) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let into = Arc::clone(&seen);
        let see = move |pod: &Value, deleted| {
            lock(&into).see(text(pod, "uid"), Sighting::of(pod, deleted));
        };
        let task = watch(namespace.api(), namespace.pod(""), see);
        Self { seen, task }
    }

    /// Returns the number of pods seen.
    pub fn count(&self) -> usize {
        lock(&self.seen).by_uid.len()
    }

    /// Returns the names of the deleted pods.
    pub fn gone(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        let gone = seen.by_uid.values().filter(|sighting| sighting.deleted);
        gone.map(|sighting| sighting.name.clone()).collect()
    }

    /// Returns the maximum number of concurrent active pods of the controller of this name.
    pub fn most(&self, controller: &str) -> usize {
        let seen = lock(&self.seen);
        seen.active.get(controller).map_or(0, |(_, most)| *most)
    }

    /// Waits until `count` pods were seen.
    ///
    /// # Panics
    /// If they were not seen within [`PATIENCE`](super::PATIENCE).
    pub async fn reach(&self, count: usize) {
        found(async || {
            let seen = self.count();
            let failure = || format!("{seen} pods were seen, not {count}");
            (seen >= count).then_some(()).ok_or_else(failure)
        })
        .await;
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Watcher<S> {
    api: Api,
    path: String,
    see: S,
}

/// Passes each state of each object of a collection on, in the order of the API server, and whether the object was removed with it.
pub(super) fn watch(
    api: &Api,
    path: String,
    see: impl FnMut(&Value, bool) + Send + 'static,
) -> JoinHandle<()> {
    let api = api.clone();
    tokio::spawn(Watcher { api, path, see }.run())
}

impl Sighting {
    fn of(pod: &Value, deleted: bool) -> Self {
        let metadata = &pod["metadata"];
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let controller = owners.find(|owner| owner["controller"] == true);
        let name = controller.and_then(|owner| owner["name"].as_str());
        let name = name.filter(|_| !deleted && is_active(pod));
        Self {
            name: text(pod, "name"),
            deleted,
            counts_for: name.map(str::to_owned),
        }
    }
}

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

impl<S: FnMut(&Value, bool)> Watcher<S> {
    /// Watches from the last seen version, or from a new list if the version is too old.
    async fn run(mut self) {
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

    async fn list(&mut self) -> Option<String> {
        let list = self.api.get(&self.path).await.ok()?;
        for pod in list["items"].as_array()? {
            (self.see)(pod, false);
        }
        list["metadata"]["resourceVersion"]
            .as_str()
            .map(str::to_owned)
    }

    /// Returns the version from which to continue.
    async fn watch(&mut self, mut version: String) -> Option<String> {
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
            (self.see)(&pod, deleted);
            version = text(&pod, "resourceVersion");
        }
        Some(version)
    }
}

fn text(pod: &Value, field: &str) -> String {
    let field = &pod["metadata"][field];
    field.as_str().expect("a stored pod has it").to_owned()
}

//! The shared state of a cluster's nodes: the desired pods, and the places of their containers.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tests::{lock, real::Api};

use super::{manifests, network::Network, process::Plan, services::Services};

/// An image of this name is not run, only reported as running.
const PAUSE: &str = "registry.k8s.io/pause";

/// The number of last lines of a log in a failure.
const TAIL: usize = 15;

/// The shared state of the nodes of a cluster.
pub(crate) struct Shared {
    pub(crate) api: Api,
    pub(crate) services: Arc<Services>,
    /// The folders with the programs of the images that can be pulled.
    pub(crate) images: BTreeMap<String, PathBuf>,
    /// By uid, as the API server last reported.
    pods: Mutex<BTreeMap<String, Value>>,
    /// The pods in files of the nodes.
    static_pods: Mutex<BTreeMap<String, Value>>,
    places: Mutex<Vec<Place>>,
    /// The last lines of containers whose pods are gone.
    last_words: Mutex<Vec<String>>,
    addresses: AtomicU32,
}

/// A container that was started at least once, and its current state.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) plan: Plan,
    /// The network of its pod.
    pub(crate) network: Arc<Network>,
    /// The id of its process while it runs.
    pub(crate) pid: Option<u32>,
}

impl Shared {
    pub(crate) fn of(api: Api, services: Arc<Services>, images: BTreeMap<String, PathBuf>) -> Self {
        Self {
            api,
            services,
            images,
            pods: Mutex::default(),
            static_pods: Mutex::default(),
            places: Mutex::default(),
            last_words: Mutex::default(),
            addresses: AtomicU32::new(1),
        }
    }

    /// An address for a pod that is unreachable from outside: Services know its network.
    pub(crate) fn address(&self) -> String {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        format!("10.1.{}.{}", number / 250, number % 250 + 1)
    }

    /// An existing pod, by its uid.
    pub(crate) fn pod(&self, uid: &str) -> Option<Value> {
        let pod = lock(&self.pods).get(uid).cloned();
        pod.or_else(|| lock(&self.static_pods).get(uid).cloned())
    }

    /// The mirror of a static pod on the API server.
    pub(crate) fn mirror_of(&self, pod: &Value) -> Option<Value> {
        manifests::mirror_of(pod, &lock(&self.pods)).cloned()
    }

    pub(crate) fn take(&self, pods: BTreeMap<String, Value>) {
        *lock(&self.pods) = pods;
    }

    pub(crate) fn take_static(&self, pods: BTreeMap<String, Value>) {
        *lock(&self.static_pods) = pods;
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        lock(&self.places).clone()
    }

    /// Replaces the places of the containers of a pod.
    pub(crate) fn place(&self, uid: &str, places: Vec<Place>) {
        let mut all = lock(&self.places);
        all.retain(|place| place.uid != uid);
        all.extend(places);
    }

    /// Removes the containers of a pod that is gone, except for their last lines.
    pub(crate) fn forget(&self, uid: &str) {
        let mut all = lock(&self.places);
        let (gone, rest): (Vec<_>, Vec<_>) = all.drain(..).partition(|place| place.uid == uid);
        *all = rest;
        lock(&self.last_words).extend(gone.iter().map(Place::tail));
    }

    /// The last lines of all containers, those of deleted pods first.
    pub(crate) fn logs(&self) -> String {
        let mut texts = lock(&self.last_words).clone();
        texts.extend(self.places().iter().map(Place::tail));
        texts.concat()
    }
}

impl Place {
    fn tail(&self) -> String {
        let log = fs::read_to_string(&self.plan.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        format!("--- {} {}\n{tail}\n", self.pod, self.container)
    }
}

/// Whether a pod is not run, only reported as running.
pub(crate) fn is_pretended(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array();
    let mut images = containers.into_iter().flatten();
    images.all(|it| it["image"].as_str().is_some_and(|it| it.starts_with(PAUSE)))
}

//! The cluster: one value that answers calls and lets time pass when told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    config::Config,
    delete::{DeleteOptions, Deletion},
    error::ApiError,
    faults::{Faults, Harm},
    kind::Kind,
    node::NodeState,
    object,
    random::Random,
    requests::{Call, Requests, Verb},
    store::{Place, Store},
    timeline::Timeline,
    watch::{Delivery, WatchId, WatchPoll, Watches},
};

/// An object as the API writes it, shared with the watch log.
pub type Object = Arc<Value>;

/// A Kubernetes cluster as far as pods and ReplicaSets see it. Its owner calls it and lets its time pass.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) timeline: Timeline,
    pub(crate) nodes: BTreeMap<String, NodeState>,
    /// Names and uids; apart from `chance` so that a fault does not change who is called what.
    pub(crate) identity: Random,
    pub(crate) chance: Random,
    pub(crate) watches: Watches,
    faults: Faults,
    frozen: BTreeMap<Kind, List>,
    requests: Requests,
    latency: Duration,
}

/// All objects of a kind, sorted by namespace and name, and the version that the list is of.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The objects.
    pub items: Vec<Object>,
    /// The version; a watch from here misses nothing.
    pub version: u64,
}

// === impl Cluster: time and calls ===

impl Cluster {
    /// Returns a cluster with the namespaces `default` and `kube-system` and its nodes.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut cluster = Self {
            store: Store::default(),
            timeline: Timeline::new(config.start),
            nodes: BTreeMap::new(),
            identity: Random::new(config.seed),
            chance: Random::new(config.seed ^ u64::from_be_bytes(*b"faulty!!")),
            watches: Watches::new(config.watch_log_max),
            faults: Faults::default(),
            frozen: BTreeMap::new(),
            requests: Requests::new(config.calls_max),
            latency: Duration::ZERO,
            config,
        };
        for namespace in ["default", "kube-system"] {
            cluster.install(Kind::Namespace, namespace);
        }
        for node in cluster.config.nodes.clone() {
            cluster.install(Kind::Node, &node);
        }
        cluster
    }

    /// Returns the time in the cluster.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.timeline.now()
    }

    /// Runs what is due up to `to`, in order. An earlier time changes nothing.
    pub fn advance(&mut self, to: Timestamp) {
        while let Some(task) = self.timeline.pop(to) {
            self.run(task);
        }
        self.timeline.arrive(to);
    }

    /// Returns when [`Self::advance`] has something to run next, or a lagging watch something to deliver.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let lagging = Kind::ALL.into_iter().filter_map(|kind| {
            let faults = &self.faults.watches[kind.index()];
            let lags = !faults.held && faults.lag > Duration::ZERO;
            let due = lags
                .then(|| self.watches.next_due(kind, faults.lag))
                .flatten();
            due.filter(|due| *due > self.now())
        });
        lagging.chain(self.timeline.next_due()).min()
    }

    /// Creates an object; the kind is read from it, and an absent namespace is `default`.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn create(&mut self, object: Value) -> Result<Object, ApiError> {
        self.create_within(object, Duration::MAX)
    }

    /// Creates an object, or does nothing where that would take longer than `timeout`, the parameter of this name in the API.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn create_within(&mut self, object: Value, timeout: Duration) -> Result<Object, ApiError> {
        let kind = read_kind(&object)?;
        let object = crate::create::with_namespace(kind, object)?;
        let place = Place::of(&object);
        self.call(Verb::Create, kind, &place, |cluster| {
            if cluster.latency > timeout {
                cluster.latency = timeout;
                return Err(ApiError::timeout());
            }
            cluster.admit(kind, object)
        })
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn get(&mut self, kind: Kind, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let place = Place::new(scope(kind, namespace), name);
        self.call(Verb::Get, kind, &place, |cluster| {
            cluster.found(kind, &place)
        })
    }

    /// Lists a kind over all namespaces.
    ///
    /// # Errors
    /// Only where a fault says so.
    pub fn list(&mut self, kind: Kind) -> Result<List, ApiError> {
        self.obey_faults();
        self.call(Verb::List, kind, &Place::new("", ""), |cluster| {
            let frozen = cluster.frozen.get(&kind).cloned();
            Ok(frozen.unwrap_or_else(|| cluster.listed(kind)))
        })
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn delete(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ApiError> {
        let place = Place::new(scope(kind, namespace), name);
        self.call(Verb::Delete, kind, &place, |cluster| {
            cluster.begin_deletion(kind, &place, options)
        })
    }

    /// Changes an object by a strategic merge patch; a `metadata.uid` or `metadata.resourceVersion` in it is a guard.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn patch(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Object, ApiError> {
        let place = Place::new(scope(kind, namespace), name);
        self.call(Verb::Patch, kind, &place, |cluster| {
            cluster.apply_patch(kind, &place, patch)
        })
    }

    /// Replaces the status (PUT `/status`) of a pod or ReplicaSet; of the rest only name, uid and version are looked at.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn update_status(&mut self, object: &Value) -> Result<Object, ApiError> {
        let kind = read_kind(object)?;
        let place = Place::of(object);
        self.call(Verb::UpdateStatus, kind, &place, |cluster| {
            cluster.replace_status(kind, &place, object)
        })
    }

    /// Sets the number of replicas of a ReplicaSet.
    ///
    /// # Errors
    /// As the API server answers.
    pub fn scale(
        &mut self,
        namespace: &str,
        name: &str,
        replicas: i32,
    ) -> Result<Object, ApiError> {
        let place = Place::new(namespace, name);
        let patch = json!({"spec": {"replicas": replicas}});
        self.call(Verb::Scale, Kind::ReplicaSet, &place, |cluster| {
            cluster.apply_patch(Kind::ReplicaSet, &place, &patch)
        })
    }

    fn call<T>(
        &mut self,
        verb: Verb,
        kind: Kind,
        place: &Place,
        run: impl FnOnce(&mut Self) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let (late, harm) = self
            .faults
            .strike(&mut self.chance, verb, kind, place.namespace());
        self.latency = late;
        let result = match harm {
            Some(Harm::Refuse(answer)) => Err(answer),
            Some(Harm::LoseReply) => run(self)
                .and(Err(ApiError::timeout()))
                .map_err(|_| ApiError::timeout()),
            Some(Harm::Delay(_)) | None => run(self),
        };
        let done = if verb == Verb::Create { 201 } else { 200 };
        self.requests.record(Call {
            at: self.now(),
            verb,
            kind,
            namespace: place.namespace().to_owned(),
            name: place.name().to_owned(),
            code: result.as_ref().err().map_or(done, |error| error.code),
        });
        result
    }
}

// === impl Cluster: watches, faults and looking in ===

impl Cluster {
    /// Opens a watch of what comes after a version; 0 begins with all objects as added.
    ///
    /// # Errors
    /// 410 if the version is compacted, 504 if it is in the future.
    pub fn watch(&mut self, kind: Kind, from: u64) -> Result<WatchId, ApiError> {
        self.obey_faults();
        self.call(Verb::Watch, kind, &Place::new("", ""), |cluster| {
            let initial: VecDeque<_> = match from {
                0 => cluster.store.all(kind).cloned().collect(),
                _ => VecDeque::new(),
            };
            let delivery = cluster.delivery(kind);
            cluster.watches.open(kind, from, initial, delivery)
        })
    }

    /// Returns what a watch has to say.
    pub fn poll_watch(&mut self, id: WatchId) -> WatchPoll {
        self.obey_faults();
        let Some(kind) = self.watches.kind(id) else {
            return WatchPoll::Closed;
        };
        let delivery = self.delivery(kind);
        self.watches.poll(id, delivery)
    }

    /// Closes a watch.
    pub fn close_watch(&mut self, id: WatchId) {
        self.watches.close(id);
    }

    /// Makes every watch that has told everything give a bookmark.
    pub fn send_bookmarks(&mut self) {
        self.watches.ask_for_bookmarks();
    }

    /// Returns the faults, to switch them on and off.
    pub const fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Returns by how much the reply to the latest call is late, and forgets it.
    pub const fn take_latency(&mut self) -> Duration {
        std::mem::replace(&mut self.latency, Duration::ZERO)
    }

    /// Returns the calls that were answered.
    #[must_use]
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns an object without a call: no fault strikes, nothing is recorded.
    #[must_use]
    pub fn peek(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        self.store
            .find(kind, &Place::new(scope(kind, namespace), name))
    }

    /// Returns all objects of a kind without a call, sorted by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.store.all(kind)
    }

    /// Returns the newest version of anything.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.store.version()
    }

    fn delivery(&self, kind: Kind) -> Delivery {
        let faults = &self.faults.watches[kind.index()];
        Delivery {
            now: self.now(),
            version: self.store.version(),
            lag: faults.lag,
            held: faults.held,
            bookmark_every: self.config.bookmark_every,
        }
    }

    fn listed(&self, kind: Kind) -> List {
        List {
            items: self.store.all(kind).cloned().collect(),
            version: self.store.version(),
        }
    }

    /// Carries out what was asked of the faults since the last look; before every change, so that the order holds.
    pub(crate) fn obey_faults(&mut self) {
        for kind in Kind::ALL {
            let faults = &mut self.faults.watches[kind.index()];
            if std::mem::take(&mut faults.drop_all) {
                self.watches.close_all(kind);
            }
            if std::mem::take(&mut faults.compact) {
                self.watches.compact(kind, self.store.version());
            }
            let freeze = faults.freeze;
            if !freeze {
                self.frozen.remove(&kind);
            } else if !self.frozen.contains_key(&kind) {
                let list = self.listed(kind);
                self.frozen.insert(kind, list);
            }
        }
    }
}

/// Returns the namespace, or none for a kind that has none.
const fn scope(kind: Kind, namespace: &str) -> &str {
    if kind.is_namespaced() { namespace } else { "" }
}

pub(crate) fn read_kind(object: &Value) -> Result<Kind, ApiError> {
    let name = object["kind"].as_str().unwrap_or_default();
    let Some(kind) = Kind::parse(name) else {
        let message = format!("no kind \"{name}\" is registered in this cluster");
        return Err(ApiError::bad_request(message));
    };
    match object["apiVersion"].as_str() {
        Some(version) if version != kind.api_version() => {
            let wanted = kind.api_version();
            Err(ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({wanted})"
            )))
        }
        Some(_) | None => Ok(kind),
    }
}

impl List {
    /// Returns the names of the objects, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|object| object::name(object))
    }
}

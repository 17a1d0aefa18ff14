//! The cluster: one value that answers calls and advances its time on request.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    config::ClusterConfig,
    controllers,
    create::{self, read_kind, with_namespace},
    delete::{self, DeleteOptions, Deletion},
    error::ApiError,
    faults::Faults,
    kind::Kind,
    object::Object,
    requests::{Requests, Verb},
    state::{List, State},
    store::ObjectKey,
    update,
    watch::{OpenWatches, WatchId, WatchPoll},
};

/// A Kubernetes cluster for pods and ReplicaSets. Its owner makes the calls and advances the time.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) state: State,
    requests: Requests,
    latency: Duration,
}

impl Cluster {
    /// Creates a cluster with the namespaces `default` and `kube-system` and its nodes.
    pub fn new(config: ClusterConfig) -> Self {
        let mut cluster = Self {
            state: State::new(config),
            requests: Requests::default(),
            latency: Duration::ZERO,
        };
        for namespace in ["default", "kube-system"] {
            cluster.install(Kind::Namespace, namespace);
        }
        for node in cluster.state.config.nodes.clone() {
            cluster.install(Kind::Node, &node);
        }
        cluster
    }

    /// Returns the time in the cluster.
    pub const fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// Runs all tasks due up to `to`, in order. An earlier time changes nothing.
    pub fn advance(&mut self, to: Timestamp) {
        while let Some(task) = self.state.timeline.pop(to) {
            controllers::run(&mut self.state, task);
        }
        self.state.timeline.arrive(to);
    }

    /// Returns when [`Self::advance`] has its next task.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.state.timeline.next_due()
    }

    /// Creates an object of the kind that it names; an absent namespace is `default`.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn create(&mut self, object: Value) -> Result<Object, ApiError> {
        self.create_within(object, Duration::MAX)
    }

    /// Creates an object, or does nothing if the reply would take longer than `timeout`, the API parameter of this name.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn create_within(&mut self, object: Value, timeout: Duration) -> Result<Object, ApiError> {
        let kind = read_kind(&object)?;
        let object = with_namespace(kind, object)?;
        self.call(Verb::Create, kind, |cluster| {
            if cluster.latency > timeout {
                cluster.latency = timeout;
                return Err(ApiError::timeout());
            }
            create::create(&mut cluster.state, kind, object)
        })
    }

    /// Creates an object with its UID, times and status, as from a backup. Fills in missing fields, and creates the nodes that pods name.
    ///
    /// # Errors
    /// The error of the API server for a create, without quotas.
    pub fn restore(&mut self, object: Value) -> Result<Object, ApiError> {
        create::restore(&mut self.state, object)
    }

    /// Restores the store from a backup, which is an earlier clone of this cluster: objects, versions and the controllers' tasks. Time
    /// continues, and no UID is given twice. `open` determines what happens to the watches.
    pub fn put_back(&mut self, backup: &Self, open: OpenWatches) {
        let (state, backup) = (&mut self.state, &backup.state);
        let reached = state.store.version();
        state.store.clone_from(&backup.store);
        state.nodes.clone_from(&backup.nodes);
        state.timeline.put_back(&backup.timeline);
        state.watches.put_back(&backup.watches, reached, open);
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn get(&mut self, kind: Kind, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let key = ObjectKey::new(scope(kind, namespace), name);
        self.call(Verb::Get, kind, |cluster| cluster.state.found(kind, &key))
    }

    /// Lists a kind over all namespaces.
    ///
    /// # Errors
    /// Only an error from a fault.
    pub fn list(&mut self, kind: Kind) -> Result<List, ApiError> {
        self.call(Verb::List, kind, |cluster| {
            let store = &cluster.state.store;
            Ok(List {
                items: store.all(kind).cloned().collect(),
                version: store.version(),
            })
        })
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn delete(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ApiError> {
        let key = ObjectKey::new(scope(kind, namespace), name);
        self.call(Verb::Delete, kind, |cluster| {
            delete::delete(&mut cluster.state, kind, &key, options)
        })
    }

    /// Changes an object by a strategic merge patch. A `metadata.uid` or `metadata.resourceVersion` in the patch is a precondition.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn patch(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Object, ApiError> {
        let key = ObjectKey::new(scope(kind, namespace), name);
        self.call(Verb::Patch, kind, |cluster| {
            update::patch(&mut cluster.state, kind, &key, patch)
        })
    }

    /// Replaces the status (PUT `/status`) of a pod or ReplicaSet. Of the rest, only name, UID and version are read.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn update_status(&mut self, object: &Value) -> Result<Object, ApiError> {
        let kind = read_kind(object)?;
        let key = ObjectKey::of(object);
        self.call(Verb::UpdateStatus, kind, |cluster| {
            update::replace_status(&mut cluster.state, kind, &key, object)
        })
    }

    /// Sets the number of replicas of a ReplicaSet.
    ///
    /// # Errors
    /// The error of the API server.
    pub fn scale(
        &mut self,
        namespace: &str,
        name: &str,
        replicas: i32,
    ) -> Result<Object, ApiError> {
        let key = ObjectKey::new(namespace, name);
        let patch = json!({"spec": {"replicas": replicas}});
        self.call(Verb::Scale, Kind::ReplicaSet, |cluster| {
            update::patch(&mut cluster.state, Kind::ReplicaSet, &key, &patch)
        })
    }

    fn call<T>(
        &mut self,
        verb: Verb,
        kind: Kind,
        run: impl FnOnce(&mut Self) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let (late, refusal) = self.state.faults.strike(verb, kind);
        self.latency = late;
        let result = refusal.map_or_else(|| run(self), Err);
        let done = if verb == Verb::Create { 201 } else { 200 };
        let code = result.as_ref().err().map_or(done, |error| error.code);
        self.requests.count_call(verb, kind, code);
        result
    }
}

impl Cluster {
    /// Opens a watch of the changes after a version.
    ///
    /// # Errors
    /// 410 if the version is compacted, 504 if it is in the future, unless watches are [silent](OpenWatches::Silent).
    pub fn watch(&mut self, kind: Kind, from: u64) -> Result<WatchId, ApiError> {
        self.call(Verb::Watch, kind, |cluster| {
            let (now, version) = (cluster.now(), cluster.version());
            cluster.state.watches.open(kind, from, now, version)
        })
    }

    /// Returns the next output of a watch.
    pub fn poll_watch(&mut self, id: WatchId) -> WatchPoll {
        let (now, version) = (self.now(), self.version());
        self.state.watches.poll(id, now, version)
    }

    /// Closes all open watches of a kind without an event; clients may watch again from the same version.
    pub fn drop_watches(&mut self, kind: Kind) {
        self.state.watches.close_all(kind);
    }

    /// Forgets the changes of a kind so far: a watch that is behind, or begins behind, gets 410.
    pub fn compact(&mut self, kind: Kind) {
        let version = self.state.store.version();
        self.state.watches.compact(kind, version);
    }

    /// Closes a watch.
    pub fn close_watch(&mut self, id: WatchId) {
        self.state.watches.close(id);
    }

    /// Makes every watch that has delivered everything send a bookmark.
    pub fn send_bookmarks(&mut self) {
        self.state.watches.ask_for_bookmarks();
    }

    /// Returns the faults, to switch them on and off.
    pub const fn faults_mut(&mut self) -> &mut Faults {
        &mut self.state.faults
    }

    /// Returns and resets the delay of the latest call's reply.
    pub const fn take_latency(&mut self) -> Duration {
        std::mem::replace(&mut self.latency, Duration::ZERO)
    }

    /// Returns the calls that were answered.
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns an object without a call: no fault strikes, and the call is not counted.
    pub fn peek(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        let key = ObjectKey::new(scope(kind, namespace), name);
        self.state.store.find(kind, &key)
    }

    /// Returns all objects of a kind without a call, sorted by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.state.store.all(kind)
    }

    /// Returns the newest version of any object.
    pub const fn version(&self) -> u64 {
        self.state.store.version()
    }

    fn install(&mut self, kind: Kind, name: &str) {
        let object = json!({"kind": kind.name(), "metadata": {"name": name}});
        let installed = create::create(&mut self.state, kind, object);
        debug_assert!(installed.is_ok(), "{kind} {name} is refused: {installed:?}");
    }
}

/// The namespace; empty for a kind without namespaces.
const fn scope(kind: Kind, namespace: &str) -> &str {
    if kind.is_namespaced() { namespace } else { "" }
}

//! The embedded cluster as a [`Cluster`]: agent-fake's pure model in real time.
//!
//! A call locks the model, gets its answer at once, and unlocks the model: nothing awaits under the lock. One task advances the time of the
//! model. The reader of a watch polls the model, whose log of each kind keeps the events that a slow reader has not taken. The log is
//! bounded: a reader that falls behind it gets 410.

pub mod calls;

use std::{convert::Infallible, future::ready, sync::Arc, time::Duration};

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    asking::PodSource,
    cluster::{Cluster, EventStream, PageStream},
    nodes::{NodeFields, NodeNews},
    watch::{List, WatchEvent},
};
use agent_fake::{WatchId, WatchPoll};
use decree_api::v1;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use self::calls::{kind_of, refused};
use agent_fake::manifest::ManifestError;
use agent_kube::Clock;

/// The most events of a chunk, all projected before the agent does anything else.
const CHUNK_MAX: usize = 256;
/// The wait after a refused list of nodes.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often a quiet watch is polled: only a poll gives bookmarks.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// The annotation with the deletion cost that a pod answers.
pub const BUSY: &str = "fake.decree.dev/busy";

/// A handle to an embedded cluster. The cluster lives as long as one of its handles.
#[derive(Clone, Debug)]
pub struct FakeCluster {
    shared: Arc<FakeState>,
    _driver: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct FakeState {
    model: Mutex<agent_fake::Cluster>,
    clock: Clock,
    changed: watch::Sender<()>,
}

impl FakeCluster {
    /// Starts a cluster with these objects. Its time begins at `config.start` and passes in real time.
    ///
    /// # Errors
    /// Names the first object that the cluster refuses.
    pub fn start(
        config: agent_fake::ClusterConfig,
        manifests: Vec<agent_fake::manifest::Document>,
    ) -> Result<Self, ManifestError> {
        let clock = Clock::starting_at(config.start);
        let mut model = agent_fake::Cluster::new(config);
        agent_fake::manifest::install(&mut model, manifests)?;
        let shared = Arc::new(FakeState {
            model: Mutex::new(model),
            clock,
            changed: watch::Sender::new(()),
        });
        let driver = tokio::spawn(Arc::clone(&shared).drive());
        Ok(Self {
            shared,
            _driver: Arc::new(AbortOnDropHandle::new(driver)),
        })
    }

    /// Uses the cluster as its user, or reads it: scales, deletes, fails nodes, switches faults on.
    pub fn with<T>(&self, act: impl FnOnce(&mut agent_fake::Cluster) -> T) -> T {
        self.shared.with(act)
    }

    /// Waits for the next change of any object, counted from this call and not from the first poll. A caller that calls this before it
    /// reads the cluster misses no change.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut changed = self.shared.changed.subscribe();
        async move {
            // An error means that the cluster is gone, which the caller notices by itself.
            let _ = changed.changed().await;
        }
    }
}

/// A watch of the embedded cluster.
#[derive(Debug)]
pub struct FakeEvents {
    shared: Arc<FakeState>,
    id: WatchId,
    changed: watch::Receiver<()>,
}

impl EventStream for FakeEvents {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            self.changed.mark_unchanged();
            let chunk = self.shared.with(|model| poll_chunk(model, self.id))?;
            if !chunk.is_empty() {
                return Some(chunk);
            }
            let _ = timeout(POLL_EVERY, self.changed.changed()).await;
        }
    }
}

impl Drop for FakeEvents {
    fn drop(&mut self) {
        self.shared.model.lock().close_watch(self.id);
    }
}

/// A list of the embedded cluster: one page.
#[derive(Debug)]
pub struct OnePage(Option<(FakeCluster, Kind)>);

impl PageStream for OnePage {
    async fn next(&mut self) -> Option<Result<List, ApiError>> {
        let (cluster, kind) = self.0.take()?;
        let (list, late) = cluster.with(|model| (calls::list(model, kind), model.take_latency()));
        sleep(late).await;
        Some(list)
    }
}

impl Cluster for FakeCluster {
    type Pages = OnePage;
    type Events = FakeEvents;

    async fn uid(&self) -> Result<String, ApiError> {
        let kind = agent_fake::Kind::Namespace;
        let namespace = self.with(|model| model.get(kind, "", "kube-system"));
        let namespace = namespace.map_err(refused)?;
        let uid = namespace["metadata"]["uid"].as_str();
        Ok(uid.unwrap_or_default().to_owned())
    }

    fn list(&self, kind: Kind) -> Self::Pages {
        OnePage(Some((self.clone(), kind)))
    }

    async fn newest_version(&self, _: Kind) -> Result<String, ApiError> {
        Ok(self.with(|model| model.version().to_string()))
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Self::Events, ApiError> {
        let from = from.parse().map_err(|_| ApiError {
            code: Some(400),
            message: format!("invalid resource version {from:?}"),
            ..ApiError::default()
        })?;
        let id = self.with(|model| model.watch(kind_of(kind), from));
        Ok(FakeEvents {
            shared: Arc::clone(&self.shared),
            id: id.map_err(refused)?,
            changed: self.shared.changed.subscribe(),
        })
    }

    /// Reads all nodes after each change of the cluster; the agent finds the differences.
    async fn follow_nodes<F: Future<Output = ()> + Send>(
        self,
        fields: NodeFields,
        mut tell: impl FnMut(NodeNews) -> F + Send,
    ) -> Infallible {
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.mark_unchanged();
            match self.with(|model| calls::nodes(model, &fields)) {
                Ok(events) => {
                    tell(Ok(events)).await;
                    tell(Ok(Vec::new())).await;
                    // The cluster lives as long as this handle.
                    let _ = changed.changed().await;
                }
                Err(error) => {
                    tell(Err(("list", error))).await;
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Pods answer the number in their annotation [`BUSY`].
    fn cost(
        &self,
        pod: v1::ObjectRef,
        _: PodSource,
    ) -> impl Future<Output = Result<i32, String>> + Send + use<> {
        let kind = agent_fake::Kind::Pod;
        let busy = self.with(|model| {
            let metadata = &model.peek(kind, &pod.namespace, &pod.name)?["metadata"];
            let busy = metadata["annotations"][BUSY].as_str()?.parse().ok();
            busy.filter(|_| metadata["uid"] == pod.uid)
        });
        ready(busy.ok_or_else(|| format!("the pod has no number in {BUSY}")))
    }

    /// Has its effect at once: two pods that a batch creates side by side come to the scheduler in the same order in every run.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        let (reply, late) = self.with(|model| (calls::call(model, request), model.take_latency()));
        async move {
            sleep(late).await;
            reply
        }
    }
}

impl FakeState {
    fn with<T>(&self, act: impl FnOnce(&mut agent_fake::Cluster) -> T) -> T {
        let mut model = self.model.lock();
        let before = model.version();
        model.advance(self.clock.now());
        let due = model.next_due();
        let result = act(&mut model);
        // The failure of a node changes nothing yet, but the driver must wake up earlier for its consequences.
        let acted = model.version() != before || model.next_due() != due;
        drop(model);
        if acted {
            self.changed.send_replace(());
        }
        result
    }

    /// Advances the time of the model.
    async fn drive(self: Arc<Self>) {
        let mut changed = self.changed.subscribe();
        loop {
            let due = self.with(|model| model.next_due());
            tokio::select! {
                biased;
                () = self.clock.sleep_until(due) => {}
                _ = changed.changed() => {}
            }
        }
    }
}

/// The next events of a watch; `None` once it has ended.
fn poll_chunk(model: &mut agent_fake::Cluster, id: WatchId) -> Option<Vec<WatchEvent>> {
    let mut chunk = Vec::new();
    while chunk.len() < CHUNK_MAX {
        match model.poll_watch(id) {
            WatchPoll::Event(event) => chunk.push(calls::event(&event)),
            WatchPoll::Expired(error) => chunk.push(WatchEvent::Error(refused(error))),
            WatchPoll::Pending => break,
            WatchPoll::Closed => return (!chunk.is_empty()).then_some(chunk),
        }
    }
    Some(chunk)
}

async fn sleep(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests;

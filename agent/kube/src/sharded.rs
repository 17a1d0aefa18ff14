//! Several shards of a cluster in one process: all of them read from one list and one watch of each kind.
//!
//! ```text
//! API server ─▶ reader of a kind: a task that lists, a task that watches ─▶ Sharing ─▶ SharedPages, SharedEvents ─▶ agent of a shard
//! ```
//! The reader never waits for a shard, and a shard that is slow slows no other (see [`Sharing`]).

mod reader;

use std::{
    num::NonZeroU16,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    cluster::{Cluster, EventStream, PageStream},
    recorder::Event,
    shard::Shard,
    sharing::{QueueId, Sharing},
    watch::{List, WatchEvent},
};
use decree::TraceContext;
use tokio_util::task::AbortOnDropHandle;

use self::reader::KindReader;
use crate::cluster::KubeCluster;

/// The shared reads of all shards of a process. Clones are handles to the same readers, which end with the last handle.
#[derive(Clone, Debug)]
pub struct ShardReaders {
    shards: NonZeroU16,
    readers: [Arc<KindReader>; 2],
    _tasks: Arc<[AbortOnDropHandle<()>]>,
}

/// A handle to one shard of a cluster. Its lists and watches have the objects in the shard's namespaces; its calls may be for any
/// namespace.
#[derive(Clone, Debug)]
pub struct ShardedCluster {
    cluster: KubeCluster,
    member: Arc<Member>,
}

/// One shard's part of the readers. It ends with its last handle.
#[derive(Debug)]
struct Member {
    shard: Shard,
    readers: ShardReaders,
    queues: Mutex<[Option<QueueId>; 2]>,
}

/// A list of a shard that is read page by page.
#[derive(Debug)]
pub struct SharedPages {
    reader: Arc<KindReader>,
    id: QueueId,
}

/// A watch of a shard. Events wait for a slow reader until there are too many. Then the watch ends with an error that requires a new list.
#[derive(Debug)]
pub struct SharedEvents {
    reader: Arc<KindReader>,
    id: QueueId,
    has_ended: bool,
}

// === impl ShardReaders ===

impl ShardReaders {
    /// Starts the readers of a cluster with `shards` shards. They read nothing before a shard does.
    #[must_use]
    pub fn start(cluster: &KubeCluster, shards: NonZeroU16) -> Self {
        let readers = Kind::ALL.map(|kind| Arc::new(KindReader::new(cluster, kind, shards)));
        let tasks = readers.iter().flat_map(|reader| {
            let lists = tokio::spawn(Arc::clone(reader).list());
            [lists, tokio::spawn(Arc::clone(reader).watch())]
        });
        Self {
            shards,
            _tasks: tasks.map(AbortOnDropHandle::new).collect(),
            readers,
        }
    }

    /// Returns a handle to a shard, with `cluster` for its calls. A shard has one handle and its clones at a time.
    ///
    /// # Panics
    /// If the shard is one of another number of shards.
    #[must_use]
    pub fn shard(&self, cluster: KubeCluster, shard: Shard) -> ShardedCluster {
        assert_eq!(shard.count(), self.shards, "it is a shard of this cluster");
        let member = Member {
            shard,
            readers: self.clone(),
            queues: Mutex::default(),
        };
        ShardedCluster {
            cluster,
            member: Arc::new(member),
        }
    }

    fn of(&self, kind: Kind) -> &Arc<KindReader> {
        &self.readers[kind as usize]
    }
}

// === impl ShardedCluster ===

impl Cluster for ShardedCluster {
    type Pages = SharedPages;
    type Events = SharedEvents;

    async fn uid(&self) -> Result<String, ApiError> {
        self.cluster.uid().await
    }

    /// Lists the objects in the namespaces of the shard. An open watch of the kind is void.
    fn list(&self, kind: Kind) -> SharedPages {
        let reader = self.member.readers.of(kind);
        let id = reader.change(|sharing, _| sharing.join(self.member.shard));
        self.member.queues()[kind as usize] = Some(id);
        SharedPages {
            reader: Arc::clone(reader),
            id,
        }
    }

    /// Requests of shards at about the same time become one request.
    async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        self.member.readers.of(kind).newest_version().await
    }

    /// Watches a kind from a version, which its newest list or its watch has shown. The error is 410 if events after this version are not
    /// kept.
    async fn watch(&self, kind: Kind, from: String) -> Result<SharedEvents, ApiError> {
        let reader = self.member.readers.of(kind);
        let queue = self.member.queues()[kind as usize];
        let Some(id) = queue else {
            return Err(ApiError {
                code: Some(410),
                ..ApiError::no_answer("the shard has listed nothing")
            });
        };
        reader.subscribe(id, &from).await?;
        Ok(SharedEvents {
            reader: Arc::clone(reader),
            id,
            has_ended: false,
        })
    }

    fn calls_max(&self) -> usize {
        self.cluster.calls_max()
    }

    async fn record(&self, event: Event) -> Result<(), ApiError> {
        self.cluster.record(event).await
    }

    fn call(
        &self,
        request: Request,
        trace: Option<TraceContext>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        self.cluster.call(request, trace)
    }
}

// === impl Member ===

impl Member {
    fn queues(&self) -> MutexGuard<'_, [Option<QueueId>; 2]> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let queues = *self.queues();
        for (kind, queue) in Kind::ALL.into_iter().zip(queues) {
            if let Some(id) = queue {
                self.readers.of(kind).leave(id);
            }
        }
    }
}

// === impl SharedPages ===

impl PageStream for SharedPages {
    async fn next(&mut self) -> Option<Result<List, ApiError>> {
        let poll = |sharing: &mut Sharing| sharing.poll_page(self.id);
        self.reader.next(self.id, poll).await
    }
}

// === impl SharedEvents ===

impl EventStream for SharedEvents {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        let poll = |sharing: &mut Sharing| sharing.poll_events(self.id);
        let events = self.reader.next(self.id, poll).await;
        self.has_ended = events.is_none();
        events
    }
}

/// A dropped watch that has not ended needs no more events. An ended watch may continue where it was.
impl Drop for SharedEvents {
    fn drop(&mut self) {
        if !self.has_ended {
            self.reader.leave(self.id);
        }
    }
}

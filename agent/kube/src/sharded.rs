//! Several shards of a cluster in one process: what each of them reads comes from one list and one watch of each kind.
//!
//! ```text
//! API server ─▶ Reader of a kind: a task that lists, a task that watches ─▶ Sharing ─▶ SharedPages, SharedEvents ─▶ agent of a shard
//! ```
//! The reader never waits for a shard, and a shard that is slow slows no other (see [`Sharing`]).

mod reader;

use std::{
    fmt,
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    api::{ApiError, Kind},
    shard::Shard,
    sharing::PlaceId,
    watch::{List, WatchEvent},
};

use self::reader::{Reader, SharedReader};
use crate::cluster::KubeCluster;

/// What all shards of a process read of a cluster. Clones are handles to the same readers, which end with the last of them.
#[derive(Clone, Debug)]
pub struct ShardReaders {
    shards: NonZeroU16,
    readers: Arc<[SharedReader; 2]>,
}

/// A handle to one shard of a cluster: its lists and watches have what is in the namespaces of the shard. Calls may be for any namespace.
#[derive(Clone, Debug)]
pub struct ShardedCluster {
    cluster: KubeCluster,
    member: Arc<Member>,
}

/// One shard's part of the readers, which ends with its last handle.
#[derive(Debug)]
struct Member {
    shard: Shard,
    readers: ShardReaders,
    places: Mutex<[Option<PlaceId>; 2]>,
}

/// A list of a shard that is read page by page.
pub struct SharedPages {
    reader: Arc<Reader>,
    id: PlaceId,
}

/// A watch of a shard. Events wait for a reader that is slow until they are too many: then the watch ends with an error that asks for a new
/// list.
pub struct SharedEvents {
    reader: Arc<Reader>,
    id: PlaceId,
    has_ended: bool,
}

// === impl ShardReaders ===

impl ShardReaders {
    /// Starts the readers of a cluster that is divided into so many shards. They read nothing before a shard does.
    #[must_use]
    pub fn start(cluster: &KubeCluster, shards: NonZeroU16) -> Self {
        let readers = Kind::ALL.map(|kind| SharedReader::start(cluster, kind, shards));
        Self {
            shards,
            readers: Arc::new(readers),
        }
    }

    /// Returns a handle to a shard, whose calls this cluster makes. Of one shard there is one handle and its clones at a time.
    ///
    /// # Panics
    /// If the shard is one of another number of shards.
    #[must_use]
    pub fn of_shard(&self, cluster: KubeCluster, shard: Shard) -> ShardedCluster {
        assert_eq!(shard.count(), self.shards, "it is a shard of this cluster");
        let member = Member {
            shard,
            readers: self.clone(),
            places: Mutex::default(),
        };
        ShardedCluster {
            cluster,
            member: Arc::new(member),
        }
    }

    fn of(&self, kind: Kind) -> &Arc<Reader> {
        self.readers[kind as usize].reader()
    }
}

// === impl ShardedCluster ===

impl ShardedCluster {
    /// Returns the cluster as a whole, which makes the calls.
    #[must_use]
    pub const fn whole(&self) -> &KubeCluster {
        &self.cluster
    }

    /// Lists the objects of a kind in the namespaces of the shard, from the newest state, page by page. A watch of the kind that is open is
    /// void.
    #[must_use]
    pub fn list(&self, kind: Kind) -> SharedPages {
        let reader = self.member.readers.of(kind);
        let id = reader.join(self.member.shard);
        self.member.places()[kind as usize] = Some(id);
        SharedPages {
            reader: Arc::clone(reader),
            id,
        }
    }

    /// Reads the newest version of a kind, in a request that shards share which ask at about the same time.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        self.member.readers.of(kind).newest_version().await
    }

    /// Watches a kind from a version on, which its newest list or its watch has shown.
    ///
    /// # Errors
    /// As the API server says; 410 where events after this version are not kept.
    pub async fn watch(&self, kind: Kind, from: &str) -> Result<SharedEvents, ApiError> {
        let reader = self.member.readers.of(kind);
        let place = self.member.places()[kind as usize];
        let Some(id) = place else {
            return Err(ApiError {
                code: Some(410),
                ..ApiError::no_answer("the shard has listed nothing")
            });
        };
        reader.subscribe(id, from).await?;
        Ok(SharedEvents {
            reader: Arc::clone(reader),
            id,
            has_ended: false,
        })
    }
}

// === impl Member ===

impl Member {
    fn places(&self) -> std::sync::MutexGuard<'_, [Option<PlaceId>; 2]> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let places = *self.places();
        for (kind, place) in Kind::ALL.into_iter().zip(places) {
            if let Some(id) = place {
                self.readers.of(kind).leave(id);
            }
        }
    }
}

// === impl SharedPages ===

impl SharedPages {
    /// Returns the next page; `None` after the last, or after an error.
    pub async fn next(&mut self) -> Option<Result<List, ApiError>> {
        self.reader.next_page(self.id).await
    }
}

impl fmt::Debug for SharedPages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("SharedPages")
            .field(&self.id)
            .finish()
    }
}

// === impl SharedEvents ===

impl SharedEvents {
    /// Returns the next events that have come; `None` once the watch has ended.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        let events = self.reader.next_events(self.id).await;
        self.has_ended = events.is_none();
        events
    }
}

/// Whoever gives a watch up that goes on wants none of its events; one that has ended may go on where it was.
impl Drop for SharedEvents {
    fn drop(&mut self) {
        if !self.has_ended {
            self.reader.leave(self.id);
        }
    }
}

impl fmt::Debug for SharedEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("SharedEvents")
            .field(&self.id)
            .finish_non_exhaustive()
    }
}

//! Objects that are followed beside pods and ReplicaSets: a list in pages, watches from its version, and the same again after an error.
//!
//! They are read as JSON: they are few, and only agents with preferences that depend on them read them.

use std::{
    convert::Infallible,
    hash::{BuildHasher as _, RandomState},
    marker::PhantomData,
    time::Duration,
};

use agent_core::{
    api::{ApiError, Kind},
    pace::Backoff,
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::sleep;

use crate::{
    codec::{self, EventJson, ListMeta},
    reading::{Events, PAGE_MAX, SHRINK, Tokens, WATCH_SECONDS, decoded},
    requests,
    transport::{TOO_LONG, Transport},
};

/// The waits after a failure or the end of a watch.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// An object that can be followed.
pub(crate) trait Followed: DeserializeOwned {
    /// The resource version, also of a bookmark.
    fn resource_version(&self) -> &str;
}

/// A change of the objects.
#[derive(Debug)]
pub enum Change<M> {
    /// The objects are these, and no others.
    Listed(Vec<M>),
    /// An object is new or changed.
    Applied(M),
    /// An object is gone.
    Deleted(M),
}

/// A change, `None` once a watch is open, or the verb of a failed request and its error.
pub type News<M> = Result<Option<Change<M>>, (&'static str, ApiError)>;

#[derive(Deserialize)]
#[serde(bound = "M: DeserializeOwned")]
struct Page<M> {
    metadata: ListMeta,
    items: Vec<M>,
}

/// The objects at a path, and who is told of them.
pub(crate) struct Follower<M, T> {
    transport: Transport,
    path: String,
    tell: T,
    pub(crate) backoff: Backoff,
    _objects: PhantomData<M>,
}

impl<M: Followed, T: FnMut(News<M>) -> F, F: Future<Output = ()>> Follower<M, T> {
    pub(crate) fn new(transport: Transport, path: String, tell: T) -> Self {
        let seed = RandomState::new().hash_one(());
        Self {
            transport,
            path,
            tell,
            backoff: Backoff::new(WAIT_MIN, WAIT_MAX, seed),
            _objects: PhantomData,
        }
    }

    /// Tells all news of the objects, and each failure.
    pub(crate) async fn follow(mut self) -> Infallible {
        loop {
            let listed = self.list().await.map_err(|error| ("list", error));
            let (verb, error) = match listed {
                Ok(version) => ("watch", self.watch(version).await),
                Err(failed) => failed,
            };
            let wait = self.backoff.next_wait().max(error.retry_after());
            (self.tell)(Err((verb, error))).await;
            sleep(wait).await;
        }
    }

    /// Lists all objects. Returns the version of the list. A page that is too long is requested again with fewer objects, and each that
    /// fits lets the next have twice as many. Endless pages are an error.
    async fn list(&mut self) -> Result<String, ApiError> {
        let (mut token, mut objects) = (String::new(), Vec::new());
        let mut tokens = Tokens::default();
        let mut limit = PAGE_MAX;
        loop {
            let path = requests::page(&self.path, limit, &token);
            let page = self.transport.fetch(requests::read(&path, codec::JSON)?);
            let page = match page.await {
                Err(error) if error.reason == TOO_LONG && limit > 1 => {
                    limit = limit.div_ceil(SHRINK);
                    continue;
                }
                page => page?,
            };
            limit = PAGE_MAX.min(2 * limit);
            let read = decoded(&page).map_err(|error| codec::status(&page).unwrap_or(error));
            let mut read: Page<M> = read?;
            objects.append(&mut read.items);
            token = read.metadata.r#continue;
            if token.is_empty() {
                (self.tell)(Ok(Some(Change::Listed(objects)))).await;
                return Ok(read.metadata.resource_version);
            }
            tokens.take(&token)?;
        }
    }

    /// Watches from a version. Returns the error that needs a new list.
    async fn watch(&mut self, mut version: String) -> ApiError {
        loop {
            match self.read(&mut version).await {
                Ok(()) => sleep(self.backoff.next_wait()).await,
                Err(error) => return error,
            }
        }
    }

    /// Reads one watch to its end.
    async fn read(&mut self, version: &mut String) -> Result<(), ApiError> {
        let path = requests::watch(&self.path, version, WATCH_SECONDS);
        let body = self.transport.open(requests::read(&path, codec::JSON)?);
        let mut events = Events::new(body.await?, Kind::Pod);
        (self.tell)(Ok(None)).await;
        while let Some(line) = events.next_line().await {
            let EventJson { r#type, object } = decoded(&line)?;
            let object = line.slice_ref(object.get().as_bytes());
            if r#type == "ERROR" {
                return Err(codec::refusal(None, &object));
            }
            let object: M = decoded(&object)?;
            object.resource_version().clone_into(version);
            let change = match r#type.as_str() {
                "ADDED" | "MODIFIED" => Change::Applied(object),
                "DELETED" => Change::Deleted(object),
                _ => continue,
            };
            self.backoff.reset();
            (self.tell)(Ok(Some(change))).await;
        }
        Ok(())
    }
}

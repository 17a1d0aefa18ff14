//! The readers of `WatchDecisions`. Each has a bounded queue, and a slow reader learns how many decisions it missed.

use std::{
    pin::Pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use decree::v1;
use service::admission::Yields;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use server_session::SessionIdentity;

use crate::{
    access::{Caller, OpenStream},
    capacity::{EndSignal, Pool, Slot},
    error::Refusal,
};

#[derive(Debug)]
pub(crate) struct Watchers {
    readers: RwLock<Vec<Watcher>>,
    /// Whether there are readers: sessions do not share a lock for nobody.
    is_read: AtomicBool,
    pool: Arc<Pool>,
    buffer: usize,
}

#[derive(Debug)]
struct Watcher {
    filter: v1::WatchDecisionsRequest,
    caller: Caller,
    queue: mpsc::Sender<v1::WatchDecisionsResponse>,
    missed: Arc<AtomicU64>,
}

/// The stream of one reader. Dropping it ends the watch.
pub(crate) struct Watch {
    queue: mpsc::Receiver<v1::WatchDecisionsResponse>,
    missed: Arc<AtomicU64>,
    watchers: Arc<Watchers>,
    final_status: Option<Refusal>,
    /// Ready when the reader loses the permission.
    denied: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    _open: OpenStream,
    _slot: Slot,
}

impl Watchers {
    /// `max` is the number of readers, `buffer` the length of each queue.
    pub(crate) fn new(max: usize, buffer: usize) -> Self {
        Self {
            readers: RwLock::default(),
            is_read: AtomicBool::default(),
            pool: Pool::new(max, Yields::Newest, Refusal::exhausted("watchers", max)),
            buffer,
        }
    }

    /// Starts a watch, which `end_signal` ends. The reader gets `final_status` when the server drains.
    pub(crate) fn watch(
        self: Arc<Self>,
        filter: v1::WatchDecisionsRequest,
        caller: Caller,
        (open, end_signal): (OpenStream, EndSignal),
        final_status: Refusal,
    ) -> Result<Watch, Refusal> {
        let slot = self.pool.take(caller.owner(), 1, end_signal.clone())?;
        let (sender, queue) = mpsc::channel(self.buffer);
        let missed = Arc::new(AtomicU64::new(0));
        let watcher = Watcher {
            filter,
            caller,
            queue: sender,
            missed: Arc::clone(&missed),
        };
        self.change(|readers| readers.push(watcher));
        Ok(Watch {
            queue,
            missed,
            watchers: self,
            final_status: Some(final_status),
            denied: Box::pin(async move { end_signal.wait().await }),
            _open: open,
            _slot: slot,
        })
    }

    /// Sends a decision to all readers whose filter matches and whose callers may see the cluster.
    pub(crate) fn publish(&self, identity: &SessionIdentity, record: &Arc<v1::DecisionRecord>) {
        if !self.is_read.load(Ordering::Acquire) {
            return;
        }
        let readers = self.readers.read().unwrap_or_else(PoisonError::into_inner);
        for reader in readers
            .iter()
            .filter(|reader| reader.wants(identity, record))
        {
            reader.offer(record);
        }
    }

    pub(crate) fn close(&self) {
        self.change(Vec::clear);
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Watcher>)) {
        let mut readers = self.readers.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut readers);
        self.is_read.store(!readers.is_empty(), Ordering::Release);
    }
}

impl Watcher {
    fn wants(&self, identity: &SessionIdentity, record: &v1::DecisionRecord) -> bool {
        let v1::WatchDecisionsRequest {
            cluster,
            namespace,
            name,
        } = &self.filter;
        let object = record.replica_set.as_ref();
        let is = |wanted: &str, have: Option<&str>| wanted.is_empty() || have == Some(wanted);
        self.caller.may_view(identity)
            && identity.is_of(cluster)
            && is(namespace, object.map(|object| object.namespace.as_str()))
            && is(name, object.map(|object| object.name.as_str()))
    }

    fn offer(&self, record: &Arc<v1::DecisionRecord>) {
        match self.queue.try_reserve() {
            Ok(room) => {
                let missed = self.missed.swap(0, Ordering::AcqRel);
                let decision = Some(v1::DecisionRecord::clone(record));
                room.send(v1::WatchDecisionsResponse { decision, missed });
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                self.missed.fetch_add(1, Ordering::AcqRel);
            }
            Err(mpsc::error::TrySendError::Closed(())) => {}
        }
    }
}

impl Stream for Watch {
    type Item = Result<v1::WatchDecisionsResponse, Status>;

    /// Yields the queued decisions first, and then the number of missed ones, because they came after the queued ones.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.final_status.is_some()
            && let Poll::Ready(refusal) = self.denied.as_mut().poll(cx)
        {
            self.final_status = None;
            self.queue.close();
            while self.queue.try_recv().is_ok() {}
            return Poll::Ready(Some(Err(refusal.into())));
        }
        if let Poll::Ready(Some(decision)) = self.queue.poll_recv(cx) {
            return Poll::Ready(Some(Ok(decision)));
        }
        let missed = self.missed.swap(0, Ordering::AcqRel);
        if missed > 0 {
            return Poll::Ready(Some(Ok(v1::WatchDecisionsResponse {
                decision: None,
                missed,
            })));
        }
        match ready!(self.queue.poll_recv(cx)) {
            Some(decision) => Poll::Ready(Some(Ok(decision))),
            None => Poll::Ready(self.final_status.take().map(|refusal| Err(refusal.into()))),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.queue.close();
        let is_open = |reader: &Watcher| !reader.queue.is_closed();
        self.watchers.change(|readers| readers.retain(is_open));
    }
}

#[cfg(test)]
mod tests;

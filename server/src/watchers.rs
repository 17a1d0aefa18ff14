//! The readers of `WatchDecisions`. Each has a bounded queue, and a slow reader learns how many decisions it missed.
//!
//! One lock orders all decisions, from the first watch on: each reader gets those that it wants in this order, so the place of one tells
//! which ones the reader has. A reader that comes back with a token gets the later ones from the [`Past`].

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use decree_api::v1;
use parking_lot::Mutex;
use service::admission::Yields;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use server_session::SessionIdentity;

use self::past::{Past, PastDecision, Place};
use crate::{
    access::{Caller, OpenStream},
    capacity::{EndSignal, Pool, Slot},
    error::Refusal,
};

mod past;

#[derive(Debug)]
pub(crate) struct Watchers {
    state: Mutex<State>,
    /// Whether there has been a reader: sessions do not share a lock for nobody.
    is_read: AtomicBool,
    pool: Arc<Pool>,
    buffer: usize,
}

#[derive(Debug)]
struct State {
    readers: Vec<Watcher>,
    past: Past,
}

/// The decisions that a reader missed and was not told of: how many, and the place of the last one.
type Missed = Arc<Mutex<(u64, Place)>>;

#[derive(Debug)]
struct Watcher {
    filter: v1::WatchDecisionsRequest,
    caller: Caller,
    queue: mpsc::Sender<v1::WatchDecisionsResponse>,
    missed: Missed,
}

/// The stream of one reader. Dropping it ends the watch.
pub(crate) struct Watch {
    /// The decisions after the reader's token, before those of the queue.
    past: VecDeque<PastDecision>,
    queue: mpsc::Receiver<v1::WatchDecisionsResponse>,
    missed: Missed,
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
            state: Mutex::new(State {
                readers: Vec::new(),
                past: Past::new(),
            }),
            is_read: AtomicBool::default(),
            pool: Pool::new(max, Yields::Newest, Refusal::exhausted("watchers", max)),
            buffer,
        }
    }

    /// Starts a watch, which `end_signal` ends. The reader gets `final_status` when the server drains.
    ///
    /// # Errors
    /// If there are too many, or the decisions after the filter's token are not kept.
    pub(crate) fn watch(
        self: Arc<Self>,
        filter: v1::WatchDecisionsRequest,
        caller: Caller,
        (open, end_signal): (OpenStream, EndSignal),
        final_status: Refusal,
    ) -> Result<Watch, Refusal> {
        let slot = self.pool.take(caller.owner(), 1, end_signal.clone())?;
        let (sender, queue) = mpsc::channel(self.buffer);
        let missed = Missed::default();
        let watcher = Watcher {
            filter,
            caller,
            queue: sender,
            missed: Arc::clone(&missed),
        };
        let mut state = self.state.lock();
        self.is_read.store(true, Ordering::Release);
        let past = state.past.after(&watcher.filter.resume_token)?;
        let past = past.filter(|it| watcher.wants(&it.identity, &it.record));
        let past = past.cloned().collect();
        state.readers.push(watcher);
        drop(state);
        Ok(Watch {
            past,
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
    pub(crate) fn publish(
        &self,
        identity: &Arc<SessionIdentity>,
        record: &Arc<v1::DecisionRecord>,
    ) {
        if !self.is_read.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state.lock();
        let State { readers, past } = &mut *state;
        let place = past.push(identity, record);
        let readers = readers.iter().filter(|it| it.wants(identity, record));
        readers.for_each(|reader| reader.offer(place, record));
    }

    pub(crate) fn close(&self) {
        self.state.lock().readers.clear();
    }
}

impl Watcher {
    fn wants(&self, identity: &SessionIdentity, record: &v1::DecisionRecord) -> bool {
        let v1::WatchDecisionsRequest {
            cluster,
            namespace,
            name,
            resume_token: _,
            shard,
        } = &self.filter;
        let object = record.replica_set.as_ref();
        let is = |wanted: &str, have: Option<&str>| wanted.is_empty() || have == Some(wanted);
        self.caller.may_view(identity)
            && identity.is_of(cluster)
            && is(shard, Some(&identity.shard))
            && is(namespace, object.map(|object| object.namespace.as_str()))
            && is(name, object.map(|object| object.name.as_str()))
    }

    fn offer(&self, place: Place, record: &v1::DecisionRecord) {
        match self.queue.try_reserve() {
            Ok(room) => {
                let (missed, _) = mem::take(&mut *self.missed.lock());
                room.send(v1::WatchDecisionsResponse {
                    decision: Some(record.clone()),
                    missed,
                    resume_token: place.token(),
                });
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                let mut missed = self.missed.lock();
                *missed = (missed.0 + 1, place);
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
            self.past.clear();
            self.queue.close();
            while self.queue.try_recv().is_ok() {}
            return Poll::Ready(Some(Err(refusal.into())));
        }
        if let Some(PastDecision { place, record, .. }) = self.past.pop_front() {
            return Poll::Ready(Some(Ok(v1::WatchDecisionsResponse {
                decision: Some(Arc::unwrap_or_clone(record)),
                missed: 0,
                resume_token: place.token(),
            })));
        }
        if let Poll::Ready(Some(decision)) = self.queue.poll_recv(cx) {
            return Poll::Ready(Some(Ok(decision)));
        }
        let (missed, last) = mem::take(&mut *self.missed.lock());
        if missed > 0 {
            return Poll::Ready(Some(Ok(v1::WatchDecisionsResponse {
                decision: None,
                missed,
                resume_token: last.token(),
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
        self.watchers.state.lock().readers.retain(is_open);
    }
}

#[cfg(test)]
mod tests;

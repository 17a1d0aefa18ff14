//! The reader of one kind: two tasks with requests to the API server, and shards that wait for the answers.

use std::{
    num::NonZeroU16,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use agent_core::{
    api::{ApiError, Kind},
    cluster::{Cluster as _, EventStream as _, PageStream as _},
    shard::Shard,
    sharing::{QueueId, Sharing},
    watch::WatchId,
};
use jiff::Timestamp;
use tokio::{
    pin, select,
    sync::{Notify, watch},
};

use crate::{clock::Clock, cluster::KubeCluster, reading};

/// How long a request for the newest version waits for requests of other shards. An agent makes one each 15 to 30 s.
const GATHER: Duration = Duration::from_secs(1);

type Version = Result<String, ApiError>;

/// The reads of one kind, for all shards.
#[derive(Debug)]
pub(super) struct KindReader {
    cluster: KubeCluster,
    kind: Kind,
    clock: Clock,
    sharing: Mutex<Sharing>,
    /// Notifies the tasks that something may be due.
    changed: Notify,
    /// Notify each shard of news.
    news: Box<[Notify]>,
    /// The answer for all requests that wait for the newest version.
    asking: Mutex<Option<watch::Receiver<Option<Version>>>>,
}

// === impl KindReader ===

impl KindReader {
    pub(super) fn new(cluster: &KubeCluster, kind: Kind, shards: NonZeroU16) -> Self {
        Self {
            cluster: cluster.clone(),
            kind,
            clock: Clock::starting_at(Timestamp::now()),
            sharing: Mutex::new(Sharing::new(kind, shards, u64::from(std::process::id()))),
            changed: Notify::new(),
            news: Shard::all(shards).map(|_| Notify::new()).collect(),
            asking: Mutex::default(),
        }
    }

    pub(super) fn leave(&self, id: QueueId) {
        self.change(|sharing, _| sharing.leave(id));
    }

    /// Waits until the watch is open or refused.
    pub(super) async fn subscribe(&self, id: QueueId, from: &str) -> Result<(), ApiError> {
        self.next(id, |sharing| sharing.subscribe(id, from)).await
    }

    /// Requests the newest version, after a moment in which other shards can join.
    pub(super) async fn newest_version(self: &Arc<Self>) -> Version {
        let mut answer = self
            .asking()
            .get_or_insert_with(|| {
                let (sender, answer) = watch::channel(None);
                tokio::spawn(Arc::clone(self).ask(sender));
                answer
            })
            .clone();
        let version = answer.wait_for(Option::is_some).await;
        let version = version.ok().and_then(|version| version.clone());
        version.unwrap_or_else(|| Err(ApiError::no_answer("the question was given up")))
    }

    async fn ask(self: Arc<Self>, answer: watch::Sender<Option<Version>>) {
        tokio::time::sleep(GATHER).await;
        self.asking().take();
        let before = self.sharing().position().map(str::to_owned);
        let version = self.cluster.newest_version(self.kind).await;
        if let Ok(version) = &version {
            self.change(|sharing, _| sharing.check_version(before.as_deref(), version));
        }
        answer.send_replace(Some(version));
    }

    /// Makes the lists that shards request, one after the other.
    pub(super) async fn list(self: Arc<Self>) {
        loop {
            let begin = |sharing: &mut Sharing, now| sharing.begin_list(now).then_some(());
            self.until(begin, Sharing::list_timeout).await;
            let mut pages = self.cluster.list(self.kind);
            while let Some(page) = pages.next().await {
                self.change(|sharing, now| sharing.handle_page(now, page));
            }
        }
    }

    /// Watches from the end of the last watch.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            let (id, from) = self
                .until(Sharing::poll_watch, Sharing::watch_timeout)
                .await;
            match self.cluster.watch(self.kind, from).await {
                Err(error) => {
                    self.change(|sharing, now| sharing.handle_closed(now, id, Some(error)));
                }
                Ok(events) => {
                    self.change(|sharing, _| sharing.handle_opened(id));
                    self.pass_on(id, events).await;
                }
            }
        }
    }

    async fn pass_on(&self, id: WatchId, mut events: reading::Events) {
        loop {
            let is_stale = |sharing: &mut Sharing, _| (!sharing.is_current(id)).then_some(());
            let chunk = select! {
                biased;
                () = self.until(is_stale, |_| None) => return,
                chunk = events.next() => chunk,
            };
            let Some(chunk) = chunk else {
                return self.change(|sharing, now| sharing.handle_closed(now, id, None));
            };
            self.change(|sharing, now| sharing.handle_events(now, id, chunk));
        }
    }

    /// Waits until a task has something to do.
    async fn until<T>(
        &self,
        poll: impl Fn(&mut Sharing, Timestamp) -> Option<T>,
        timeout: impl Fn(&Sharing) -> Option<Timestamp>,
    ) -> T {
        loop {
            let changed = self.changed.notified();
            pin!(changed);
            changed.as_mut().enable();
            let due = {
                let mut sharing = self.sharing();
                if let Some(ready) = poll(&mut sharing, self.clock.now()) {
                    return ready;
                }
                timeout(&sharing)
            };
            select! {
                () = changed => {}
                () = self.clock.sleep_until(due) => {}
            }
        }
    }

    /// Waits for a shard's next input.
    pub(super) async fn next<T>(&self, id: QueueId, poll: impl Fn(&mut Sharing) -> Poll<T>) -> T {
        let news = &self.news[usize::from(id.shard)];
        loop {
            let news = news.notified();
            pin!(news);
            news.as_mut().enable();
            let next = poll(&mut self.sharing());
            match next {
                Poll::Ready(ready) => return ready,
                Poll::Pending => news.await,
            }
        }
    }

    /// Changes the shared state, and notifies the tasks and shards that the change concerns.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut Sharing, Timestamp) -> T) -> T {
        let (result, told) = {
            let mut sharing = self.sharing();
            let result = act(&mut sharing, self.clock.now());
            (result, sharing.take_told())
        };
        for shard in told {
            self.news[usize::from(shard)].notify_waiters();
        }
        self.changed.notify_waiters();
        result
    }

    /// Nothing panics while the lock is held.
    fn sharing(&self) -> MutexGuard<'_, Sharing> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asking(&self) -> MutexGuard<'_, Option<watch::Receiver<Option<Version>>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The lists and watches of both kinds, and the nodes: a task for each runs the agent's commands, one at a time.

use agent_core::{
    api::{ApiError, Kind},
    cluster::{Cluster, EventStream as _, PageStream as _},
    nodes::{NodeFields, NodeNews},
    watch::{List, WatchCommand, WatchEvent, WatchId},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// How many answers and chunks of events may wait for the agent. They are enough that a source need not wait while the agent handles one.
/// They are few enough that a slow agent slows the watch and takes no more memory.
const NEWS_MAX: usize = 16;

/// The output of a source.
#[derive(Debug)]
pub(crate) enum News {
    /// A page of a list.
    Listed(Kind, WatchId, Result<List, ApiError>),
    /// A watch is open.
    Watched(Kind),
    Events(Kind, WatchId, Vec<WatchEvent>),
    Closed(Kind, WatchId, Option<ApiError>),
    /// The newest version of a kind.
    Version(Kind, Result<String, ApiError>),
    Nodes(NodeNews),
}

/// The sources. Dropping them ends their tasks.
#[derive(Debug)]
pub(crate) struct Sources<C> {
    cluster: C,
    sender: mpsc::Sender<News>,
    /// The output, which does not end.
    pub(crate) news: mpsc::Receiver<News>,
    tasks: [Option<AbortOnDropHandle<()>>; 2],
    questions: [Option<AbortOnDropHandle<()>>; 2],
    nodes: Option<AbortOnDropHandle<()>>,
}

impl<C: Cluster> Sources<C> {
    pub(crate) fn new(cluster: C) -> Self {
        let (sender, news) = mpsc::channel(NEWS_MAX);
        Self {
            cluster,
            sender,
            news,
            tasks: [None, None],
            questions: [None, None],
            nodes: None,
        }
    }

    /// Starts a command of the agent for one kind, in place of the previous one.
    pub(crate) fn command(&mut self, kind: Kind, command: WatchCommand) {
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let task = match command {
            WatchCommand::List(id) => Some(tokio::spawn(list(cluster, kind, id, sender))),
            WatchCommand::Watch { id, from } => {
                Some(tokio::spawn(watch(cluster, kind, id, from, sender)))
            }
            WatchCommand::Stop => None,
        };
        self.tasks[kind as usize] = task.map(AbortOnDropHandle::new);
    }

    /// Requests the newest version of a kind. The agent awaits the answer before it asks again.
    pub(crate) fn ask_version(&mut self, kind: Kind) {
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let task = tokio::spawn(async move {
            let version = cluster.newest_version(kind).await;
            let _ = sender.send(News::Version(kind, version)).await;
        });
        self.questions[kind as usize] = Some(AbortOnDropHandle::new(task));
    }

    /// Reads and watches the nodes from the beginning.
    pub(crate) fn watch_nodes(&mut self, fields: NodeFields) {
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let tell = move |news| {
            let sender = sender.clone();
            async move { drop(sender.send(News::Nodes(news)).await) }
        };
        let task = tokio::spawn(async move { match cluster.follow_nodes(fields, tell).await {} });
        self.nodes = Some(AbortOnDropHandle::new(task));
    }
}

// A send fails only when the sources are dropped: then nobody needs the output.

async fn list<C: Cluster>(cluster: C, kind: Kind, id: WatchId, sender: mpsc::Sender<News>) {
    let mut pages = cluster.list(kind);
    while let Some(page) = pages.next().await {
        if sender.send(News::Listed(kind, id, page)).await.is_err() {
            return;
        }
    }
}

async fn watch<C: Cluster>(
    cluster: C,
    kind: Kind,
    id: WatchId,
    from: String,
    sender: mpsc::Sender<News>,
) {
    let mut events = match cluster.watch(kind, from).await {
        Ok(events) => events,
        Err(error) => {
            let _ = sender.send(News::Closed(kind, id, Some(error))).await;
            return;
        }
    };
    if sender.send(News::Watched(kind)).await.is_err() {
        return;
    }
    while let Some(chunk) = events.next().await {
        if sender.send(News::Events(kind, id, chunk)).await.is_err() {
            return;
        }
    }
    let _ = sender.send(News::Closed(kind, id, None)).await;
}

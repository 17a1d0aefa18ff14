//! The reads of a sharded cluster: one list and one watch for all shards of a process.

use std::{
    convert::Infallible,
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::shard::Shard;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request as HttpRequest, State},
    response::Response,
};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tokio_util::task::AbortOnDropHandle;

use super::{server::cluster_of, *};
use crate::sharded::{ShardReaders, ShardedCluster, SharedEvents};

const SHARDS: NonZeroU16 = NonZeroU16::new(16).expect("it is not 0");
const NAMESPACES: u16 = 40;
/// The capacity of a test's channels: more than a test sends.
const PLACES: usize = 16;
/// Longer than any wait in a test that passes.
const PATIENCE: Duration = Duration::from_mins(5);

type Feed = mpsc::Sender<Bytes>;

/// An API server with a pod in each of many namespaces. It answers requests, and counts them.
struct Api {
    cluster: KubeCluster,
    asked: Arc<Mutex<Asked>>,
    watches: mpsc::Receiver<Feed>,
    _server: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Asked {
    paths: Vec<String>,
    opened: Option<mpsc::Sender<Feed>>,
}

// === impl Api ===

impl Api {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let (opened, watches) = mpsc::channel(PLACES);
        let asked = Arc::new(Mutex::new(Asked {
            paths: Vec::new(),
            opened: Some(opened),
        }));
        let router = Router::new().fallback(answer);
        let router = router.with_state(Arc::clone(&asked));
        let server = tokio::spawn(async move {
            let served = axum::serve(listener, router).await;
            served.expect("the listener lives as long as the test");
        });
        Self {
            cluster: cluster_of(&format!("http://{address}"), |_| {}),
            asked,
            watches,
            _server: AbortOnDropHandle::new(server),
        }
    }

    fn shards(&self) -> Vec<ShardedCluster> {
        let readers = ShardReaders::start(&self.cluster, SHARDS);
        let shards = Shard::all(SHARDS);
        shards
            .map(|shard| readers.shard(self.cluster.clone(), shard))
            .collect()
    }

    /// The number of requests whose path contains a text.
    fn count(&self, text: &str) -> usize {
        let asked = self.asked.lock();
        let asked = asked.unwrap_or_else(PoisonError::into_inner);
        asked.paths.iter().filter(|it| it.contains(text)).count()
    }

    async fn watch(&mut self) -> Feed {
        let feed = timeout(PATIENCE, self.watches.recv()).await;
        feed.expect("it opens").expect("the server lives")
    }
}

async fn answer(State(asked): State<Arc<Mutex<Asked>>>, request: HttpRequest) -> Response<Body> {
    let uri = request.uri().to_string();
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.paths.push(uri.clone());
    if uri.contains("watch=true") {
        let (feed, events) = mpsc::channel(PLACES);
        if let Some(opened) = &asked.opened {
            opened.try_send(feed).expect("the test takes it");
        }
        let events = ReceiverStream::new(events).map(Ok::<_, Infallible>);
        return Response::new(Body::from_stream(events));
    }
    let items: Vec<_> = (0..NAMESPACES)
        .map(|number| pod_of(&namespace(number)))
        .collect();
    let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": items});
    Response::new(list.to_string().into())
}

fn namespace(number: u16) -> String {
    format!("team-{number}")
}

fn pod_of(namespace: &str) -> Value {
    json!({"kind": "Pod", "metadata": {
        "namespace": namespace, "name": namespace, "uid": namespace, "resourceVersion": "8",
    }})
}

/// An event for each namespace, and one event for all shards.
fn news() -> Bytes {
    let line =
        |verb: &str, object: Value| json!({"type": verb, "object": object}).to_string() + "\n";
    let events = (0..NAMESPACES).map(|number| line("MODIFIED", pod_of(&namespace(number))));
    let bookmark = json!({"kind": "Pod", "metadata": {"resourceVersion": "9"}});
    let events = events.chain([line("BOOKMARK", bookmark)]);
    events.collect::<String>().into()
}

fn own(index: usize) -> Vec<String> {
    let shard = Shard::new(u16::try_from(index).expect("it is small"), SHARDS);
    let shard = shard.expect("there are so many");
    let names = (0..NAMESPACES).map(namespace);
    names.filter(|name| shard.contains(name)).collect()
}

async fn list_all(shards: &[ShardedCluster]) {
    let lists: Vec<_> = shards.iter().map(|it| it.list(Kind::Pod)).collect();
    for (index, mut pages) in lists.into_iter().enumerate() {
        let page = timeout(PATIENCE, pages.next()).await.expect("it comes");
        let list = page.expect("there is a page").expect("it is read");
        assert_eq!((names(&list), list.part), (own(index), Part::Whole));
        assert_eq!(pages.next().await, None);
    }
}

async fn watch_all(shards: &[ShardedCluster]) -> Vec<SharedEvents> {
    let mut watches = Vec::new();
    for shard in shards {
        let events = timeout(PATIENCE, shard.watch(Kind::Pod, "7".into())).await;
        watches.push(events.expect("it opens").expect("it is accepted"));
    }
    watches
}

/// Reads a shard's events up to the next bookmark, and returns their namespaces.
async fn told(events: &mut SharedEvents) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let chunk = timeout(PATIENCE, events.next()).await.expect("it comes");
        for event in chunk.expect("the watch goes on") {
            if matches!(event, WatchEvent::Bookmark(_)) {
                return told;
            }
            told.push(name(&event).to_owned());
        }
    }
}

#[tokio::test]
async fn shards_of_a_process_share_one_list_and_one_watch() {
    let mut api = Api::start().await;
    let shards = api.shards();
    list_all(&shards).await;
    let mut watches = watch_all(&shards).await;
    let feed = api.watch().await;
    feed.send(news()).await.expect("it is read");
    for (index, events) in watches.iter_mut().enumerate() {
        assert_eq!(told(events).await, own(index));
    }
    assert_eq!((api.count("limit="), api.count("watch=")), (1, 1));

    // The watch ends, as an API server ends each watch after some minutes. The shards do not notice.
    drop(feed);
    let feed = api.watch().await;
    assert_eq!(api.count("resourceVersion=9"), 1, "it goes on where it was");
    feed.send(news()).await.expect("it is read");
    for (index, events) in watches.iter_mut().enumerate() {
        assert_eq!(told(events).await, own(index));
    }

    list_all(&shards).await;
    assert_eq!(api.count("limit="), 2, "they list anew together");
}

#[tokio::test]
async fn watch_ends_with_the_last_shard() {
    let mut api = Api::start().await;
    let shards = api.shards();
    list_all(&shards).await;
    let watches = watch_all(&shards).await;
    let feed = api.watch().await;
    drop(watches);
    timeout(PATIENCE, feed.closed())
        .await
        .expect("no one reads it");
    list_all(&shards).await;
    let _watches = watch_all(&shards).await;
    let feed = api.watch().await;
    drop(shards);
    timeout(PATIENCE, feed.closed())
        .await
        .expect("no one reads it");
}

#[tokio::test]
async fn newest_version_is_asked_for_once_for_shards_that_ask_together() {
    let api = Api::start().await;
    let questions = api
        .shards()
        .into_iter()
        .map(|shard| tokio::spawn(async move { shard.newest_version(Kind::Pod).await }));
    for question in questions.collect::<Vec<_>>() {
        assert_eq!(question.await.expect("it is asked"), Ok("7".into()));
    }
    assert_eq!(api.count("limit=1"), 1);
}

#[tokio::test]
async fn shard_that_has_listed_nothing_is_told_to() {
    let api = Api::start().await;
    let shards = api.shards();
    let refused = shards[0].watch(Kind::Pod, "7".into()).await;
    assert!(refused.expect_err("it knows nothing").is_gone());
}

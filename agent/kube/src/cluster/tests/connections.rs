//! Requests that must not wait for each other, at an API server that allows few requests in flight on a connection.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request as HttpRequest, State},
    response::Response,
};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::cluster::tests::server::serve_tls;

/// How many requests a connection may have in flight at such an API server.
const STREAMS: u32 = 4;

/// The requests in flight at the API server.
#[derive(Default)]
struct Held {
    count: AtomicUsize,
    changed: Notify,
}

/// An API server that speaks HTTP/2. It answers Leases, opens watches without events, and answers no call.
struct Busy {
    cluster: KubeCluster,
    held: Arc<Held>,
    _server: AbortOnDropHandle<()>,
}

impl Busy {
    async fn start(streams: u32) -> Self {
        let held = Arc::<Held>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&held));
        let (cluster, server) = serve_tls(b"h2", streams, router, || async {}).await;
        Self {
            cluster,
            held,
            _server: server,
        }
    }

    async fn hold(&self, count: usize) {
        loop {
            let changed = self.held.changed.notified();
            if self.held.count.load(Ordering::SeqCst) >= count {
                return;
            }
            changed.await;
        }
    }

    async fn renew(&self) {
        let renewed = self.cluster.lease("n", "l", &Command::Read);
        let renewed = timeout(Duration::from_secs(60), renewed).await;
        renewed.expect("it waits for nothing").expect("it is read");
    }
}

async fn answer(State(held): State<Arc<Held>>, request: HttpRequest) -> Response<Body> {
    let uri = request.uri().to_string();
    if uri.contains("/leases/") {
        let lease = json!({"kind": "Lease", "metadata": {"resourceVersion": "3"}});
        return Response::new(lease.to_string().into());
    }
    held.count.fetch_add(1, Ordering::SeqCst);
    held.changed.notify_waiters();
    if uri.contains("watch=true") {
        let silence = tokio_stream::pending::<Result<Bytes, Infallible>>();
        return Response::new(Body::from_stream(silence));
    }
    std::future::pending().await
}

#[tokio::test]
async fn lease_is_renewed_whatever_else_waits_for_the_api_server() {
    let busy = Busy::start(STREAMS).await;
    let watches = (0..2 * STREAMS).map(|_| {
        let cluster = busy.cluster.clone();
        tokio::spawn(async move { cluster.watch(Kind::Pod, "7".into()).await })
    });
    let watches: Vec<_> = watches.collect();
    let calls = (0..2 * STREAMS).map(|at| {
        let cluster = busy.cluster.clone();
        let request = create(&format!("a{at}"));
        tokio::spawn(async move { cluster.call(request).await })
    });
    let calls: Vec<_> = calls.collect();
    // The connection of the calls is full, and the connection of the watches too.
    busy.hold(2 * STREAMS as usize).await;
    busy.renew().await;
    calls.iter().for_each(JoinHandle::abort);
    watches.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn calls_take_as_many_connections_as_they_need() {
    let busy = Busy::start(100).await;
    let calls = (0..256).map(|_| {
        let transport = busy.cluster.transport.clone();
        let request = requests::read("/version", codec::JSON).expect("it is a path");
        tokio::spawn(async move { transport.fetch(request).await })
    });
    let calls: Vec<_> = calls.collect();
    busy.hold(256).await;
    busy.renew().await;
    calls.iter().for_each(JoinHandle::abort);
}

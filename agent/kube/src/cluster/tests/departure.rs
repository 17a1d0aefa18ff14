//! A connection that opens slowly, while the Lease of a create runs out.

use std::sync::Arc;

use agent_core::lease::Lead;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request as HttpRequest, State},
    response::Response,
};
use tokio::{
    sync::{Notify, Semaphore, mpsc},
    time::{advance, pause},
};
use tokio_util::task::AbortOnDropHandle;

use super::{server::serve_tls, *};
use crate::fence::Fence;

const SECOND: Duration = Duration::from_secs(1);

/// An API server whose handshakes wait for the test. It records the complete requests.
struct Slow {
    cluster: KubeCluster,
    accepted: Arc<Notify>,
    handshakes: Arc<Semaphore>,
    seen: mpsc::Receiver<String>,
    _server: AbortOnDropHandle<()>,
    /// Keeps time from passing by itself.
    _held: std::sync::mpsc::SyncSender<()>,
}

impl Slow {
    async fn start(protocol: &'static [u8]) -> Self {
        let (accepted, handshakes) = (Arc::<Notify>::default(), Arc::new(Semaphore::new(0)));
        let (sender, seen) = mpsc::channel(8);
        let router = Router::new().fallback(answer).with_state(sender);
        let (announce, gate) = (Arc::clone(&accepted), Arc::clone(&handshakes));
        let (cluster, server) = serve_tls(protocol, 100, router, move || {
            announce.notify_one();
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.expect("it is open").forget() }
        })
        .await;
        // Time passes by itself only while no thread is busy.
        let (held, busy) = std::sync::mpsc::sync_channel(0);
        tokio::task::spawn_blocking(move || busy.recv());
        pause();
        Self {
            cluster,
            accepted,
            handshakes,
            seen,
            _server: server,
            _held: held,
        }
    }

    async fn next(&mut self) -> String {
        self.seen.recv().await.expect("the server goes on")
    }
}

/// Records a request that is complete, and answers it.
async fn answer(State(seen): State<mpsc::Sender<String>>, request: HttpRequest) -> Response<Body> {
    let (head, body) = request.into_parts();
    if to_bytes(body, 1 << 20).await.is_ok() {
        let path = head.uri.path_and_query().expect("it has a path");
        let noted = seen.try_send(format!("{} {path}", head.method));
        noted.expect("the test reads");
    }
    Response::new(pod("a").to_string().into())
}

/// A Lease renewed now: it lasts for 10 s, and leaves creates 7 s.
fn renewed(clock: Clock) -> Option<Lead> {
    Some(Lead {
        epoch: 0,
        until: clock.now() + 10 * SECOND,
        creates_until: clock.now() + 7 * SECOND,
    })
}

async fn create_waits_for_its_lease_anew(protocol: &'static [u8]) {
    let mut slow = Slow::start(protocol).await;
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let (lease, lead) = watch::channel(renewed(clock));
    let cluster = slow.cluster.clone().fenced(&Fence::new(lead, clock));
    let call = tokio::spawn(cluster.call(create("a")));
    slow.accepted.notified().await;
    // A create that left now could take effect under the Lease of another agent.
    advance(11 * SECOND).await;
    slow.handshakes.add_permits(8);
    let first = slow.next().await;
    assert_eq!(first, "GET /version", "{protocol:?}");
    lease.send_replace(renewed(clock));
    let second = slow.next().await;
    let created = "POST /api/v1/namespaces/default/pods?fieldManager=decree-agent&timeout=7000ms";
    assert_eq!(second, created, "{protocol:?}");
    let reply = call.await.expect("it does not panic");
    reply.expect("it is answered");
}

#[tokio::test]
async fn create_never_leaves_later_than_it_was_checked_for() {
    create_waits_for_its_lease_anew(b"h2").await;
    tokio::time::resume();
    create_waits_for_its_lease_anew(b"http/1.1").await;
}

#[tokio::test]
async fn announcement_never_leaves_later_than_it_was_checked_for() {
    let mut slow = Slow::start(b"h2").await;
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let (_lease, lead) = watch::channel(renewed(clock));
    let cluster = slow.cluster.clone().fenced(&Fence::new(lead, clock));
    let call = tokio::spawn(async move { cluster.announce(&pod_ref()).await });
    slow.accepted.notified().await;
    advance(SECOND).await;
    slow.handshakes.add_permits(8);
    let answer = call.await.expect("it does not panic");
    let is_held_back = answer.is_err() && slow.seen.try_recv().is_err();
    assert!(is_held_back, "{answer:?}");
}

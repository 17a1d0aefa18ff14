//! Requests that must not wait for each other, at an API server that allows few requests in flight on a connection.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request as HttpRequest, State},
    response::Response,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::cluster::tests::server::cluster_of;

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
    url: String,
    held: Arc<Held>,
    _server: AbortOnDropHandle<()>,
}

impl Busy {
    async fn start(streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let held = Arc::<Held>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&held));
        let acceptor = acceptor(b"h2");
        let server = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("it listens");
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.expect("it is TLS");
                    let mut builder = Builder::new(TokioExecutor::new());
                    builder.http2().max_concurrent_streams(streams);
                    let service = TowerToHyperService::new(router);
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let url = format!("https://{address}");
        Self {
            cluster: cluster_of(&url, |credentials| {
                credentials.accept_invalid_certs = true;
            }),
            url,
            held,
            _server: AbortOnDropHandle::new(server),
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

/// The TLS of an API server that speaks this protocol.
pub(super) fn acceptor(protocol: &[u8]) -> TlsAcceptor {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let pair = pair.expect("it can be made");
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).expect("it is a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key);
    let mut config = config.expect("key and certificate belong together");
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsAcceptor::from(Arc::new(config))
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

/// A proxy that implements CONNECT, and records its requests.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _server: AbortOnDropHandle<()>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let notes = Arc::clone(&asked);
        let server = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("it listens");
                tokio::spawn(lead(stream, Arc::clone(&notes)));
            }
        });
        Self {
            address,
            asked,
            _server: AbortOnDropHandle::new(server),
        }
    }
}

/// Connects a client to the address that it requests.
async fn lead(mut stream: TcpStream, notes: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("the head has an end"));
    }
    let head = String::from_utf8(head).expect("it is text");
    let target = head.split(' ').nth(1).expect("it names a host").to_owned();
    notes.lock().expect("no one panics").push(head);
    let mut api = TcpStream::connect(target).await.expect("it listens");
    let accepted = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
    accepted.expect("it is read");
    // Either side may end without a message.
    let _ = copy_bidirectional(&mut stream, &mut api).await;
}

#[tokio::test]
async fn requests_go_through_the_proxy_that_is_named() {
    let (busy, proxy) = (Busy::start(STREAMS).await, Proxy::start().await);
    let url = format!("http://user:p%40ss@{}", proxy.address);
    let cluster = cluster_of(&busy.url, |credentials| {
        credentials.accept_invalid_certs = true;
        credentials.proxy_url = Some(url.parse().expect("it is a URL"));
    });
    let read = cluster.lease("n", "l", &Command::Read);
    let read = timeout(Duration::from_mins(5), read).await;
    read.expect("it is answered").expect("it is read");
    let asked = proxy.asked.lock().expect("no one panics");
    let host = busy.url.trim_start_matches("https://");
    assert!(
        asked[0].starts_with(&format!("CONNECT {host} HTTP/1.1\r\n")),
        "{asked:?}"
    );
    assert!(asked[0].contains("Basic dXNlcjpwQHNz"), "{asked:?}");
}

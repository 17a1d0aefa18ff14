//! An API server that answers by script: one answer for each request, in order, and a record of the requests.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::{self, Body, Bytes},
    extract::{Request, State},
    response::Response,
};
use http::header;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    cluster::{KubeCluster, KubeClusterConfig},
    connect::{self, CredentialSource},
    resource::Resource,
};

pub(super) enum Answer {
    Whole(Response<Body>),
    /// Sends these pieces, and ends.
    Stream(Vec<Vec<u8>>),
    /// Ends the connection without an answer.
    Hangup,
}

#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) agent: String,
    pub(super) body: String,
}

/// The server, and a cluster that connects to it.
pub(super) struct Server {
    pub(super) cluster: KubeCluster,
    script: Arc<Script>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
}

impl Answer {
    pub(super) fn json(code: u16, object: Value) -> Self {
        Self::text(code, &object.to_string())
    }

    pub(super) fn text(code: u16, text: &str) -> Self {
        Self::bytes(code, text.to_owned().into_bytes())
    }

    pub(super) fn bytes(code: u16, bytes: Vec<u8>) -> Self {
        let response = Response::builder().status(code).body(bytes.into());
        Self::Whole(response.expect("the code is one"))
    }

    pub(super) const fn stream(pieces: Vec<Vec<u8>>) -> Self {
        Self::Stream(pieces)
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        if let Self::Whole(response) = &mut self {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        self
    }
}

impl Server {
    pub(super) async fn start(answers: Vec<Answer>) -> Self {
        let script = Arc::new(Script {
            answers: Mutex::new(answers.into()),
            ..Script::default()
        });
        let router = Router::new().fallback(answer);
        let (url, serving) = serve(router.with_state(Arc::clone(&script))).await;
        Self {
            cluster: cluster(&url),
            script,
            _serving: serving,
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        let asked = self.script.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves a router as long as the handle is kept, and returns its URL.
pub(super) async fn serve(router: Router) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = tokio::spawn(async move {
        let served = axum::serve(listener, router).await;
        served.expect("the listener lives as long as the test");
    });
    (format!("http://{address}"), AbortOnDropHandle::new(server))
}

fn cluster(url: &str) -> KubeCluster {
    cluster_of(url, |_| {})
}

pub(super) fn cluster_of(url: &str, set: impl FnOnce(&mut kube::Config)) -> KubeCluster {
    let mut credentials = kube::Config::new(url.parse().expect("it is a URL"));
    connect::identify(&mut credentials);
    set(&mut credentials);
    let config = KubeClusterConfig {
        source: CredentialSource::default(),
        namespace: None,
        resource: Resource::default(),
        calls_max: 256,
    };
    KubeCluster::with_credentials(&credentials, &config).expect("no credentials are needed")
}

/// Serves a router over TLS with this protocol, and as many requests in flight on a connection. Each handshake waits for `ready`.
pub(super) async fn serve_tls<F>(
    protocol: &'static [u8],
    streams: u32,
    router: Router,
    ready: impl Fn() -> F + Send + 'static,
) -> (KubeCluster, AbortOnDropHandle<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let acceptor = acceptor(protocol);
    let server = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("it listens");
            let (acceptor, router, ready) = (acceptor.clone(), router.clone(), ready());
            tokio::spawn(async move {
                ready.await;
                let stream = acceptor.accept(stream).await.expect("it is TLS");
                let mut builder = Builder::new(TokioExecutor::new());
                builder.http2().max_concurrent_streams(streams);
                let service = TowerToHyperService::new(router);
                // The client may end its connection.
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    let cluster = cluster_of(&format!("https://{address}"), |credentials| {
        credentials.accept_invalid_certs = true;
    });
    (cluster, AbortOnDropHandle::new(server))
}

/// The TLS of an API server that speaks this protocol.
fn acceptor(protocol: &[u8]) -> TlsAcceptor {
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

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response<Body> {
    let line = format!("{} {}", request.method(), request.uri());
    let agent = request.headers().get(header::USER_AGENT);
    let agent = agent.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let agent = agent.to_owned();
    let body = body::to_bytes(request.into_body(), usize::MAX).await;
    let body = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    let asked = Asked { line, agent, body };
    let note = script.asked.lock();
    note.unwrap_or_else(PoisonError::into_inner).push(asked);
    let next = script.answers.lock();
    let next = next.unwrap_or_else(PoisonError::into_inner).pop_front();
    match next.expect("the script has an answer for each request") {
        Answer::Whole(response) => response,
        Answer::Stream(pieces) => {
            let pieces = pieces
                .into_iter()
                .map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
            Response::new(Body::from_stream(tokio_stream::iter(pieces)))
        }
        Answer::Hangup => panic!("this answer is a connection that ends"),
    }
}

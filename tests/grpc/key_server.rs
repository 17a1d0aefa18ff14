//! The keys of tokens over HTTPS: fetched, cached, rotated, and the faults of their server.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use rustls::DEFAULT_VERSIONS;
use tempfile::TempDir;
use tests::{
    issuer::Issuer,
    pki::{Authority, Pair, Request},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket},
    task::yield_now,
};
use tokio_rustls::TlsAcceptor;
use tonic::Code;

use crate::{
    access::Guarded,
    agent::{Agent, hello},
    refusal::assert_refusal,
    running::{StoppedTime, soon},
};

/// Larger than any answer that is read to its end.
const HUGE: usize = 4 << 20;

/// The answer to a request.
#[derive(Clone, Debug)]
enum Answer {
    /// The published keys of the issuer.
    Keys,
    Status(u16),
    /// A redirect to this server itself.
    Redirect,
    Text(&'static str),
    /// Blanks, more than any reader accepts.
    Huge,
    /// No answer.
    Silence,
}

/// A server that publishes keys. It ends with the runtime of its test.
struct KeyServer {
    port: u16,
    answer: Arc<Mutex<Answer>>,
    requests: Arc<AtomicUsize>,
    /// The file of the published keys.
    file: Arc<Mutex<PathBuf>>,
    folder: TempDir,
}

impl KeyServer {
    /// Starts a server with a certificate, and a decision server that reads its keys there at this interval.
    async fn start(authority: &Authority, pair: &Pair, interval: Duration) -> (Self, Guarded) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let keys = Self::start_on(listener, authority, pair);
        let url = format!("https://localhost:{}/openid/v1/jwks", keys.port);
        let guarded = Guarded::start_with(|access| {
            let published = access.token_keys.replace(url).expect("a file");
            *lock(&keys.file) = published.into();
            access.token_keys_ca = Some(keys.folder.path().join("ca.crt"));
            access.access_interval = interval;
        })
        .await;
        (keys, guarded)
    }

    /// Starts both with a valid certificate, and waits until the keys have been requested, which a decision server does once at its
    /// start, before it answers about a token.
    async fn asked() -> (Self, Guarded) {
        let authority = Authority::new("CA of the keys");
        let pair = authority.issue(&Request::server());
        let (keys, guarded) = Self::start(&authority, &pair, NEVER).await;
        keys.until_asked_after(0).await;
        (keys, guarded)
    }

    /// Starts a server. The keys are in the file that the test sets later.
    fn start_on(listener: TcpListener, authority: &Authority, pair: &Pair) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("ca.crt"), &authority.pem).expect("it can be written");
        let port = listener.local_addr().expect("it is bound").port();
        let server = Self {
            port,
            answer: Arc::new(Mutex::new(Answer::Keys)),
            requests: Arc::default(),
            file: Arc::default(),
            folder,
        };
        let acceptor = TlsAcceptor::from(Arc::new(pair.server_config(DEFAULT_VERSIONS)));
        let shared = (
            server.answer.clone(),
            server.requests.clone(),
            server.file.clone(),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, (answer, requests, file)) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    requests.fetch_add(1, Ordering::SeqCst);
                    let answer = lock(&answer).clone();
                    let file = lock(&file).clone();
                    serve(stream, &answer, &file, port).await;
                });
            }
        });
        server
    }

    fn answers(&self, answer: Answer) {
        *lock(&self.answer) = answer;
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn until_asked_after(&self, requests: usize) {
        let asked = async {
            while self.requests() <= requests {
                yield_now().await;
            }
        };
        soon(asked).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers one request and closes the connection. The client may have left.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &Answer,
    file: &PathBuf,
    port: u16,
) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let (head, body) = match answer {
        Answer::Keys => ("200 OK".to_owned(), fs::read(file).unwrap_or_default()),
        Answer::Status(status) => (format!("{status} Status"), Vec::new()),
        Answer::Redirect => {
            let place = format!("302 Found\r\nLocation: https://localhost:{port}/elsewhere");
            (place, Vec::new())
        }
        Answer::Text(text) => ("200 OK".to_owned(), text.as_bytes().to_vec()),
        Answer::Huge => ("200 OK".to_owned(), vec![b' '; HUGE]),
        Answer::Silence => return std::future::pending().await,
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    if stream.write_all(head.as_bytes()).await.is_ok() && stream.write_all(&body).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// Opens a session of cluster a with a token; returns whether the token is valid.
async fn counts(guarded: &Guarded, token: &str) -> bool {
    match Agent::open_as(&guarded.server, token, hello("a")).await {
        Ok(_) => true,
        Err(status) => {
            assert_refusal(&status, Code::Unauthenticated, "TOKEN_INVALID");
            false
        }
    }
}

/// A token whose header names a key that the issuer does not publish.
fn of_unknown_key(guarded: &Guarded, key: &str) -> String {
    let header = serde_json::json!({"alg": "ES256", "kid": key});
    let claims = Issuer::claims("agent-a", 600);
    guarded.issuer.sign_as(&header, &claims)
}

/// Waits until a token is valid.
async fn until_it_counts(guarded: &Guarded, token: &str) {
    soon(async { while !counts(guarded, token).await {} }).await;
}

const NEVER: Duration = Duration::from_hours(1);
const OFTEN: Duration = Duration::from_millis(20);
/// The minimum interval between two look-ups of a token's key.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The timeout of a key server.
const ANSWER_MAX: Duration = Duration::from_secs(5);

#[tokio::test]
async fn keys_of_a_url_are_fetched_once_and_again_for_a_key_that_is_new() {
    let (keys, mut guarded) = KeyServer::asked().await;
    let old = guarded.issuer.token("agent-a");
    until_it_counts(&guarded, &old).await;
    let fetched = keys.requests();
    for _ in 0..20 {
        assert!(counts(&guarded, &old).await);
    }
    // Tokens from before the keys may cause one more look-up.
    assert!(
        keys.requests() <= fetched + 1,
        "what is known is not asked for"
    );
    guarded.issuer.rotate();
    let new = guarded.issuer.token("agent-a");
    // The server looks up the key of a token at most once a second.
    until_it_counts(&guarded, &new).await;
    assert!(
        !counts(&guarded, &old).await,
        "the issuer has dropped its key"
    );
}

#[tokio::test]
async fn tokens_of_keys_that_nobody_has_cost_one_request_a_second() {
    let (keys, guarded) = KeyServer::asked().await;
    let time = StoppedTime::stop();
    for requests in 2..5 {
        for number in 0..100 {
            let token = of_unknown_key(&guarded, &format!("k-{number}"));
            assert!(!counts(&guarded, &token).await);
        }
        assert_eq!(keys.requests(), requests);
        time.pass(LOOK_EVERY).await;
    }
}

#[tokio::test]
async fn server_of_keys_that_answers_badly_leaves_the_last_keys_in_use() {
    let (keys, guarded) = KeyServer::asked().await;
    let time = StoppedTime::stop();
    let known = guarded.issuer.token("agent-a");
    until_it_counts(&guarded, &known).await;
    let unknown = of_unknown_key(&guarded, "?");
    for answer in [
        Answer::Status(500),
        Answer::Status(403),
        Answer::Redirect,
        Answer::Text("<html>sign in</html>"),
        Answer::Text("{\"keys\": []}"),
        Answer::Huge,
    ] {
        keys.answers(answer.clone());
        let before = keys.requests();
        time.pass(LOOK_EVERY).await;
        assert!(!counts(&guarded, &unknown).await, "{answer:?}");
        assert!(counts(&guarded, &known).await, "{answer:?}");
        let after = keys.requests() - before;
        assert_eq!(after, 1, "{answer:?}: a redirect is not followed");
    }
}

#[tokio::test]
async fn server_of_keys_that_says_nothing_holds_up_no_token_that_is_known() {
    let (keys, guarded) = KeyServer::asked().await;
    let time = StoppedTime::stop();
    let known = guarded.issuer.token("agent-a");
    until_it_counts(&guarded, &known).await;
    keys.answers(Answer::Silence);
    let unknown = of_unknown_key(&guarded, "?");
    let before = keys.requests();
    let waits = async { assert!(!counts(&guarded, &unknown).await) };
    let served = async {
        keys.until_asked_after(before).await;
        // The other token waits while time stands still.
        assert!(counts(&guarded, &known).await);
        time.pass(ANSWER_MAX).await;
    };
    tokio::join!(waits, served);
}

#[tokio::test]
async fn server_of_keys_may_come_later() {
    // The test keeps the port, and refuses connections, until it listens.
    let socket = TcpSocket::new_v4().expect("a socket");
    let free = "127.0.0.1:0".parse().expect("an address");
    socket.bind(free).expect("a free port");
    let port = socket.local_addr().expect("it is bound").port();
    let authority = Authority::new("CA of the keys");
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("ca.crt"), &authority.pem).expect("it can be written");
    let ca = folder.path().join("ca.crt");
    let guarded = Guarded::start_with(|access| {
        access.token_keys = Some(format!("https://localhost:{port}/jwks"));
        access.token_keys_ca = Some(ca);
    })
    .await;
    let token = guarded.issuer.token("agent-a");
    assert!(!counts(&guarded, &token).await, "there are no keys");
    let errors = "decree_access_reload_errors_total{file=\"token_keys\"}";
    guarded.server.until(errors, |count| count >= 1.0).await;
    let listener = socket.listen(16).expect("it is bound");
    let pair = authority.issue(&Request::server());
    let keys = KeyServer::start_on(listener, &authority, &pair);
    guarded.issuer.file().clone_into(&mut lock(&keys.file));
    until_it_counts(&guarded, &token).await;
}

#[tokio::test]
async fn server_of_keys_with_a_wrong_certificate_is_not_asked() {
    let now = SystemTime::now();
    let hour = Duration::from_hours(1);
    let mut elsewhere = Request::server();
    elsewhere.names = vec!["elsewhere.example".to_owned()];
    let authority = || Authority::new("CA of the keys");
    let expired = Request::server().valid(now - 2 * hour, now - hour);
    for (case, request) in [("expired", expired), ("of another name", elsewhere)] {
        let authority = authority();
        let pair = authority.issue(&request);
        refused(case, &authority, &pair).await;
    }
    let stranger = authority().issue(&Request::server());
    refused("of another CA", &authority(), &stranger).await;
}

/// Checks that the server requests no keys from a server with this certificate, and that no token is valid.
async fn refused(case: &str, authority: &Authority, pair: &Pair) {
    let (keys, guarded) = KeyServer::start(authority, pair, OFTEN).await;
    assert!(
        !counts(&guarded, &guarded.issuer.token("agent-a")).await,
        "{case}"
    );
    assert_eq!(keys.requests(), 0, "{case}");
}

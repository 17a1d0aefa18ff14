//! A gate before the pods of a namespace: a test admits some creates, and holds further creates in flight, in the API server.
//!
//! The gate is an admission webhook. Held creates wait for the test. So the events of the test happen during creates, however
//! slow the machine is.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, ErrorKind, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{DEFAULT_VERSIONS, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tests::{
    lock,
    pki::{Authority, Request},
    real::{LOOK_EVERY, Namespace, found},
};

use crate::objects;

/// The timeout of the webhook at the API server, the longest that it allows. The API server refuses a longer create, and the
/// server decides it again.
const HELD_SECONDS: u32 = 30;
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The gate of one namespace. It has separate threads, and opens when this is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Arc<Mutex<State>>,
}

/// The admitted and the held creates.
#[derive(Debug, Default)]
struct State {
    limit: usize,
    /// The names of the admitted pods: a repeated create counts once.
    admitted: BTreeSet<String>,
    /// The names of the held creates, by a number for each create.
    held: BTreeMap<u64, String>,
    creates: u64,
    is_in_force: bool,
}

impl Gate {
    /// Makes a gate that admits `limit` names, and returns when it is in force.
    pub(crate) async fn before(namespace: &Namespace, limit: usize) -> Self {
        let authority = Authority::new("CA of a gate");
        let pair = authority.issue(&Request::server());
        let config = Arc::new(pair.server_config(DEFAULT_VERSIONS));
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let state = State {
            limit,
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (config, state) = (Arc::clone(&config), Arc::clone(&shared));
                // The API server asks again if an answer is lost.
                thread::spawn(move || serve(client, config, &state));
            }
        });
        let gate = Self { state };
        let hook = hook(namespace.name(), port, &authority.pem);
        namespace.make(HOOKS, &hook).await;
        gate.comes_into_force(namespace).await;
        gate
    }

    /// Raises the number of admitted names to `limit`; held creates come first.
    pub(crate) fn let_through(&self, limit: usize) {
        let mut state = lock(&self.state);
        state.limit = limit.max(state.limit);
        let held = std::mem::take(&mut state.held);
        let held = held.into_iter();
        let held = held.filter(|(_, name)| !state.admits(name)).collect();
        state.held = held;
    }

    /// Admits all creates.
    pub(crate) fn open(&self) {
        self.let_through(usize::MAX);
    }

    /// Waits until the gate holds a create.
    ///
    /// # Panics
    /// If it holds none within [`PATIENCE`].
    pub(crate) async fn holds_one(&self) {
        found(async || {
            let state = lock(&self.state);
            let failure = || format!("none is held after {} pods", state.admitted.len());
            let holds = !state.held.is_empty();
            holds.then_some(()).ok_or_else(failure)
        })
        .await;
    }

    /// Waits until the API server calls the webhook: it learns of webhooks later than they are written.
    async fn comes_into_force(&self, namespace: &Namespace) {
        let path = format!("{}?dryRun=All", namespace.pod(""));
        found(async || {
            namespace.make(&path, &objects::pod("probe")).await;
            let is_in_force = lock(&self.state).is_in_force;
            let failure = || "the gate is never asked".to_owned();
            is_in_force.then_some(()).ok_or_else(failure)
        })
        .await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl State {
    /// Whether the gate admits a pod of this name.
    fn admits(&mut self, name: &str) -> bool {
        if !self.admitted.contains(name) && self.admitted.len() < self.limit {
            self.admitted.insert(name.to_owned());
        }
        self.admitted.contains(name)
    }

    /// Notes a held create; returns its number.
    fn hold(&mut self, name: &str) -> u64 {
        self.creates += 1;
        self.held.insert(self.creates, name.to_owned());
        self.creates
    }
}

/// Answers the reviews on one connection, until the API server closes it.
fn serve(client: TcpStream, config: Arc<ServerConfig>, state: &Mutex<State>) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let socket = client.try_clone()?;
    let mut stream = BufReader::new(StreamOwned::new(connection, client));
    while let Some(review) = read(&mut stream)? {
        if !comes_through(&review["request"], &socket, state)? {
            break;
        }
        allow(stream.get_mut(), &review["request"]["uid"])?;
    }
    Ok(())
}

/// Waits until a create is admitted; returns whether this was before its client gave it up.
fn comes_through(review: &Value, socket: &TcpStream, state: &Mutex<State>) -> io::Result<bool> {
    if review["dryRun"] == true {
        lock(state).is_in_force = true;
        return Ok(true);
    }
    let name = review["object"]["metadata"]["name"].as_str();
    let name = name.ok_or(ErrorKind::InvalidData)?;
    let mut guard = lock(state);
    if guard.admits(name) {
        return Ok(true);
    }
    let number = guard.hold(name);
    drop(guard);
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    while lock(state).held.contains_key(&number) {
        // Before the answer, the client can only close the connection.
        if !is_silent(socket) {
            lock(state).held.remove(&number);
            return Ok(false);
        }
    }
    socket.set_read_timeout(None)?;
    Ok(true)
}

fn is_silent(socket: &TcpStream) -> bool {
    let read = socket.peek(&mut [0]);
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Reads an HTTP/1.1 request with its review; `None` at the end of the connection.
fn read(stream: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            } else {
                continue;
            }
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(io::Error::other)
}

fn allow(stream: &mut impl Write, uid: &Value) -> io::Result<()> {
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true},
    });
    let answer = answer.to_string();
    let length = answer.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{answer}")?;
    stream.flush()
}

/// The configuration of the webhook: without its answer, no pod is created.
fn hook(namespace: &str, port: u16, ca: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("gate-of-{namespace}")},
        "webhooks": [{
            "name": "gate.tests.decree.dev",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/"), "caBundle": STANDARD.encode(ca)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": HELD_SECONDS,
        }],
    })
}

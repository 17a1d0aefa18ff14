//! Connections by their bytes, of a client or of a server, in plain text or over TLS, a step at a time.
//!
//! ```text
//! text TEXT              TEXT; `x*300` means 300 x
//! hex HEX                any bytes
//! slow MS text|hex ...   the same, with a wait before each byte
//! preface                the client's preface and empty settings
//! settings N [ID VALUE]  acks N   pings N   priorities N   windows N [STREAM INCREMENT]   goaways N
//! streams N [METHOD]     opens so many streams of `Reconcile`, or of another method of the service
//! resets N               opens a stream and resets it, so many times
//! cut                    resets all open streams
//! headers N BYTES        opens streams with a header of so many bytes
//! continuations N BYTES  one block of headers that goes on for so many frames
//! data N BYTES           so many frames of data on each open stream
//! drip N MS              so many pings, with a wait before each
//! answer STATUS          begins the answer to the peer's first stream, with this status of HTTP (of a server)
//! message BYTES [LENGTH] a message of gRPC of so many bytes of 0xff on that stream, with this length before it
//! status CODE            ends that stream with this status of gRPC
//! times N STEP           quiet MS: waits
//! unread                 reads nothing from here on: what is sent piles up
//! close                  closes its half
//! ```
//! A connection ends as `HTTP CODE` after an answer of HTTP/1, by an `alert`, as `goaway` if the server sent one, or as `closed`; over
//! TLS, as `served and closed` after a first frame of HTTP/2. It ends as `open` if it is still there after the maximum time of a
//! server. Last steps are `hold`, which keeps the connection until the server has ended, `leave`, which closes it, and `probe`: a
//! connection that answers a ping is `open` at once.

mod frames;
mod tls;

use std::{io, sync::Arc, time::Duration};

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use serde::Deserialize;
use tests::http2::{
    DATA, END_HEADERS, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, frame, header, request,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::TcpStream,
    select,
    task::JoinSet,
    time,
};
use tokio_rustls::TlsConnector;

use self::{
    frames::{ACK, CANCEL, CONTINUATION, FIRST, frames, number, size},
    tls::{Cut, Tls, alerted, end_of},
};
use crate::{
    calls::repeated,
    process::Port,
    script::hex,
    seen::{Seen, one},
    target::Target,
};

/// The maximum time for which a server keeps a connection that it should close.
const PATIENCE: Duration = Duration::from_mins(2);
/// The maximum duration of the steps of one connection.
const COURSE_MAX: Duration = Duration::from_mins(4);
/// The number of bytes in one read.
const PIECE: usize = 1 << 10;
/// The number of first bytes by which a protocol is known.
const HEAD: usize = 12;
/// The opaque data of the ping that proves a connection.
const PROOF: [u8; 8] = *b"are you?";
/// The type of a TLS record that ends a handshake in the clear.
const ALERT: u8 = 21;

/// Connections with the same acts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connections {
    #[serde(default = "grpc")]
    pub(crate) port: Port,
    steps: Vec<String>,
    #[serde(default = "one")]
    connections: u64,
    /// The handshake before the steps; absent in plain text.
    tls: Option<Tls>,
}

/// One running connection.
struct Course {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
    is_tls: bool,
    reads: bool,
    /// Whether the other side takes no more bytes.
    is_broken: bool,
    /// The number of the next stream.
    stream: u32,
    open: Vec<u32>,
    /// The first received bytes.
    head: Vec<u8>,
    /// The received bytes of HTTP/2 that are not parsed yet.
    received: Vec<u8>,
    went_away: bool,
    proved: bool,
    end: Option<String>,
    bytes: usize,
}

fn grpc() -> Port {
    Port::Grpc
}

impl Connections {
    /// The acts of a server on one connection.
    pub(crate) fn of_server(steps: Vec<String>) -> Self {
        Self {
            port: Port::Grpc,
            steps,
            connections: 1,
            tls: None,
        }
    }

    /// Opens all connections to an address at once, and runs them to their ends.
    pub(crate) async fn run(&self, address: &str, target: &Target) -> Seen {
        let config = self.tls.as_ref().map(|tls| tls.config(target.guard()));
        let config = config.map(Arc::new);
        let mut connections = JoinSet::new();
        for _ in 0..self.connections {
            let (this, address, config) = (self.clone(), address.to_owned(), config.clone());
            connections.spawn(async move { this.connection(&address, config).await });
        }
        let mut seen = Seen::default();
        seen.add_all(connections).await;
        seen
    }

    async fn connection(&self, address: &str, config: Option<Arc<ClientConfig>>) -> Seen {
        let Ok(stream) = TcpStream::connect(address).await else {
            return Seen::ended("closed");
        };
        let Some((tls, config)) = self.tls.as_ref().zip(config) else {
            return self.run_on(stream, false).await;
        };
        let left = tls.cut.unwrap_or(usize::MAX);
        let name = ServerName::try_from("localhost").expect("a name");
        let handshake = TlsConnector::from(config).connect(name, Cut { stream, left });
        let mut stream = match time::timeout(PATIENCE, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Seen::ended(end_of(&error)),
            Err(_) => return Seen::ended("open"),
        };
        for _ in 0..tls.key_updates {
            if stream.get_mut().1.refresh_traffic_keys().is_err() || stream.flush().await.is_err() {
                break;
            }
        }
        self.run_on(stream, true).await
    }

    /// Executes all steps on an open connection.
    pub(crate) async fn run_on(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        is_tls: bool,
    ) -> Seen {
        let (read, write) = split(stream);
        let mut course = Course {
            read: Box::new(read),
            write: Box::new(write),
            is_tls,
            reads: true,
            is_broken: false,
            stream: FIRST,
            open: Vec::new(),
            head: Vec::new(),
            received: Vec::new(),
            went_away: false,
            proved: false,
            end: None,
            bytes: 0,
        };
        let steps = async {
            for step in &self.steps {
                course.step(step).await;
            }
        };
        let _: Result<(), _> = time::timeout(COURSE_MAX, steps).await;
        course.finish().await
    }
}

impl Course {
    async fn step(&mut self, step: &str) {
        if self.end.is_some() {
            return;
        }
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let words: Vec<_> = rest.split_whitespace().collect();
        let number = |at: usize| words.get(at).map_or(0, |word| number(word));
        match verb {
            "text" => self.send(repeated(rest).as_bytes()).await,
            "hex" => self.send(&hex(rest)).await,
            "slow" => self.slow(rest).await,
            "times" => {
                let (times, step) = rest.split_once(' ').expect("a number and a step");
                for _ in 0..self::number(times) {
                    Box::pin(self.step(step)).await;
                }
            }
            "streams" => {
                let method = words.get(1).copied().unwrap_or("Reconcile");
                self.open_streams(number(0), &request(method, 0)).await;
            }
            "resets" => self.resets(number(0)).await,
            "cut" => self.cut().await,
            "headers" => {
                let block = request("Reconcile", size(number(1)));
                self.open_streams(number(0), &block).await;
            }
            "continuations" => self.continuations(number(0), number(1)).await,
            "data" => self.data(number(0), number(1)).await,
            "message" => {
                self.message(number(0), words.get(1).map(|_| number(1)))
                    .await
            }
            "drip" => {
                for _ in 0..number(0) {
                    self.quiet(ms(number(1))).await;
                    self.send(&frame(PING, 0, 0, &[0; 8])).await;
                }
            }
            "quiet" => self.quiet(ms(number(0))).await,
            "unread" => self.reads = false,
            // A server may have closed before.
            "close" => drop(self.write.shutdown().await),
            "probe" => {
                self.send(&frame(PING, 0, 0, &PROOF)).await;
                self.until_proved().await;
            }
            "hold" => self.end = Some("held".to_owned()),
            "leave" => self.end = Some("left".to_owned()),
            verb => {
                let (count, frame) = frames(verb, &words);
                self.many(count, &frame).await;
            }
        }
    }

    async fn many(&mut self, count: u32, frame: &[u8]) {
        const AT_A_TIME: u32 = 256;
        let mut left = count;
        while left > 0 && self.end.is_none() {
            let now = left.min(AT_A_TIME);
            left -= now;
            self.send(&frame.repeat(size(now))).await;
        }
    }

    async fn slow(&mut self, rest: &str) {
        let words: Vec<_> = rest.splitn(3, ' ').collect();
        let [wait, verb, rest] = words[..] else {
            panic!("slow {rest} is no step");
        };
        let bytes = match verb {
            "text" => repeated(rest).into_bytes(),
            _ => hex(rest),
        };
        for byte in bytes {
            self.quiet(ms(number(wait))).await;
            self.send(&[byte]).await;
        }
    }

    async fn cut(&mut self) {
        for stream in std::mem::take(&mut self.open) {
            self.send(&frame(RST_STREAM, 0, stream, &CANCEL)).await;
        }
    }

    async fn open_streams(&mut self, count: u32, block: &[u8]) {
        for _ in 0..count {
            let stream = self.next_stream();
            self.send(&frame(HEADERS, END_HEADERS, stream, block)).await;
            self.open.push(stream);
        }
    }

    async fn resets(&mut self, count: u32) {
        let block = request("Reconcile", 0);
        for _ in 0..count {
            let stream = self.next_stream();
            let open = frame(HEADERS, END_HEADERS, stream, &block);
            let reset = frame(RST_STREAM, 0, stream, &CANCEL);
            self.send(&[open, reset].concat()).await;
        }
    }

    async fn continuations(&mut self, count: u32, bytes: u32) {
        let stream = self.next_stream();
        let block = request("Reconcile", 0);
        self.send(&frame(HEADERS, 0, stream, &block)).await;
        let value = "a".repeat(size(bytes));
        let more = frame(CONTINUATION, 0, stream, &header("x", &value));
        self.many(count, &more).await;
    }

    async fn data(&mut self, count: u32, bytes: u32) {
        for stream in self.open.clone() {
            let data = frame(DATA, 0, stream, &vec![0; size(bytes)]);
            self.many(count, &data).await;
        }
    }

    async fn message(&mut self, bytes: u32, claimed: Option<u32>) {
        const FRAME: usize = 16 << 10;
        let content = vec![0xff; size(bytes)];
        let head = claimed.unwrap_or(bytes).to_be_bytes();
        for piece in [&[0], &head[..], &content].concat().chunks(FRAME) {
            self.send(&frame(DATA, 0, FIRST, piece)).await;
        }
    }

    fn next_stream(&mut self) -> u32 {
        let stream = self.stream;
        self.stream += 2;
        stream
    }

    /// Sends bytes, and reads meanwhile.
    async fn send(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        let mut piece = [0; PIECE];
        while !left.is_empty() && self.end.is_none() && !self.is_broken {
            select! {
                read = self.read.read(&mut piece), if self.reads => self.take(read.map(|read| &piece[..read])),
                sent = self.write.write(left) => match sent {
                    Ok(sent) => left = &left[sent..],
                    // What is still to be read shows the end.
                    Err(_) => self.is_broken = true,
                },
            }
        }
        if self.is_tls && self.end.is_none() && self.write.flush().await.is_err() {
            self.is_broken = true;
        }
    }

    /// Notes the bytes of a read. Parses HTTP/2, frame by frame.
    fn take(&mut self, read: io::Result<&[u8]>) {
        let piece = match read {
            Ok(piece @ [_, ..]) => piece,
            Ok(_) => return self.close("closed".to_owned()),
            Err(error) => return self.close(end_of(&error)),
        };
        self.bytes += piece.len();
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(room));
        if self.head.get(3) != Some(&SETTINGS) {
            return;
        }
        self.received.extend_from_slice(piece);
        while let Some((head, rest)) = self.received.split_first_chunk::<9>() {
            let length = size(u32::from_be_bytes([0, head[0], head[1], head[2]]));
            let Some(payload) = rest.get(..length) else {
                return;
            };
            self.went_away |= head[3] == GOAWAY;
            self.proved |= head[3] == PING && head[4] == ACK && payload == PROOF;
            self.received.drain(..9 + length);
        }
    }

    fn close(&mut self, how: String) {
        let is_served = self.head.get(3) == Some(&SETTINGS);
        let code = self.head.strip_prefix(b"HTTP/1.");
        let code = code.and_then(|rest| rest.get(2..5));
        self.end = Some(match (code, &self.head[..]) {
            (Some(code), _) => format!("HTTP {}", String::from_utf8_lossy(code)),
            (None, [ALERT, 3, _, 0, 2, _, description, ..]) => alerted((*description).into()),
            _ if is_served && self.is_tls => format!("served and {how}"),
            _ if self.went_away => "goaway".to_owned(),
            _ => how,
        });
    }

    async fn quiet(&mut self, wait: Duration) {
        let until = time::Instant::now() + wait;
        let mut piece = [0; PIECE];
        while self.end.is_none() {
            select! {
                read = self.read.read(&mut piece), if self.reads => self.take(read.map(|read| &piece[..read])),
                () = time::sleep_until(until) => return,
            }
        }
    }

    async fn until_proved(&mut self) {
        let until = time::Instant::now() + PATIENCE;
        while self.end.is_none() && !self.proved && time::Instant::now() < until {
            self.quiet(ms(10)).await;
        }
        if self.proved {
            self.end = Some("open".to_owned());
        }
    }

    /// Waits until the server closes the connection.
    async fn finish(mut self) -> Seen {
        if self.end.is_none() {
            // Only a read shows the end.
            self.reads = true;
            self.quiet(PATIENCE).await;
        }
        let end = self.end.unwrap_or_else(|| "open".to_owned());
        let mut seen = Seen::ended(&*end);
        seen.bytes = self.bytes;
        if end == "held" {
            seen.held.push(Box::new((self.read, self.write)));
        }
        seen
    }
}

fn ms(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

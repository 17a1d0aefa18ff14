//! Connections that speak HTTP/2 frame by frame, in ways in which no client and no server does.
//!
//! ```text
//! preface               the client's preface and empty settings
//! settings N [ID VALUE]  acks N   pings N   priorities N   windows N [STREAM INCREMENT]   goaway
//! streams N [METHOD]    opens so many streams of `Reconcile`, or of another method of the service
//! resets N              opens a stream and resets it, so many times
//! cut N                 resets all streams that are open
//! headers N BYTES       opens streams with a header of so many bytes
//! continuations N BYTES one block of headers that goes on for so many frames
//! data N BYTES          so many frames of data on each open stream
//! raw HEX               any bytes
//! drip N MS             so many pings, with a wait before each
//! answer [STATUS]       begins the answer to the peer's first stream, with this status of HTTP or 200 (of a server)
//! message BYTES [LENGTH] a message of gRPC of so many bytes of 0xff on that stream, which claims to have LENGTH
//! status CODE           ends that stream with this status of gRPC
//! quiet MS              waits
//! unread                reads nothing from here on: what is sent piles up
//! hold                  keeps the connection until the server has ended
//! ```
//! A connection ends as `closed`, or as `goaway` if the server sent one before. It ends as `open` if neither happened within the
//! maximum time of a server. With `probe` at the end, a connection that answers a ping is `open` at once.

use std::time::Duration;

use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::TcpStream,
    select, time,
};

use crate::{
    script::hex,
    seen::{Seen, one},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The maximum time for which a server keeps a connection that it should close.
const PATIENCE: Duration = Duration::from_mins(2);
/// The maximum duration of the steps of one connection.
const COURSE_MAX: Duration = Duration::from_mins(4);
/// The number of bytes in one read.
const PIECE: usize = 1 << 10;
/// The opaque data of the ping that proves a connection.
const PROOF: [u8; 8] = *b"are you?";

/// The first stream of a client.
const FIRST: u32 = 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Connections with the same acts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http2 {
    steps: Vec<String>,
    #[serde(default = "one")]
    connections: u64,
}

struct Course {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
    reads: bool,
    /// The number of the next stream.
    stream: u32,
    open: Vec<u32>,
    /// The received bytes that are not parsed yet.
    received: Vec<u8>,
    went_away: bool,
    proved: bool,
    end: Option<&'static str>,
    bytes: usize,
}

// === impl Http2 ===

impl Http2 {
    /// One connection with these steps.
    pub(crate) fn new(steps: Vec<String>) -> Self {
        Self {
            steps,
            connections: 1,
        }
    }

    /// Runs all connections to their ends.
    pub(crate) async fn run(&self, address: &str) -> Seen {
        let connection = || {
            let (this, address) = (self.clone(), address.to_owned());
            async move { this.connection(&address).await }
        };
        Seen::of_connections(self.connections, connection).await
    }

    async fn connection(&self, address: &str) -> Seen {
        match TcpStream::connect(address).await {
            Ok(stream) => self.run_on(stream).await,
            Err(_) => Seen::ended("closed"),
        }
    }

    /// Executes all steps on a connection, of a client or of a server.
    pub(crate) async fn run_on(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Seen {
        let (read, write) = split(stream);
        let mut course = Course {
            read: Box::new(read),
            write: Box::new(write),
            reads: true,
            stream: 1,
            open: Vec::new(),
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

// === impl Course ===

impl Course {
    async fn step(&mut self, step: &str) {
        if self.end.is_some() {
            return;
        }
        let words: Vec<_> = step.split_whitespace().collect();
        let number = |at: usize| {
            words
                .get(at)
                .map_or(0, |word| word.parse().expect("a number"))
        };
        let count: u32 = match words[0] {
            "raw" | "preface" | "unread" | "hold" | "probe" | "goaway" => 0,
            "answer" if words.len() == 1 => 200,
            _ => number(1),
        };
        match words[0] {
            "preface" => {
                self.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat())
                    .await
            }
            "settings" => {
                let setting = match words.len() {
                    4 => setting(number(2), number(3)),
                    _ => Vec::new(),
                };
                self.many(count, &frame(SETTINGS, 0, 0, &setting)).await;
            }
            "acks" => self.many(count, &frame(SETTINGS, ACK, 0, &[])).await,
            "pings" => self.many(count, &frame(PING, 0, 0, &[0; 8])).await,
            "priorities" => {
                self.many(count, &frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]))
                    .await
            }
            "windows" => {
                let update = frame(WINDOW_UPDATE, 0, number(2), &number(3).to_be_bytes());
                self.many(count, &update).await;
            }
            "goaway" => self.send(&frame(GOAWAY, 0, 0, &[0; 8])).await,
            "streams" => {
                let method = words.get(2).copied().unwrap_or("Reconcile");
                self.open_streams(count, &request(method, 0)).await;
            }
            "headers" => {
                self.open_streams(count, &request("Reconcile", number(2)))
                    .await
            }
            "resets" => self.resets(count).await,
            "cut" => self.cut().await,
            "continuations" => self.continuations(count, number(2)).await,
            "data" => self.data(count, number(2)).await,
            "answer" => self.answer(count).await,
            "message" => self.message(count, words.get(2).map(|_| number(2))).await,
            "status" => self.status(count).await,
            "raw" => self.send(&hex(words[1])).await,
            "drip" => {
                self.drip(count, Duration::from_millis(number(2).into()))
                    .await
            }
            "quiet" => self.quiet(Duration::from_millis(count.into())).await,
            "unread" => self.reads = false,
            "probe" => {
                self.send(&frame(PING, 0, 0, &PROOF)).await;
                self.until_proved().await;
            }
            "hold" => self.end = Some("held"),
            _ => panic!("{step} is no step"),
        }
    }

    async fn cut(&mut self) {
        for stream in std::mem::take(&mut self.open) {
            let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            self.send(&reset).await;
        }
    }

    async fn open_streams(&mut self, count: u32, block: &[u8]) {
        for _ in 0..count {
            let stream = self.next_stream();
            self.send(&frame(HEADERS, END_HEADERS, stream, block)).await;
            self.open.push(stream);
        }
    }

    async fn many(&mut self, count: u32, frame: &[u8]) {
        const AT_A_TIME: u32 = 256;
        let mut left = count;
        while left > 0 && self.end.is_none() {
            let now = left.min(AT_A_TIME);
            left -= now;
            let times = usize::try_from(now).expect("small");
            self.send(&frame.repeat(times)).await;
        }
    }

    async fn resets(&mut self, count: u32) {
        let block = request("Reconcile", 0);
        for _ in 0..count {
            if self.end.is_some() {
                return;
            }
            let stream = self.next_stream();
            let open = frame(HEADERS, END_HEADERS, stream, &block);
            let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            self.send(&[open, reset].concat()).await;
        }
    }

    async fn continuations(&mut self, count: u32, bytes: u32) {
        let stream = self.next_stream();
        let block = request("Reconcile", 0);
        self.send(&frame(HEADERS, 0, stream, &block)).await;
        let value = "a".repeat(usize::try_from(bytes).expect("it fits"));
        let more = frame(CONTINUATION, 0, stream, &header("x", &value));
        self.many(count, &more).await;
    }

    async fn data(&mut self, count: u32, bytes: u32) {
        let content = vec![0; usize::try_from(bytes).expect("it fits")];
        for stream in self.open.clone() {
            self.many(count, &frame(DATA, 0, stream, &content)).await;
        }
    }

    async fn answer(&mut self, status: u32) {
        let block = [
            header(":status", &status.to_string()),
            header("content-type", "application/grpc"),
        ];
        self.send(&frame(HEADERS, END_HEADERS, FIRST, &block.concat()))
            .await;
    }

    async fn status(&mut self, code: u32) {
        let block = header("grpc-status", &code.to_string());
        let flags = END_HEADERS | END_STREAM;
        self.send(&frame(HEADERS, flags, FIRST, &block)).await;
    }

    async fn drip(&mut self, count: u32, wait: Duration) {
        for _ in 0..count {
            self.quiet(wait).await;
            self.send(&frame(PING, 0, 0, &[0; 8])).await;
        }
    }

    async fn message(&mut self, bytes: u32, claimed: Option<u32>) {
        const PIECE_MAX: usize = 16 << 10;
        let content = vec![0xff; usize::try_from(bytes).expect("it fits")];
        let head = claimed.unwrap_or(bytes).to_be_bytes();
        let message = [&[0], &head[..], &content].concat();
        for piece in message.chunks(PIECE_MAX) {
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
        while !left.is_empty() && self.end.is_none() {
            let mut piece = [0; PIECE];
            select! {
                read = self.read.read(&mut piece), if self.reads => self.take(read.map(|read| &piece[..read])),
                sent = self.write.write(left) => match sent {
                    Ok(sent) => left = &left[sent..],
                    Err(_) => self.close(),
                },
            }
        }
    }

    /// Parses the bytes of a read, frame by frame.
    fn take(&mut self, read: std::io::Result<&[u8]>) {
        let Ok(piece @ [_, ..]) = read else {
            return self.close();
        };
        self.bytes += piece.len();
        self.received.extend_from_slice(piece);
        while let Some((head, rest)) = self.received.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let length = usize::try_from(length).expect("it fits");
            let Some(payload) = rest.get(..length) else {
                return;
            };
            self.went_away |= head[3] == GOAWAY;
            self.proved |= head[3] == PING && head[4] == ACK && payload == PROOF;
            self.received.drain(..9 + length);
        }
    }

    fn close(&mut self) {
        self.end = Some(if self.went_away { "goaway" } else { "closed" });
    }

    async fn quiet(&mut self, wait: Duration) {
        let until = time::Instant::now() + wait;
        while self.end.is_none() {
            let mut piece = [0; PIECE];
            select! {
                read = self.read.read(&mut piece), if self.reads => self.take(read.map(|read| &piece[..read])),
                () = time::sleep_until(until) => return,
            }
        }
    }

    async fn until_proved(&mut self) {
        let until = time::Instant::now() + PATIENCE;
        while self.end.is_none() && !self.proved && time::Instant::now() < until {
            self.quiet(Duration::from_millis(10)).await;
        }
        if self.proved {
            self.end = Some("open");
        }
    }

    /// Waits until the server closes the connection.
    async fn finish(mut self) -> Seen {
        if self.end.is_none() {
            // Only a read shows the end.
            self.reads = true;
            self.quiet(PATIENCE).await;
        }
        let mut seen = Seen::ended(self.end.unwrap_or("open"));
        seen.bytes = self.bytes;
        if self.end == Some("held") {
            seen.held.push(Box::new((self.read, self.write)));
        }
        seen
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short");
    let head = [
        &length.to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
    ];
    [&head.concat()[..], payload].concat()
}

/// Writes the headers of a call, one of them of `bytes` bytes.
fn request(method: &str, bytes: u32) -> Vec<u8> {
    let path = match method {
        "Reconcile" | "Decide" | "Simulate" => format!("/decree.v1.DecisionService/{method}"),
        other => other.to_owned(),
    };
    let mut block = [
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", &path),
        header(":authority", "localhost"),
        header("content-type", "application/grpc"),
        header("te", "trailers"),
    ]
    .concat();
    if bytes > 0 {
        let value = "a".repeat(usize::try_from(bytes).expect("it fits"));
        block.extend(header("x", &value));
    }
    block
}

/// Writes a header as a literal without indexing.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut written = vec![0];
    for text in [name, value] {
        length(text.len(), &mut written);
        written.extend_from_slice(text.as_bytes());
    }
    written
}

/// Writes a length with a prefix of seven bits.
fn length(length: usize, out: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 127;
    let Some(mut rest) = length.checked_sub(PREFIX_MAX) else {
        out.push(length.to_le_bytes()[0]);
        return;
    };
    out.push(127);
    while rest >= 128 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

fn setting(id: u32, value: u32) -> Vec<u8> {
    let id = u16::try_from(id).expect("an id").to_be_bytes();
    [&id[..], &value.to_be_bytes()].concat()
}

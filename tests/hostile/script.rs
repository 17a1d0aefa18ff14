//! Sessions that follow a script, a step a line.
//!
//! ```text
//! hello [capabilities=N text=…] [instance=…] [cluster=…] [name=…] [shard=…] [epoch=N] [mode=N] [burst=N] [min=N] [max=N]
//! begin pod|set|KIND       end pod|set|KIND COUNT [version]
//! pods N [template]        sets N [template]           objects of the open list, 500 a frame or `per=`
//! pod-events N [template]  set-events N [template]     changes, 500 a frame or `per=`
//! deletes N pod|set [template]   bookmarks N pod|set [version=…]   outcomes N [batch=N] [operation=N] [as=done|failed|nothing] [message=…]
//! bad-fields     each object of tests/bad_fields.toml, as a change of its own
//! heartbeats N   empty   bytes TEXT*N   hex 0a03…+0a03*N   nested DEPTH
//! sequence N     the number of the next frame; 0 leaves frames unnumbered
//! no-events N    events without content
//! times N STEP   does a step so often, each time with other numbers of objects
//! number N       the number of the next object
//! unread         reads nothing from here on
//! prove          proves that the session is served: a new ReplicaSet gets a pod
//! quiet MS       waits; close   closes the agent's half
//! ```
//! A script ends with the end of its stream. It ends with `proved` if its last step is `prove`. It ends with `held` if its last
//! step is `hold`, which keeps the stream open until the server has ended. It ends with `silent` if nothing came within the maximum
//! time of a server.

use std::time::Duration;

use bytes::Bytes;
use decree_api::v1::{
    self, event::Event, reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use prost::Message as _;
use serde::Deserialize;
use tests::template::Template;
use tokio::{
    select,
    task::{JoinSet, spawn_blocking},
    time,
};
use tonic::{Status, transport::Channel};

use crate::{
    frames::{self, frame, hello},
    guard::Who,
    seen::{Seen, one},
    stream::{Stream, ending},
    target::Target,
};

/// The default number of objects in a frame.
const PER_FRAME: u64 = 500;
/// The maximum time of a server to end a stream or to answer, which only a hanging server reaches.
const PATIENCE: Duration = Duration::from_mins(2);
/// The maximum duration of a whole session. A blocked session, whose frames nobody reads, ends then.
const COURSE_MAX: Duration = Duration::from_mins(4);

/// Sessions with the same acts, each for a separate cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    steps: Vec<String>,
    /// The number of concurrent sessions.
    #[serde(default = "one")]
    sessions: u64,
    /// Whether all sessions share one connection.
    #[serde(default)]
    shared: bool,
    /// The number of repetitions of each session.
    #[serde(default = "one")]
    times: u64,
    /// The credentials of each session.
    #[serde(default, rename = "as")]
    who: Who,
}

/// One running session.
struct Course {
    stream: Stream,
    /// The number of the last frame; `None` leaves frames unnumbered.
    sequence: Option<u64>,
    /// The number of the next object.
    object: u64,
    /// The number of the session.
    number: u64,
    /// Whether answers are read.
    reads: bool,
    /// The version of the next change.
    version: u64,
    end: Option<String>,
    seen: Seen,
}

impl Script {
    /// The same sessions with other credentials.
    pub(crate) fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    /// Runs all sessions to their ends.
    pub(crate) async fn run(&self, target: impl Into<Target>) -> Seen {
        let target = target.into().by(&self.who);
        let mut seen = Seen::default();
        let shared = if self.shared {
            target.connect().await.ok()
        } else {
            None
        };
        let mut sessions = JoinSet::new();
        for number in 0..self.sessions {
            let (script, target, shared) = (self.clone(), target.clone(), shared.clone());
            sessions.spawn(async move {
                let mut seen = Seen::default();
                for _ in 0..script.times {
                    seen.add(script.session(&target, shared.clone(), number).await);
                }
                seen
            });
        }
        seen.add_all(sessions).await;
        seen
    }

    async fn session(&self, target: &Target, shared: Option<Channel>, number: u64) -> Seen {
        let channel = match shared {
            Some(channel) => Ok(channel),
            None => target.connect().await,
        };
        let opened = match channel {
            Ok(channel) => Stream::open(channel, target.authorization(number)).await,
            Err(error) => return Seen::ended(error),
        };
        let mut course = match opened {
            Ok(stream) => Course::new(stream, number),
            Err(status) => return Seen::ended(ending(&status)),
        };
        // A course that is out of time then ends as its stream does.
        let _: Result<(), _> = time::timeout(COURSE_MAX, course.follow(&self.steps)).await;
        course.end().await
    }
}

impl Course {
    fn new(stream: Stream, number: u64) -> Self {
        Self {
            stream,
            sequence: Some(0),
            object: 0,
            number,
            reads: true,
            version: 1_000,
            end: None,
            seen: Seen::default(),
        }
    }

    async fn follow(&mut self, steps: &[String]) {
        for step in steps {
            self.step(step).await;
        }
    }

    async fn step(&mut self, step: &str) {
        if self.end.is_some() {
            return;
        }
        let words: Vec<_> = step.split_whitespace().collect();
        let (verb, rest) = words.split_first().expect("a step has a verb");
        match (*verb, rest) {
            ("hello", words) => {
                let frame = hello(&Template::read(words.iter().copied()), self.number);
                self.send(frame).await;
                // The following frames may be large, so the course makes them only after the Hello.
                let answer = time::timeout(PATIENCE, self.stream.answers.message()).await;
                if let Ok(answer) = answer {
                    self.take(answer);
                }
            }
            ("begin", [kind]) => {
                let kind = frames::kind(kind);
                self.send(Frame::SnapshotBegin(v1::SnapshotBegin { kind }))
                    .await;
            }
            ("end", [kind, count, version @ ..]) => {
                let version = version.first().copied().unwrap_or("100");
                self.send(Frame::SnapshotEnd(v1::SnapshotEnd {
                    kind: frames::kind(kind),
                    resource_version: version.to_owned(),
                    count: count.parse().expect("a count"),
                }))
                .await;
            }
            ("heartbeats", [count]) => {
                for _ in 0..number(count) {
                    self.send(Frame::Heartbeat(v1::Heartbeat::default())).await;
                }
            }
            ("empty", []) => self.send_frame(None).await,
            ("bad-fields", []) => self.bad_fields().await,
            ("bytes", [text]) => {
                let (text, times) = text.split_once('*').expect("text*times");
                let times = times.parse().expect("a number");
                self.send_bytes(text.repeat(times).into_bytes()).await;
            }
            ("hex", [text]) => {
                let text = (*text).to_owned();
                self.send_bytes(made(move || hex(&text)).await).await;
            }
            ("nested", [depth]) => {
                let depth = number(depth);
                self.send_bytes(made(move || nested(depth)).await).await;
            }
            ("number", [next]) => self.object = number(next),
            ("sequence", [next]) => self.sequence = number(next).checked_sub(1),
            ("unread", []) => self.reads = false,
            ("prove", []) => self.prove().await,
            ("quiet", [ms]) => self.quiet(Duration::from_millis(number(ms))).await,
            ("close", []) => self.stream.frames = None,
            ("times", [count, step @ ..]) => {
                let step = step.join(" ");
                for _ in 0..number(count) {
                    Box::pin(self.step(&step)).await;
                }
            }
            ("hold", []) => self.end = Some("held".to_owned()),
            (verb, [count, words @ ..]) => self.many(verb, number(count), words).await,
            _ => panic!("{step} is no step"),
        }
    }

    /// Sends objects, changes or outcomes.
    async fn many(&mut self, verb: &str, count: u64, words: &[&str]) {
        let (of, words) = match verb {
            "deletes" | "bookmarks" => words.split_first().expect("of a kind"),
            _ => (&"pod", words),
        };
        let template = Template::read(words.iter().copied());
        let per = template.value("per", 0).unwrap_or(PER_FRAME);
        let mut left = count;
        while left > 0 && self.end.is_none() {
            let now = left.min(per);
            let numbers = self.object..self.object + now;
            self.object += now;
            left -= now;
            let (verb, of) = (verb.to_owned(), (*of).to_owned());
            let (template, version) = (template.clone(), self.version);
            let sequence = self.next_sequence();
            let bytes = made(move || {
                let frame = Some(frame(&verb, &of, &template, numbers, version));
                v1::ReconcileRequest { sequence, frame }.encode_to_vec()
            });
            let bytes = bytes.await;
            self.send_bytes(bytes).await;
        }
    }

    async fn send(&mut self, frame: Frame) {
        self.send_frame(Some(frame)).await;
    }

    async fn bad_fields(&mut self) {
        for event in frames::bad_fields() {
            self.event(event).await;
        }
    }

    async fn event(&mut self, event: Event) {
        self.send(tests::objects::events([event])).await;
    }

    async fn send_frame(&mut self, frame: Option<Frame>) {
        let sequence = self.next_sequence();
        let request = v1::ReconcileRequest { sequence, frame };
        self.send_bytes(request.encode_to_vec()).await;
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence = self.sequence.map(|last| last + 1);
        self.sequence.unwrap_or(0)
    }

    /// Sends bytes as soon as there is room, and takes answers meanwhile.
    async fn send_bytes(&mut self, bytes: Vec<u8>) {
        let Some(frames) = self.stream.frames.clone() else {
            return;
        };
        while self.end.is_none() {
            select! {
                biased;
                answer = self.stream.answers.message(), if self.reads => self.take(answer),
                room = frames.reserve() => {
                    if let Ok(room) = room {
                        room.send(Bytes::from(bytes));
                    }
                    return;
                }
            }
        }
    }

    /// Notes an answer.
    fn take(&mut self, said: Result<Option<v1::ReconcileResponse>, Status>) {
        match said {
            Ok(Some(answer)) => {
                self.seen.bytes += answer.encoded_len();
                let Some(Answer::Batches(batches)) = answer.frame else {
                    return;
                };
                let sets = batches
                    .batches
                    .iter()
                    .filter_map(|it| it.replica_set.as_ref());
                let mut names = sets.map(|set| set.name.as_str());
                self.seen.proved |= names.any(|name| name == "proof-of-life");
            }
            Ok(None) => self.end = Some("OK".to_owned()),
            Err(status) => self.end = Some(ending(&status)),
        }
    }

    async fn prove(&mut self) {
        let set = tests::objects::replica_set("proof-of-life").replicas(1);
        self.event(Event::ReplicaSetApplied(set.build())).await;
        let proved = async {
            while self.end.is_none() && !self.seen.proved {
                let answer = self.stream.answers.message().await;
                self.take(answer);
            }
        };
        if time::timeout(PATIENCE, proved).await.is_ok() && self.end.is_none() {
            self.end = Some("proved".to_owned());
        }
    }

    async fn quiet(&mut self, wait: Duration) {
        let until = time::Instant::now() + wait;
        while self.end.is_none() {
            select! {
                answer = self.stream.answers.message(), if self.reads => self.take(answer),
                () = time::sleep_until(until) => return,
            }
        }
    }

    /// Waits until the stream ends.
    async fn end(mut self) -> Seen {
        let rest = async {
            while self.end.is_none() {
                let answer = self.stream.answers.message().await;
                self.take(answer);
            }
        };
        let in_time = time::timeout(PATIENCE, rest).await.is_ok();
        let end = self.end.filter(|_| in_time);
        let mut seen = self.seen;
        if end.as_deref() == Some("held") {
            seen.held.push(Box::new(self.stream));
        }
        seen.ends.insert(end.unwrap_or_else(|| "silent".to_owned()));
        seen
    }
}

/// Makes bytes on another thread, so that the connection answers pings while a large frame is made.
async fn made(make: impl FnOnce() -> Vec<u8> + Send + 'static) -> Vec<u8> {
    let made = spawn_blocking(make).await;
    made.expect("a frame can be made")
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// Reads `0a03*1000+0b`: repeated bytes in base 16, one after the other.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    text.split('+').flat_map(hex_part).collect()
}

fn hex_part(text: &str) -> Vec<u8> {
    let (text, times) = text.split_once('*').unwrap_or((text, "1"));
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    let bytes: Vec<_> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.repeat(times.parse().expect("a number of times"))
}

/// Nested groups of an unknown field.
fn nested(depth: u64) -> Vec<u8> {
    let depth = usize::try_from(depth).expect("it fits");
    let (begin, end) = ([0xfb, 0x07], [0xfc, 0x07]);
    [begin.repeat(depth), end.repeat(depth)].concat()
}

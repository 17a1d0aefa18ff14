//! Stories of an agent between a server and a cluster, in tables: what comes in, and all that goes out.
//!
//! A statement prints the commands, frames and reports that it leads to.
//!
//! ```text
//! config shadow|shadow-nodes|withdraw|dry-run|prod|left-out|strict|hold|nodes     an agent of this kind
//! start POD …                                         opens a session with default/web and these pods; prints nothing
//! connect; list KIND VERSION POD … part=              the same, step by step; a list waits until it is asked for
//! create N|NAME …, delete POD …, claim +POD -POD …, status N      a batch, with generation= version= session= epoch= of=UID at=NAMESPACE/NAME
//! pod POD, gone POD, set VERSION …, gone-set VERSION, bookmark VERSION, invalid VERSION POD, invalid-set VERSION, other POD, error CODE      the watch
//! nodes begin NODE -NODE … complete     news of nodes: `a:cordoned` and `a:leaving` are there, `-a` is gone
//! expired KIND, closed KIND, refuse-watch KIND, refuse-list KIND     with retry=SECONDS
//! ok, answer pod POD, answer set VERSION …, answer gone VERSION, answer CODE REASON CAUSE, answer none      the first call, or `#N`
//! flood N                       the watch of pods: so many come and go
//! limit N, resync KIND, drain SECONDS, gap, lose, refused SECONDS, superseded, ended, stop
//! connected, welcome PROTOCOL, unknown      frames outside their order
//! wait, pass MILLIS, await, serve SECONDS   to the next timer; for a time; until the agent connects; for a time with heartbeats of the server
//! newest KIND VERSION           waits for the question, and answers it
//! state, withdrawn
//! ```
//!
//! A pod is `NAME@VERSION:FLAG,…` with the flags orphan, deleting, foreign, unlabelled, another (UID) and elsewhere (namespace). A statement
//! behind `-` is not followed by commands yet.

use std::collections::{BTreeMap, BTreeSet};

use decree_api::v1::{batch::Action, reconcile_request};
use expect_test::ExpectFile;

use self::words::{config, kind, plural, reported, requested, seconds, set_of, success, welcome};
use super::*;
use crate::{
    api::{Call, Reply},
    link::LinkCommand,
    pace::after,
    watch::{Items, WatchCommand},
};

mod words;

/// Plays the stories of a table, and compares what they print.
pub(super) fn play(table: &ExpectFile) {
    let act = |story: &mut Story, statement: &str| {
        story.act(statement);
        Some(std::mem::take(&mut story.printed).join(", "))
    };
    crate::tests::play(table, || Story::new(config("")), act);
}

struct Story {
    agent: Agent,
    now: Timestamp,
    sequence: u64,
    /// The number of the last frame of the agent.
    sent: u64,
    /// The version of the last successful call.
    version: u64,
    batches: u64,
    calls: Vec<Call>,
    lists: BTreeMap<Kind, WatchId>,
    watches: BTreeMap<Kind, WatchId>,
    questions: BTreeSet<Kind>,
    printed: Vec<String>,
}

/// The words of a statement: those without `=`, and those with it.
#[derive(Debug)]
struct Words<'a> {
    bare: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl Story {
    fn new(config: AgentConfig) -> Self {
        Self {
            agent: Agent::new(AgentConfig {
                epoch: EPOCH,
                ..config
            }),
            now: Timestamp::UNIX_EPOCH,
            sequence: 0,
            sent: 0,
            version: 10,
            batches: 0,
            calls: Vec::new(),
            lists: BTreeMap::new(),
            watches: BTreeMap::new(),
            questions: BTreeSet::new(),
            printed: Vec::new(),
        }
    }

    fn act(&mut self, statement: &str) {
        let is_quiet = statement.starts_with('-');
        let words = Words::of(statement.trim_start_matches('-'));
        let (now, text) = (self.now, words.at(1));
        match words.at(0) {
            "config" => *self = Self::new(config(text)),
            "start" => {
                self.connect();
                self.list(Kind::ReplicaSet, "10", &Words::of(""));
                self.settle();
                self.list(Kind::Pod, "10", &words);
                self.settle();
                self.printed.clear();
            }
            "list" => self.list(kind(text), words.at(2), &words.after(2)),
            "create" | "delete" | "claim" | "status" => self.batch(&words),
            "ok" | "answer" => self.answer(&words),
            "wait" => self.wait(),
            "pass" => {
                let time = after(now, Duration::from_millis(words.number(1)));
                let mut last = None;
                while let Some(due) = self.agent.poll_timeout().filter(|due| *due <= time)
                    && last.replace((due, self.printed.len())) != Some((due, self.printed.len()))
                {
                    self.wait();
                }
                self.now = time;
            }
            "await" => {
                while self.printed.last().is_none_or(|it| it != "connect") {
                    self.wait();
                }
                self.printed.drain(..self.printed.len() - 1);
            }
            "serve" => {
                let time = after(now, seconds(text).expect("a time"));
                while self.now < time {
                    self.receive(Frame::Heartbeat(v1::Heartbeat::default()));
                    self.wait();
                }
                self.printed.clear();
            }
            "flood" => {
                for _ in 0..words.number::<u32>(1) {
                    let came = self.version + 1;
                    self.version += 2;
                    self.watched(&Words::of(&format!("pod p{came}@{came}")));
                    self.watched(&Words::of(&format!("gone p{came}@{}", self.version)));
                }
            }
            "nodes" => self.agent.handle_nodes(node_events(&words.bare[1..])),
            "newest" => self.answer_question(kind(text), words.at(2)),
            "state" => self.state(),
            "withdrawn" => self.printed.push(self.agent.has_withdrawn().to_string()),
            _ if self.linked(&words) => {}
            _ => self.watched(&words),
        }
        if !is_quiet {
            self.settle();
        }
    }

    /// The connection and frames of the server. Returns whether the statement is about them.
    fn linked(&mut self, words: &Words<'_>) -> bool {
        let (now, text) = (self.now, words.at(1));
        match words.at(0) {
            "connect" => self.connect(),
            "connected" => {
                self.settle();
                self.agent.handle_connected(now);
            }
            "welcome" => self.receive(welcome(text.parse().unwrap_or(1))),
            "unknown" => self.receive_frame(None),
            "limit" => self.agent.limit_calls(words.number(1)),
            "resync" => self.receive(Frame::Resync(v1::Resync {
                kind: kind(text).to_wire().into(),
                cause: "gap".into(),
            })),
            "drain" => self.receive(Frame::Drain(v1::Drain {
                reconnect_after: seconds(text).and_then(|it| it.try_into().ok()),
                ..v1::Drain::default()
            })),
            "gap" => self.sequence += 1,
            "lose" => self
                .agent
                .handle_disconnected(now, Disconnect::Lost("reset".into())),
            "refused" => {
                let (status, retry_after) = ("no".into(), seconds(text));
                let cause = Disconnect::Refused {
                    status,
                    retry_after,
                };
                self.agent.handle_disconnected(now, cause);
            }
            "superseded" => {
                let cause = Disconnect::Superseded(String::new());
                self.agent.handle_disconnected(now, cause);
            }
            "ended" => self.agent.handle_disconnected(now, Disconnect::Ended),
            "stop" => self.agent.handle_shutdown(),
            _ => return false,
        }
        true
    }

    fn connect(&mut self) {
        self.settle();
        self.agent.handle_connected(self.now);
        self.settle();
        self.sequence = 0;
        self.receive(welcome(1));
        self.settle();
    }

    fn receive(&mut self, frame: Frame) {
        self.receive_frame(Some(frame));
    }

    fn receive_frame(&mut self, frame: Option<Frame>) {
        self.sequence += 1;
        let sequence = self.sequence;
        let frame = v1::ReconcileResponse { sequence, frame };
        self.agent.handle_frame(self.now, frame);
    }

    fn list(&mut self, kind: Kind, version: &str, words: &Words<'_>) {
        let part = part(words.named.get("part").copied().unwrap_or_default());
        let pods = words.bare.iter().filter(|it| **it != "start");
        let items = match kind {
            Kind::Pod => Items::Pods(pods.map(|it| pod_of(it)).collect()),
            Kind::ReplicaSet => Items::ReplicaSets(vec![replica_set(10, 1)]),
        };
        let list = List {
            part,
            items,
            invalid: Vec::new(),
            resource_version: version.into(),
        };
        while !self.lists.contains_key(&kind) {
            self.wait();
        }
        let id = if part.ends {
            self.lists.remove(&kind)
        } else {
            self.lists.get(&kind).copied()
        };
        let id = id.expect("the list is asked for");
        self.agent.handle_listed(self.now, kind, id, Ok(list));
    }

    fn batch(&mut self, words: &Words<'_>) {
        self.batches += 1;
        let refs = &words.bare[1..];
        let named = |sign| {
            let refs = refs.iter().filter_map(move |it| it.strip_prefix(sign));
            refs.collect::<Vec<&str>>()
        };
        let action = match (words.at(0), words.at(1).parse()) {
            ("create", Ok(count)) => create(count),
            ("create", Err(_)) => Action::Create(v1::Create {
                names: refs.iter().map(|it| (*it).to_owned()).collect(),
                generate_name: "web-".into(),
                slow_start_initial: 3,
            }),
            ("delete", _) => delete(refs),
            ("claim", _) => claim(&named('+'), &named('-')),
            (_, count) => write_status(count.map_or(0, |it: usize| it as i32)),
        };
        let mut batch = batch(self.batches, action);
        let set = batch.replica_set.get_or_insert_default();
        for (name, value) in &words.named {
            match *name {
                "generation" => batch.generation = value.parse().expect("a number"),
                "version" => batch.replica_set_version = (*value).to_owned(),
                "id" => batch.id = value.parse().expect("a number"),
                "of" => set.uid = (*value).to_owned(),
                "at" => {
                    let (namespace, name) = value.split_once('/').expect("a place");
                    (set.namespace, set.name) = (namespace.to_owned(), name.to_owned());
                }
                "epoch" => {
                    let guard = batch.guard.get_or_insert_default();
                    guard.epoch = value.parse().expect("a number");
                }
                _ => {
                    let guard = batch.guard.get_or_insert_default();
                    guard.session_id = (*value).to_owned();
                }
            }
        }
        self.receive(Frame::Batches(v1::Batches {
            batches: vec![batch],
        }));
    }

    fn answer(&mut self, words: &Words<'_>) {
        let place = words.bare.iter().find_map(|it| it.strip_prefix('#'));
        let place = place.map_or(0, |it| it.parse().expect("a number"));
        assert!(place < self.calls.len(), "{words:?}: no such call");
        let call = self.calls.remove(place);
        let result = match words.at(1) {
            "pod" => replied(pod_of(words.at(2))),
            "set" => replied_set(set_of(&words.after(1))),
            "gone" => Ok(Reply::Gone(words.at(2).into())),
            "none" => Err(ApiError::no_answer("reset")),
            code => match code.parse() {
                Ok(code) => Err(ApiError {
                    causes: words
                        .bare
                        .get(3)
                        .map(|it| (*it).into())
                        .into_iter()
                        .collect(),
                    ..refusal(code, words.at(2))
                }),
                Err(_) => {
                    self.version += 1;
                    success(&call.request, self.version)
                }
            },
        };
        self.agent.handle_reply(self.now, call.id, result);
    }

    /// News of the watches.
    fn watched(&mut self, words: &Words<'_>) {
        let version = || words.at(1).to_owned();
        let event = match words.at(0) {
            "pod" => WatchEvent::Applied(pod_of(words.at(1)).into()),
            "gone" => WatchEvent::Deleted(pod_of(words.at(1)).into()),
            "set" => WatchEvent::Applied(set_of(&words.after(0)).into()),
            "gone-set" => WatchEvent::Deleted(set_of(&words.after(0)).into()),
            "bookmark" => WatchEvent::Bookmark(version()),
            "invalid" => WatchEvent::Invalid {
                error: invalid(),
                resource_version: version(),
                left_out: words.bare.get(2).map(|it| pod_of(it).into()),
            },
            "invalid-set" => WatchEvent::Invalid {
                error: invalid(),
                resource_version: version(),
                left_out: Some(set_of(&words.after(0)).into()),
            },
            "other" => WatchEvent::MadeByOther {
                object: pod_of(words.at(1)).into(),
                writer: "k3s".into(),
            },
            "error" => WatchEvent::Error(words.refusal(words.number(1))),
            "expired" | "refuse-watch" | "closed" => {
                let kind = kind(words.at(1));
                let error = match words.at(0) {
                    "expired" => Some(words.refusal(410)),
                    "refuse-watch" => Some(words.refusal(429)),
                    _ => None,
                };
                let (id, error) = (self.watches[&kind], error.as_ref());
                return self.agent.handle_watch_closed(self.now, kind, id, error);
            }
            "refuse-list" => {
                let kind = kind(words.at(1));
                while !self.lists.contains_key(&kind) {
                    self.wait();
                }
                let id = self.lists.remove(&kind).expect("the list is asked for");
                let refused = Err(words.refusal(503));
                return self.agent.handle_listed(self.now, kind, id, refused);
            }
            other => panic!("{other} is no statement"),
        };
        let is_set = words.at(0).ends_with("set");
        let kind = if is_set { Kind::ReplicaSet } else { Kind::Pod };
        let id = self.watches[&kind];
        self.agent.handle_watch_event(self.now, kind, id, event);
    }

    /// Advances time to the next timer.
    fn wait(&mut self) {
        let due = self.agent.poll_timeout().expect("something is due");
        self.now = due.max(self.now);
        self.agent.handle_timeout(self.now);
        self.settle();
    }

    /// Waits for the question for the newest version of a kind, and answers it. The server is not silent meanwhile.
    fn answer_question(&mut self, kind: Kind, version: &str) {
        while !self.questions.remove(&kind) {
            self.receive(Frame::Heartbeat(v1::Heartbeat::default()));
            self.wait();
        }
        self.printed.clear();
        let answer = Ok(version.to_owned());
        self.agent.handle_version(self.now, kind, &answer);
    }

    fn state(&mut self) {
        let (agent, now) = (&self.agent, self.now);
        let (operations, calls) = agent.in_flight();
        let seconds = now.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64();
        let age = agent.view_age(now).map(|it| it.as_millis());
        self.printed.push(format!(
            "at {seconds} s: session {}, {operations} operations, {calls} calls, {} held, {} pods active, view age {age:?}, {}",
            agent.session_id().unwrap_or("none"),
            agent.holds().count(),
            agent.view.pods.counts(RS).active,
            if agent.is_stopped(now) { "stopped" } else { "runs" },
        ));
    }

    /// Takes all that goes out, until nothing more does.
    fn settle(&mut self) {
        loop {
            let before = self.printed.len();
            while let Some(command) = self.agent.poll_command(self.now) {
                let text = self.command(command);
                self.printed.push(text);
            }
            while let Some(frame) = self.agent.poll_frame(self.now) {
                self.note_sent(&frame);
            }
            if self.printed.len() == before {
                break;
            }
        }
        while let Some(report) = self.agent.poll_report() {
            self.printed.extend(reported(&report));
        }
    }

    /// Prints a frame of the agent, whose numbers begin with its Hello.
    fn note_sent(&mut self, frame: &v1::ReconcileRequest) {
        let content = frame.frame.as_ref().expect("it has content");
        let is_first = matches!(content, reconcile_request::Frame::Hello(_));
        self.sent = if is_first { 1 } else { self.sent + 1 };
        assert_eq!(frame.sequence, self.sent, "{content:?}");
        self.printed.extend(sent(content));
    }

    fn command(&mut self, command: AgentCommand) -> String {
        match command {
            AgentCommand::Call(call) => {
                let text = requested(&call.request);
                self.calls.push(call);
                text
            }
            AgentCommand::Link(LinkCommand::Connect) => "connect".into(),
            AgentCommand::Link(LinkCommand::Close) => "close".into(),
            AgentCommand::Link(LinkCommand::Abort) => "abort".into(),
            AgentCommand::Watch(kind, WatchCommand::List(id)) => {
                self.lists.insert(kind, id);
                format!("list {}", plural(kind))
            }
            AgentCommand::Watch(kind, WatchCommand::Watch { id, from }) => {
                self.watches.insert(kind, id);
                format!("watch {} from {from}", plural(kind))
            }
            AgentCommand::Watch(kind, WatchCommand::Stop) => format!("stop {}", plural(kind)),
            AgentCommand::WatchNodes => "watch nodes".into(),
            AgentCommand::AskCosts(call) => format!("costs: {:?}?", call.asks),
            AgentCommand::AskVersion(kind) => {
                self.questions.insert(kind);
                format!("newest {}?", plural(kind))
            }
        }
    }
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let words = text.split_whitespace();
        let (named, bare): (Vec<_>, Vec<_>) = words.partition(|it| it.contains('='));
        let named = named.into_iter().filter_map(|it| it.split_once('='));
        Self {
            bare,
            named: named.collect(),
        }
    }

    fn at(&self, place: usize) -> &'a str {
        self.bare.get(place).copied().unwrap_or_default()
    }

    /// The words behind this place.
    fn after(&self, place: usize) -> Self {
        Self {
            bare: self.bare[place + 1..].to_vec(),
            named: self.named.clone(),
        }
    }

    /// An error that asks to wait as long as the words say.
    fn refusal(&self, code: u16) -> ApiError {
        ApiError {
            retry_after_seconds: self
                .named
                .get("retry")
                .map(|it| it.parse().expect("seconds")),
            ..refusal(code, "")
        }
    }

    fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, place: usize) -> T {
        self.at(place).parse().expect("it is a number")
    }
}

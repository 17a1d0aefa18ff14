//! A malicious server: it speaks the protocol well enough to be admitted, and then requests harmful actions.
//!
//! The server reads the frames of its agents and draws an intent for each session. Between attacks, the server acts honestly,
//! because a server that is always malicious leaves no pods to harm.

use std::collections::{BTreeMap, VecDeque};

use decree_api::v1::{self, reconcile_request as request, reconcile_response::Frame};
use jiff::Timestamp;

pub use attacks::Attack;

use self::{
    attacks::Attacker,
    intent::{End, Intent},
    knowledge::Knowledge,
};
use super::server::{Sent, session_id};
use crate::{objects::pod_ref, rng::Rng};

mod attacks;
mod intent;
mod knowledge;

/// The malice of the servers in a world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malice {
    /// The only attack; `None` for all attacks.
    pub attack: Option<Attack>,
    /// Whether agents execute requests without their own rules.
    pub is_obeyed: bool,
}

/// The server.
#[derive(Debug)]
pub struct MaliciousServer {
    rng: Rng,
    only: Option<Attack>,
    known: Knowledge,
    streams: BTreeMap<u64, Stream>,
    waiting: VecDeque<Sent>,
}

/// A connection, and the intent of the server on it.
#[derive(Debug)]
struct Stream {
    epoch: i64,
    sequence: u64,
    batch: u64,
    intent: Intent,
    /// The time of the next act; `None` if the server is silent.
    due: Option<Timestamp>,
    ends: Timestamp,
    has_ended: bool,
    /// Whether the agent answers questions for costs.
    asks: bool,
}

impl MaliciousServer {
    /// Returns a server that draws from the seed, with one kind of attack or with all kinds.
    pub fn new(seed: u64, only: Option<Attack>) -> Self {
        Self {
            rng: Rng::new(seed),
            only,
            known: Knowledge::default(),
            streams: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Timestamp,
        connection: u64,
        request: &v1::ReconcileRequest,
    ) {
        match &request.frame {
            Some(request::Frame::Hello(hello)) => self.greet(now, connection, hello),
            Some(frame) => self.known.read(frame),
            None => {}
        }
    }

    pub(super) fn handle_disconnected(&mut self, connection: u64) {
        self.streams.remove(&connection);
    }

    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        let due = |stream: &Stream| stream.due.is_some_and(|at| at <= now);
        let due = self.streams.iter().filter(|(_, stream)| due(stream));
        for connection in due.map(|(it, _)| *it).collect::<Vec<_>>() {
            if let Some(mut stream) = self.streams.remove(&connection) {
                self.act(now, connection, &mut stream);
                self.streams.insert(connection, stream);
            }
        }
    }

    pub(super) fn poll(&mut self, is_of: impl Fn(u64) -> bool) -> Option<Sent> {
        let next = self.waiting.iter().position(|it| is_of(it.connection()))?;
        self.waiting.remove(next)
    }

    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.streams.values().filter_map(|stream| stream.due).min()
    }

    pub(super) fn session_count(&self, is_of: impl Fn(u64) -> bool) -> usize {
        self.streams.keys().filter(|it| is_of(**it)).count()
    }

    /// Answers a Hello correctly, wrongly, or not at all.
    fn greet(&mut self, now: Timestamp, connection: u64, hello: &v1::Hello) {
        let intent = Intent::draw(&mut self.rng, self.only);
        let mut stream = Stream {
            epoch: hello.epoch,
            sequence: 0,
            batch: 0,
            due: Some(now + intent.pause(&mut self.rng)),
            ends: now + intent.lifetime,
            intent,
            has_ended: false,
            asks: !hello.capabilities.is_empty(),
        };
        match self.rng.between(0, 99) {
            0..4 => stream.due = None,
            4..8 => self.end(connection, &mut stream),
            8..10 => {
                let frame = Frame::Heartbeat(v1::Heartbeat::default());
                self.send(connection, &mut stream, frame);
            }
            _ => {
                let welcome = stream.intent.welcome(session_id(connection), &mut self.rng);
                self.send(connection, &mut stream, Frame::Welcome(welcome));
                if stream.intent.lifetime.is_zero() {
                    self.act(now, connection, &mut stream);
                }
            }
        }
        self.streams.insert(connection, stream);
    }

    /// Acts once, and sets the time of the next act.
    fn act(&mut self, now: Timestamp, connection: u64, stream: &mut Stream) {
        stream.due = Some(now + stream.intent.pause(&mut self.rng));
        if stream.has_ended || now >= stream.ends {
            return self.end(connection, stream);
        }
        let frame = if stream.asks && self.rng.chance(300) {
            self.question(stream)
        } else {
            let noise = stream.intent.noise(&mut self.rng);
            noise.unwrap_or_else(|| self.batches(connection, stream))
        };
        self.send(connection, stream, frame);
    }

    fn batches(&mut self, connection: u64, stream: &mut Stream) -> Frame {
        let count = *self.rng.pick(&[1, 1, 1, 2, 5]);
        let mut batches = Vec::new();
        for _ in 0..count {
            let attack = *self.rng.pick(&stream.intent.attacks);
            let mut attacker = Attacker {
                known: &self.known,
                rng: &mut self.rng,
            };
            let Some(mut batch) = attacker.batch(attack) else {
                continue;
            };
            stream.batch += u64::from(!self.rng.chance(1));
            batch.id = stream.batch;
            batch.guard = Some(v1::Guard {
                session_id: session_id(connection),
                epoch: stream.epoch,
            });
            if attack == Attack::MistakeGuard {
                batch.guard = self.mistaken_guard(connection, stream.epoch);
            }
            batches.push(batch);
        }
        if batches.is_empty() {
            Frame::Heartbeat(v1::Heartbeat::default())
        } else {
            Frame::Batches(v1::Batches { batches })
        }
    }

    /// Asks for the costs of any pods, under the name of any ReplicaSet.
    fn question(&mut self, stream: &mut Stream) -> Frame {
        stream.batch += u64::from(!self.rng.chance(20));
        let sets: Vec<_> = self.known.sets.values().collect();
        let pods = self.known.pods.values().map(pod_ref);
        let pods: Vec<_> = pods.chain(self.known.gone.iter().cloned()).collect();
        let count = *self.rng.pick(&[0, 1, 3, 3, 100, 100, 100, 101]);
        let count = if pods.is_empty() { 0 } else { count };
        let mut pods: Vec<_> = (0..count).map(|_| self.rng.pick(&pods).clone()).collect();
        if let Some(pod) = pods.first_mut().filter(|_| self.rng.chance(300)) {
            pod.name = "../secrets/x?".to_owned();
        }
        let set = (!sets.is_empty()).then(|| {
            let set = self.rng.pick(&sets);
            let (namespace, name, uid) = (&set.namespace, &set.name, &set.uid);
            v1::ObjectRef {
                namespace: namespace.clone(),
                name: name.clone(),
                uid: uid.clone(),
            }
        });
        Frame::CostsWanted(v1::CostsWanted {
            id: stream.batch,
            replica_set: set,
            pods,
            timeout: Some(prost_types::Duration {
                seconds: *self.rng.pick(&[2, -1, i64::MAX, 0]),
                nanos: *self.rng.pick(&[0, i32::MIN]),
            }),
        })
    }

    fn mistaken_guard(&mut self, connection: u64, epoch: i64) -> Option<v1::Guard> {
        let session = session_id(connection - self.rng.between(0, 1));
        let epochs = [epoch - 1, epoch + 1, i64::MAX, -1, epoch];
        let guard = v1::Guard {
            session_id: session,
            epoch: *self.rng.pick(&epochs),
        };
        self.rng.chance(800).then_some(guard)
    }

    fn end(&mut self, connection: u64, stream: &mut Stream) {
        let repeated = std::mem::replace(&mut stream.has_ended, true);
        match stream.intent.end(&mut self.rng) {
            End::Drain(drain) if !repeated => self.send(connection, stream, Frame::Drain(drain)),
            End::Silence => stream.due = None,
            End::Cut(cause) => {
                stream.due = None;
                self.waiting.push_back(Sent::Cut { connection, cause });
            }
            End::Drain(_) => stream.due = None,
        }
    }

    fn send(&mut self, connection: u64, stream: &mut Stream, frame: Frame) {
        stream.sequence += u64::from(!self.rng.chance(1));
        let frame = v1::ReconcileResponse {
            sequence: stream.sequence,
            frame: Some(frame),
        };
        self.waiting.push_back(Sent::Frame {
            connection,
            frame,
            batches: Vec::new(),
        });
    }
}

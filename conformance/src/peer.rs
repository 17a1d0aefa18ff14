//! One session from the server's side: the frames in both directions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use decree_api::v1::{
    Batch, Batches, Guard, Heartbeat, Hello, Kind, Limits, Outcome, Pod, ReconcileRequest,
    ReconcileResponse, ReplicaSet, Welcome, outcome, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use tonic::{Code, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::history::{History, check_number};

mod view;

pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// The maximum time that the kit waits for an agent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The error of a read after the agent has closed its side of the stream.
pub(crate) const CLOSED: &str = "the agent closed its stream";

/// The number of sessions, which makes their ids.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct ConnectedAgent {
    pub(crate) id: String,
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) replica_sets: BTreeMap<String, ReplicaSet>,
    pub(crate) hello: Option<Hello>,
    /// The first fault for each rule about all frames.
    pub(crate) faults: BTreeMap<&'static str, String>,
    frames: Streaming<ReconcileRequest>,
    answers: mpsc::Sender<Result<ReconcileResponse, Status>>,
    /// When a heartbeat is due; `None` until another frame is sent.
    heartbeat_at: Option<Instant>,
    sent: u64,
    /// The number of the last frame that had one.
    received: u64,
    batches: u64,
    outcomes: BTreeMap<(u64, u32), Outcome>,
    open: BTreeMap<i32, BTreeSet<String>>,
    lists: BTreeMap<i32, u32>,
    /// The kinds whose list is open and has had an outcome.
    reported: BTreeSet<i32>,
    /// The newest version of an event of each kind since the last list.
    newest: BTreeMap<i32, u64>,
    /// The version of the last list of each kind.
    last_lists: BTreeMap<i32, u64>,
    history: History,
    /// The history at the begin of the open list of pods.
    before_list: History,
}

impl ConnectedAgent {
    pub(crate) fn new(
        frames: Streaming<ReconcileRequest>,
        answers: mpsc::Sender<Result<ReconcileResponse, Status>>,
    ) -> Self {
        Self {
            id: format!("conformance-{}", SESSIONS.fetch_add(1, Ordering::Relaxed)),
            pods: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            hello: None,
            faults: BTreeMap::new(),
            frames,
            answers,
            // The Welcome is the first frame.
            heartbeat_at: None,
            sent: 0,
            received: 0,
            batches: 0,
            outcomes: BTreeMap::new(),
            open: BTreeMap::new(),
            lists: BTreeMap::new(),
            reported: BTreeSet::new(),
            newest: BTreeMap::new(),
            last_lists: BTreeMap::new(),
            history: History::default(),
            before_list: History::default(),
        }
    }

    /// Reads the Hello, answers it, and reads both lists.
    pub(crate) async fn open(&mut self) -> Result<(), String> {
        let first = self.next().await?;
        let Frame::Hello(hello) = first else {
            return Err(format!("the first frame is {first:?}"));
        };
        self.hello = Some(hello);
        let welcome = Welcome {
            protocol: 1,
            session_id: self.id.clone(),
            limits: Some(Limits {
                max_frame_bytes: 4 << 20,
                max_operations_in_flight: 100,
                max_objects: 1_000,
            }),
            heartbeat_interval: INTERVAL.try_into().ok(),
            server_version: "conformance".to_owned(),
        };
        self.send(Answer::Welcome(welcome)).await;
        self.read_until(|peer| peer.lists.len() == 2).await
    }

    pub(crate) async fn send(&mut self, answer: Answer) {
        self.send_frame(Some(answer)).await;
    }

    /// Sends a frame. `None` is a frame of an unknown type.
    pub(crate) async fn send_frame(&mut self, frame: Option<Answer>) {
        self.heartbeat_at = Some(Instant::now() + INTERVAL / 2);
        self.sent += 1;
        let sequence = self.sent;
        // The reads notice an agent that is gone.
        let answer = Ok(ReconcileResponse { sequence, frame });
        let _ = self.answers.send(answer).await;
    }

    /// Sends a heartbeat whose number is wrong by this much. Another frame must have been sent before.
    pub(crate) async fn misnumber(&mut self, by: i64) {
        self.sent = self.sent.saturating_add_signed(by);
        self.send(Answer::Heartbeat(Heartbeat::default())).await;
    }

    /// Sends no heartbeats until another frame is sent.
    pub(crate) fn be_silent(&mut self) {
        self.heartbeat_at = None;
    }

    pub(crate) async fn cut(self) {
        self.end(Status::unavailable("cut")).await;
    }

    /// Ends the stream, and leaves the agent's frames unread.
    pub(crate) async fn end(&self, status: Status) {
        let _ = self.answers.send(Err(status)).await;
    }

    /// Refuses the session, with a reconnect delay.
    pub(crate) async fn refuse(self, delay: Duration) {
        let mut details = ErrorDetails::with_retry_info(Some(delay));
        details.set_error_info("SERVER_DRAINING", "decree.dev", []);
        let why = "the server is shutting down";
        let status = Status::with_error_details(Code::Unavailable, why, details);
        self.end(status).await;
    }

    /// Ends the session in favor of another one of the same cluster and epoch.
    pub(crate) async fn supersede(self) {
        let facts = [
            ("session_id", "another session"),
            ("agent_instance", "another agent"),
            ("epoch", &self.epoch().to_string()),
        ];
        let facts = facts.map(|(fact, value)| (fact.to_owned(), value.to_owned()));
        let details = ErrorDetails::with_error_info("SESSION_SUPERSEDED", "decree.dev", facts);
        let why = "a newer session took over";
        let status = Status::with_error_details(Code::Aborted, why, details);
        self.end(status).await;
    }

    pub(crate) fn epoch(&self) -> i64 {
        self.hello.as_ref().map_or(0, |hello| hello.epoch)
    }

    pub(crate) fn guard(&self) -> Guard {
        Guard {
            session_id: self.id.clone(),
            epoch: self.epoch(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.pods.values().map(|pod| pod.name.clone()).collect();
        names.sort();
        names
    }

    /// Requests a list, and reads until the list is complete.
    pub(crate) async fn relist(&mut self, kind: Kind) -> Result<(), String> {
        let before = self.lists.get(&kind.into()).copied();
        let resync = decree_api::v1::Resync {
            kind: kind.into(),
            cause: "conformance".to_owned(),
        };
        self.send(Answer::Resync(resync)).await;
        let is_newer = |peer: &Self| peer.lists.get(&kind.into()).copied() > before;
        self.read_until(is_newer).await
    }

    /// Sends a batch with the next number, and returns the outcomes of its `operations`.
    pub(crate) async fn execute(
        &mut self,
        batch: Batch,
        operations: usize,
    ) -> Result<Vec<outcome::Outcome>, String> {
        let id = self.start(batch).await;
        self.outcomes_of(id, operations).await
    }

    /// Sends a batch with the next number, and returns the number.
    pub(crate) async fn start(&mut self, batch: Batch) -> u64 {
        self.batches += 1;
        let batches = vec![Batch {
            id: self.batches,
            ..batch
        }];
        self.send(Answer::Batches(Batches { batches })).await;
        self.batches
    }

    pub(crate) async fn outcomes_of(
        &mut self,
        id: u64,
        operations: usize,
    ) -> Result<Vec<outcome::Outcome>, String> {
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        let has = |peer: &Self, at| peer.outcomes.contains_key(&(id, at));
        let is_there = |peer: &Self| (0..operations).all(|at| has(peer, at));
        self.read_until(is_there).await?;
        let outcome = |at| self.outcomes.get(&(id, at))?.outcome.clone();
        let outcomes: Option<_> = (0..operations).map(outcome).collect();
        outcomes.ok_or_else(|| format!("an outcome of batch {id} has no content"))
    }

    pub(crate) async fn heartbeat(&mut self) -> Result<(), String> {
        loop {
            if matches!(self.next().await?, Frame::Heartbeat(_)) {
                return Ok(());
            }
        }
    }

    /// Reads until the stream ends, and returns its end: [`CLOSED`], or an error.
    pub(crate) async fn closed(&mut self) -> String {
        loop {
            if let Err(end) = self.next().await {
                return end;
            }
        }
    }

    async fn read_until(&mut self, is_there: impl Fn(&Self) -> bool) -> Result<(), String> {
        let read = async {
            while !is_there(self) {
                self.next().await?;
            }
            Ok(())
        };
        let waited = timeout(PATIENCE, read).await;
        waited.unwrap_or_else(|_| Err("it did not come within 20 seconds".to_owned()))
    }

    /// Leaves the agent's frames unread for the time of this number of heartbeats, and sends them.
    pub(crate) async fn read_nothing(&mut self, heartbeats: u32) {
        for _ in 0..heartbeats {
            sleep(INTERVAL / 2).await;
            self.send(Answer::Heartbeat(Heartbeat::default())).await;
        }
    }

    /// The next frame, after the view has been updated with it. Sends the heartbeats that are due.
    async fn next(&mut self) -> Result<Frame, String> {
        let until = Instant::now() + PATIENCE;
        let message = loop {
            if self.heartbeat_at.is_some_and(|due| due <= Instant::now()) {
                self.send(Answer::Heartbeat(Heartbeat::default())).await;
            }
            let wake = self.heartbeat_at.map_or(until, |due| due.min(until));
            match timeout_at(wake, self.frames.message()).await {
                Ok(message) => break message.map_err(|status| status.to_string())?,
                Err(_) if Instant::now() >= until => {
                    return Err("nothing came within 20 seconds".to_owned());
                }
                Err(_) => {}
            }
        };
        let message = message.ok_or(CLOSED)?;
        let fault = check_number(&mut self.received, message.sequence);
        self.note(fault);
        let frame = message.frame.ok_or("a frame without content")?;
        self.take(&frame);
        Ok(frame)
    }

    pub(crate) fn only_set(&self) -> Result<ReplicaSet, String> {
        let mut sets = self.replica_sets.values();
        match (sets.next(), sets.next()) {
            (Some(set), None) => Ok(set.clone()),
            _ => {
                let found = self.replica_sets.len();
                Err(format!("the agent has {found} ReplicaSets in place of one"))
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! A server that sends the frames of a test, one by one, and receives the agent's frames.

use std::{future::ready, time::Duration};

use decree_api::v1::{
    Batch, Batches, Create, Delete, Drain, Event, Guard, Kind, ObjectRef, Outcome,
    ReconcileResponse, SnapshotEnd, Victim, Welcome, batch,
    decision_service_server::DecisionServiceServer, reconcile_request, reconcile_response,
};
use tests::{
    running::PATIENCE,
    sessions::{Answers, Frames, Sessions},
};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::mpsc::{Receiver, Sender, channel},
    time::timeout,
};
use tokio_stream::{
    StreamExt as _,
    wrappers::{ReceiverStream, TcpListenerStream},
};
use tonic::{Status, transport::Server};

/// More than the sessions of any test, and more than the frames of one session.
const MANY: usize = 100;

/// The id of each session.
const ID: &str = "scripted";

/// A server on a free port. The test decides which frames it sends.
pub(crate) struct Scripted {
    pub(crate) address: String,
    runtime: Runtime,
    sessions: Receiver<Session>,
}

/// One session, after the Welcome.
pub(crate) struct Session {
    said: Frames,
    answers: Sender<Result<ReconcileResponse, Status>>,
    sent: u64,
    batches: u64,
    /// The received outcomes and events that the test has not read yet.
    outcomes: Vec<Outcome>,
    events: Vec<Event>,
    lists: Vec<SnapshotEnd>,
}

impl Scripted {
    pub(crate) fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (opened, sessions) = channel(MANY);
        let open = move |frames| {
            let (session, answers) = Session::open(frames);
            // After its end, a test accepts no more sessions.
            let _ = opened.try_send(session);
            ready(Ok(answers))
        };
        let serving = Server::builder()
            .add_service(DecisionServiceServer::new(Sessions(open)))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(serving);
        Self {
            address,
            runtime,
            sessions,
        }
    }

    pub(crate) fn session(&mut self) -> Session {
        let sessions = &mut self.sessions;
        let opened = self
            .runtime
            .block_on(async { timeout(PATIENCE, sessions.recv()).await });
        opened.expect("the agent comes").expect("it serves")
    }

    /// Waits for `count` outcomes, and returns them in order.
    pub(crate) fn outcomes(&self, session: &mut Session, count: usize) -> Vec<Outcome> {
        while session.outcomes.len() < count {
            assert!(self.read(session), "the agent has ended the stream");
        }
        session.outcomes.drain(..count).collect()
    }

    pub(crate) fn event(&self, session: &mut Session) -> Event {
        while session.events.is_empty() {
            assert!(self.read(session), "the agent has ended the stream");
        }
        session.events.remove(0)
    }

    /// Waits for the end of the next list of pods, and returns the number of its pods.
    pub(crate) fn listed_pods(&self, session: &mut Session) -> i64 {
        loop {
            let mut lists = session.lists.drain(..);
            if let Some(end) = lists.find(|end| end.kind() == Kind::Pod) {
                return end.count;
            }
            drop(lists);
            assert!(self.read(session), "the agent has ended the stream");
        }
    }

    /// Returns the number of received outcomes that the test has not read.
    pub(crate) fn unread(session: &Session) -> usize {
        session.outcomes.len()
    }

    /// Waits until the agent has closed its side of the stream, and then ends the stream.
    pub(crate) fn wait_until_closed(&self, mut session: Session) {
        while self.read(&mut session) {}
    }

    /// Reads a frame. Returns false at the end of the stream.
    fn read(&self, session: &mut Session) -> bool {
        let frame = self
            .runtime
            .block_on(async { timeout(PATIENCE, session.said.next()).await });
        match frame.expect("the agent speaks") {
            None | Some(Err(_)) => return false,
            Some(Ok(frame)) => match frame.frame {
                Some(reconcile_request::Frame::Outcomes(come)) => {
                    session.outcomes.extend(come.outcomes);
                }
                Some(reconcile_request::Frame::Events(come)) => session.events.extend(come.events),
                Some(reconcile_request::Frame::SnapshotEnd(end)) => session.lists.push(end),
                _ => {}
            },
        }
        true
    }
}

impl Session {
    fn open(said: Frames) -> (Self, Answers) {
        let (answers, stream) = channel(MANY);
        let mut session = Self {
            said,
            answers,
            sent: 0,
            batches: 0,
            outcomes: Vec::new(),
            events: Vec::new(),
            lists: Vec::new(),
        };
        session.say(reconcile_response::Frame::Welcome(Welcome {
            protocol: 1,
            session_id: ID.to_owned(),
            heartbeat_interval: Duration::from_mins(1).try_into().ok(),
            ..Welcome::default()
        }));
        (session, Box::pin(ReceiverStream::new(stream)))
    }

    /// Requests pods with these names, all of them in the first round.
    pub(crate) fn create(&mut self, owner: &ObjectRef, names: &[&str]) {
        self.batch(
            owner,
            batch::Action::Create(Create {
                names: names.iter().map(|&name| name.to_owned()).collect(),
                slow_start_initial: 1_000,
                ..Create::default()
            }),
        );
    }

    /// Requests the deletion of a pod whose UID is its name.
    pub(crate) fn delete(&mut self, owner: &ObjectRef, name: &str) {
        let pod = ObjectRef {
            namespace: owner.namespace.clone(),
            name: name.to_owned(),
            uid: name.to_owned(),
        };
        let victim = Victim {
            pod: Some(pod),
            ..Victim::default()
        };
        let victims = vec![victim];
        self.batch(owner, batch::Action::Delete(Delete { victims }));
    }

    pub(crate) fn drain(&mut self) {
        self.say(reconcile_response::Frame::Drain(Drain::default()));
    }

    fn batch(&mut self, owner: &ObjectRef, action: batch::Action) {
        self.batches += 1;
        let guard = Guard {
            session_id: ID.to_owned(),
            epoch: 0,
        };
        let batch = Batch {
            id: self.batches,
            replica_set: Some(owner.clone()),
            guard: Some(guard),
            action: Some(action),
            ..Batch::default()
        };
        let batches = vec![batch];
        self.say(reconcile_response::Frame::Batches(Batches { batches }));
    }

    fn say(&mut self, frame: reconcile_response::Frame) {
        self.sent += 1;
        let frame = ReconcileResponse {
            sequence: self.sent,
            frame: Some(frame),
        };
        // A missing response later shows that the agent is gone.
        let _ = self.answers.try_send(Ok(frame));
    }
}

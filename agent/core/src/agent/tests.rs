//! The agent as a whole: snapshot, changes, batches and outcomes, with the link up and down.

use std::collections::BTreeMap;

use decree::v1::{reconcile_request::Frame, reconcile_response::Frame as ServerFrame};

use super::*;
use crate::{
    api::{Call, Request},
    link::LinkCommand,
    tests::*,
    watch::{Items, Part, WatchCommand},
};

mod history;
mod lists;
mod others;
mod refusals;
mod unsettled;

const START: Timestamp = Timestamp::UNIX_EPOCH;

/// An agent between a scripted server and a scripted cluster, stepped by hand.
struct Rig {
    agent: Agent,
    now: Timestamp,
    sequence: u64,
    calls: Vec<Call>,
    links: Vec<LinkCommand>,
    lists: BTreeMap<Kind, WatchId>,
    watches: BTreeMap<Kind, (WatchId, String)>,
    questions: BTreeMap<Kind, VersionId>,
}

impl Rig {
    fn new(config: AgentConfig) -> Self {
        let agent = Agent::new(AgentConfig {
            epoch: EPOCH,
            lenient: true,
            ..config
        });
        let (calls, links) = (Vec::new(), Vec::new());
        let (lists, watches) = (BTreeMap::new(), BTreeMap::new());
        Self {
            agent,
            now: START,
            sequence: 0,
            calls,
            links,
            lists,
            watches,
            questions: BTreeMap::new(),
        }
    }

    /// An agent in a session that has sent its lists: default/web at version 10, and these pods.
    fn open(pods: &[v1::Pod]) -> Self {
        let mut rig = Self::new(AgentConfig::default());
        rig.connect();
        rig.answer_lists("10", pods);
        rig.frames();
        rig
    }

    fn connect(&mut self) {
        self.effects();
        assert_eq!(std::mem::take(&mut self.links), [LinkCommand::Connect]);
        self.agent.handle_connected(self.now);
        let frames = self.frames();
        assert!(matches!(&frames[..], [Frame::Hello(_)]), "{frames:?}");
        self.sequence = 0;
        let limits = v1::Limits {
            max_operations_in_flight: 100,
            ..v1::Limits::default()
        };
        self.receive(ServerFrame::Welcome(v1::Welcome {
            protocol: 1,
            session_id: SESSION.into(),
            limits: Some(limits),
            ..v1::Welcome::default()
        }));
    }

    fn receive(&mut self, frame: ServerFrame) {
        self.sequence += 1;
        let frame = v1::ReconcileResponse {
            sequence: self.sequence,
            frame: Some(frame),
        };
        self.agent.handle_frame(self.now, frame);
        self.effects();
    }

    fn receive_batch(&mut self, batch: v1::Batch) {
        self.receive(ServerFrame::Batches(v1::Batches {
            batches: vec![batch],
        }));
    }

    fn effects(&mut self) {
        while let Some(command) = self.agent.poll_command(self.now) {
            match command {
                AgentCommand::Call(call) => self.calls.push(call),
                AgentCommand::Link(command) => self.links.push(command),
                AgentCommand::Watch(kind, WatchCommand::List(id)) => {
                    self.lists.insert(kind, id);
                }
                AgentCommand::Watch(kind, WatchCommand::Watch { id, from }) => {
                    self.watches.insert(kind, (id, from));
                }
                AgentCommand::Watch(kind, WatchCommand::Stop) => drop(self.watches.remove(&kind)),
                AgentCommand::AskVersion(kind, id) => drop(self.questions.insert(kind, id)),
            }
        }
    }

    /// Answers the lists; the first list of pods begins when that of ReplicaSets has come.
    fn answer_lists(&mut self, version: &str, pods: &[v1::Pod]) {
        while !self.lists.is_empty() {
            self.answer_list(version, pods);
        }
    }

    fn answer_list(&mut self, version: &str, pods: &[v1::Pod]) {
        let (kind, id) = self.lists.pop_first().expect("it is asked for");
        let items = match kind {
            Kind::Pod => Items::Pods(pods.iter().collect()),
            Kind::ReplicaSet => Items::ReplicaSets(vec![replica_set(10, 1)]),
        };
        let list = List {
            part: Part::Whole,
            items,
            invalid: Vec::new(),
            resource_version: version.into(),
        };
        self.agent.handle_listed(self.now, kind, id, Ok(list));
        self.effects();
    }

    fn event(&mut self, event: WatchEvent) {
        let id = self.watches[&Kind::Pod].0;
        self.agent
            .handle_watch_event(self.now, Kind::Pod, id, event);
    }

    fn applied(&mut self, pod: v1::Pod) {
        self.event(WatchEvent::Applied(pod.into()));
    }

    fn deleted(&mut self, pod: v1::Pod) {
        self.event(WatchEvent::Deleted(pod.into()));
    }

    fn answer(&mut self, result: Result<Reply, ApiError>) {
        let call = self.calls.remove(0);
        self.agent.handle_reply(self.now, call.id, result);
        self.effects();
    }

    fn lose(&mut self) {
        self.agent
            .handle_disconnected(self.now, Disconnect::Lost("reset".into()));
        self.effects();
    }

    /// Advances time to the next timer.
    fn wait(&mut self) {
        self.now = self
            .agent
            .poll_timeout()
            .expect("something is due")
            .max(self.now);
        self.agent.handle_timeout(self.now);
        self.effects();
    }

    fn frames(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.agent.poll_frame(self.now))
            .filter_map(|it| it.frame)
            .collect()
    }

    fn outcomes(&mut self) -> Vec<&'static str> {
        let frames = self.frames().into_iter();
        let outcomes = frames.filter_map(|frame| {
            let Frame::Outcomes(outcomes) = frame else {
                return None;
            };
            Some(outcomes.outcomes)
        });
        outcomes.flatten().map(|outcome| word(&outcome)).collect()
    }
}

fn create_pod(rig: &mut Rig) {
    rig.receive_batch(batch(1, create(1)));
    assert!(matches!(
        rig.calls[..],
        [Call {
            request: Request::CreatePod { .. },
            ..
        }]
    ));
}

#[test]
fn changes_become_events() {
    let mut rig = Rig::open(&[pod("a", 5)]);
    rig.applied(deleting(pod("a", 11)));
    rig.deleted(pod("a", 12));
    let frames = rig.frames();
    let [Frame::Events(events)] = &frames[..] else {
        panic!("{frames:?}")
    };
    let [first, second] = &events.events[..] else {
        panic!("{events:?}")
    };
    let Some(v1::event::Event::PodApplied(applied)) = &first.event else {
        panic!("{events:?}")
    };
    assert!(applied.deleted.is_some());
    let Some(v1::event::Event::Deleted(deleted)) = &second.event else {
        panic!("{events:?}")
    };
    assert_eq!(deleted.object, Some(pod_ref("a")));
    assert_eq!(deleted.resource_version, "12");
}

#[test]
fn batch_is_executed_and_its_outcome_carries_the_pod() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.answer(replied(pod("web-0", 11)));
    let frames = rig.frames();
    let [Frame::Outcomes(outcomes)] = &frames[..] else {
        panic!("{frames:?}")
    };
    let Some(v1::outcome::Outcome::Done(done)) = &outcomes.outcomes[0].outcome else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        (done.uid.as_str(), done.resource_version.as_str()),
        ("uid-web-0", "11")
    );
}

#[test]
fn pod_of_an_own_create_can_be_deleted_before_the_watch_shows_it() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.answer(replied(pod("web-0", 11)));
    rig.receive_batch(batch(2, delete(&["web-0"])));
    assert!(matches!(
        rig.calls[..],
        [Call {
            request: Request::DeletePod { .. },
            ..
        }]
    ));
}

#[test]
fn late_answer_does_not_bring_back_a_pod_that_the_watch_saw_go() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.applied(pod("web-0", 11));
    rig.deleted(pod("web-0", 12));
    rig.answer(replied(pod("web-0", 11)));
    rig.frames();
    rig.receive_batch(batch(2, delete(&["web-0"])));
    assert_eq!(
        (rig.calls.len(), rig.outcomes()),
        (0, vec!["FAILURE_CLASS_NOT_FOUND"])
    );
}

#[test]
fn batch_of_another_session_has_no_effect() {
    let mut rig = Rig::open(&[]);
    let guard = v1::Guard {
        session_id: "s-0".into(),
        epoch: EPOCH,
    };
    rig.receive_batch(v1::Batch {
        guard: Some(guard),
        ..batch(1, create(2))
    });
    let refused = vec!["NOT_STARTED_CAUSE_GUARD"; 2];
    assert_eq!((rig.calls.len(), rig.outcomes()), (0, refused));
}

#[test]
fn batch_that_names_another_place_than_its_replica_set_has_makes_no_call() {
    let actions = [
        create(2),
        delete(&["a", "b"]),
        claim(&["o"], &["a"]),
        write_status(1),
    ];
    let elsewhere = [("kube-system", "web"), ("default", "api")];
    for action in actions {
        for (namespace, name) in elsewhere {
            let mut rig = Rig::open(&[pod("a", 5), pod("b", 6), orphan("o", 7)]);
            let replica_set = v1::ObjectRef {
                namespace: namespace.into(),
                name: name.into(),
                ..owner()
            };
            let batch = v1::Batch {
                replica_set: Some(replica_set),
                ..batch(1, action.clone())
            };
            let refused = vec!["NOT_STARTED_CAUSE_GUARD"; operation_count(&batch)];
            rig.receive_batch(batch);
            assert_eq!((rig.calls.len(), rig.outcomes()), (0, refused));
            let refusals = std::iter::from_fn(|| rig.agent.poll_report())
                .filter(|report| matches!(report, Report::BatchRefused { id: 1, .. }));
            assert_eq!(refusals.count(), 1, "it is counted");
        }
    }
}

#[test]
fn shadow_and_dry_run_execute_nothing() {
    for mode in [v1::Mode::Shadow, v1::Mode::DryRun] {
        let mut rig = Rig::new(AgentConfig {
            mode,
            ..AgentConfig::default()
        });
        rig.connect();
        rig.answer_lists("10", &[]);
        rig.receive_batch(batch(1, create(1)));
        let refused = vec!["NOT_STARTED_CAUSE_NOT_ENFORCING"];
        assert_eq!((rig.calls.len(), rig.outcomes()), (0, refused));
        let reports = std::iter::from_fn(|| rig.agent.poll_report());
        let shown = reports.filter(|report| matches!(report, Report::Shown(_)));
        // In shadow mode another controller does the work.
        assert_eq!(shown.count(), usize::from(mode == v1::Mode::DryRun));
    }
}

#[test]
fn namespace_off_the_allow_list_is_neither_sent_nor_touched() {
    let namespaces = ["prod".to_owned()].into();
    let mut rig = Rig::new(AgentConfig {
        namespaces,
        ..AgentConfig::default()
    });
    rig.connect();
    rig.answer_lists("10", &[pod("a", 5)]);
    rig.applied(pod("a", 11));
    rig.deleted(pod("a", 12));
    let sent = rig.frames();
    let objects = |frame: &Frame| matches!(frame, Frame::SnapshotObjects(_) | Frame::Events(_));
    assert!(!sent.iter().any(objects), "{sent:?}");
    rig.receive_batch(batch(1, create(1)));
    assert_eq!(
        (rig.calls.len(), rig.outcomes()),
        (0, vec!["NOT_STARTED_CAUSE_GUARD"])
    );
}

#[test]
fn calls_in_flight_end_before_the_next_hello_and_the_lists_contain_their_writes() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.lose();
    rig.now = after_long(rig.now);
    rig.agent.handle_timeout(rig.now);
    rig.effects();
    assert_eq!(rig.links, [], "no connection while the create is in flight");
    rig.answer(replied(pod("web-0", 20)));
    rig.connect();
    assert_eq!(
        rig.outcomes(),
        [""; 0],
        "the outcome is of a session that is over"
    );
    rig.answer_lists("19", &[]);
    assert_eq!(
        rig.frames().len(),
        3,
        "a list of pods older than the write is not sent"
    );
    while rig.lists.is_empty() {
        rig.wait();
    }
    rig.answer_lists("20", &[pod("web-0", 20)]);
    assert_eq!(rig.frames().len(), 3);
}

fn after_long(now: Timestamp) -> Timestamp {
    crate::backoff::after(now, Duration::from_secs(60))
}

#[test]
fn operations_of_a_lost_session_are_not_started_in_the_next() {
    let mut rig = Rig::open(&[]);
    rig.receive_batch(batch(1, create(8)));
    rig.lose();
    rig.answer(replied(pod("web-0", 11)));
    rig.wait();
    assert_eq!((rig.calls.len(), rig.agent.in_flight()), (0, (0, 0)));
}

#[test]
fn resync_lists_the_kind_again() {
    let mut rig = Rig::open(&[]);
    let kind = v1::Kind::Pod.into();
    rig.receive(ServerFrame::Resync(v1::Resync {
        kind,
        cause: "gap".into(),
    }));
    assert_eq!(rig.lists.keys().collect::<Vec<_>>(), [&Kind::Pod]);
    rig.answer_lists("12", &[]);
    let frames = rig.frames();
    assert!(
        matches!(
            &frames[..],
            [Frame::SnapshotBegin(_), Frame::SnapshotEnd(_)]
        ),
        "{frames:?}"
    );
}

#[test]
fn drain_lets_calls_end_reports_them_and_closes() {
    let mut rig = Rig::open(&[]);
    rig.receive_batch(batch(1, create(3)));
    rig.receive(ServerFrame::Drain(v1::Drain::default()));
    rig.receive_batch(v1::Batch {
        id: 2,
        ..batch(2, delete(&["x"]))
    });
    let not = "NOT_STARTED_CAUSE_NOT_ENFORCING";
    assert_eq!(rig.outcomes(), [not, not, not]);
    assert_eq!(rig.links, []);
    rig.answer(replied(pod("web-0", 11)));
    assert_eq!(rig.links, [], "the outcome is still to be sent");
    assert_eq!(rig.outcomes(), ["done"]);
    rig.effects();
    assert_eq!(rig.links, [LinkCommand::Close]);
}

#[test]
fn shutdown_ends_what_has_begun_and_then_the_agent() {
    let mut rig = Rig::open(&[]);
    rig.receive_batch(batch(1, create(3)));
    rig.agent.handle_shutdown();
    rig.answer(replied(pod("web-0", 11)));
    let not = "NOT_STARTED_CAUSE_NOT_ENFORCING";
    assert_eq!(rig.outcomes(), [not, not, "done"]);
    rig.effects();
    assert_eq!(rig.links, [LinkCommand::Close]);
    assert!(!rig.agent.is_stopped(rig.now));
    rig.agent.handle_disconnected(rig.now, Disconnect::Ended);
    assert!(rig.agent.is_stopped(rig.now));
}

#[test]
fn broken_protocol_ends_the_session_and_another_is_opened() {
    let mut rig = Rig::open(&[]);
    rig.sequence += 1;
    rig.receive_batch(batch(1, create(1)));
    assert_eq!(rig.links, [LinkCommand::Abort]);
    assert_eq!((rig.calls.len(), rig.agent.session_id()), (0, None));
    rig.links.clear();
    rig.wait();
    assert_eq!(rig.links, [LinkCommand::Connect]);
}

#[test]
fn object_that_cannot_be_read_is_left_out_alone() {
    let mut rig = Rig::open(&[]);
    rig.event(WatchEvent::Invalid {
        error: invalid(),
        resource_version: "11".into(),
    });
    rig.applied(pod("good", 12));
    let skipped = std::iter::from_fn(|| rig.agent.poll_report())
        .filter(|report| matches!(report, Report::Skipped(_)))
        .count();
    let frames = rig.frames();
    let [Frame::Events(events)] = &frames[..] else {
        panic!("{frames:?}")
    };
    assert_eq!((skipped, events.events.len()), (1, 1));
}

#[test]
fn view_age_is_that_of_the_kind_that_is_further_behind() {
    let mut rig = Rig::open(&[]);
    rig.now = crate::backoff::after(START, Duration::from_secs(4));
    rig.event(WatchEvent::Bookmark("30".into()));
    let later = crate::backoff::after(START, Duration::from_secs(5));
    assert_eq!(rig.agent.view_age(later), Some(Duration::from_secs(5)));
}

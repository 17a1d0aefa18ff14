//! The rules of a session, step by step: its frames, its end, and its clocks.

use decree::v1::reconcile_request::Frame as Asked;
use server_core::{Span, Timestamp};

use super::*;

mod older;

const START: Now = Now {
    wall: Timestamp::from_seconds(1_000_000),
    monotonic: Duration::from_secs(100),
};

fn config() -> Config {
    Config {
        server_version: "0".into(),
        frame_bytes_max: 4 << 20,
        objects_max: 3,
        operations_in_flight_max: 10,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
        heartbeat_interval: Duration::from_secs(5),
        drain_deadline: Duration::from_secs(20),
        reconnect_after: Duration::from_secs(1),
    }
}

fn request(frame: Asked) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    }
}

fn hello() -> v1::ReconcileRequest {
    request(Asked::Hello(v1::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_instance: "agent-0".to_owned(),
        cluster_uid: "c1".to_owned(),
        ..v1::Hello::default()
    }))
}

fn begin(kind: v1::Kind) -> v1::ReconcileRequest {
    let kind = kind.into();
    request(Asked::SnapshotBegin(v1::SnapshotBegin { kind }))
}

fn end(kind: v1::Kind, count: i64) -> v1::ReconcileRequest {
    request(Asked::SnapshotEnd(v1::SnapshotEnd {
        kind: kind.into(),
        resource_version: "5".to_owned(),
        count,
    }))
}

fn web() -> v1::ReplicaSet {
    v1::ReplicaSet {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "u0".to_owned(),
        replicas: Some(1),
        selector: Some(v1::LabelSelector {
            match_labels: [("app".to_owned(), "web".to_owned())].into(),
            ..v1::LabelSelector::default()
        }),
        template_labels: [("app".to_owned(), "web".to_owned())].into(),
        ..v1::ReplicaSet::default()
    }
}

fn objects(pods: usize, replica_sets: Vec<v1::ReplicaSet>) -> v1::ReconcileRequest {
    let pod = |number| v1::Pod {
        namespace: "default".to_owned(),
        name: format!("pod-{number}"),
        uid: format!("u-{number}"),
        ..v1::Pod::default()
    };
    let pods = (0..pods).map(pod).collect();
    request(Asked::SnapshotObjects(v1::SnapshotObjects {
        pods,
        replica_sets,
    }))
}

fn after(seconds: u64) -> Now {
    Now {
        wall: START.wall.plus(Span::seconds(seconds.cast_signed())),
        monotonic: START.monotonic + Duration::from_secs(seconds),
    }
}

/// Opens a session, and takes its Welcome.
fn open() -> Session {
    let session = Session::open(START, config(), "s1".to_owned(), hello());
    let mut session = session.expect("the hello is sound");
    assert_eq!(frames(&mut session, START), ["welcome"]);
    session
}

/// Opens a session whose lists have no pods and these ReplicaSets.
fn listed(sets: Vec<v1::ReplicaSet>) -> Session {
    let (mut session, count) = (open(), sets.len().try_into().expect("few"));
    for frame in [
        begin(v1::Kind::Pod),
        end(v1::Kind::Pod, 0),
        begin(v1::Kind::ReplicaSet),
        objects(0, sets),
        end(v1::Kind::ReplicaSet, count),
    ] {
        session.handle_frame(START, frame);
    }
    session
}

/// Opens a session that has decided one create.
fn with_a_batch_in_flight() -> Session {
    let mut session = listed(vec![web()]);
    assert_eq!(frames(&mut session, START), ["batches"]);
    session
}

/// Answers the first operation of each batch.
fn answers(batches: &[u64], outcome: &v1::outcome::Outcome) -> v1::ReconcileRequest {
    let outcomes = batches.iter().map(|batch_id| v1::Outcome {
        batch_id: *batch_id,
        operation: 0,
        outcome: Some(outcome.clone()),
    });
    let outcomes = outcomes.collect();
    request(Asked::Outcomes(v1::Outcomes { outcomes }))
}

fn failed(class: v1::FailureClass) -> v1::outcome::Outcome {
    v1::outcome::Outcome::Failed(v1::Failed {
        class: class.into(),
        ..v1::Failed::default()
    })
}

/// Takes all frames, in short.
fn frames(session: &mut Session, now: Now) -> Vec<&'static str> {
    let frames = std::iter::from_fn(|| session.poll_frame(now));
    let kinds = frames.map(|frame| match frame.frame.expect("a frame") {
        Frame::Welcome(_) => "welcome",
        Frame::Batches(_) => "batches",
        Frame::Resync(_) => "resync",
        Frame::Rejection(_) => "rejection",
        Frame::Heartbeat(_) => "heartbeat",
        Frame::Drain(_) => "drain",
    });
    kinds.collect()
}

fn batches(session: &mut Session) -> Vec<v1::Batch> {
    batches_at(session, START)
}

fn batches_at(session: &mut Session, now: Now) -> Vec<v1::Batch> {
    let frames = std::iter::from_fn(|| session.poll_frame(now));
    let batches = frames.filter_map(|frame| match frame.frame {
        Some(Frame::Batches(batches)) => Some(batches.batches),
        _ => None,
    });
    batches.flatten().collect()
}

fn reason(session: &Session) -> Option<&'static str> {
    session.poll_end().map(|end| match end {
        End::Closed => "closed",
        End::Refused(refusal) => refusal.reason(),
    })
}

#[test]
fn quiet_session_says_a_heartbeat_each_interval() {
    let mut session = open();
    assert_eq!(session.poll_timeout(), after(5).monotonic);
    assert!(frames(&mut session, after(4)).is_empty());
    assert_eq!(frames(&mut session, after(5)), ["heartbeat"]);
    assert_eq!(session.poll_timeout(), after(10).monotonic);
}

#[test]
fn silent_agent_is_given_up_and_a_speaking_one_is_not() {
    let mut session = open();
    session.handle_timeout(after(19));
    assert_eq!(reason(&session), None);
    session.handle_frame(after(19), begin(v1::Kind::Pod));
    session.handle_timeout(after(38));
    assert_eq!(reason(&session), None);
    session.handle_timeout(after(39));
    assert_eq!(reason(&session), Some("AGENT_SILENT"));
    assert!(frames(&mut session, after(60)).is_empty());
}

/// Lets an agent send heartbeats from one second to another. Returns how the session ended.
fn beats(session: &mut Session, seconds: std::ops::Range<u64>) -> Option<&'static str> {
    for second in seconds {
        session.handle_frame(
            after(second),
            request(Asked::Heartbeat(v1::Heartbeat::default())),
        );
        session.handle_timeout(after(second));
        frames(session, after(second));
    }
    reason(session)
}

#[test]
fn agent_that_reports_no_outcome_is_given_up() {
    let mut session = with_a_batch_in_flight();
    assert_eq!(beats(&mut session, 1..300), None);
    assert!(session.poll_timeout() <= after(300).monotonic);
    session.handle_timeout(after(300));
    assert_eq!(reason(&session), Some("OUTCOMES_MISSING"));
    assert_eq!(beats(&mut open(), 1..1_000), None, "none is due");
}

#[test]
fn each_outcome_gives_the_others_their_time() {
    let mut session = with_a_batch_in_flight();
    assert_eq!(beats(&mut session, 1..200), None);
    session.handle_frame(
        after(200),
        answers(&[1], &failed(v1::FailureClass::NotFound)),
    );
    // The server retries at once, and the retry has its own time from then on.
    assert_eq!(beats(&mut session, 200..500), None);
    assert_eq!(beats(&mut session, 500..502), Some("OUTCOMES_MISSING"));
}

#[test]
fn batch_that_is_overlooked_while_others_are_answered_ends_the_session() {
    // Of two ReplicaSets, the agent answers the first, the second, or both.
    for (answered, expected) in [
        (&["other"][..], Some("OUTCOMES_MISSING")),
        (&["web"], Some("OUTCOMES_MISSING")),
        (&["other", "web"], None),
    ] {
        let other = v1::ReplicaSet {
            name: "other".to_owned(),
            uid: "u1".to_owned(),
            ..web()
        };
        let mut session = listed(vec![web(), other]);
        for second in 1..700 {
            let now = after(second);
            let name = |batch: &v1::Batch| batch.replica_set.clone().unwrap_or_default().name;
            let taken = batches_at(&mut session, now).into_iter();
            let taken = taken.filter(|batch| answered.contains(&name(batch).as_str()));
            let taken: Vec<_> = taken.map(|batch| batch.id).collect();
            let frame = if taken.is_empty() {
                request(Asked::Heartbeat(v1::Heartbeat::default()))
            } else {
                answers(&taken, &failed(v1::FailureClass::Timeout))
            };
            session.handle_frame(now, frame);
            session.handle_timeout(now);
            if second == 300 {
                assert_eq!(reason(&session), None, "{answered:?}: it has its time");
            }
        }
        assert_eq!(reason(&session), expected, "{answered:?}");
    }
}

#[test]
fn resync_without_a_list_ends_the_session() {
    for (begins, expected) in [(false, Some("LIST_MISSING")), (true, None)] {
        let mut session = with_a_batch_in_flight();
        let done = v1::outcome::Outcome::Done(v1::Done::default());
        session.handle_frame(START, answers(&[1], &done));
        assert_eq!(frames(&mut session, START), ["resync"]);
        assert_eq!(beats(&mut session, 1..300), None);
        assert!(session.poll_timeout() <= after(300).monotonic);
        if begins {
            session.handle_frame(after(299), begin(v1::Kind::Pod));
        }
        assert_eq!(beats(&mut session, 300..301), expected);
        // However long the list takes.
        assert_eq!(beats(&mut session, 301..900), expected);
    }
}

#[test]
fn wall_clock_that_jumps_ends_no_session_and_hurries_no_heartbeat() {
    for jump in [-86_400, 86_400] {
        let mut session = open();
        let set = Now {
            wall: START.wall.plus(Span::seconds(jump)),
            ..after(1)
        };
        session.handle_timeout(set);
        assert_eq!(reason(&session), None);
        assert!(frames(&mut session, set).is_empty());
        assert_eq!(session.poll_timeout(), after(5).monotonic);
    }
}

#[test]
fn drained_session_ends_when_its_last_outcome_has_come() {
    let mut session = with_a_batch_in_flight();
    session.handle_drain(START);
    assert_eq!(frames(&mut session, START), ["drain"]);
    assert_eq!(reason(&session), None);
    let not_started = v1::outcome::Outcome::NotStarted(v1::NotStarted {
        cause: v1::NotStartedCause::Guard.into(),
        ..v1::NotStarted::default()
    });
    session.handle_frame(START, answers(&[1], &not_started));
    assert!(frames(&mut session, START).is_empty());
    assert_eq!(reason(&session), Some("SERVER_DRAINING"));
}

#[test]
fn session_that_drains_with_nothing_in_flight_says_so_and_ends() {
    let mut session = open();
    session.handle_drain(START);
    assert_eq!(frames(&mut session, START), ["drain"]);
    assert_eq!(reason(&session), Some("SERVER_DRAINING"));
}

#[test]
fn what_was_decided_leaves_after_the_agent_closed() {
    let mut session = listed(vec![web()]);
    session.handle_closed(START);
    assert_eq!(frames(&mut session, START), ["batches"]);
    assert_eq!(reason(&session), Some("closed"));
}

#[test]
fn nothing_leaves_after_a_refusal() {
    let mut session = open();
    session.handle_frame(START, begin(v1::Kind::Pod));
    session.handle_frame(START, objects(4, vec![]));
    assert_eq!(reason(&session), Some("LIMIT_REACHED"));
    assert!(frames(&mut session, after(60)).is_empty());
}

#[test]
fn frame_is_read_no_further_than_the_session_may_hold() {
    let mut session = open();
    session.handle_frame(START, begin(v1::Kind::Pod));
    session.handle_frame(START, objects(1_000, vec![]));
    assert_eq!(reason(&session), Some("LIMIT_REACHED"));
    assert_eq!(session.stats().sizes.pods, config().objects_max + 1);
}

#[test]
fn bad_object_is_rejected_and_the_session_goes_on() {
    let mut session = open();
    session.handle_frame(START, begin(v1::Kind::Pod));
    let nameless = v1::SnapshotObjects {
        pods: vec![v1::Pod::default(); 2],
        replica_sets: vec![],
    };
    session.handle_frame(START, request(Asked::SnapshotObjects(nameless)));
    session.handle_frame(START, end(v1::Kind::Pod, 2));
    assert_eq!(frames(&mut session, START), ["rejection"]);
    assert_eq!(reason(&session), None);
    let reports = std::iter::from_fn(|| session.poll_report());
    let faults = reports.filter_map(|report| {
        let SessionReport::NotAccepted { fault, others, .. } = report else {
            return None;
        };
        Some((fault.is_some(), others))
    });
    assert_eq!(faults.collect::<Vec<_>>(), [(true, 1)]);
}

#[test]
fn equal_inputs_give_equal_frames() {
    let run = || {
        let mut session = with_a_batch_in_flight();
        let last = session.poll_frame(after(5));
        (last, session.overview())
    };
    assert_eq!(run(), run());
}

//! The life of a connection: hello, heartbeats, backoff, drain.

use super::*;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const HEARTBEAT: Duration = Duration::from_secs(3);

fn new_link() -> Link {
    let hello = v1::Hello {
        cluster_name: "c".into(),
        ..v1::Hello::default()
    };
    let waits = Duration::from_millis(100)..=Duration::from_secs(2);
    Link::new(hello, waits, 1)
}

impl Link {
    /// Takes a frame that keeps the protocol.
    fn take(&mut self, now: Timestamp, frame: v1::ReconcileResponse) {
        self.handle_frame(now, frame).expect("it is in order");
    }
}

fn frame(sequence: u64, frame: Frame) -> v1::ReconcileResponse {
    v1::ReconcileResponse {
        sequence,
        frame: Some(frame),
    }
}

fn welcome() -> Frame {
    Frame::Welcome(v1::Welcome {
        protocol: 1,
        session_id: "s-1".into(),
        heartbeat_interval: HEARTBEAT.try_into().ok(),
        ..v1::Welcome::default()
    })
}

fn batches(ids: &[u64]) -> Frame {
    let batch = |id: &u64| v1::Batch {
        id: *id,
        ..v1::Batch::default()
    };
    Frame::Batches(v1::Batches {
        batches: ids.iter().map(batch).collect(),
    })
}

/// A link that waits for its Welcome.
fn greeting() -> Link {
    let mut link = new_link();
    assert_eq!(link.poll_command(START, true), Some(LinkCommand::Connect));
    link.handle_connected(START);
    let Some(reconcile_request::Frame::Hello(hello)) = link.poll_own_frame(None) else {
        panic!("the first frame is a Hello")
    };
    assert_eq!(
        (hello.protocol_min, hello.protocol_max),
        (PROTOCOL, PROTOCOL)
    );
    link
}

fn open() -> Link {
    let mut link = greeting();
    let opened = link.handle_frame(START, frame(1, welcome()));
    assert!(matches!(opened, Ok(Some(Frame::Welcome(_)))), "{opened:?}");
    link
}

#[test]
fn heartbeat_that_cannot_be_sent_does_not_come_due_again_at_once() {
    let mut link = open();
    let due = after(START, HEARTBEAT);
    assert_eq!(link.handle_timeout(due), None);
    assert_eq!(link.poll_timeout(true), Some(after(due, HEARTBEAT)));
    let Some(reconcile_request::Frame::Heartbeat(beat)) =
        link.poll_own_frame(Some(Duration::from_secs(5)))
    else {
        panic!("a heartbeat is due")
    };
    let view_age = beat.view_age.map(|age| age.seconds);
    assert_eq!((beat.last_sequence, view_age), (1, Some(5)));
}

#[test]
fn server_that_takes_no_outcome_holds_up_no_stop() {
    let mut link = open();
    link.stop();
    let mut now = START;
    assert_eq!(
        link.poll_command(now, false),
        None,
        "outcomes are still due"
    );
    loop {
        now = link.poll_timeout(false).expect("it has a deadline");
        let sequence = link.sequence_in + 1;
        let beat = Frame::Heartbeat(v1::Heartbeat::default());
        link.take(now, frame(sequence, beat));
        if let Some(cause) = link.handle_timeout(now) {
            link.abort(now, &cause);
            break;
        }
    }
    assert!(link.is_stopped());
    assert!(since(now, START) <= DRAINING_MAX);
}

#[test]
fn session_that_closes_late_ends_with_its_drain() {
    let end = after(START, DRAINING_MAX);
    for (settled, closed) in [
        (1, after(START, Duration::from_secs(1) + CLOSING_MAX)),
        (28, end),
    ] {
        let mut link = open();
        link.stop();
        assert_eq!(link.poll_command(START, false), None);
        let settled = after(START, Duration::from_secs(settled));
        let close = link.poll_command(settled, true);
        assert_eq!(close, Some(LinkCommand::Close));
        assert_eq!(link.poll_timeout(true), Some(closed));
        assert_eq!(link.handle_timeout(closed), Some(Disconnect::Ended));
    }
}

#[test]
fn hello_names_no_session_for_which_another_server_would_refuse_it() {
    let named = |id: &str| {
        let mut link = greeting();
        let welcome = v1::Welcome {
            protocol: 1,
            session_id: id.to_owned(),
            ..v1::Welcome::default()
        };
        link.take(START, frame(1, Frame::Welcome(welcome)));
        assert!(link.handle_disconnected(START, &Disconnect::Ended));
        let later = after(START, Duration::from_secs(60));
        assert_eq!(link.poll_command(later, true), Some(LinkCommand::Connect));
        link.handle_connected(later);
        let Some(reconcile_request::Frame::Hello(hello)) = link.poll_own_frame(None) else {
            panic!("the first frame is a Hello")
        };
        hello.resumes_session_id
    };
    assert_eq!(named("s-1"), "s-1");
    let long = "x".repeat(129);
    for odd in [&*long, "a\nb", "\u{e9}"] {
        assert_eq!(named(odd), "", "{odd:?}");
    }
}

#[test]
fn frame_of_countless_batches_breaks_the_protocol() {
    let ids: Vec<_> = (1..=50_001).collect();
    let refused = open().handle_frame(START, frame(2, batches(&ids)));
    assert!(refused.is_err());
}

#[test]
fn what_a_server_asks_for_is_bounded() {
    for (seconds, nanos, bounded) in [
        (1 << 62, 0, Duration::from_secs(60)),
        (0, 1, Duration::from_millis(100)),
        (5, 0, Duration::from_secs(5)),
        (i64::MIN, i32::MIN, HEARTBEAT_DEFAULT),
        (0, 0, HEARTBEAT_DEFAULT),
        (-5, 0, HEARTBEAT_DEFAULT),
    ] {
        let asked = prost_types::Duration { seconds, nanos };
        assert_eq!(heartbeat(Some(asked)), bounded);
    }
    assert_eq!(heartbeat(None), HEARTBEAT_DEFAULT);
    assert_eq!(operations_in_flight(10_000), 10_000);
    for allowed in [0, -1, i32::MAX] {
        assert_eq!(operations_in_flight(allowed), OPERATIONS_IN_FLIGHT_MAX);
    }
}

//! The life of a connection: hello, heartbeats, backoff, drain.

use super::*;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const HEARTBEAT: Duration = Duration::from_secs(3);

fn new_link() -> Link {
    let hello = v1::Hello {
        cluster_name: "c".into(),
        ..hello()
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

fn lost() -> Disconnect {
    Disconnect::Lost("reset".into())
}

#[test]
fn hello_is_said_once_and_welcome_opens_the_session() {
    let mut link = greeting();
    assert_eq!(link.poll_own_frame(None), None);
    assert_eq!((&link.session, link.takes_work()), (&None, false));
    link.take(START, frame(1, welcome()));
    assert_eq!(
        link.session.as_ref().map(|session| session.id.as_str()),
        Some("s-1")
    );
    assert!(link.takes_work());
}

#[test]
fn nothing_connects_while_calls_are_in_flight() {
    let mut link = new_link();
    assert_eq!(link.poll_command(START, false), None);
    assert_eq!(link.poll_timeout(false), None, "time will not help");
    assert_eq!(link.poll_command(START, true), Some(LinkCommand::Connect));
}

#[test]
fn lost_connection_is_opened_again_after_a_wait_and_names_the_session_before() {
    let mut link = open();
    assert!(link.handle_disconnected(START, &lost()));
    assert_eq!(link.poll_command(START, true), None);
    let due = link.poll_timeout(true).expect("it waits");
    assert!(due > START);
    assert_eq!(link.poll_command(due, true), Some(LinkCommand::Connect));
    link.handle_connected(due);
    let Some(reconcile_request::Frame::Hello(hello)) = link.poll_own_frame(None) else {
        panic!("a Hello is due")
    };
    assert_eq!(hello.resumes_session_id, "s-1");
    let sent = link.number(due, reconcile_request::Frame::Hello(hello));
    assert_eq!(sent.sequence, 1, "numbers begin anew");
}

#[test]
fn session_that_ends_at_once_does_not_shorten_the_wait() {
    let mut link = new_link();
    let mut now = START;
    for _ in 0..8 {
        assert_eq!(link.poll_command(now, true), Some(LinkCommand::Connect));
        link.handle_connected(now);
        link.take(now, frame(1, welcome()));
        link.handle_disconnected(now, &lost());
        now = link.poll_timeout(true).expect("it waits");
    }
    let last = link.poll_timeout(true).expect("it waits");
    link.poll_command(now, true);
    link.handle_disconnected(now, &lost());
    let wait = link
        .poll_timeout(true)
        .expect("it waits")
        .duration_since(last);
    assert!(wait >= jiff::SignedDuration::from_secs(1), "{wait:?}");
}

#[test]
fn refusal_waits_the_longest_and_at_least_as_long_as_asked() {
    let wait_after = |retry_after| {
        let mut link = open();
        let cause = Disconnect::Refused {
            status: "no".into(),
            retry_after,
        };
        link.handle_disconnected(START, &cause);
        since(link.poll_timeout(true).expect("it waits"), START)
    };
    assert!(wait_after(None) >= Duration::from_secs(1));
    assert_eq!(
        wait_after(Some(Duration::from_secs(9))),
        Duration::from_secs(9)
    );
}

#[test]
fn two_agents_of_one_cluster_leave_each_other_ever_longer_turns() {
    let mut link = new_link();
    let mut now = START;
    let mut waits = Vec::new();
    for _ in 0..6 {
        assert_eq!(link.poll_command(now, true), Some(LinkCommand::Connect));
        link.handle_connected(now);
        link.take(now, frame(1, welcome()));
        // The other comes back after as long a wait as this one had.
        now = after(now, waits.last().copied().unwrap_or_default());
        link.handle_disconnected(now, &Disconnect::Superseded(Successor::default()));
        let due = link.poll_timeout(true).expect("it waits");
        waits.push(since(due, now));
        now = due;
    }
    for (wait, minutes) in waits.iter().zip([1, 2, 4, 8, 16, 16]) {
        let step = Duration::from_secs(60 * minutes);
        assert!((step / 2..=step).contains(wait), "{waits:?}");
    }
}

#[test]
fn long_session_ends_the_quarrel() {
    let mut link = open();
    let superseded = Disconnect::Superseded(Successor::default());
    link.superseded.next_wait();
    link.superseded.next_wait();
    let later = after(START, SUPERSEDED_WAIT_MAX);
    link.handle_disconnected(later, &superseded);
    let due = link.poll_timeout(true).expect("it waits");
    assert!(since(due, later) <= SUPERSEDED_WAIT_MIN);
}

#[test]
fn gap_in_the_sequence_breaks_the_protocol() {
    let mut link = open();
    let gap = link.handle_frame(START, frame(3, batches(&[1])));
    assert!(gap.is_err(), "{gap:?}");
}

#[test]
fn batch_numbers_must_grow() {
    let mut link = open();
    assert!(matches!(
        link.handle_frame(START, frame(2, batches(&[1, 2]))),
        Ok(Some(Frame::Batches(_)))
    ));
    let repeated = link.handle_frame(START, frame(3, batches(&[2])));
    assert!(repeated.is_err(), "{repeated:?}");
}

#[test]
fn work_before_the_welcome_and_a_second_welcome_break_the_protocol() {
    let early = greeting().handle_frame(START, frame(1, batches(&[1])));
    assert!(early.is_err(), "{early:?}");
    let second = open().handle_frame(START, frame(2, welcome()));
    assert!(second.is_err(), "{second:?}");
}

#[test]
fn unknown_protocol_is_not_spoken() {
    let newer = v1::Welcome {
        protocol: 2,
        session_id: "s".into(),
        ..v1::Welcome::default()
    };
    let refused = greeting().handle_frame(START, frame(1, Frame::Welcome(newer)));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn frame_of_tomorrow_is_ignored() {
    let unknown = v1::ReconcileResponse {
        sequence: 2,
        frame: None,
    };
    assert_eq!(open().handle_frame(START, unknown), Ok(None));
}

#[test]
fn quiet_link_sends_a_heartbeat_each_interval() {
    let mut link = open();
    let due = after(START, HEARTBEAT);
    assert_eq!(link.poll_timeout(true), Some(due));
    assert_eq!(link.poll_own_frame(None), None);
    assert_eq!(link.handle_timeout(due), None);
    let Some(reconcile_request::Frame::Heartbeat(beat)) =
        link.poll_own_frame(Some(Duration::from_secs(5)))
    else {
        panic!("a heartbeat is due")
    };
    assert_eq!(
        (beat.last_sequence, beat.view_age.map(|age| age.seconds)),
        (1, Some(5))
    );
    link.number(due, reconcile_request::Frame::Heartbeat(beat));
    assert_eq!(link.poll_own_frame(None), None);
    assert_eq!(link.poll_timeout(true), Some(after(due, HEARTBEAT)));
}

#[test]
fn heartbeat_that_cannot_be_sent_does_not_come_due_again_at_once() {
    let mut link = open();
    let due = after(START, HEARTBEAT);
    link.handle_timeout(due);
    assert_eq!(link.poll_timeout(true), Some(after(due, HEARTBEAT)));
}

#[test]
fn silent_server_is_given_up_after_four_intervals() {
    let mut link = open();
    link.take(START, frame(2, Frame::Heartbeat(v1::Heartbeat::default())));
    assert_eq!(link.handle_timeout(after(START, HEARTBEAT * 3)), None);
    assert!(link.handle_timeout(after(START, HEARTBEAT * 4)).is_some());
}

#[test]
fn connecting_and_greeting_have_a_deadline() {
    let mut link = new_link();
    link.poll_command(START, true);
    assert!(link.handle_timeout(after(START, GREETING_MAX)).is_some());
    assert!(
        greeting()
            .handle_timeout(after(START, GREETING_MAX))
            .is_some()
    );
}

#[test]
fn draining_link_takes_no_work_closes_when_settled_and_waits_as_told() {
    let mut link = open();
    let drain = v1::Drain {
        reconnect_after: Duration::from_secs(7).try_into().ok(),
        ..v1::Drain::default()
    };
    let drained = link.handle_frame(START, frame(2, Frame::Drain(drain)));
    assert!(drained.is_ok(), "{drained:?}");
    assert!(!link.takes_work() && link.session.is_some());
    assert_eq!(
        link.poll_command(START, false),
        None,
        "outcomes are still due"
    );
    assert_eq!(link.poll_command(START, true), Some(LinkCommand::Close));
    link.handle_disconnected(START, &Disconnect::Ended);
    assert_eq!(
        link.poll_timeout(true),
        Some(after(START, Duration::from_secs(7)))
    );
}

#[test]
fn session_that_a_server_drains_at_once_does_not_shorten_the_wait() {
    let mut link = new_link();
    let mut times = Vec::new();
    let mut now = START;
    for _ in 0..12 {
        assert_eq!(link.poll_command(now, true), Some(LinkCommand::Connect));
        times.push(since(now, START));
        link.handle_connected(now);
        link.take(now, frame(1, welcome()));
        link.take(now, frame(2, Frame::Drain(v1::Drain::default())));
        assert_eq!(link.poll_command(now, true), Some(LinkCommand::Close));
        link.handle_disconnected(now, &Disconnect::Ended);
        now = link.poll_timeout(true).expect("it waits");
    }
    assert!(times[2] < Duration::from_secs(1), "{times:?}");
    let paced = times.windows(2).skip(4);
    let second = Duration::from_secs(1);
    assert!(paced.clone().count() > 6);
    assert!(
        paced.into_iter().all(|it| it[1] - it[0] >= second),
        "{times:?}"
    );
}

#[test]
fn server_that_asks_for_years_is_tried_again_in_minutes() {
    let years = Duration::from_secs(10 * 365 * 24 * 3600);
    let minutes = after(START, Duration::from_secs(300));
    let mut link = open();
    let drain = v1::Drain {
        reconnect_after: years.try_into().ok(),
        ..v1::Drain::default()
    };
    link.take(START, frame(2, Frame::Drain(drain)));
    link.handle_disconnected(START, &Disconnect::Ended);
    assert_eq!(link.poll_timeout(true), Some(minutes));
    let mut link = open();
    let cause = Disconnect::Refused {
        status: "no".into(),
        retry_after: Some(years),
    };
    link.handle_disconnected(START, &cause);
    assert_eq!(link.poll_timeout(true), Some(minutes));
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
    assert!(since(now, START) <= bounds::DRAINING_MAX);
}

#[test]
fn session_that_closes_late_ends_with_its_drain() {
    let end = after(START, bounds::DRAINING_MAX);
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
fn frame_of_countless_batches_breaks_the_protocol() {
    let ids: Vec<_> = (1..=50_001).collect();
    let refused = open().handle_frame(START, frame(2, batches(&ids)));
    assert!(refused.is_err());
}

#[test]
fn stopped_link_closes_in_order_and_opens_no_other() {
    let mut link = open();
    link.stop();
    assert_eq!(link.poll_command(START, true), Some(LinkCommand::Close));
    assert!(!link.is_stopped());
    link.handle_disconnected(START, &Disconnect::Ended);
    assert!(link.is_stopped());
    assert_eq!(
        (link.poll_command(START, true), link.poll_timeout(true)),
        (None, None)
    );
}

#[test]
fn server_that_does_not_end_the_stream_is_not_waited_for_for_ever() {
    let mut link = open();
    link.stop();
    link.poll_command(START, true);
    assert_eq!(
        link.handle_timeout(after(START, CLOSING_MAX)),
        Some(Disconnect::Ended)
    );
}

#[test]
fn stop_before_a_session_drops_the_connection() {
    let mut link = greeting();
    link.stop();
    assert!(link.is_stopped());
    assert_eq!(link.poll_command(START, false), Some(LinkCommand::Abort));
    let mut link = new_link();
    link.stop();
    assert_eq!(
        (link.is_stopped(), link.poll_command(START, true)),
        (true, None)
    );
}

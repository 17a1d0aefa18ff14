//! What is drawn, on a terminal in memory.

use decree::v1;
use expect_test::expect;
use jiff::Timestamp;
use ratatui::{Terminal, backend::TestBackend};

use super::*;
use crate::top::meter::Meter;

const AT: i64 = 1_777_636_800;

fn object(name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
    }
}

fn replica_set(name: &str, seconds: Option<i64>, in_flight: i32) -> v1::ReplicaSetSummary {
    v1::ReplicaSetSummary {
        cluster: "kind".to_owned(),
        replica_set: Some(object(name)),
        replicas: 5,
        available: 3,
        state: v1::ReplicaSetState::Acting.into(),
        operations_in_flight: in_flight,
        unconverged_since: seconds.map(|seconds| prost_types::Timestamp {
            seconds: AT - seconds,
            nanos: 0,
        }),
        ..v1::ReplicaSetSummary::default()
    }
}

fn view() -> View {
    let mut meter = Meter::default();
    for name in ["api", "api", "web", "a-name-that-is-too-long-esc\u{1b}[2J"] {
        meter.count(&v1::WatchDecisionsResponse {
            decision: Some(v1::DecisionRecord {
                cluster: "kind".to_owned(),
                replica_set: Some(object(name)),
                operations: 30,
                ..v1::DecisionRecord::default()
            }),
            missed: 0,
        });
    }
    let session = v1::SessionSummary {
        cluster_name: "kind".to_owned(),
        replica_sets: 4,
        pods: 16,
        batches_in_flight: 2,
        memory_bytes: 40 << 20,
        memory_bytes_max: 200 << 20,
        objects_max: 1_000,
        ..v1::SessionSummary::default()
    };
    let sets = vec![
        replica_set("idle", None, 0),
        replica_set("stuck", Some(3_600), 0),
        replica_set("web", Some(7), 12),
        replica_set("api", None, 0),
        replica_set("a-name-that-is-too-long-esc\u{1b}[2J", None, 0),
    ];
    let at = Timestamp::from_second(AT).expect("it is this century");
    View::new(at, vec![session], sets, &meter.take(Duration::from_secs(2)))
}

fn drawn(order: Order, height: u16) -> String {
    let mut view = view();
    view.sort(order);
    let mut terminal = Terminal::new(TestBackend::new(80, height)).expect("memory takes all");
    let drawn = terminal.draw(|frame| draw(frame, "decree top", &view, false));
    drawn.expect("memory takes all");
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(80).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn busiest_come_first_and_names_steer_nothing() {
    expect![[r#"
        decree top
        CLUSTER  MODE     DEC/S  OPS/S  IN-FLIGHT  MEMORY  MEMORY%  OBJECTS%
        kind     Enforce  2.0    60.0   2          40Mi    20%      2%

        REPLICASET               DEC/S  OPS/S  IN-FLIGHT  AVAILABLE  UNCONVERGED  STATE
        shop/api                 1.0    30.0   0          3/5        -            Acting
        shop/web                 0.5    15.0   12         3/5        7s           Acting
        shop/a-name-that-is-too  0.5    15.0   0          3/5        -            Acting
        shop/stuck               0.0    0.0    0          3/5        60m          Acting
        shop/idle                0.0    0.0    0          3/5        -            Acting

        q quit   sort by: d decisions   o operations   f in flight   u unconverged
    "#]]
    .assert_eq(&drawn(Order::Decisions, 12));
}

#[test]
fn what_does_not_fit_is_left_out_and_the_keys_stay() {
    expect![[r#"
        decree top
        CLUSTER  MODE     DEC/S  OPS/S  IN-FLIGHT  MEMORY  MEMORY%  OBJECTS%
        kind     Enforce  2.0    60.0   2          40Mi    20%      2%

        REPLICASET  DEC/S  OPS/S  IN-FLIGHT  AVAILABLE  UNCONVERGED  STATE
        shop/stuck  0.0    0.0    0          3/5        60m          Acting
        q quit   sort by: d decisions   o operations   f in flight   u unconverged
    "#]]
    .assert_eq(&drawn(Order::Unconverged, 7));
}

#[test]
fn keys_of_top_are_understood() {
    let press = |code, modifiers| wish(&Event::Key(KeyEvent::new(code, modifiers)));
    let key = |letter| press(KeyCode::Char(letter), KeyModifiers::NONE);
    assert_eq!(key('q'), Some(Wish::Quit));
    assert_eq!(
        press(KeyCode::Char('c'), KeyModifiers::CONTROL),
        Some(Wish::Quit)
    );
    assert_eq!(key('f'), Some(Wish::Sort(Order::InFlight)));
    assert_eq!(key('u'), Some(Wish::Sort(Order::Unconverged)));
    assert_eq!((key('c'), key('x')), (None, None));
    assert_eq!(wish(&Event::Resize(1, 1)), Some(Wish::Redraw));
}

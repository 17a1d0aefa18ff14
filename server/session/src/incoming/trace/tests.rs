//! Trace contexts are replaced in place, and nothing else changes.

use decree::v1::{done::Object, event::Event, outcome::Outcome, reconcile_request::Frame};

use super::*;

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const LATER: &str = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";

fn events() -> Frame {
    let places = ["", SAMPLED, "none", SAMPLED, LATER];
    let events = places.map(|traceparent| v1::Event {
        event: Some(Event::PodApplied(v1::Pod {
            name: "web-1".to_owned(),
            ..v1::Pod::default()
        })),
        traceparent: traceparent.to_owned(),
    });
    Frame::Events(v1::Events {
        events: events.into(),
    })
}

fn outcomes() -> Frame {
    let outcome = |operation, traceparent: &str| v1::Outcome {
        batch_id: 7,
        operation,
        outcome: Some(Outcome::Done(v1::Done {
            object: Some(Object::Gone(true)),
            ..v1::Done::default()
        })),
        traceparent: traceparent.to_owned(),
    };
    Frame::Outcomes(v1::Outcomes {
        outcomes: vec![outcome(0, ""), outcome(1, SAMPLED)],
    })
}

/// Returns the trace context of the child with a number.
fn child(number: u8) -> TraceContext {
    TraceContext {
        trace_id: [7; 16],
        span_id: [number; 8],
        flags: 1,
    }
}

/// Traces a frame. Returns the frame after that, and the operations of the outcomes that `begin` received.
fn traced(frame: Frame) -> (v1::ReconcileRequest, Vec<Option<u32>>) {
    let frame = Some(frame);
    let request = v1::ReconcileRequest { sequence: 2, frame };
    let (mut frame, mut seen) = (IncomingFrame::from(request), Vec::new());
    frame.trace(|place, outcome| {
        assert_eq!(place.to_string(), SAMPLED);
        seen.push(outcome.map(|it| it.operation));
        Some(child(u8::try_from(seen.len()).expect("few")))
    });
    let taken = frame.to_message().expect("it is sound");
    (taken, seen)
}

#[test]
fn places_of_events_are_written_over_and_nothing_else() {
    let (taken, seen) = traced(events());
    let (first, second) = (child(1).to_string(), child(2).to_string());
    let Frame::Events(mut expected) = events() else {
        unreachable!("they are events");
    };
    expected.events[1].traceparent = first;
    expected.events[3].traceparent = second;
    assert_eq!(taken.frame, Some(Frame::Events(expected)));
    assert_eq!(seen, [None, None]);
}

#[test]
fn outcome_is_handed_over_with_its_place() {
    let (taken, seen) = traced(outcomes());
    let Some(Frame::Outcomes(outcomes)) = taken.frame else {
        unreachable!("they are outcomes");
    };
    assert_eq!(outcomes.outcomes[0].traceparent, "");
    assert_eq!(outcomes.outcomes[1].traceparent, child(1).to_string());
    assert_eq!(seen, [Some(1)]);
}
